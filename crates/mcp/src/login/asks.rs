//! Asking authorization servers: as the operator says that requests leave this machine, at addresses where one may be, and leniently
//! about what they answer.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
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
use turnwright_network::{Network, Special, made, special};

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
    may: May,
}

impl Asks {
    async fn new(url: &str, network: &Network) -> Result<Self, String> {
        // Who is kept outside is so by the network's own clients.
        let allowed = (!network.has_proxy() && !network.is_outside()).then(|| Allowed::beside(url, network));
        let may = May { allowed, network: network.clone() };
        let client = |policy| {
            let builder = network.client().redirect(policy);
            made(match allowed {
                Some(allowed) => builder.dns_resolver(Guarded(allowed)),
                None => builder,
            })
        };
        let next = may.clone();
        let follow = redirect::Policy::custom(move |attempt| {
            if let Err(why) = next.ask(attempt.url()) {
                attempt.error(why)
            } else if attempt.previous().len() > MAX_REDIRECTS {
                attempt.error("it sends on too often")
            } else {
                attempt.follow()
            }
        });
        Ok(Self { following: client(follow).await?, staying: client(redirect::Policy::none()).await?, may })
    }

    async fn asked(&self, asked: OAuthHttpRequest) -> Result<Response<Vec<u8>>, OAuthHttpClientError> {
        let client = match asked.redirect_policy {
            OAuthHttpRedirectPolicy::Follow => &self.following,
            _ => &self.staying,
        };
        let mut request = Request::try_from(asked.request)?;
        self.may.ask(request.url())?;
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

/// What is asked on the word of a server.
#[derive(Debug, Clone)]
struct May {
    /// `None` where a proxy looks names up itself, and is often at an address of the own network.
    allowed: Option<Allowed>,
    network: Network,
}

impl May {
    /// Whether an address may be asked, as far as its text says it.
    fn ask(&self, url: &Url) -> Result<(), String> {
        self.network.admit(url).map_err(|kept| kept.to_string())?;
        if self.allowed.is_some_and(|allowed| !allowed.takes(url)) { Err(NOT_THERE.to_owned()) } else { Ok(()) }
    }
}

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
        let is_near = own.and_then(special).is_some_and(is_of_a_network);
        Self { own, here: url.as_ref().is_some_and(is_loopback), near: is_near || !network.is_plain() }
    }

    /// Whether an address may be asked that is written as one; names are looked at when they are looked up.
    fn takes(self, url: &Url) -> bool {
        literal(url).is_none_or(|address| self.takes_address(address))
    }

    fn takes_address(self, address: IpAddr) -> bool {
        let is_taken = match special(address) {
            None => true,
            Some(Special::Loopback) => self.here,
            Some(special) => self.near && is_of_a_network(special),
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

/// Whether it is an address of a network of its own, where an operator may have an authorization server.
fn is_of_a_network(special: Special) -> bool {
    matches!(special, Special::Private | Special::UniqueLocal | Special::Shared)
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
        let plain = Network::default();
        // Who is asked, on the word of whom.
        let table = [
            ("https://mcp.example/mcp", "https://93.184.215.14/", true),
            ("https://mcp.example/mcp", "https://login.example/", true),
            ("https://mcp.example/mcp", "http://10.0.0.7/", false),
            ("https://mcp.example/mcp", "http://127.0.0.1/", false),
            ("https://mcp.example/mcp", "http://[::1]/", false),
            ("http://10.0.0.1/mcp", "http://10.0.0.7/", true),
            ("http://10.0.0.1/mcp", "http://127.0.0.1/", false),
            ("http://localhost:1/mcp", "http://127.0.0.1/", true),
            ("http://127.0.0.1:1/mcp", "http://10.0.0.7/", false),
            ("http://10.0.0.1/mcp", "http://[::ffff:192.168.0.1]/", true),
            ("http://10.0.0.1/mcp", "http://[fd00::1]/", true),
            ("http://10.0.0.1/mcp", "http://100.64.0.1/", true),
            ("http://10.0.0.1/mcp", "http://169.254.169.254/", false),
            ("http://10.0.0.1/mcp", "http://100.100.100.200/", false),
            ("http://169.254.1.1/mcp", "http://169.254.1.1/", true),
            ("http://127.0.0.1/mcp", "http://169.254.169.254/", false),
        ];
        for (server, asked, expected) in table {
            let allowed = Allowed::beside(server, &plain);
            assert_eq!(allowed.takes(&asked.parse().unwrap()), expected, "{server} {asked}");
        }
    }

    #[tokio::test]
    async fn who_is_kept_outside_asks_no_authorization_server_that_is_near_the_mcp_server() {
        let outside = turnwright_network::Outside::new(["10.0.0.1"], "a.key").unwrap();
        let asks = Asks::new("http://10.0.0.1/mcp", &Network::default().kept_outside(outside)).await.unwrap();
        for (asked, expected) in [
            ("https://login.example/", true),
            ("http://10.0.0.1/token", true),
            ("http://10.0.0.7/", false),
            ("http://127.0.0.1/", false),
            ("http://localhost/", false),
        ] {
            assert_eq!(asks.may.ask(&asked.parse().unwrap()).is_ok(), expected, "{asked}");
        }
        let near = asks.staying.get("http://localhost:1/").send().await.unwrap_err();
        assert!(turnwright_network::reason(&near).contains("is a loopback address"), "{near:?}");
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
