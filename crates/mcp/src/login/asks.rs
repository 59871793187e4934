//! Asking authorization servers: as the operator says that requests leave this machine, at addresses where one may be, and leniently
//! about what they answer.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use http::Response;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, Request, Url, redirect};
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRedirectPolicy,
    OAuthHttpRequest,
};
use serde_json::Value;
use turnwright_network::{Network, made};

use super::flow::failed;

/// How long an answer may take where nothing is said.
const USUAL_LIMIT: Duration = Duration::from_secs(30);
/// The most of an answer that is read, in bytes.
const MAX_BYTES: usize = 1 << 20;
/// The most redirects that are followed where they are.
const MAX_REDIRECTS: usize = 8;

/// What signs in at the server with this address.
pub(super) async fn manager(url: &str, network: &Network) -> Result<AuthorizationManager, AuthError> {
    let asks = Asks::new(url, network).await.map_err(|why| failed(&why))?;
    AuthorizationManager::new_with_oauth_http_client(url, Arc::new(asks)).await
}

struct Asks {
    following: Client,
    staying: Client,
    /// `None` where a proxy looks names up itself, and is often at an address of the own network.
    allowed: Option<Allowed>,
}

impl Asks {
    async fn new(url: &str, network: &Network) -> Result<Self, String> {
        let allowed = (!network.has_proxy()).then(|| Allowed::beside(url, network));
        let client = |policy| {
            let builder = network.client().redirect(policy);
            made(match allowed {
                Some(allowed) => builder.dns_resolver(Guarded(allowed)),
                None => builder,
            })
        };
        let follow = redirect::Policy::custom(move |attempt| {
            if allowed.is_some_and(|allowed| !allowed.takes(attempt.url())) {
                attempt.error(NOT_THERE)
            } else if attempt.previous().len() > MAX_REDIRECTS {
                attempt.error("it sends on too often")
            } else {
                attempt.follow()
            }
        });
        Ok(Self { following: client(follow).await?, staying: client(redirect::Policy::none()).await?, allowed })
    }

    async fn asked(&self, asked: OAuthHttpRequest) -> Result<Response<Vec<u8>>, OAuthHttpClientError> {
        let client = match asked.redirect_policy {
            OAuthHttpRedirectPolicy::Follow => &self.following,
            _ => &self.staying,
        };
        let mut request = Request::try_from(asked.request)?;
        if self.allowed.is_some_and(|allowed| !allowed.takes(request.url())) {
            return Err(NOT_THERE.into());
        }
        *request.timeout_mut() = Some(asked.timeout.unwrap_or(USUAL_LIMIT));
        let mut response = client.execute(request).await.map_err(|error| turnwright_network::reason(&error))?;
        let mut told = Response::builder().status(response.status()).version(response.version());
        for (name, value) in response.headers() {
            told = told.header(name, value);
        }
        let mut body = Vec::new();
        while let Some(part) = response.chunk().await? {
            body.extend_from_slice(&part);
            if body.len() > MAX_BYTES {
                return Err(format!("the answer has more than {MAX_BYTES} bytes").into());
            }
        }
        Ok(told.body(with_number(body))?)
    }
}

/// An answer in which `expires_in` is a number, as RFC 6749 has it (section 5.1): many write it as a text.
fn with_number(body: Vec<u8>) -> Vec<u8> {
    let Ok(Value::Object(mut answer)) = serde_json::from_slice(&body) else { return body };
    let Some(lasts) = answer.get_mut("expires_in").filter(|lasts| !lasts.is_u64()) else { return body };
    let seconds = match &*lasts {
        Value::String(text) => text.trim().parse::<u64>().ok(),
        // `3600.0`
        Value::Number(number) => number.to_string().strip_suffix(".0").and_then(|whole| whole.parse().ok()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    // What is no number says nothing.
    *lasts = seconds.map_or(Value::Null, Value::from);
    serde_json::to_vec(&answer).unwrap_or(body)
}

impl OAuthHttpClient for Asks {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(self.asked(request))
    }
}

const NOT_THERE: &str = "its address is none at which an authorization server may be";

/// Which addresses are asked on the word of a server.
#[derive(Debug, Clone, Copy)]
struct Allowed {
    /// The address that the operator wrote, where it is no name.
    own: Option<IpAddr>,
    /// Whether the MCP server itself is at this machine.
    here: bool,
    /// Whether those of the own network are: who has an authority of their own has servers there.
    near: bool,
}

impl Allowed {
    /// Those for the server at this address.
    fn beside(url: &str, network: &Network) -> Self {
        let url: Option<Url> = url.parse().ok();
        let own = url.as_ref().and_then(literal);
        let is_near = own.is_some_and(|own| Nearness::of(own) == Nearness::OwnNetwork);
        Self { own, here: url.as_ref().is_some_and(is_loopback), near: is_near || !network.is_plain() }
    }

    /// Whether an address may be asked that is written as one; names are looked at when they are looked up.
    fn takes(self, url: &Url) -> bool {
        literal(url).is_none_or(|address| self.takes_address(address))
    }

    fn takes_address(self, address: IpAddr) -> bool {
        let is_taken = match Nearness::of(address) {
            Nearness::Public => true,
            Nearness::OwnNetwork => self.near,
            Nearness::Here => self.here,
            Nearness::Never => false,
        };
        is_taken || self.own == Some(address)
    }
}

/// Looks names up, and leaves out addresses that are not asked.
struct Guarded(Allowed);

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let allowed = self.0;
        Box::pin(async move {
            let name = name.as_str().to_owned();
            let looked_up = tokio::task::spawn_blocking(move || (name.as_str(), 0).to_socket_addrs()).await??;
            let kept: Vec<SocketAddr> = looked_up.filter(|address| allowed.takes_address(address.ip())).collect();
            if kept.is_empty() {
                return Err(io::Error::other("its name leads to no address at which an authorization server may be").into());
            }
            Ok(Box::new(kept.into_iter()) as Addrs)
        })
    }
}

