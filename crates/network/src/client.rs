//! Where clients begin.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use reqwest::{Certificate, Client, ClientBuilder, Url};

use crate::authorities::{self, AuthoritiesError};
use crate::outside::{Guarded, Outside};
use crate::proxy::{Proxies, ProxyAddress, ProxyError};

/// How requests leave this machine. Cheap to clone; by default directly, to whom the system's authorities vouch for. Its `Debug` form
/// shows no address and no password.
#[derive(Clone, Default)]
pub struct Network {
    settings: Arc<Settings>,
}

#[derive(Clone, Default)]
struct Settings {
    proxies: Proxies,
    has_proxy: bool,
    needs_tls_for_http: bool,
    rules: Vec<reqwest::Proxy>,
    /// Past which nothing goes but what is asked of this machine; empty where something has no proxy.
    strict_rules: Vec<reqwest::Proxy>,
    authorities: Vec<Certificate>,
    /// What may be reached besides public addresses, where not all may be.
    outside: Option<Arc<Outside>>,
}

impl Network {
    /// The same through proxies.
    ///
    /// # Errors
    /// [`ProxyError`], where one of them cannot be used.
    pub fn through(self, proxies: &Proxies) -> Result<Self, ProxyError> {
        let mut settings = Settings::clone(&self.settings);
        settings.rules = proxies.rules(&proxies.past)?;
        let takes_all = proxies.http.is_some() && proxies.https.is_some();
        settings.strict_rules = if takes_all { proxies.rules(&[])? } else { Vec::new() };
        (settings.has_proxy, settings.needs_tls_for_http) = (proxies.is_any(), proxies.needs_tls_for_http());
        settings.proxies = proxies.clone();
        Ok(Self { settings: Arc::new(settings) })
    }

    /// The same trusting these authorities as well, the certificates of a PEM file.
    ///
    /// # Errors
    /// [`AuthoritiesError`], where they cannot be used.
    pub fn trusting(self, pem: &[u8]) -> Result<Self, AuthoritiesError> {
        let mut settings = Settings::clone(&self.settings);
        settings.authorities.extend(authorities::read(pem)?);
        Ok(Self { settings: Arc::new(settings) })
    }

    pub(crate) fn with_outside(self, outside: Arc<Outside>) -> Self {
        let mut settings = Settings::clone(&self.settings);
        settings.outside = Some(outside);
        Self { settings: Arc::new(settings) }
    }

    pub(crate) fn outside(&self) -> Option<&Outside> {
        self.settings.outside.as_deref()
    }

    /// Whether not all addresses may be reached, see [`Network::kept_outside`].
    pub fn is_outside(&self) -> bool {
        self.settings.outside.is_some()
    }

    /// Whether a name is that of a proxy.
    pub(crate) fn is_proxy(&self, name: &str) -> bool {
        self.settings.proxies.hosts().any(|proxy| proxy.eq_ignore_ascii_case(name))
    }

    /// Whether something goes through a proxy, which looks up names itself.
    pub fn has_proxy(&self) -> bool {
        self.settings.has_proxy
    }

    /// The proxy through which an address is asked.
    pub(crate) fn proxy_for(&self, url: &Url) -> Option<&ProxyAddress> {
        self.settings.proxies.of(url)
    }

    /// Whether nothing was said: no proxy, the system's authorities.
    pub fn is_plain(&self) -> bool {
        !self.settings.has_proxy && self.settings.authorities.is_empty()
    }

    /// Begins a client for any address.
    pub fn client(&self) -> ClientBuilder {
        self.begun(None)
    }

    fn begun(&self, port: Option<u16>) -> ClientBuilder {
        // What the environment says was read where the configuration was.
        let builder = self.settings.rules.iter().cloned().fold(Client::builder().no_proxy(), ClientBuilder::proxy);
        let builder = match &self.settings.outside {
            Some(outside) => {
                let proxies = self.settings.proxies.hosts().map(str::to_owned).collect();
                builder.dns_resolver(Guarded { outside: Arc::clone(outside), port, proxies })
            }
            None => builder,
        };
        builder.tls_certs_merge(self.settings.authorities.iter().cloned())
    }

    /// Begins a client for addresses that somebody else names, of which a proxy alone may see what they lead to: nothing but what
    /// is asked of this machine goes past it. `None` where something is not asked through one.
    pub fn client_of_proxy(&self) -> Option<ClientBuilder> {
        let rules = &self.settings.strict_rules;
        if rules.is_empty() {
            return None;
        }
        let builder = rules.iter().cloned().fold(Client::builder().no_proxy(), ClientBuilder::proxy);
        Some(builder.tls_certs_merge(self.settings.authorities.iter().cloned()))
    }

    /// Begins a client for one address alone. The system's authorities are read only where it needs them.
    pub fn client_for(&self, url: &Url) -> ClientBuilder {
        let builder = self.begun(url.port_or_known_default());
        if url.scheme() == "http" && (!self.settings.needs_tls_for_http || is_loopback(url)) {
            builder.tls_certs_only([])
        } else {
            builder
        }
    }

    /// Begins a client that blocks the thread that asks.
    pub fn blocking_client(&self) -> reqwest::blocking::ClientBuilder {
        let start = reqwest::blocking::Client::builder().no_proxy();
        let builder = self.settings.rules.iter().cloned().fold(start, reqwest::blocking::ClientBuilder::proxy);
        builder.tls_certs_merge(self.settings.authorities.iter().cloned())
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings { has_proxy, authorities, .. } = &*self.settings;
        to.debug_struct("Network").field("has_proxy", has_proxy).field("authorities", &authorities.len()).finish()
    }
}

/// A client of what was begun.
///
/// # Errors
/// Why there is none, in words for people.
pub async fn made(builder: ClientBuilder) -> Result<Client, String> {
    // Reading the system's certificates blocks for milliseconds.
    let making = tokio::task::spawn_blocking(move || {
        // Another part of the process may have installed one before: either will do.
        drop(rustls::crypto::ring::default_provider().install_default());
        builder.build()
    });
    let client = making.await.map_err(|error| error.to_string())?;
    client.map_err(|error| crate::reason(&error))
}

/// Whether an address names this machine and nothing else: `localhost`, or a number that means it.
pub fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
