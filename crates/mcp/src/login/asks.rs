//! Asking authorization servers, where the operator says how requests leave this machine.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use http::Response;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, Request, Url, redirect};
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRedirectPolicy,
    OAuthHttpRequest,
};
use turnwright_network::{Network, made};

use super::flow::failed;

/// The most of an answer that is read, in bytes.
const MAX_BYTES: usize = 1 << 20;
/// The most redirects that are followed where they are.
const MAX_REDIRECTS: usize = 8;

/// What signs in at the server with this address.
pub(super) async fn manager(url: &str, network: &Network) -> Result<AuthorizationManager, AuthError> {
    if network.is_plain() {
        // `rmcp` looks at what each name leads to.
        return AuthorizationManager::new(url).await;
    }
    let asks = Asks::new(url, network).await.map_err(|why| failed(&why))?;
    AuthorizationManager::new_with_oauth_http_client(url, Arc::new(asks)).await
}

struct Asks {
    following: Client,
    staying: Client,
}

impl Asks {
    async fn new(url: &str, network: &Network) -> Result<Self, String> {
        let is_here = url.parse().is_ok_and(|url: Url| is_loopback(&url));
        let client = |policy| {
            let builder = network.client().redirect(policy);
            // A proxy looks names up itself, and is often at an address of the own network.
            made(if network.has_proxy() { builder } else { builder.dns_resolver(Guarded { is_here }) })
        };
        Ok(Self {
            following: client(redirect::Policy::limited(MAX_REDIRECTS)).await?,
            staying: client(redirect::Policy::none()).await?,
        })
    }

    async fn asked(&self, asked: OAuthHttpRequest) -> Result<Response<Vec<u8>>, OAuthHttpClientError> {
        let client = match asked.redirect_policy {
            OAuthHttpRedirectPolicy::Follow => &self.following,
            _ => &self.staying,
        };
        let mut request = Request::try_from(asked.request)?;
        *request.timeout_mut() = asked.timeout;
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
        Ok(told.body(body)?)
    }
}

impl OAuthHttpClient for Asks {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(self.asked(request))
    }
}

/// Looks names up, and leaves out addresses at which no authorization server of another machine is. Those of the own network
/// stay: who has an authority of their own has servers there.
struct Guarded {
    /// Whether the MCP server itself is at this machine.
    is_here: bool,
}

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let is_here = self.is_here;
        Box::pin(async move {
            let name = name.as_str().to_owned();
            let looked_up = tokio::task::spawn_blocking(move || (name.as_str(), 0).to_socket_addrs()).await??;
            let kept: Vec<SocketAddr> = looked_up.filter(|address| is_possible(address.ip(), is_here)).collect();
            if kept.is_empty() {
                return Err(io::Error::other("its name leads to no address at which an authorization server may be").into());
            }
            Ok(Box::new(kept.into_iter()) as Addrs)
        })
    }
}

fn is_possible(address: IpAddr, is_here: bool) -> bool {
    let address = address.to_canonical();
    let is_never = match address {
        IpAddr::V4(v4) => v4.is_link_local() || v4.is_broadcast(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    !(is_never || address.is_unspecified() || address.is_multicast()) && (is_here || !address.is_loopback())
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_and_its_neighbours_are_no_authorization_servers_of_others() {
        let table = [
            ("203.0.113.7", true),
            ("10.1.2.3", true),
            ("fd00::1", true),
            ("127.0.0.1", false),
            ("::1", false),
            ("::ffff:127.0.0.1", false),
            ("169.254.169.254", false),
            ("::ffff:169.254.169.254", false),
            ("fe80::1", false),
            ("0.0.0.0", false),
            ("224.0.0.1", false),
        ];
        for (address, expected) in table {
            assert_eq!(is_possible(address.parse().unwrap(), false), expected, "{address}");
        }
        assert!(is_possible("127.0.0.1".parse().unwrap(), true) && !is_possible("169.254.169.254".parse().unwrap(), true));
    }
}
