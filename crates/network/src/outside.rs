//! Networks for those who may not reach what is near this machine.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::{Allow, Network, Special, is_local_name, plain, special};

/// What may be reached besides public addresses by those who are kept from the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outside {
    allow: Allow,
    names: Vec<String>,
    /// The key of the configuration that lists it.
    key: &'static str,
}

/// A text names neither addresses nor a host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is neither an address nor the name of a host; it must be a name, an address or a range, the latter two with a port or without: \
     `wiki.example.org`, `127.0.0.1:8080`, `10.1.0.0/16`, `[fd00::1]:443`"
)]
pub struct OutsideError(String);

/// Somebody is kept from an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Kept {
    /// From the address itself.
    #[error("`{host}` is {special}: only public addresses are reached, and what `{key}` of the configuration lists")]
    Address {
        /// As it was written.
        host: String,
        /// What it is.
        special: Special,
        /// The key that lists more.
        key: &'static str,
    },
    /// From what a name leads to.
    #[error(
        "`{name}` leads to {address}, which is {special}: only public addresses are reached, and what `{key}` of the configuration lists"
    )]
    Name {
        /// The name.
        name: String,
        /// An address that it leads to.
        address: IpAddr,
        /// What that is.
        special: Special,
        /// The key that lists more.
        key: &'static str,
    },
    /// From a name of this machine, of its proxy, or of its network where a proxy looks names up.
    #[error(
        "`{name}` is a name of this machine or of its own network: only public addresses are reached, and what `{key}` of the configuration lists"
    )]
    LocalName {
        /// The name.
        name: String,
        /// The key that lists more.
        key: &'static str,
    },
}

impl Outside {
    /// What each text names, as the configuration lists it below `key`.
    ///
    /// # Errors
    /// The first text that names nothing.
    pub fn new<'a>(texts: impl IntoIterator<Item = &'a str>, key: &'static str) -> Result<Self, OutsideError> {
        let (mut addresses, mut names) = (Vec::new(), Vec::new());
        for text in texts.into_iter().map(str::trim) {
            if Allow::new([text]).is_ok() {
                addresses.push(text);
            } else if is_host_name(text) {
                names.push(text.trim_end_matches('.').to_ascii_lowercase());
            } else {
                return Err(OutsideError(text.to_owned()));
            }
        }
        Ok(Self { allow: Allow::new(addresses).unwrap_or_default(), names, key })
    }

    fn lists(&self, name: &str) -> bool {
        let name = name.trim_end_matches('.');
        self.names.iter().any(|known| known.eq_ignore_ascii_case(name))
    }
}

/// Whether it is a name as hosts have: one whose last part is a number would be read as an address.
fn is_host_name(text: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && part.chars().all(|sign| sign.is_ascii_alphanumeric() || "-_".contains(sign));
    let name = text.trim_end_matches('.');
    let is_name = name.rsplit('.').next().is_some_and(|last| !last.starts_with(|sign: char| sign.is_ascii_digit()));
    name.len() <= 253 && name.split('.').all(is_part) && is_name
}

impl Network {
    /// The same for somebody who is kept from what is not public, but for what is listed: names are looked at where they are looked
    /// up, by every client of [`Network::client`] and [`Network::client_for`], and connected to as they were looked at. What is written as an address is not looked
    /// up: [`Network::admit`] says whether it may be asked.
    ///
    /// Where a proxy looks names up, what they lead to cannot be seen: those are left out that are of a network of its own by their
    /// looks, and the proxy has to keep the rest.
    #[must_use]
    pub fn kept_outside(self, outside: Outside) -> Self {
        self.with_outside(Arc::new(outside))
    }

    /// Whether an address may be asked, as far as its text says it. A redirect is another address.
    ///
    /// # Errors
    /// [`Kept`], where it may not.
    pub fn admit(&self, url: &Url) -> Result<(), Kept> {
        let Some(outside) = self.outside() else { return Ok(()) };
        let host = url.host_str().unwrap_or_default();
        if let Ok(address) = host.trim_matches(['[', ']']).parse::<IpAddr>() {
            let admitted = outside.allow.admit_at(address, url.port_or_known_default());
            return admitted.map_err(|special| Kept::Address { host: host.to_owned(), special, key: outside.key });
        }
        let name = host.trim_end_matches('.').to_ascii_lowercase();
        let is_here = name == "localhost" || name.ends_with(".localhost");
        let is_near = self.proxy_for(url).is_some() && is_local_name(&name);
        if !outside.lists(&name) && (is_here || is_near || self.is_proxy(&name)) {
            return Err(Kept::LocalName { name, key: outside.key });
        }
        Ok(())
    }
}

/// Looks names up for somebody who is kept outside.
#[derive(Debug)]
pub(crate) struct Guarded {
    pub(crate) outside: Arc<Outside>,
    /// The port that is asked, where it is known.
    pub(crate) port: Option<u16>,
    /// The hosts of proxies, which nobody but the operator names.
    pub(crate) proxies: Vec<String>,
}

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let name = name.as_str().to_owned();
        let is_trusted = self.outside.lists(&name) || self.proxies.iter().any(|proxy| proxy.eq_ignore_ascii_case(&name));
        let (outside, port) = (Arc::clone(&self.outside), self.port);
        Box::pin(async move {
            let asked = name.clone();
            let looked_up = tokio::task::spawn_blocking(move || (asked.as_str(), 0).to_socket_addrs()).await??;
            let found: Vec<SocketAddr> = looked_up.collect();
            let kept = if is_trusted { found } else { admitted(&outside, &name, port, found)? };
            Ok(Box::new(kept.into_iter()) as Addrs)
        })
    }
}

