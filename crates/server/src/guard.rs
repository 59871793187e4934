//! Who may ask while no login is needed: this machine's own programs and our own page; and the names that the server answers to.
//!
//! A page of another site can make a browser send requests here. It cannot hide its `Origin`, and it can only get around
//! that by pointing a name of its own at this machine, which `Host` shows. An address is no such name: whoever listens at another
//! loopback address than the usual one is asked by that, too.

use std::net::IpAddr;

use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header};

use crate::auth::Hosts;
use crate::door::Connection;
use crate::error::ApiError;
use crate::forwarded::Client;

fn refuse<T>(code: &'static str, detail: String) -> Result<T, ApiError> {
    Err(ApiError::new(StatusCode::FORBIDDEN, code, detail))
}

/// Refuses a header that says twice what can be said once: whoever stands before this server may have gone by the other one
/// (RFC 9112, section 3.2).
pub(crate) fn said_once(headers: &HeaderMap) -> Result<(), ApiError> {
    for name in [header::HOST, header::ORIGIN] {
        if headers.get_all(&name).into_iter().nth(1).is_some() {
            return Err(ApiError::bad_request("invalid_header", format!("the request has more than one `{name}` header")));
        }
    }
    Ok(())
}

/// Refuses a body that comes by a transfer coding besides `chunked`, which is all that is decoded before this (RFC 9112, section 6.1).
/// What stands before that was taken off by nobody.
pub(crate) fn chunked_alone(headers: &HeaderMap) -> Result<(), ApiError> {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).into_iter();
    let is_it = |coding: &HeaderValue| coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked");
    match (codings.next(), codings.next()) {
        (None, _) => Ok(()),
        (Some(coding), None) if is_it(coding) => Ok(()),
        (Some(coding), _) => {
            let coding = coding.to_str().unwrap_or("(not text)");
            let detail =
                format!("the transfer coding is `{coding}`, or there are several; send the body as it is, or `chunked` once");
            let refused = ApiError::new(StatusCode::NOT_IMPLEMENTED, "unsupported_transfer_coding", detail);
            Err(refused.ending_connection())
        }
    }
}

/// The host that a request names.
pub(crate) fn host<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Result<&'a str, ApiError> {
    match (uri.authority(), headers.get(header::HOST)) {
        (Some(authority), _) => Ok(authority.as_str()),
        (None, Some(host)) => Ok(host.to_str().unwrap_or("(not text)")),
        (None, None) => refuse("host_not_allowed", "the request has no Host header".to_owned()),
    }
}

/// Refuses what calls the server by a name that is not its own.
pub(crate) fn named(request: &Parts, hosts: &Hosts) -> Result<(), ApiError> {
    let host = host(&request.uri, &request.headers)?;
    let (is_ours, names) = match hosts {
        Hosts::Loopback => (false, "localhost, 127.0.0.1 and [::1]"),
        Hosts::Named(name) => (host.eq_ignore_ascii_case(name), &**name),
    };
    if is_ours || loopback(host, Connection::arrived_at(&request.extensions)).is_some() {
        return Ok(());
    }
    let detail = format!(
        "the Host is `{host}`; this server answers to {names} only; `public_url = \"https://{host}\"` below `[server]` makes that its name"
    );
    refuse("host_not_allowed", detail)
}

/// Refuses what calls a server at which nobody signs in by another name than those of this machine.
pub(crate) fn local_name(request: &Parts) -> Result<(), ApiError> {
    own_name(host(&request.uri, &request.headers)?, Connection::arrived_at(&request.extensions)).map(drop)
}

fn own_name(host: &str, arrived_at: Option<IpAddr>) -> Result<Loopback, ApiError> {
    loopback(host, arrived_at).map_or_else(
        || {
            let detail = format!(
                "the Host is `{host}`; this server answers to localhost, 127.0.0.1 and [::1] only, since nobody signs in; for another \
                 name write `auth = \"tokens\"` and `public_url = \"https://{host}\"` below `[server]`"
            );
            refuse("host_not_allowed", detail)
        },
        Ok,
    )
}

