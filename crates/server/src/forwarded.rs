//! Who asks, by what name and whether over TLS, where a proxy that is trusted stands between.
//!
//! What proxies write is read here once and taken out of the request: behind this layer `Host` is the name that the client
//! used, and nobody else can believe a header that anybody may send.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use axum::extract::{ConnectInfo, Request};
use http::uri::Authority;
use http::{Extensions, HeaderMap, HeaderValue, Uri, header};
use turnwright_host::AddressRange;

use crate::error::ApiError;
use crate::state::ServerState;

/// From where a request comes, as far as it can be believed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Client {
    address: Address,
    is_https: bool,
    /// Whether a proxy says that it handed the request on, trusted or not.
    is_handed_on: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Address {
    /// Nothing was said of a connection: there is none in a process that asks itself.
    #[default]
    None,
    Known(IpAddr),
    /// A proxy did not say.
    Hidden,
}

impl Client {
    /// That of a request.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        extensions.get().copied().unwrap_or_default()
    }

    /// Whether it certainly speaks TLS, with us or with a trusted proxy.
    pub(crate) fn is_https(self) -> bool {
        self.is_https
    }

    /// Whether a program stands between that speaks for others. One that does not say so is taken for the client itself.
    pub(crate) fn is_handed_on(self) -> bool {
        self.is_handed_on
    }

    /// Whether it may be at this machine.
    pub(crate) fn may_be_here(self) -> bool {
        match self.address {
            Address::None => true,
            Address::Known(address) => address.to_canonical().is_loopback(),
            Address::Hidden => false,
        }
    }
}

impl fmt::Display for Client {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            Address::None => to.write_str("none"),
            Address::Known(address) => address.to_canonical().fmt(to),
            Address::Hidden => to.write_str("unknown"),
        }
    }
}

/// What is read of a trusted proxy.
const BELIEVED: [&str; 4] = ["forwarded", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host"];

/// What else tells of a proxy.
const HANDED_ON: [&str; 2] = ["via", "x-real-ip"];

/// Reads what trusted proxies say, and forgets what others do.
///
/// # Errors
/// 400, where what a trusted one says cannot be read. The request is then its own.
pub(crate) fn believe(state: &ServerState, request: &mut Request) -> Result<(), ApiError> {
    let site = state.site();
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| peer.ip());
    let said = said(request.headers(), peer, &site.trusted_proxies);
    let mut is_handed_on = HANDED_ON.iter().any(|name| request.headers().contains_key(*name));
    for name in BELIEVED {
        is_handed_on |= request.headers_mut().remove(name).is_some();
    }
    let (said, refused) = match said {
        Ok(said) => (said, Ok(())),
        Err(error) => (peer.map(Said::directly).unwrap_or_default(), Err(error)),
    };
    if let Some(host) = said.host {
        request.headers_mut().insert(header::HOST, host);
        let mut parts = request.uri().clone().into_parts();
        (parts.scheme, parts.authority) = (None, None);
        if let Ok(uri) = Uri::from_parts(parts) {
            *request.uri_mut() = uri;
        }
    }
    let is_https = said.is_https.unwrap_or(site.is_tls);
    request.extensions_mut().insert(Client { address: said.address, is_https, is_handed_on });
    refused
}

/// What is believed of a request.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said {
    address: Address,
    is_https: Option<bool>,
    host: Option<HeaderValue>,
}

impl Said {
    /// Of a request that this one sends itself.
    fn directly(peer: IpAddr) -> Self {
        Self { address: Address::Known(peer), ..Self::default() }
    }
}

