//! What is said of the server, and of those whom it tells.

use std::path::Path;

use turnwright_network::Network;
use url::{Host, Url};

use super::{Meaning, is_header_value, place_of};
use crate::config::format::base_path;
use crate::config::key_path::KeyPath;
use crate::config::root::path_of;
use crate::config::{Auth, Problem};

impl Meaning<'_> {
    /// What is said of the server's address goes together.
    pub(crate) fn server(self, problems: &mut Vec<Problem>, warnings: &mut Vec<Problem>) {
        let server = &self.config.server;
        if server.auth == Some(Auth::Local) && server.oidc.is_some() {
            let text = "`server.auth` is \"local\", where nobody signs in, and [server.oidc] says at whom; it must be \"tokens\" or left \
                        out beside that, or [server.oidc] left out";
            problems.push(Problem::new(place_of(self.root, ["server", "auth"]), text));
        }
        self.identity_provider(problems, warnings);
        let wrong = server.public_url.as_deref().and_then(|url| {
            let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
            let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
            // What it holds is not repeated here either.
            if authority.contains('@') {
                Some("has a user or a password, which all would see who are sent there; it must be without")
            } else if rest.contains(['?', '#']) {
                Some("has a query or a fragment, behind which there are no paths; it must end with its path")
            } else {
                None
            }
        });
        if let Some(wrong) = wrong {
            let keys = ["server", "public_url"];
            problems.push(Problem::new(place_of(self.root, keys), format!("`{}` {wrong}", KeyPath::of(keys))));
            return;
        }
        let below = server.public_url.as_deref().map(path_of).unwrap_or_default().trim_end_matches('/');
        if below.is_empty() {
            return;
        }
        let wrong = match &server.base_path {
            Some(base) if below == base => return,
            Some(base) => format!("`{below}`, and `server.base_path` is `{base}`; one of them is enough"),
            None => match base_path(below) {
                Ok(_) => return,
                Err(right) => format!("`{below}`; it must be {right}"),
            },
        };
        let text = format!("the path of `server.public_url` is {wrong}");
        problems.push(Problem::new(place_of(self.root, ["server", "public_url"]), text));
    }

    /// What the identity provider is asked for has a name, and is asked in secret.
    fn identity_provider(self, problems: &mut Vec<Problem>, warnings: &mut Vec<Problem>) {
        let Some(oidc) = &self.config.server.oidc else { return };
        let is_empty = |name: &Option<String>| name.as_deref().is_some_and(|name| name.trim().is_empty());
        let of_group = "the name of a group, or left out";
        let names = [
            ("client_id", oidc.client_id.trim().is_empty(), "the name by which the provider knows this server"),
            ("groups_claim", oidc.groups_claim.trim().is_empty(), "the name of a claim, or left out"),
            ("admin_group", is_empty(&oidc.admin_group), of_group),
            ("member_group", is_empty(&oidc.member_group), of_group),
        ];
        for (key, _, right) in names.into_iter().filter(|(_, is_wrong, _)| *is_wrong) {
            let keys = ["server", "oidc", key];
            let text = format!("`{}` is empty; it must be {right}", KeyPath::of(keys));
            problems.push(Problem::new(place_of(self.root, keys), text));
        }
        // They are sent with a space between them.
        if !oidc.scopes.iter().flat_map(|scopes| scopes.split(' ')).any(|scope| scope == "openid") {
            let keys = ["server", "oidc", "scopes"];
            let text = format!(
                "`{}` is without \"openid\", and so no provider says who signed in; it must be there",
                KeyPath::of(keys)
            );
            problems.push(Problem::new(place_of(self.root, keys), text));
        }
        if is_open(&oidc.issuer) {
            let keys = ["server", "oidc", "issuer"];
            let text = format!(
                "`{}` is `{}`: by http:// all on the way there see the client's secret, and can sign in as anybody; it should begin \
                 with https://",
                KeyPath::of(keys),
                oidc.issuer
            );
            warnings.push(Problem::new(place_of(self.root, keys), text));
        }
    }

    /// The frames of apps are of another origin than the page, and the page's is known.
    pub(crate) fn apps(self, problems: &mut Vec<Problem>) {
        let Some(frames) = &self.config.apps.sandbox_origin else { return };
        let wrong = match self.config.server.origin().map(str::to_ascii_lowercase) {
            None => "needs `server.public_url`, the address of the page that the frames are in".to_owned(),
            Some(page) if without_default_port(&page) == without_default_port(frames) => {
                format!("is `{frames}`, where the page is too; it must be another host name or port")
            }
            Some(page) if page.starts_with("https://") && !frames.starts_with("https://") => {
                format!("is `{frames}`; it must begin with https:// as `server.public_url` does, or browsers do not load it")
            }
            Some(_) => return,
        };
        let keys = ["apps", "sandbox_origin"];
        problems.push(Problem::new(place_of(self.root, keys), format!("`{}` {wrong}", KeyPath::of(keys))));
    }

    /// Whoever is told of waiting turns can be told.
    pub(crate) fn notify(self, problems: &mut Vec<Problem>) {
        let notify = &self.config.notify;
        let mut tell = |keys: &[&str], text: &str| {
            let keys = ["notify"].into_iter().chain(keys.iter().copied());
            problems.push(Problem::new(place_of(self.root, keys.clone()), format!("`{}` {text}", KeyPath::of(keys))));
        };
        if notify.command.first().is_some_and(|program| program.trim().is_empty()) {
            tell(&["command"], "begins with an empty text; it must begin with the name or path of a program");
        }
        let Some(webhook) = &notify.webhook else { return };
        if webhook.signing_key().is_none() {
            tell(
                &["webhook", "secret"],
                "is no signing secret; it must be 24 to 64 bytes in base64, with `whsec_` before them or not; `openssl rand \
                 -base64 32` makes one",
            );
        }
        for (name, _) in webhook.headers.iter().filter(|(_, value)| !is_header_value(value.expose())) {
            let text = "holds a line break or another control character; it must be one line of text";
            tell(&["webhook", "headers", name], text);
        }
    }

    /// What is sent with traces has to be headers.
    pub(crate) fn telemetry(self, problems: &mut Vec<Problem>) {
        let headers = &self.config.telemetry.otlp_headers;
        for (name, _) in headers.iter().filter(|(_, value)| !is_header_value(value.expose())) {
            let keys = ["telemetry", "otlp_headers", name];
            let text = "holds a line break or another control character; it must be one line of text";
            problems.push(Problem::new(place_of(self.root, keys), format!("`{}` {text}", KeyPath::of(keys))));
        }
    }

    /// A server is known to NATS in one way, by a whole name.
    pub(crate) fn nats(self, problems: &mut Vec<Problem>) {
        let nats = &self.config.nats;
        let mut tell = |key: &str, text: &str| {
            let keys = ["nats", key];
            problems.push(Problem::new(place_of(self.root, keys), format!("`{}` {text}", KeyPath::of(keys))));
        };
        if !matches!(nats.replicas, 1 | 3 | 5) {
            tell("replicas", &format!("is {}; it must be 1, 3 or 5", nats.replicas));
        }
        match (&nats.user, &nats.password) {
            (Some(_), None) => tell("user", "has no `password` beside it"),
            (None, Some(_)) => tell("password", "has no `user` beside it"),
            (Some(_), Some(_)) | (None, None) => {}
        }
        let ways =
            [("credentials", nats.credentials.is_some()), ("token", nats.token.is_some()), ("user", nats.user.is_some())];
        let mut given = ways.iter().filter(|(_, is_given)| *is_given).map(|(key, _)| *key);
        if let (Some(first), Some(second)) = (given.next(), given.next()) {
            tell(second, &format!("stands beside `{first}`; a server is known to NATS in one way"));
        }
        // Where nobody is called nobody reads them.
        if nats.url.is_none() {
            return;
        }
        let read = |file: &Path| std::fs::read(file).map_err(|error| error.to_string());
        let trusted = |pem: Vec<u8>| Network::default().trusting(&pem).map(drop).map_err(|error| error.to_string());
        let files = [
            ("ca_file", &nats.ca_file, nats.ca_file.as_deref().map(|file| read(file).and_then(trusted))),
            ("credentials", &nats.credentials, nats.credentials.as_deref().map(|file| read(file).map(drop))),
        ];
        for (key, file, found) in files {
            if let (Some(file), Some(Err(why))) = (file, found) {
                tell(key, &format!("is `{}`, which cannot be used: {why}", file.display()));
            }
        }
    }
}

/// Whether others see what is sent to this address: it is of another machine, and not over TLS.
fn is_open(url: &str) -> bool {
    let Some(url) = Url::parse(url).ok().filter(|url| url.scheme() == "http") else { return false };
    match url.host() {
        Some(Host::Domain(name)) => name != "localhost",
        Some(Host::Ipv4(address)) => !address.is_loopback(),
        Some(Host::Ipv6(address)) => !address.is_loopback(),
        None => false,
    }
}

/// An origin as browsers write it.
fn without_default_port(origin: &str) -> &str {
    let port = if origin.starts_with("https://") { ":443" } else { ":80" };
    origin.strip_suffix(port).unwrap_or(origin)
}
