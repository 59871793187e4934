//! The cookies of a browser that is signed in, or about to be.

use std::fmt::Write;

use http::{HeaderMap, HeaderValue, header};

use super::Site;
use crate::forwarded::Client;

/// How long a session's cookie is kept, in seconds: as long as the session at most.
const SESSION_S: u64 = 30 * 24 * 3_600;
/// How long signing in elsewhere may take, in seconds.
const SIGN_IN_S: u64 = 600;

/// The cookies as this site names them. Under https they can be set by https alone, at the top of a host by this host alone,
/// and are sent to no other; below a path they are sent to what is below it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cookies<'a> {
    is_https: bool,
    path: &'a str,
}

impl<'a> Cookies<'a> {
    /// Those of `site` for a browser that comes so.
    pub(crate) fn of(site: &'a Site, client: Client) -> Self {
        Self { is_https: site.is_https() || client.is_https(), path: &site.path }
    }

    /// The secret of the session that a browser shows.
    pub(crate) fn session(self, headers: &HeaderMap) -> Option<&str> {
        find(headers, self.name("tw_session"))
    }

    /// What is remembered of signing in elsewhere.
    pub(crate) fn sign_in(self, headers: &HeaderMap) -> Option<&str> {
        find(headers, self.name("tw_sign_in"))
    }

    /// Sets the session, or ends it where there is none.
    pub(crate) fn set_session(self, secret: Option<&str>) -> Option<HeaderValue> {
        self.set("tw_session", secret, SESSION_S)
    }

    /// Remembers what signing in elsewhere needs, or forgets it.
    pub(crate) fn set_sign_in(self, text: Option<&str>) -> Option<HeaderValue> {
        self.set("tw_sign_in", text, SIGN_IN_S)
    }

    fn name(self, name: &'static str) -> &'static str {
        // The first of these prefixes is for cookies of the whole host alone.
        match (self.is_https, self.path, name) {
            (true, "", "tw_session") => "__Host-tw_session",
            (true, "", "tw_sign_in") => "__Host-tw_sign_in",
            (true, _, "tw_session") => "__Secure-tw_session",
            (true, _, "tw_sign_in") => "__Secure-tw_sign_in",
            (_, _, name) => name,
        }
    }

    fn set(self, name: &'static str, value: Option<&str>, max_age_s: u64) -> Option<HeaderValue> {
        let max_age_s = if value.is_some() { max_age_s } else { 0 };
        let mut text = format!("{}={}", self.name(name), value.unwrap_or_default());
        let path = if self.path.is_empty() { "/" } else { self.path };
        // Writing to memory does not fail.
        let _ = write!(text, "; Path={path}; Max-Age={max_age_s}; HttpOnly; SameSite=Lax");
        if self.is_https {
            text.push_str("; Secure");
        }
        let mut header = HeaderValue::from_str(&text).ok()?;
        header.set_sensitive(true);
        Some(header)
    }
}

fn find<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let cookies = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    cookies.flat_map(|value| value.split(';')).find_map(|pair| {
        let (found, value) = pair.trim().split_once('=')?;
        (found == name).then_some(value)
    })
}