fn said(headers: &HeaderMap, peer: Option<IpAddr>, trusted: &[AddressRange]) -> Result<Said, ApiError> {
    let Some(peer) = peer else { return Ok(Said::default()) };
    let is_trusted = |address: IpAddr| trusted.iter().any(|range| range.contains(address));
    let direct = || Said::directly(peer);
    if !is_trusted(peer) {
        return Ok(direct());
    }
    let (standard, usual) = (standard(headers)?, usual(headers)?);
    // Which of the two the proxy wrote, and which its client, cannot be told.
    let Some(hops) = (match (standard, usual) {
        (Some(standard), Some(usual)) if standard.last() != usual.last() || standard.len() != usual.len() => {
            return Err(wrong(
                "Forwarded and X-Forwarded-* do not say the same; let the proxy remove the one that it does not write",
            ));
        }
        (Some(hops), _) | (None, Some(hops)) => Some(hops),
        (None, None) => None,
    }) else {
        return Ok(direct());
    };
    // The last is of the proxy that asks us; who is before a trusted one is of those that it vouches for.
    let mut found = None;
    for hop in hops.into_iter().rev() {
        let is_proxy = matches!(hop.address, Address::Known(address) if is_trusted(address));
        found = Some(hop);
        if !is_proxy {
            break;
        }
    }
    Ok(found.unwrap_or_else(direct))
}

fn wrong(detail: &str) -> ApiError {
    ApiError::bad_request("invalid_forwarding", detail)
}

/// `X-Forwarded-*`. The scheme and the name are what the nearest proxy says, which hands on those of a proxy before it.
fn usual(headers: &HeaderMap) -> Result<Option<Vec<Said>>, ApiError> {
    let last = |name: &str| -> Result<Option<String>, ApiError> { Ok(list(headers, name)?.pop()) };
    let is_https = last("x-forwarded-proto")?.as_deref().map(is_https).transpose()?;
    let host = last("x-forwarded-host")?.as_deref().map(host).transpose()?;
    let mut clients = list(headers, "x-forwarded-for")?;
    if clients.is_empty() {
        if is_https.is_none() && host.is_none() {
            return Ok(None);
        }
        clients.push("unknown".to_owned());
    }
    let hop = |client: &String| Said { address: address(client), is_https, host: host.clone() };
    Ok(Some(clients.iter().map(hop).collect()))
}

/// `Forwarded` (RFC 7239), in which each proxy says what it saw.
fn standard(headers: &HeaderMap) -> Result<Option<Vec<Said>>, ApiError> {
    let mut hops = Vec::new();
    for element in list(headers, "forwarded")? {
        let mut hop = Said { address: Address::Hidden, ..Said::default() };
        let mut named = Vec::new();
        for pair in element.split(';') {
            let Some((name, value)) = pair.split_once('=') else { continue };
            let (name, value) = (name.trim().to_ascii_lowercase(), value.trim().trim_matches('"'));
            // Section 4: each once. Which of two is the client's own nobody knows.
            if named.contains(&name) {
                return Err(wrong("`Forwarded` says something twice of one proxy"));
            }
            match name.as_str() {
                "for" => hop.address = address(value),
                "proto" => hop.is_https = Some(is_https(value)?),
                "host" => hop.host = Some(host(value)?),
                _ => {}
            }
            named.push(name);
        }
        hops.push(hop);
    }
    Ok((!hops.is_empty()).then_some(hops))
}

/// The parts of a header that may be there several times.
fn list(headers: &HeaderMap, name: &str) -> Result<Vec<String>, ApiError> {
    let mut parts = Vec::new();
    for value in headers.get_all(name) {
        let value = value.to_str().map_err(|_| wrong("what the proxy says is not text"))?;
        parts.extend(value.split(',').map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()));
    }
    Ok(parts)
}

/// Whether this scheme is one over TLS. Some proxies name that of a WebSocket.
fn is_https(scheme: &str) -> Result<bool, ApiError> {
    match scheme.to_ascii_lowercase().as_str() {
        "https" | "wss" => Ok(true),
        "http" | "ws" => Ok(false),
        _ => Err(wrong("the scheme that the proxy tells is neither http nor https")),
    }
}

fn host(text: &str) -> Result<HeaderValue, ApiError> {
    let authority: Option<Authority> = text.parse().ok().filter(|authority: &Authority| !authority.as_str().contains('@'));
    let authority = authority.ok_or_else(|| wrong("the host that the proxy tells is no name of a host"))?;
    HeaderValue::from_str(authority.as_str()).map_err(|_| wrong("the host that the proxy tells is no name of a host"))
}

/// An address with or without a port; `[…]` around one of IPv6.
fn address(text: &str) -> Address {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let known = bare.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()));
    known.map_or(Address::Hidden, Address::Known)
}

#[cfg(test)]
#[path = "forwarded/tests.rs"]
mod tests;
