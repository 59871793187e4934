//! An address that was looked at.

use std::net::IpAddr;

use turnwright_network::Allow;
use url::{Host, Url};

use super::refusal::Refusal;

/// The longest address that is repeated to a model, in characters.
const SHOWN_CHARS: usize = 120;

/// The longest address that is read, in bytes.
const MAX_URL_BYTES: usize = 8 * 1024;

/// Ports of other protocols, some of which take lines of HTTP for their own (the Fetch standard, "bad port").
const BAD_PORTS: [u16; 82] = [
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110, 111,
    113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548,
    554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665,
    6666, 6667, 6668, 6669, 6679, 6697,
];

/// An `http` or `https` address whose text may be reached: if its host is an address, that is one that may be. What a name
/// leads to is seen only where it is looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    url: Url,
    port: u16,
}

impl Target {
    /// Reads the text of an address as browsers do: `http://0x7f.1/` is `http://127.0.0.1/`.
    ///
    /// # Errors
    /// Why it is not reached.
    pub fn parse(text: &str, allow: &Allow) -> Result<Self, Refusal> {
        let not = |reason: String| Refusal::NotAUrl { text: text.chars().take(SHOWN_CHARS).collect(), reason };
        if text.len() > MAX_URL_BYTES {
            return Err(not(format!("it is {} bytes long, the limit is {MAX_URL_BYTES}", text.len())));
        }
        let url = Url::parse(text.trim()).map_err(|error| not(error.to_string()))?;
        Self::of(url, allow)
    }

    /// The address of a service that the operator named, wherever it is.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub(crate) fn named(text: &str) -> Result<Self, Refusal> {
        let not = |reason: String| Refusal::NotAUrl { text: text.chars().take(SHOWN_CHARS).collect(), reason };
        let url = Url::parse(text).map_err(|error| not(error.to_string()))?;
        match (url.scheme(), url.has_host(), url.port_or_known_default()) {
            ("http" | "https", true, Some(port)) => Ok(Self { url, port }),
            _ => Err(not("it must begin with http:// or https:// and the name of a host".to_owned())),
        }
    }

    /// Where a redirect from here leads.
    ///
    /// # Errors
    /// Why that is not reached.
    pub fn join(&self, location: &str, allow: &Allow) -> Result<Self, Refusal> {
        let not = |reason: String| Refusal::NotAUrl { text: location.chars().take(SHOWN_CHARS).collect(), reason };
        if location.len() > MAX_URL_BYTES {
            return Err(not(format!("it is {} bytes long, the limit is {MAX_URL_BYTES}", location.len())));
        }
        let mut url = self.url.join(location).map_err(|error| not(error.to_string()))?;
        if url.fragment().is_none() {
            url.set_fragment(self.url.fragment());
        }
        Self::of(url, allow)
    }

    fn of(url: Url, allow: &Allow) -> Result<Self, Refusal> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Refusal::Scheme { scheme: url.scheme().to_owned() });
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refusal::UserInfo);
        }
        let port = url.port_or_known_default().unwrap_or(0);
        if BAD_PORTS.contains(&port) && !allow.names_port(port) {
            return Err(Refusal::Port { port });
        }
        match url.host() {
            Some(Host::Ipv4(address)) => Refusal::unless(allow, IpAddr::V4(address), port)?,
            Some(Host::Ipv6(address)) => Refusal::unless(allow, IpAddr::V6(address), port)?,
            Some(Host::Domain(_)) => {}
            None => return Err(Refusal::NotAUrl { text: url.to_string(), reason: "it has no host".to_owned() }),
        }
        Ok(Self { url, port })
    }

    /// The address as it is sent.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The path and query, to be filled in; the host stays.
    pub(crate) fn url_mut(&mut self) -> &mut Url {
        &mut self.url
    }

    /// The port that it leads to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether its host is a name, which has to be looked up.
    pub fn name(&self) -> Option<&str> {
        self.url.domain()
    }
}
