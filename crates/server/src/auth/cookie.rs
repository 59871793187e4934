//! The cookies of a browser that is signed in, or about to be.

use std::fmt::Write;

use http::{HeaderMap, HeaderValue, header};

use super::Site;
use crate::forwarded::Client;

/// How long a session's cookie is kept, in seconds: as long as the session at most.
const SESSION_S: u64 = 30 * 24 * 3_600;
/// How long signing in elsewhere may take, in seconds.
const SIGN_IN_S: u64 = 600;
/// How many such sign-ins of one browser may be under way: whoever begins more loses the oldest, not the room for headers.
const MAX_SIGN_INS: usize = 8;

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
        find(headers, &self.name("tw_session"))
    }

    /// What is remembered of the sign-in elsewhere that has this state. Each tab may have one of its own.
    pub(crate) fn sign_in<'h>(self, headers: &'h HeaderMap, state: &str) -> Option<&'h str> {
        find(headers, &self.sign_in_name(state))
    }

    /// Sets the session, or ends it where there is none.
    pub(crate) fn set_session(self, secret: Option<&str>) -> Option<HeaderValue> {
        self.set(&self.name("tw_session"), secret, SESSION_S)
    }

    /// Remembers what a sign-in elsewhere needs, and forgets those that are too many.
    pub(crate) fn begin_sign_in(self, headers: &HeaderMap, state: &str, text: &str) -> Vec<HeaderValue> {
        let prefix = self.sign_in_name("");
        // Browsers name the oldest first (RFC 6265, section 5.4).
        let known: Vec<&str> = pairs(headers).map(|(name, _)| name).filter(|name| name.starts_with(&prefix)).collect();
        let too_many = known.len().saturating_sub(MAX_SIGN_INS - 1);
        let ended = known.into_iter().take(too_many).filter_map(|name| self.set(name, None, SIGN_IN_S));
        ended.chain(self.set(&self.sign_in_name(state), Some(text), SIGN_IN_S)).collect()
    }

    /// Forgets a sign-in elsewhere that came to its end.
    pub(crate) fn end_sign_in(self, state: &str) -> Option<HeaderValue> {
        self.set(&self.sign_in_name(state), None, SIGN_IN_S)
    }

    fn sign_in_name(self, state: &str) -> String {
        // Enough to tell them apart; the whole of it is in the cookie.
        let short: String = state.chars().take(16).collect();
        self.name(&format!("tw_sign_in_{short}"))
    }

    fn name(self, name: &str) -> String {
        // The first of these prefixes is for cookies of the whole host alone.
        let prefix = match (self.is_https, self.path) {
            (true, "") => "__Host-",
            (true, _) => "__Secure-",
            (false, _) => "",
        };
        format!("{prefix}{name}")
    }

    fn set(self, name: &str, value: Option<&str>, max_age_s: u64) -> Option<HeaderValue> {
        let max_age_s = if value.is_some() { max_age_s } else { 0 };
        let mut text = format!("{name}={}", value.unwrap_or_default());
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
    pairs(headers).find_map(|(found, value)| (found == name).then_some(value))
}

/// The cookies that a browser shows.
fn pairs(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    let cookies = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='))
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, header};

    use super::{Client, Cookies, Site};

    #[test]
    fn of_too_many_sign_ins_the_oldest_are_forgotten() {
        let site = Site { origin: Some("https://tw.example".to_owned()), ..Site::default() };
        let cookies = Cookies::of(&site, Client::default());
        let said = |known: usize| -> Vec<String> {
            let shown: Vec<String> = (0..known).map(|number| format!("__Host-tw_sign_in_{number}=x")).collect();
            let mut headers = HeaderMap::new();
            headers.insert(header::COOKIE, HeaderValue::from_str(&format!("a=b; {}", shown.join("; "))).unwrap());
            let set = cookies.begin_sign_in(&headers, "0123456789abcdef-more", "text");
            set.iter().map(|set| set.to_str().unwrap().to_owned()).collect()
        };
        let after = "Path=/; Max-Age=600; HttpOnly; SameSite=Lax; Secure";
        let new = format!("__Host-tw_sign_in_0123456789abcdef=text; {after}");
        let gone = |number: usize| format!("__Host-tw_sign_in_{number}=; {}", after.replace("600", "0"));
        assert_eq!(said(9), [gone(0), gone(1), new.clone()]);
        for known in [0, 7] {
            assert_eq!(said(known), [&*new], "{known}");
        }
    }
}