/// How far away an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nearness {
    Public,
    OwnNetwork,
    Here,
    /// Neighbours alone, a service of the machine's host, or nobody.
    Never,
}

impl Nearness {
    fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(v4) => Self::of_v4(v4),
            IpAddr::V6(v6) => within(v6).map_or_else(|| Self::of_v6(v6), Self::of_v4),
        }
    }

    fn of_v4(address: Ipv4Addr) -> Self {
        match address.octets() {
            _ if address.is_loopback() => Self::Here,
            _ if address.is_private() => Self::OwnNetwork,
            // RFC 6598
            [100, 64..=127, ..] => Self::OwnNetwork,
            // RFC 2544, for measuring
            [0, ..] | [198, 18 | 19, ..] => Self::Never,
            _ if address.is_link_local() || address.is_broadcast() || address.is_multicast() => Self::Never,
            _ => Self::Public,
        }
    }

    fn of_v6(address: Ipv6Addr) -> Self {
        match address.segments() {
            _ if address.is_loopback() => Self::Here,
            _ if address.is_unique_local() => Self::OwnNetwork,
            // Teredo, and translation within a network: what they lead to is not seen.
            [0x2001, 0, ..] | [0x64, 0xff9b, 1, ..] => Self::Never,
            _ if address.is_unspecified() || address.is_multicast() || address.is_unicast_link_local() => Self::Never,
            _ => Self::Public,
        }
    }
}

/// The address of IPv4 that one of IPv6 stands for: mapped, compatible, translated or 6to4.
fn within(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let of = |high: u16, low: u16| Some(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    match address.segments() {
        [0, 0, 0, 0, 0, 0, ..] if address.is_loopback() || address.is_unspecified() => None,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            of(high, low)
        }
        _ => None,
    }
}

fn literal(url: &Url) -> Option<IpAddr> {
    url.host_str()?.trim_matches(['[', ']']).parse().ok()
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    host == "localhost" || host.ends_with(".localhost") || literal(url).is_some_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_its_neighbours_and_its_network_are_no_authorization_servers_of_others() {
        use Nearness::{Here, Never, OwnNetwork, Public};
        let table = [
            ("203.0.113.7", Public),
            ("2001:db8::7", Public),
            ("10.1.2.3", OwnNetwork),
            ("100.64.0.1", OwnNetwork),
            ("fd00::1", OwnNetwork),
            ("::ffff:192.168.0.1", OwnNetwork),
            ("2002:a00:1::", OwnNetwork),
            ("127.0.0.1", Here),
            ("::1", Here),
            ("::ffff:127.0.0.1", Here),
            ("64:ff9b::7f00:1", Here),
            ("169.254.169.254", Never),
            ("::ffff:169.254.169.254", Never),
            ("fe80::1", Never),
            ("0.0.0.0", Never),
            ("::", Never),
            ("198.18.0.1", Never),
            ("2001::1", Never),
            ("64:ff9b:1::1", Never),
            ("224.0.0.1", Never),
            ("ff02::1", Never),
        ];
        for (address, expected) in table {
            assert_eq!(Nearness::of(address.parse().unwrap()), expected, "{address}");
        }
        let plain = Network::default();
        // Who is asked, on the word of whom.
        let table = [
            ("https://mcp.example/mcp", "https://203.0.113.7/", true),
            ("https://mcp.example/mcp", "https://login.example/", true),
            ("https://mcp.example/mcp", "http://10.0.0.7/", false),
            ("https://mcp.example/mcp", "http://127.0.0.1/", false),
            ("https://mcp.example/mcp", "http://[::1]/", false),
            ("http://10.0.0.1/mcp", "http://10.0.0.7/", true),
            ("http://10.0.0.1/mcp", "http://127.0.0.1/", false),
            ("http://localhost:1/mcp", "http://127.0.0.1/", true),
            ("http://127.0.0.1:1/mcp", "http://10.0.0.7/", false),
            ("http://169.254.1.1/mcp", "http://169.254.1.1/", true),
            ("http://127.0.0.1/mcp", "http://169.254.169.254/", false),
        ];
        for (server, asked, expected) in table {
            let allowed = Allowed::beside(server, &plain);
            assert_eq!(allowed.takes(&asked.parse().unwrap()), expected, "{server} {asked}");
        }
    }

    #[test]
    fn the_length_of_a_tokens_life_is_read_as_a_text_too() {
        let read = |body: &str| String::from_utf8(with_number(body.into())).unwrap();
        for (written, expected) in
            [(r#""3600""#, "3600"), ("3600.0", "3600"), ("3600", "3600"), (r#""soon""#, "null"), ("null", "null")]
        {
            assert_eq!(read(&format!(r#"{{"expires_in":{written},"a":1}}"#)), format!(r#"{{"expires_in":{expected},"a":1}}"#));
        }
        for other in [r#"{"issuer": "x"}"#, "no JSON"] {
            assert_eq!(read(other), other);
        }
    }
}
