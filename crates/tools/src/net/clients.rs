//! Where clients begin, and who knows why their requests fail.

use std::fmt;
use std::sync::Arc;

use reqwest::header::{ACCEPT_ENCODING, HeaderMap, HeaderValue};
use reqwest::{Client, ClientBuilder};

use super::packed;

/// Begins clients, and says why a request of theirs failed: certificates, proxies and the like are the business of whoever made
/// it. By default directly, and in the words of the libraries.
#[derive(Clone)]
pub struct Clients {
    begin: Arc<dyn Fn() -> ClientBuilder + Send + Sync>,
    reason: Arc<dyn Fn(&reqwest::Error) -> String + Send + Sync>,
}

impl Clients {
    /// Those that `begin` begins; `reason` says why a request failed, without the address, which may hold a secret.
    pub fn new(
        begin: impl Fn() -> ClientBuilder + Send + Sync + 'static,
        reason: impl Fn(&reqwest::Error) -> String + Send + Sync + 'static,
    ) -> Self {
        Self { begin: Arc::new(begin), reason: Arc::new(reason) }
    }

    /// A client that asks for bodies in the codings that are undone.
    pub(super) fn begin(&self) -> ClientBuilder {
        (self.begin)().default_headers(HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(packed::TAKEN))]))
    }

    pub(super) fn reason(&self, error: &reqwest::Error) -> String {
        (self.reason)(error)
    }
}

impl Default for Clients {
    fn default() -> Self {
        Self::new(|| Client::builder().no_proxy(), told)
    }
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clients").finish_non_exhaustive()
    }
}

/// An error of the client without the address, and without what is said twice.
fn told(error: &reqwest::Error) -> String {
    // The outermost text repeats the address.
    let causes = std::iter::successors(std::error::Error::source(error), |error| error.source());
    let mut texts: Vec<String> = causes.map(ToString::to_string).collect();
    texts.dedup();
    if texts.is_empty() { "the request could not be made or its answer not read".to_owned() } else { texts.join(": ") }
}
