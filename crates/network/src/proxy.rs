//! Through what requests go, and which do not.

use std::fmt::{self, Write};

use hyper_util::client::proxy::matcher::Matcher;
use reqwest::{NoProxy, Proxy, Url};

/// What runs on this machine is not behind a proxy.
const LOOPBACK: &str = "localhost,127.0.0.0/8,::1";

/// The address of a proxy, with the name and the password for it where it wants them. Its `Debug` form shows neither.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxyAddress(Url);

/// A text is no address of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the address of a proxy, such as `http://proxy.example.org:3128`; it begins with http://, https://, socks5:// or socks5h://"
)]
pub struct ProxyError;

impl ProxyAddress {
    /// Reads an address; one without a scheme is of a proxy that speaks plain HTTP, as in the environment.
    ///
    /// # Errors
    /// [`ProxyError`], where it is none.
    pub fn read(text: &str) -> Result<Self, ProxyError> {
        let text = text.trim();
        let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let mut url: Url = whole.parse().map_err(|_| ProxyError)?;
        let is_known = matches!(url.scheme(), "http" | "https" | "socks5" | "socks5h");
        let has_path = !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some();
        if !is_known || url.host_str().is_none_or(str::is_empty) || has_path {
            return Err(ProxyError);
        }
        if url.scheme().starts_with("socks") && url.port().is_none() {
            url.set_port(Some(1080)).map_err(|()| ProxyError)?;
        }
        Ok(Self(url))
    }

    /// Whether it holds a name or a password.
    pub fn has_login(&self) -> bool {
        !self.0.username().is_empty() || self.0.password().is_some()
    }

    /// The same with a name and a password of any characters.
    ///
    /// # Errors
    /// [`ProxyError`], where the address takes none.
    pub fn with_login(mut self, user: &str, password: &str) -> Result<Self, ProxyError> {
        self.0.set_username(&encoded(user)).map_err(|()| ProxyError)?;
        self.0.set_password(Some(&encoded(password))).map_err(|()| ProxyError)?;
        Ok(self)
    }

    /// Whether it speaks HTTP, with or without TLS.
    pub(crate) fn is_http(&self) -> bool {
        !self.0.scheme().starts_with("socks")
    }

    fn is_https(&self) -> bool {
        self.0.scheme() == "https"
    }
}

impl fmt::Display for ProxyAddress {
    /// Without the name and the password.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.0.host_str().unwrap_or_default();
        write!(to, "{}://{host}", self.0.scheme())?;
        self.0.port_or_known_default().map_or(Ok(()), |port| write!(to, ":{port}"))
    }
}

impl fmt::Debug for ProxyAddress {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "ProxyAddress({self})")
    }
}

/// A name or a password as an address holds it. A library would leave a `%` as it is.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() {
            encoded.push(char::from(byte));
        } else {
            // Writing to memory does not fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// The proxies for what is asked over plain HTTP and over HTTPS, and what goes past them. Loopback addresses always do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proxies {
    /// For addresses that begin with `http://`.
    pub http: Option<ProxyAddress>,
    /// For addresses that begin with `https://`.
    pub https: Option<ProxyAddress>,
    /// What is asked directly: hosts, domains with all that is below them, addresses and ranges of addresses, `*` for all.
    pub past: Vec<String>,
}

impl Proxies {
    /// One for everything.
    pub fn all(proxy: ProxyAddress, past: Vec<String>) -> Self {
        Self { http: Some(proxy.clone()), https: Some(proxy), past }
    }

    /// Whether there is one.
    pub fn is_any(&self) -> bool {
        self.http.is_some() || self.https.is_some()
    }

    /// The names of their hosts.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = &str> {
        self.http.iter().chain(&self.https).filter_map(|proxy| proxy.0.host_str())
    }

    /// Whether asking over plain HTTP speaks TLS to a proxy.
    pub(crate) fn needs_tls_for_http(&self) -> bool {
        self.http.as_ref().is_some_and(ProxyAddress::is_https)
    }

    /// The one through which an address is asked.
    pub(crate) fn of(&self, url: &Url) -> Option<&ProxyAddress> {
        let proxy = if url.scheme() == "https" { self.https.as_ref() } else { self.http.as_ref() }?;
        let past: Vec<&str> = self.past.iter().map(String::as_str).chain([LOOPBACK]).collect();
        // The same that the rules of a client are looked through with.
        let matcher = Matcher::builder().all(proxy.0.as_str()).no(past.join(",")).build();
        matcher.intercept(&url.as_str().parse().ok()?).map(|_| proxy)
    }

    /// How a client goes through them, and what it asks directly besides this machine.
    pub(crate) fn rules(&self, past: &[String]) -> Result<Vec<Proxy>, ProxyError> {
        let past: Vec<&str> = past.iter().map(String::as_str).chain([LOOPBACK]).collect();
        let past = NoProxy::from_string(&past.join(","));
        let http = self.http.iter().map(|proxy| Proxy::http(proxy.0.clone()));
        let https = self.https.iter().map(|proxy| Proxy::https(proxy.0.clone()));
        let rules = http.chain(https).map(|rule| Ok(rule.map_err(|_| ProxyError)?.no_proxy(past.clone())));
        rules.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_people_write_it_and_shown_without_its_secrets() {
        let table = [
            ("http://proxy.example:3128", "http://proxy.example:3128"),
            ("proxy.example:3128", "http://proxy.example:3128"),
            ("http://proxy.example/", "http://proxy.example:80"),
            ("https://proxy.example", "https://proxy.example:443"),
            ("socks5://[::1]", "socks5://[::1]:1080"),
            ("socks5h://proxy.example:9050", "socks5h://proxy.example:9050"),
            ("http://user:hidden@proxy.example:1", "http://proxy.example:1"),
        ];
        for (text, shown) in table {
            let proxy = ProxyAddress::read(text).unwrap();
            assert_eq!((proxy.to_string(), proxy.has_login()), (shown.to_owned(), text.contains('@')), "{text}");
            assert!(!format!("{proxy:?}").contains("hidden"));
        }
        let with = ProxyAddress::read("http://proxy.example").unwrap().with_login("a@b", "p%41/ü:").unwrap();
        assert_eq!(with.0.as_str(), "http://a%40b:p%2541%2F%C3%BC%3A@proxy.example/");
        for wrong in ["", "ftp://proxy.example", "http://", "http://proxy.example/path", "socks4://proxy.example", "a b"] {
            assert_eq!(ProxyAddress::read(wrong), Err(ProxyError), "{wrong}");
        }
    }
}
