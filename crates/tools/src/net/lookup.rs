//! What names lead to.

use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use turnwright_network::{Allow, special};

use super::refusal::Refusal;

/// The most addresses of a name that are tried.
const MAX_ADDRESSES: usize = 16;

/// Looks names up.
#[async_trait]
pub trait Lookup: Debug + Send + Sync {
    /// All addresses of a name, in the order in which they should be tried.
    ///
    /// # Errors
    /// Where there is no such name, or nobody to ask.
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// As the system looks names up.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemLookup;

#[async_trait]
impl Lookup for SystemLookup {
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
    }
}

/// Gives the client those addresses of a name that may be reached at a port, and none else. It connects to what it is given.
#[derive(Debug)]
pub(super) struct Guarded {
    pub(super) lookup: Arc<dyn Lookup>,
    pub(super) allow: Allow,
    pub(super) port: u16,
}

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let (lookup, allow, port) = (Arc::clone(&self.lookup), self.allow.clone(), self.port);
        Box::pin(async move {
            let name = name.as_str().to_owned();
            let found = lookup.addresses(&name).await;
            let admitted = admitted(&name, found.unwrap_or_default(), &allow, port)?;
            let addresses: Addrs = Box::new(admitted.into_iter().map(move |address| SocketAddr::new(address, port)));
            Ok(addresses)
        })
    }
}

/// Those addresses of a name that may be reached.
pub(super) fn admitted(name: &str, found: Vec<IpAddr>, allow: &Allow, port: u16) -> Result<Vec<IpAddr>, Refusal> {
    let Some(first) = found.first().copied() else {
        return Err(Refusal::NoSuchName { name: name.to_owned() });
    };
    let admitted: Vec<IpAddr> =
        found.into_iter().filter(|address| allow.admit(*address, port).is_ok()).take(MAX_ADDRESSES).collect();
    match special(first) {
        Some(special) if admitted.is_empty() => Err(Refusal::Name { name: name.to_owned(), address: first, special }),
        _ => Ok(admitted),
    }
}
