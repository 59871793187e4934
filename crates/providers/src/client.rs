//! The HTTP client of one endpoint, and its addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url, redirect};
use turnwright_core::{ProviderFailure, ProviderFailureKind};

use turnwright_dialects::KeyHeader;
use turnwright_network::{is_loopback, made};

use crate::EndpointConfig;
use crate::explain::shown_url;

const USER_AGENT: &str = concat!("turnwright/", env!("CARGO_PKG_VERSION"));

/// The address that all paths are below.
pub(crate) fn base(config: &EndpointConfig) -> Result<Url, ProviderFailure> {
    let wrong = |why: &str| {
        let text = format!("base_url `{}` {why}", shown_url(&config.base_url));
        ProviderFailure::new(ProviderFailureKind::Unavailable, text)
    };
    let url = Url::parse(&config.base_url).map_err(|error| wrong(&format!("is no address: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(wrong("is no http or https address"));
    }
    Ok(url)
}

/// The address of `path` below the base address. The base's query is kept, that of the path follows it. Where both name
/// the API's version it is written once: Anthropic's own clients leave it out of the base, those of all others do not.
pub(crate) fn url(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    let above = url.path().trim_end_matches('/');
    let path = path.strip_prefix("/v1").filter(|rest| rest.starts_with('/') && above.ends_with("/v1")).unwrap_or(path);
    let whole = format!("{above}{path}");
    url.set_path(&whole);
    if let Some(query) = query {
        let whole = url.query().filter(|own| !own.is_empty()).map(|own| format!("{own}&{query}"));
        url.set_query(Some(whole.as_deref().unwrap_or(query)));
    }
    url
}

/// The headers of every request.
pub(crate) fn headers(config: &EndpointConfig) -> Result<HeaderMap, ProviderFailure> {
    let wrong = |what: String| ProviderFailure::new(ProviderFailureKind::Unavailable, what);
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
    if let Some(key) = &config.api_key {
        let (name, value) = match config.profile.key_header {
            KeyHeader::Format => config.dialect.authorization(key.expose()),
            KeyHeader::ApiKey => ("api-key", key.expose().to_owned()),
        };
        let mut value = HeaderValue::from_str(&value)
            .map_err(|_| wrong("its api_key holds a line break or another character that no key has".to_owned()))?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_static(name), value);
    }
    for (name, value) in &config.headers {
        let known = HeaderName::try_from(name.as_str()).map_err(|_| wrong(format!("`{name}` is no header name")))?;
        let mut value = HeaderValue::from_str(value.expose())
            .map_err(|_| wrong(format!("the value of its header `{name}` cannot be sent")))?;
        value.set_sensitive(true);
        headers.insert(known, value);
    }
    Ok(headers)
}

/// A client for the endpoint.
pub(crate) async fn client(config: &EndpointConfig) -> Result<Client, ProviderFailure> {
    let url = base(config)?;
    let mut builder = config
        .network
        .client_for(&url)
        .user_agent(USER_AGENT)
        .connect_timeout(config.timeouts.connect)
        .redirect(redirect::Policy::none())
        .tcp_nodelay(true);
    if is_loopback(&url) {
        // Its name needs no look-up.
        let any_port = |address: IpAddr| SocketAddr::new(address, 0);
        let addresses = [any_port(Ipv4Addr::LOCALHOST.into()), any_port(Ipv6Addr::LOCALHOST.into())];
        builder = builder.resolve_to_addrs("localhost", &addresses);
    }
    made(builder)
        .await
        .map_err(|why| ProviderFailure::new(ProviderFailureKind::Unavailable, format!("its HTTP client cannot be made: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_an_api_stands_in_an_address_once() {
        let at = |base: &str, path| url(&base.parse().unwrap(), path).to_string();
        assert_eq!(at("http://h", "/v1/messages"), "http://h/v1/messages");
        assert_eq!(at("http://h/v1/", "/v1/messages"), "http://h/v1/messages");
        assert_eq!(at("http://h/api/v1?a=b", "/v1/models?limit=1"), "http://h/api/v1/models?a=b&limit=1");
        assert_eq!(at("http://h/v1", "/chat/completions"), "http://h/v1/chat/completions");
        assert_eq!(at("http://h/v1", "/v1beta"), "http://h/v1/v1beta");
    }
}
