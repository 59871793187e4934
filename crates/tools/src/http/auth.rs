//! What an API knows us by, and that nobody else sees it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use turnwright_core::secrets::given;
use url::Url;

use super::operation::Filled;
use super::style::{Escaping, escaped};
use crate::hidden::Hidden;

/// What stands for a secret in what an API says.
const MASK: &str = "***";
/// Shorter secrets would be found in what is none.
const LEAST_BYTES: usize = 4;

/// How an API is told who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HttpAuth {
    /// `Authorization: Bearer …` (RFC 6750).
    Bearer(Hidden),
    /// `Authorization: Basic …` (RFC 7617).
    Basic {
        /// The user.
        user: String,
        /// The password, or the token that stands for one.
        password: Hidden,
    },
    /// A header of the API's own.
    Header {
        /// Its name.
        name: String,
        /// Its value.
        value: Hidden,
    },
    /// A parameter of the query.
    Query {
        /// Its name.
        name: String,
        /// Its value.
        value: Hidden,
    },
}

/// All that is sent with every request.
#[derive(Debug, Clone, Default)]
pub(super) struct Secrets {
    pub(super) headers: HeaderMap,
    pub(super) query: Vec<(String, Hidden)>,
    needles: Vec<Hidden>,
}

impl Secrets {
    /// Fails with what cannot be sent, without it.
    pub(super) fn new(auth: Option<&HttpAuth>, headers: &[(String, Hidden)]) -> Result<Self, String> {
        let mut made = Self::default();
        for (name, value) in headers {
            made.header(name, value.expose())?;
            // Most say how something is asked for, such as `Prefer`, and their words may be said anywhere.
            for secret in given(name, value.expose()) {
                made.hide(&secret);
            }
        }
        match auth {
            None => {}
            Some(HttpAuth::Bearer(token)) => {
                made.header(AUTHORIZATION.as_str(), &format!("Bearer {}", token.expose()))?;
                made.hide(token.expose());
            }
            Some(HttpAuth::Basic { user, password }) => {
                let coded = STANDARD.encode(format!("{user}:{}", password.expose()));
                made.header(AUTHORIZATION.as_str(), &format!("Basic {coded}"))?;
                made.hide(password.expose());
                made.hide(&coded);
            }
            Some(HttpAuth::Header { name, value }) => {
                made.header(name, value.expose())?;
                made.hide(value.expose());
            }
            Some(HttpAuth::Query { name, value }) => {
                made.query.push((name.clone(), value.clone()));
                made.hide(value.expose());
            }
        }
        Ok(made)
    }

    fn header(&mut self, name: &str, value: &str) -> Result<(), String> {
        let shown: String = name.chars().take(60).collect();
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("`{shown}` is no name of a header"))?;
        let mut value = HeaderValue::from_bytes(value.as_bytes())
            .map_err(|_| format!("the value of the header `{shown}` holds a line break or another control character"))?;
        value.set_sensitive(true);
        self.headers.insert(header, value);
        Ok(())
    }

    /// Keeps a value out of what an API says, in the forms in which it may come back.
    fn hide(&mut self, secret: &str) {
        let quoted = serde_json::Value::from(secret).to_string();
        let forms = [
            secret.to_owned(),
            escaped(secret, Escaping::Strict),
            quoted.trim_matches('"').to_owned(),
            STANDARD.encode(secret),
        ];
        for form in forms {
            let is_known = self.needles.iter().any(|known| known.expose() == form);
            if form.len() >= LEAST_BYTES && !is_known {
                self.needles.push(Hidden::new(form));
            }
        }
        // What holds another goes first.
        self.needles.sort_by_key(|needle| std::cmp::Reverse(needle.expose().len()));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.headers.is_empty() && self.query.is_empty()
    }

    /// The places that no argument takes.
    pub(super) fn filled(&self) -> Filled {
        Filled {
            headers: self.headers.keys().map(|name| name.as_str().to_owned()).collect(),
            query: self.query.iter().map(|(name, _)| name.clone()).collect(),
        }
    }

    /// Adds what goes into the address.
    pub(super) fn place(&self, url: &mut Url) {
        for (name, value) in &self.query {
            let pair = format!("{}={}", escaped(name, Escaping::Strict), escaped(value.expose(), Escaping::Strict));
            let query =
                url.query().filter(|query| !query.is_empty()).map_or_else(|| pair.clone(), |query| format!("{query}&{pair}"));
            url.set_query(Some(&query));
        }
    }

    /// What an API says without what it was told.
    pub(super) fn scrubbed(&self, bytes: Vec<u8>) -> Vec<u8> {
        let mut bytes = bytes;
        for needle in &self.needles {
            let needle = needle.expose().as_bytes();
            let finder = memchr::memmem::Finder::new(needle);
            if finder.find(&bytes).is_none() {
                continue;
            }
            let mut made = Vec::with_capacity(bytes.len());
            let mut rest = bytes.as_slice();
            while let Some(at) = finder.find(rest) {
                let (before, found) = rest.split_at(at);
                made.extend_from_slice(before);
                made.extend_from_slice(MASK.as_bytes());
                rest = found.get(needle.len()..).unwrap_or_default();
            }
            made.extend_from_slice(rest);
            bytes = made;
        }
        bytes
    }

    /// The same of a text.
    pub(super) fn scrubbed_text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.scrubbed(text.as_bytes().to_vec())).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_that_comes_back_is_masked_in_each_of_its_forms() {
        let auth = HttpAuth::Basic { user: "me".into(), password: Hidden::new("p\"s w0rd") };
        let secrets = Secrets::new(Some(&auth), &[("X-Key".into(), Hidden::new("k3y!"))]).unwrap();
        let said = format!(
            "p\"s w0rd p\\\"s w0rd p%22s%20w0rd {} {} k3y! k3y",
            STANDARD.encode("p\"s w0rd"),
            STANDARD.encode("me:p\"s w0rd")
        );
        assert_eq!(secrets.scrubbed_text(&said), "*** *** *** *** *** *** k3y");
        assert!(!format!("{secrets:?}").contains("w0rd"), "{secrets:?}");
    }

    #[test]
    fn what_a_header_says_is_masked_where_it_is_a_secret() {
        let headers = [
            ("X-Force-Accept-Language", "true"),
            ("Prefer", "return=minimal"),
            ("X-Api-Token", "t0ken"),
            ("X-Org", "ghp_0123456789abcdef"),
        ];
        let secrets = Secrets::new(None, &headers.map(|(name, value)| (name.to_owned(), Hidden::new(value)))).unwrap();
        let said = r#"{"ok":true,"how":"return=minimal","t0ken":"ghp_0123456789abcdef"}"#;
        assert_eq!(secrets.scrubbed_text(said), r#"{"ok":true,"how":"return=minimal","***":"***"}"#);
    }

    #[test]
    fn what_cannot_be_sent_is_told_without_it() {
        let told = Secrets::new(Some(&HttpAuth::Bearer(Hidden::new("a\nb"))), &[]).unwrap_err();
        assert_eq!(told, "the value of the header `authorization` holds a line break or another control character");
    }

    #[test]
    fn a_key_of_the_query_is_added_to_what_is_there() {
        let secrets = Secrets::new(Some(&HttpAuth::Query { name: "api key".into(), value: Hidden::new("a&b") }), &[]).unwrap();
        let mut url = Url::parse("https://a.example/x?y=1").unwrap();
        secrets.place(&mut url);
        assert_eq!(url.as_str(), "https://a.example/x?y=1&api%20key=a%26b");
    }
}
