//! Why a request failed, in words that tell what to do.

use std::error::Error;
use std::{fmt, io};

use rustls::CertificateError;

use crate::{Network, ProxyAddress, outside};

/// Why a request failed, for people, and where. Holds no address but that of a proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// At the proxy, or on the way to it: what was to be asked has no part in it.
    Proxy(String),
    /// Anywhere else.
    Elsewhere(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Proxy(text) | Self::Elsewhere(text)) = self;
        to.write_str(text)
    }
}

impl Network {
    /// Why a request of a client of this network failed.
    pub fn reason(&self, error: &reqwest::Error) -> Reason {
        let proxy = error.url().and_then(|url| self.proxy_for(url));
        // What is asked over plain HTTP goes to the proxy itself, and no tunnel is told of.
        let is_plain = error.url().is_some_and(|url| url.scheme() == "http");
        if proxy.is_some_and(ProxyAddress::is_http) && is_plain && error.is_connect() {
            return Reason::Proxy(not_reached(proxy, error));
        }
        match blamed(error, proxy) {
            Some(text) => Reason::Proxy(text),
            None => Reason::Elsewhere(reason(error)),
        }
    }
}

impl Network {
    /// The same of an error whose type was lost on the way; `None` where it is none of such a client.
    pub fn reason_within(&self, error: &(dyn Error + 'static)) -> Option<Reason> {
        let mut next = Some(error);
        while let Some(now) = next {
            if let Some(error) = now.downcast_ref::<reqwest::Error>() {
                return Some(self.reason(error));
            }
            next = now.source();
        }
        None
    }

    /// Why a proxy refused what is asked over plain HTTP, which it answers itself; `None` where the answer is not a proxy's.
    pub fn refusal(&self, url: &reqwest::Url, status: u16) -> Option<String> {
        let proxy = self.proxy_for(url).filter(|proxy| proxy.is_http() && url.scheme() == "http" && status == 407)?;
        Some(wants_login(Some(proxy)))
    }
}

/// Why a request failed, for people. Holds no address.
pub fn reason(error: &reqwest::Error) -> String {
    known_reason(error).unwrap_or_else(|| last(error))
}

/// Why a request failed, where that can be told better than the libraries do.
pub fn known_reason(error: &reqwest::Error) -> Option<String> {
    blamed(error, None).or_else(|| causes(error).find_map(told))
}

fn last(error: &reqwest::Error) -> String {
    causes(error).last().map_or_else(|| error.to_string(), ToString::to_string)
}

/// What a proxy is to blame for.
fn blamed(error: &reqwest::Error, proxy: Option<&ProxyAddress>) -> Option<String> {
    // The types of what goes through a proxy cannot be named.
    causes(error).map(ToString::to_string).find_map(|said| match said.as_str() {
        "tunnel error: proxy authorization required" => Some(wants_login(proxy)),
        "tunnel error: unexpected end of file" => Some("the proxy hangs up".to_owned()),
        "tunnel error: failed to create underlying connection"
        | "tunnel error: io error establishing tunnel"
        | "SOCKS error: failed to create underlying connection"
        | "SOCKS error: io error during SOCKS handshake" => Some(not_reached(proxy, error)),
        _ => None,
    })
}

fn not_reached(proxy: Option<&ProxyAddress>, error: &reqwest::Error) -> String {
    let why = causes(error).find_map(told).unwrap_or_else(|| last(error));
    format!("the proxy{} cannot be reached: {why}", shown(proxy))
}

/// What a proxy says with 407.
fn wants_login(proxy: Option<&ProxyAddress>) -> String {
    if proxy.is_some_and(ProxyAddress::has_login) {
        return format!(
            "the proxy{} does not take the name and the password that it is shown: `proxy_user` and `proxy_password` below `[network]`, \
             or what stands before the `@` in the variable that names it",
            shown(proxy)
        );
    }
    "the proxy wants a name and a password: `proxy_user` and `proxy_password` below `[network]`".to_owned()
}

/// Its address, behind the word for it.
fn shown(proxy: Option<&ProxyAddress>) -> String {
    proxy.map(|proxy| format!(" {proxy}")).unwrap_or_default()
}

/// What is below an error.
fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(error.source(), |now| {
        let now = *now;
        // An error of IO has what it was made of not below it, but in it.
        let within = now.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        within.map(|within| within as &(dyn Error + 'static)).or_else(|| now.source())
    })
}

/// What is known better than the libraries say it.
fn told(cause: &(dyn Error + 'static)) -> Option<String> {
    if let Some(rustls::Error::InvalidCertificate(why)) = cause.downcast_ref() {
        return Some(certificate(why));
    }
    if let Some(kept) = outside::kept(cause) {
        return Some(kept);
    }
    // What is the proxy's own fault was told before.
    let said = cause.to_string();
    match said.strip_prefix("tunnel error: ")? {
        "unsuccessful" => Some("the proxy refuses to connect to it".to_owned()),
        // What is below says more.
        "failed to create underlying connection" | "io error establishing tunnel" => None,
        other => Some(format!("the proxy does not connect to it: {other}")),
    }
}

fn certificate(why: &CertificateError) -> String {
    match why {
        CertificateError::UnknownIssuer => {
            "its certificate is from an authority that is not trusted here; where that is your own, name \
                                            its certificate as `ca_file` below `[network]`"
                .to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "its certificate has expired".to_owned(),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet; is the clock of this machine right?".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("its certificate is for another name ({why})")
        }
        CertificateError::Revoked => "its certificate was revoked".to_owned(),
        // The type of what is in it cannot be named.
        CertificateError::Other(why) if why.0.to_string() == "CaUsedAsEndEntity" => {
            "its certificate is that of an authority (CA:TRUE), which no server may show as its own; make one with \
             `basicConstraints=CA:FALSE`, and name it, or the authority that signed it, as `ca_file` below `[network]`"
                .to_owned()
        }
        // The list of them grows; the words of each are its own.
        other => format!("its certificate cannot be trusted: {other}"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::OtherError;

    use super::*;
    use crate::{Proxies, made};

    #[tokio::test]
    async fn a_proxy_that_is_not_there_is_named_and_blamed_for_it() {
        let past = vec!["models.invalid".to_owned()];
        for address in ["http://127.0.0.1:1", "socks5h://127.0.0.1:1", "http://proxy.invalid:3128"] {
            let proxy = ProxyAddress::read(address).unwrap().with_login("me", "hidden").unwrap();
            let network = Network::default().through(&Proxies::all(proxy, past.clone())).unwrap();
            let client = made(network.client()).await.unwrap();
            for url in ["https://example.org/v1", "http://example.org/v1"] {
                let error = client.get(url).send().await.unwrap_err();
                let Reason::Proxy(text) = network.reason(&error) else { panic!("{address} {url}: {error:?}") };
                assert!(text.starts_with(&format!("the proxy {address} cannot be reached: ")), "{url}: {text}");
                assert!(!text.contains("hidden"), "{text}");
            }
            for url in ["http://models.invalid/v1", "http://127.0.0.1:1/v1"] {
                let error = client.get(url).send().await.unwrap_err();
                assert!(matches!(network.reason(&error), Reason::Elsewhere(_)), "{address} {url}: {error:?}");
            }
        }
    }

    #[test]
    fn a_proxy_that_wants_to_know_who_asks_over_plain_http_is_told_from_what_is_asked() {
        let proxy = ProxyAddress::read("http://127.0.0.1:3128").unwrap();
        let through = |proxy| Network::default().through(&Proxies::all(proxy, vec!["near.invalid".to_owned()])).unwrap();
        let (bare, known) = (through(proxy.clone()), through(proxy.with_login("me", "hidden").unwrap()));
        let url = |text: &str| text.parse().unwrap();
        let far = url("http://far.invalid/v1");
        assert!(bare.refusal(&far, 407).unwrap().starts_with("the proxy wants a name and a password: "));
        let refused = known.refusal(&far, 407).unwrap();
        assert!(refused.starts_with("the proxy http://127.0.0.1:3128 does not take the name") && !refused.contains("hidden"));
        for (asked, status) in
            [("http://far.invalid/v1", 403), ("https://far.invalid/v1", 407), ("http://near.invalid/v1", 407)]
        {
            assert_eq!(known.refusal(&url(asked), status), None, "{asked} {status}");
        }
    }

    #[derive(Debug, thiserror::Error)]
    #[error("CaUsedAsEndEntity")]
    struct CaUsedAsEndEntity;

    #[test]
    fn a_certificate_of_an_authority_is_told_with_what_a_server_needs() {
        let text = certificate(&CertificateError::Other(OtherError(Arc::new(CaUsedAsEndEntity))));
        assert!(text.contains("CA:FALSE") && text.contains("`ca_file` below `[network]`"), "{text}");
    }
}