/// Those of a name's addresses that may be reached.
fn admitted(outside: &Outside, name: &str, port: Option<u16>, found: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, Kept> {
    let first = found.first().map(|address| plain(address.ip()));
    let kept: Vec<SocketAddr> =
        found.into_iter().filter(|address| outside.allow.admit_at(address.ip(), port).is_ok()).collect();
    match first.and_then(|address| Some((address, special(address)?))) {
        Some((address, special)) if kept.is_empty() => {
            Err(Kept::Name { name: name.to_owned(), address, special, key: outside.key })
        }
        Some(_) | None => Ok(kept),
    }
}

/// Why a request failed, where it is that somebody is kept from its address.
pub(crate) fn kept(cause: &(dyn std::error::Error + 'static)) -> Option<String> {
    let within =
        cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref).and_then(|within| within.downcast_ref::<Kept>());
    within.or_else(|| cause.downcast_ref()).map(Kept::to_string)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::{Proxies, ProxyAddress, made, reason};

    fn outside(listed: &[&str]) -> Outside {
        Outside::new(listed.iter().copied(), "a.key").unwrap()
    }

    fn may(network: &Network, url: &str) -> bool {
        network.admit(&url.parse().unwrap()).is_ok()
    }

    #[test]
    fn only_what_is_public_or_listed_is_asked_of_what_is_written_as_an_address() {
        let network = Network::default().kept_outside(outside(&["10.1.0.0/16", "127.0.0.1:8080", "Wiki.Example.org."]));
        for (url, expected) in [
            ("https://93.184.215.14/", true),
            ("https://mcp.example.org/", true),
            ("http://10.1.2.3/mcp", true),
            ("http://10.2.0.1/mcp", false),
            ("http://127.0.0.1:8080/", true),
            ("http://127.0.0.1:8081/", false),
            ("http://0x7f.1/", false),
            ("http://169.254.169.254/latest", false),
            ("http://[::1]/", false),
            ("http://[::ffff:10.0.0.1]/", false),
            ("http://localhost/", false),
            ("http://a.localhost./", false),
            ("http://wiki.example.org/", true),
        ] {
            assert_eq!(may(&network, url), expected, "{url}");
            assert!(may(&Network::default(), url), "{url} where nobody is kept from anything");
        }
        let told = network.admit(&"http://10.2.0.1/".parse().unwrap()).unwrap_err().to_string();
        assert_eq!(
            told,
            "`10.2.0.1` is a private address: only public addresses are reached, and what `a.key` of the configuration lists"
        );
        for wrong in ["", "http://x/", "a b", "10.0.0.0/40", "300.1.2.3", "name:80", "*.example.org"] {
            assert_eq!(Outside::new([wrong], "a.key"), Err(OutsideError(wrong.to_owned())), "{wrong}");
        }
    }

    #[test]
    fn where_a_proxy_looks_names_up_those_of_the_own_network_and_its_own_are_not_asked() {
        let proxy = ProxyAddress::read("http://gate.example.org:3128").unwrap();
        let through = Network::default().through(&Proxies::all(proxy, vec!["past.example.org".to_owned()])).unwrap();
        let network = through.kept_outside(outside(&["wiki.internal"]));
        for (url, expected) in [
            ("https://mcp.example.org/", true),
            ("http://git.internal/", false),
            ("http://git/", false),
            ("http://wiki.internal/", true),
            ("http://10.0.0.1/", false),
            ("http://gate.example.org/", false),
            // What goes past it is looked up here.
            ("http://past.example.org/", true),
        ] {
            assert_eq!(may(&network, url), expected, "{url}");
        }
    }

    #[tokio::test]
    async fn a_name_is_looked_at_where_it_is_looked_up_and_nothing_is_connected_to() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let url: Url = format!("http://localhost:{port}/").parse().unwrap();
        let asked = async |listed: &[&str]| {
            let network = Network::default().kept_outside(outside(listed));
            let (one, any) = (made(network.client_for(&url)).await.unwrap(), made(network.client()).await.unwrap());
            [one.get(url.clone()).send().await, any.get(url.clone()).send().await].map(|sent| match sent {
                Ok(answer) => answer.status().to_string(),
                Err(error) => reason(&error),
            })
        };
        let refused = asked(&[]).await;
        for told in &refused {
            assert!(told.starts_with("`localhost` leads to ") && told.contains("a loopback address"), "{told}");
        }
        let answering = async {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = [0; 1024];
                assert!(stream.read(&mut head).await.unwrap() > 0);
                stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").await.unwrap();
            }
        };
        let asking = async {
            // Nobody came before this.
            let there = "204 No Content".to_owned();
            assert_eq!(asked(&["localhost"]).await, [there.clone(), there.clone()]);
            assert_eq!(asked(&["127.0.0.0/8"]).await, [there.clone(), there.clone()]);
            // For any address, the port is not known where a name is looked up.
            let [one, any] = asked(&[&format!("127.0.0.1:{port}")]).await;
            assert!(one == there && any.contains("a loopback address"), "{one} {any}");
        };
        tokio::select! {
            () = answering => {}
            () = asking => {}
        }
    }
}