/// Refuses what does not come from this machine, or from a page of a site that is none of `allowed`. An `Authorization` header is ignored.
pub(crate) fn local_only(request: &Parts, allowed: &[String]) -> Result<(), ApiError> {
    let host = host(&request.uri, &request.headers)?;
    let arrived_at = Connection::arrived_at(&request.extensions);
    let ours = own_name(host, arrived_at)?;
    let Some(origin) = request.headers.get(header::ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().unwrap_or("(not text)");
    if is_ours(origin, ours, arrived_at) || is_allowed(origin, allowed) {
        Ok(())
    } else {
        // What a proxy that does not hand on the name makes of our own page.
        let mend = match origin.split_once("://").map(|(_, authority)| loopback(authority, arrived_at)) {
            Some(Some(_)) => {
                "let the proxy hand on by what name it is asked (nginx: `proxy_set_header Host $http_host;`)".to_owned()
            }
            Some(None) | None => format!("write `auth = \"tokens\"` and `public_url = \"{origin}\"` below `[server]`"),
        };
        let detail = format!(
            "the Origin is `{origin}` and the Host `{host}`; only this server's own page may call it, and those of the origins in \
             `server.allowed_origins`; if this is its own page behind a proxy, {mend}"
        );
        refuse("origin_not_allowed", detail)
    }
}

/// Whether an origin is one of these, which are in small letters.
pub(crate) fn is_allowed(origin: &str, allowed: &[String]) -> bool {
    allowed.iter().any(|allowed| origin.eq_ignore_ascii_case(allowed))
}

/// Refuses what a proxy hands on for another machine.
pub(crate) fn from_here(client: Client) -> Result<(), ApiError> {
    if client.may_be_here() {
        return Ok(());
    }
    refuse(
        "client_not_allowed",
        format!(
            "the request comes from {client}; without signing in only this machine is answered; `auth = \"tokens\"` below `[server]` lets others sign in"
        ),
    )
}

/// An authority that names this machine.
#[derive(Debug, Clone, Copy)]
struct Loopback {
    port: Option<u16>,
}

/// Reads an authority; `None` where it names anything but this machine. Of its other addresses the one counts at which the request
/// arrived.
fn loopback(authority: &str, arrived_at: Option<IpAddr>) -> Option<Loopback> {
    let authority: Authority = authority.parse().ok()?;
    if authority.as_str().contains('@') {
        return None;
    }
    let host = authority.host();
    let is_usual = host.eq_ignore_ascii_case("localhost") || host == "127.0.0.1" || host == "[::1]";
    let is_loopback = is_usual || arrived_at.is_some_and(|at| at.is_loopback() && host.parse() == Ok(at));
    is_loopback.then(|| Loopback { port: authority.port_u16() })
}

/// Whether an origin is this server by any of its loopback names.
fn is_ours(origin: &str, ours: Loopback, arrived_at: Option<IpAddr>) -> bool {
    let parts = origin.strip_prefix("http://").map(|rest| (rest, 80)).or_else(|| {
        let rest = origin.strip_prefix("https://")?;
        Some((rest, 443))
    });
    let Some((rest, default_port)) = parts else { return false };
    loopback(rest, arrived_at).is_some_and(|theirs| theirs.port.unwrap_or(default_port) == ours.port.unwrap_or(default_port))
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Request};

    use super::{chunked_alone, local_only};
    use crate::door::Connection;

    fn is_let_in_at(at: &str, host: &str, origin: Option<&str>) -> bool {
        let request = origin
            .into_iter()
            .fold(Request::builder().header("host", host), |request, origin| request.header("origin", origin));
        let arrived = Connection::new("127.0.0.1:50000".parse().unwrap(), at.parse().ok());
        let (request, ()) = request.extension(arrived).body(()).unwrap().into_parts();
        local_only(&request, &["http://page.example:5173".to_owned()]).is_ok()
    }

    fn is_let_in(host: &str, origin: Option<&str>) -> bool {
        is_let_in_at("127.0.0.1:8700", host, origin)
    }

    #[test]
    fn who_listens_at_another_loopback_address_is_asked_by_it() {
        let other = "127.0.0.2:8700";
        let table = [
            (other, "127.0.0.2:8700", None, true),
            (other, "127.0.0.2:8700", Some("http://127.0.0.2:8700"), true),
            (other, "localhost:8700", None, true),
            (other, "127.0.0.2:8700", Some("http://127.0.0.3:8700"), false),
            (other, "127.0.0.2:8700", Some("http://127.0.0.2:8701"), false),
            (other, "127.0.0.3:8700", None, false),
            (other, "127.0.0.2.example.org", None, false),
            ("127.0.0.1:8700", "127.0.0.2:8700", None, false),
            ("10.0.0.1:8700", "10.0.0.1:8700", None, false),
            ("unknown", "127.0.0.2:8700", None, false),
        ];
        for (at, host, origin, expected) in table {
            assert_eq!(is_let_in_at(at, host, origin), expected, "{at} {host} {origin:?}");
        }
    }

    #[test]
    fn a_body_comes_as_it_is_or_in_chunks_and_by_no_other_coding() {
        let table: [(&[&str], bool); 7] = [
            (&[], true),
            (&["chunked"], true),
            (&[" Chunked "], true),
            (&["gzip, chunked"], false),
            (&["gzip", "chunked"], false),
            (&["chunked, chunked"], false),
            (&["chunked;x=1"], false),
        ];
        for (codings, is_taken) in table {
            let headers = codings.iter().map(|coding| (http::header::TRANSFER_ENCODING, coding.parse().unwrap()));
            let headers: HeaderMap = headers.collect();
            assert_eq!(chunked_alone(&headers).is_ok(), is_taken, "{codings:?}");
        }
    }

    #[test]
    fn only_this_machine_and_its_own_page_are_let_in() {
        let table = [
            ("localhost", None, true),
            ("LOCALHOST:8700", None, true),
            ("127.0.0.1:8700", None, true),
            ("[::1]:8700", None, true),
            ("example.org", None, false),
            ("localhost.example.org:8700", None, false),
            ("127.0.0.1.example.org", None, false),
            ("user@localhost:8700", None, false),
            ("10.0.0.1:8700", None, false),
            ("localhost:8700", Some("http://localhost:8700"), true),
            ("127.0.0.1:8700", Some("http://localhost:8700"), true),
            ("localhost", Some("http://localhost"), true),
            ("localhost:8700", Some("http://localhost:3000"), false),
            ("localhost:8700", Some("http://evil.example"), false),
            ("localhost:8700", Some("http://localhost:8700.evil.example"), false),
            ("localhost:8700", Some("null"), false),
            ("localhost:8700", Some("http://page.example:5173"), true),
            ("localhost:8700", Some("http://Page.example:5173"), true),
            ("localhost:8700", Some("http://page.example"), false),
            ("localhost:8700", Some("https://page.example:5173"), false),
            ("page.example:5173", Some("http://page.example:5173"), false),
        ];
        for (host, origin, expected) in table {
            assert_eq!(is_let_in(host, origin), expected, "{host} {origin:?}");
        }
    }
}
