//! What is kept of a server ends with it: nobody else is signed in by one that is taken away, becomes another's or is elsewhere from now
//! on. The process that changes it so forgets that, once nothing of it runs here and before its successor begins.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use turnwright_mcp::{FileBoard, McpServer, Removed, SignedOut};

use super::set::{Entry, Origin};

/// The servers that this process is about to change so.
#[derive(Debug, Default)]
pub(crate) struct Farewells(Mutex<HashMap<String, Farewell>>);

impl Farewells {
    fn open(&self) -> MutexGuard<'_, HashMap<String, Farewell>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is kept of this server is to be forgotten where it leaves for good. `board` is the folder of what processes say of it.
    pub(crate) fn announce(&self, server: &str, board: PathBuf) -> Announced<'_> {
        let (over, is_over) = oneshot::channel();
        self.open().insert(server.to_owned(), Farewell { board, _over: over });
        Announced { farewells: self, server: server.to_owned(), is_over: Some(is_over) }
    }

    pub(super) fn take(&self, server: &str) -> Option<Farewell> {
        self.open().remove(server)
    }
}

/// Takes it back where it is dropped.
#[derive(Debug)]
pub(crate) struct Announced<'a> {
    farewells: &'a Farewells,
    server: String,
    is_over: Option<oneshot::Receiver<()>>,
}

impl Announced<'_> {
    /// What is stored was taken over: what ends once all is forgotten, at once where there was nothing to forget.
    pub(crate) fn over(mut self) -> impl Future<Output = ()> + use<> {
        let is_over = self.is_over.take();
        drop(self);
        async move {
            if let Some(is_over) = is_over {
                // It ends with its sender.
                let _ = is_over.await;
            }
        }
    }
}

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        drop(self.farewells.take(&self.server));
    }
}

/// One of them, until all of it is forgotten.
#[derive(Debug)]
pub(super) struct Farewell {
    board: PathBuf,
    _over: oneshot::Sender<()>,
}

impl Farewell {
    /// Forgets what is kept here. What signing in brought is still to be given back.
    pub(super) async fn forget(&self, server: &McpServer) -> Option<Removed> {
        let name = &server.config().name;
        FileBoard::forget(&self.board, name);
        let forgotten = server.forget().await.inspect_err(|error| {
            tracing::warn!(server = name, %error, "what signing in at an MCP server brought stays where it is, sealed");
        });
        forgotten.ok()
    }

    /// Gives it back.
    pub(super) async fn give_back(self, server: &McpServer, removed: Removed) {
        match server.give_back(removed).await {
            SignedOut::WasNot | SignedOut::Revoked => {}
            SignedOut::Forgotten { reason } => {
                tracing::info!(server = server.config().name, reason, "its tokens are forgotten here alone");
            }
        }
    }
}

/// Whether a server that is replaced, or taken away, leaves for good: another's, or one elsewhere, is another server.
pub(super) fn leaves_for_good(before: &Entry, after: Option<&Entry>) -> bool {
    let whose_and_where = |entry: &Entry| match &entry.origin {
        Origin::Added(Some(stored)) => Some((stored.owner.clone(), stored.config.get("url").cloned())),
        Origin::Added(None) | Origin::File(_) | Origin::Brought => None,
    };
    after.is_none_or(|after| whose_and_where(after) != whose_and_where(before))
}
