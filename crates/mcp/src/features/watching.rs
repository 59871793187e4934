//! Hears that resources changed, for whoever wants to know.
//!
//! What is wanted outlives a connection: each new one is told of it again. Servers of the older form are asked resource by
//! resource, those of 2026-07-28 by [`crate::listen`].

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio::sync::{broadcast, watch};
use turnwright_core::ToolErrorKind;
use turnwright_engine::ToolError;

use super::asking::ask;
use crate::McpServer;
use crate::agreed::Offer;
use crate::connection::Connection;
use crate::log::LogOrigin;
use crate::supervisor::Shared;

/// Changes that are held for one who is slow to hear of them.
const HELD: usize = 64;
/// The most resources of one server that are watched at once.
const MAX_WATCHED: usize = 1_000;

/// Which resources of a server somebody wants to hear of.
#[derive(Debug)]
pub(crate) struct Watching {
    wanted: Arc<Wanted>,
    changes: broadcast::Sender<Arc<str>>,
}

#[derive(Debug)]
struct Wanted {
    counts: Mutex<BTreeMap<String, usize>>,
    now: watch::Sender<BTreeSet<String>>,
}

impl Default for Watching {
    fn default() -> Self {
        let wanted = Wanted { counts: Mutex::default(), now: watch::Sender::new(BTreeSet::new()) };
        Self { wanted: Arc::new(wanted), changes: broadcast::Sender::new(HELD) }
    }
}

impl Watching {
    /// What is wanted, as it changes.
    pub(crate) fn wanted(&self) -> watch::Receiver<BTreeSet<String>> {
        self.wanted.now.subscribe()
    }

    /// A resource changed.
    pub(crate) fn changed(&self, uri: &str) {
        // Where nobody listens any more nobody needs to hear of it.
        drop(self.changes.send(uri.into()));
    }
}

impl Wanted {
    /// Counts one more or one less who wants to hear of a resource.
    fn count(&self, uri: &str, count: impl FnOnce(usize) -> usize) -> bool {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let now = count(counts.get(uri).copied().unwrap_or(0));
        if now > 0 && !counts.contains_key(uri) && counts.len() >= MAX_WATCHED {
            return false;
        }
        match now {
            0 => drop(counts.remove(uri)),
            now => drop(counts.insert(uri.to_owned(), now)),
        }
        let all = counts.keys().cloned().collect();
        self.now.send_if_modified(|now| {
            let is_new = *now != all;
            *now = all;
            is_new
        });
        true
    }
}

/// A resource that is watched until this is dropped.
#[derive(Debug)]
pub struct Watched {
    uri: String,
    changes: broadcast::Receiver<Arc<str>>,
    wanted: Arc<Wanted>,
}

impl Watched {
    /// Waits until the server says that the resource, or one within it, changed. It may have changed more than once.
    pub async fn changed(&mut self) {
        loop {
            match self.changes.recv().await {
                Ok(uri) if uri.starts_with(&self.uri) => return,
                Ok(_) => {}
                // What was missed may have been of this one.
                Err(broadcast::error::RecvError::Lagged(_)) => return,
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.wanted.count(&self.uri, |count| count.saturating_sub(1));
    }
}

impl McpServer {
    /// Watches a resource, also over restarts of the server.
    ///
    /// # Errors
    /// [`ToolErrorKind::NotFound`] where the server does not tell, and as a call.
    pub async fn watch_resource(&self, uri: &str) -> Result<Watched, ToolError> {
        let _user = self.in_use();
        let connection = self.connection("resources/subscribe").await?;
        let server = &self.config().name;
        if !connection.agreed.offers(Offer::ResourceUpdates) {
            let text = format!("The MCP server `{server}` does not tell when its resources change.");
            return Err(ToolError::new(ToolErrorKind::NotFound, text));
        }
        let watching = &self.shared().shelving.watching;
        let changes = watching.changes.subscribe();
        if !watching.wanted.count(uri, |count| count + 1) {
            let text = format!("{MAX_WATCHED} resources of the MCP server `{server}` are watched already.");
            return Err(ToolError::new(ToolErrorKind::Unavailable, text));
        }
        Ok(Watched { uri: uri.to_owned(), changes, wanted: Arc::clone(&watching.wanted) })
    }
}

/// Hands on what a connection hears of resources.
pub(crate) async fn hear(shared: &Shared, connection: &Connection) -> Infallible {
    loop {
        connection.wire.resource_changed.notified().await;
        for uri in connection.wire.changed_resources() {
            shared.shelving.watching.changed(&uri);
        }
    }
}

/// Asks a server of the older form for what is wanted, and takes back what is not any more.
pub(crate) async fn subscribe(shared: &Shared, connection: &Connection) -> Infallible {
    const LIMIT: Duration = Duration::from_secs(10);
    let mut wanted = shared.shelving.watching.wanted();
    let mut asked = BTreeSet::new();
    // What changed while there was no connection is not told.
    let mut missed = wanted.borrow().clone();
    loop {
        let now = wanted.borrow_and_update().clone();
        let more = now.difference(&asked).map(|uri| ("resources/subscribe", uri));
        let less = asked.difference(&now).map(|uri| ("resources/unsubscribe", uri));
        for (method, uri) in more.chain(less) {
            if let Err(error) = ask(connection, method, json!({"uri": uri}), LIMIT).await {
                shared.log.push(LogOrigin::Host, &format!("{method} of `{uri}`: {}", error.in_words(method)));
            }
        }
        asked = now;
        for uri in std::mem::take(&mut missed) {
            shared.shelving.watching.changed(&uri);
        }
        if wanted.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
