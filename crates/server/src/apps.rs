//! Where pages of MCP servers are shown (MCP Apps), and what they may reach: pure decisions.
//!
//! A page of a server is foreign code. It runs in a frame without an origin, within a frame of another origin than our own
//! page, which this server hands out under a name by which nothing else is answered. What it may load and ask is the content
//! security policy of that frame, which the page inherits.

use http::uri::Authority;
use http::{HeaderMap, Uri, header};
use turnwright_host::Domains;

use crate::auth::Site;
use crate::forwarded::Client;

/// The route that hands out frames.
pub(crate) const ROUTE: &str = "/apps/frame";
/// The name of this machine by which frames are loaded, and nothing else is answered. Names below `localhost` are this machine's
/// (RFC 6761 section 6.3).
const NAME_HERE: &str = "apps.localhost";

/// Where the pages that MCP servers have for their tools are shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Apps {
    /// Nowhere.
    Off,
    /// To whoever opens the page as `localhost` or `127.0.0.1` without TLS.
    #[default]
    OnThisMachine,
    /// In frames of this origin, in the page at [`Site::origin`].
    At(String),
}

/// Two origins: that of our page, and that of the frames in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) page: String,
    pub(crate) frames: String,
}

/// The place where pages are shown to whoever asks for our page in this way, or why there is none.
pub(crate) fn place(site: &Site, uri: &Uri, headers: &HeaderMap, client: Client) -> Result<Place, &'static str> {
    match (&site.apps, &site.origin) {
        (Apps::Off, _) => Err("they are switched off (`apps.enabled`)"),
        (Apps::At(frames), Some(page)) => Ok(Place { page: page.to_ascii_lowercase(), frames: frames.clone() }),
        (Apps::At(_), None) => Err("`server.public_url` is not set"),
        (Apps::OnThisMachine, _) => {
            let host = host(uri, headers);
            match host.as_ref().map(|host| (host.host(), host.port_u16())) {
                Some((name @ ("localhost" | "127.0.0.1"), port)) if !client.is_https() => Ok(here(name, port)),
                Some(_) | None => Err("this needs another origin for their frames: set `apps.sandbox_origin`"),
            }
        }
    }
}

fn here(name: &str, port: Option<u16>) -> Place {
    let port = port.filter(|port| *port != 80).map(|port| format!(":{port}")).unwrap_or_default();
    Place { page: format!("http://{name}{port}"), frames: format!("http://{NAME_HERE}{port}") }
}

/// Whether a request names the server as frames do.
pub(crate) fn is_for_frames(site: &Site, uri: &Uri, headers: &HeaderMap) -> bool {
    let Some(host) = host(uri, headers) else { return false };
    match &site.apps {
        Apps::Off => false,
        Apps::OnThisMachine => host.host().eq_ignore_ascii_case(NAME_HERE),
        Apps::At(frames) => {
            let (scheme, authority) = frames.split_once("://").unwrap_or_default();
            let usual = if scheme == "https" { 443 } else { 80 };
            let port = |authority: &Authority| authority.port_u16().unwrap_or(usual);
            let ours = authority.parse::<Authority>().ok();
            ours.is_some_and(|ours| ours.host().eq_ignore_ascii_case(host.host()) && port(&ours) == port(&host))
        }
    }
}

/// The place of a frame that was asked for by the name of frames, for a page at `page`; `None` where no page of ours is there.
pub(crate) fn place_of_frame(site: &Site, uri: &Uri, headers: &HeaderMap, page: &str) -> Option<Place> {
    let place = match (&site.apps, &site.origin) {
        (Apps::Off, _) | (Apps::At(_), None) => return None,
        (Apps::At(frames), Some(page)) => Place { page: page.to_ascii_lowercase(), frames: frames.clone() },
        (Apps::OnThisMachine, _) => {
            let port = host(uri, headers)?.port_u16();
            let of = |name: &str| Some(here(name, port)).filter(|place| place.page == page);
            of("localhost").or_else(|| of("127.0.0.1"))?
        }
    };
    (place.page == page).then_some(place)
}

fn host(uri: &Uri, headers: &HeaderMap) -> Option<Authority> {
    let named = || headers.get(header::HOST)?.to_str().ok()?.parse::<Authority>().ok();
    uri.authority().cloned().or_else(named).filter(|authority| !authority.as_str().contains('@'))
}

/// Of what a page wants to reach, what it may reach, and what not.
pub(crate) fn sifted(wanted: &Domains, place: &Place) -> (Domains, Vec<String>) {
    let mut refused = Vec::new();
    let mut sift = |list: &[String]| {
        let mut taken: Vec<String> = Vec::new();
        for written in list {
            match origin(written, place) {
                Some(origin) if !taken.contains(&origin) => taken.push(origin),
                Some(_) => {}
                None => refused.push(written.clone()),
            }
        }
        taken
    };
    let allowed = Domains {
        connect: sift(&wanted.connect),
        resource: sift(&wanted.resource),
        frame: sift(&wanted.frame),
        base_uri: sift(&wanted.base_uri),
    };
    (allowed, refused)
}

/// An origin of the public network over TLS, as a policy names it; `None` for anything else, and for ours.
fn origin(written: &str, place: &Place) -> Option<String> {
    let written = written.to_ascii_lowercase();
    let (scheme, rest) = written.split_once("://").filter(|(scheme, _)| matches!(*scheme, "https" | "wss"))?;
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let (host, port) = rest.split_once(':').map_or((rest, None), |(host, port)| (host, Some(port)));
    if port.is_some_and(|port| port.parse::<u16>().is_err() || !port.bytes().all(|byte| byte.is_ascii_digit())) {
        return None;
    }
    let (name, is_wild) = host.strip_prefix("*.").map_or((host, false), |name| (name, true));
    let labels: Vec<&str> = name.split('.').collect();
    let is_label = |label: &&str| {
        !label.is_empty() && label.len() < 64 && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    // No address, no name of this machine, and no wildcard over a whole country.
    let is_public =
        labels.last().is_some_and(|last| *last != "localhost" && last.bytes().any(|byte| byte.is_ascii_alphabetic()));
    if labels.len() < 2 || !labels.iter().all(is_label) || !is_public {
        return None;
    }
    let covers = |ours: &str| {
        let ours = ours.split_once("://").map_or(ours, |(_, authority)| authority);
        let ours = ours.parse::<Authority>().map(|authority| authority.host().to_ascii_lowercase()).unwrap_or_default();
        ours == name || (is_wild && ours.ends_with(&format!(".{name}")))
    };
    (!covers(&place.page) && !covers(&place.frames)).then(|| format!("{scheme}://{rest}"))
}

/// The content security policy of a frame, and so of the page in it. What is not named may not be reached.
pub(crate) fn policy(allowed: &Domains, place: &Place) -> String {
    let with = |always: &str, list: &[String]| match (always, list) {
        ("", []) => "'none'".to_owned(),
        ("", list) => list.join(" "),
        (always, []) => always.to_owned(),
        (always, list) => format!("{always} {}", list.join(" ")),
    };
    let resource = &allowed.resource;
    format!(
        "default-src 'none'; script-src {}; style-src {}; img-src {}; media-src {}; font-src {}; connect-src {}; frame-src {}; \
         base-uri {}; object-src 'none'; form-action 'none'; frame-ancestors {}",
        with("'unsafe-inline'", resource),
        with("'unsafe-inline'", resource),
        with("data:", resource),
        with("data:", resource),
        with("data:", resource),
        with("", &allowed.connect),
        with("", &allowed.frame),
        with("", &allowed.base_uri),
        place.page,
    )
}

#[cfg(test)]
mod tests;
