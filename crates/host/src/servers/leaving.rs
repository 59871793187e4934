//! What is kept of a server that is taken away, or becomes another, goes with it also where whoever does that is killed meanwhile: it is
//! noted before, and a server that tidies up finishes what is noted.

use std::sync::Arc;

use turnwright_engine::{Document, StoreError};
use turnwright_mcp::{McpServer, Removed, SignedOut};

use super::sealed;
use super::set::ServerSet;
use super::stored::{self, Stored};

/// The kind of the notes: by a server's name, what was stored of it.
const KIND: &str = "mcp_leaving";

impl ServerSet {
    /// Notes that this server is about to leave.
    pub(super) async fn note_leaving(&self, document: &Document) -> Result<(), StoreError> {
        self.store.put_document(KIND, document.clone()).await
    }

    /// Forgets what is kept of all servers that have left, where that was not done.
    ///
    /// # Errors
    /// Where the store fails.
    pub(crate) async fn finish_leaving(&self) -> Result<(), StoreError> {
        for note in self.store.documents(KIND).await? {
            self.finish_leaving_of(&note.key).await?;
        }
        Ok(())
    }

    /// The same of one.
    pub(super) async fn finish_leaving_of(&self, name: &str) -> Result<(), StoreError> {
        // Nobody adds one of its name meanwhile, whose sign-in would be taken for the old one's.
        let changing = self.changing.lock().await;
        let Some(note) = self.store.document(KIND, name).await? else { return Ok(()) };
        let now = self.store.document(stored::KIND, name).await?;
        // Another's, or another version's, which is not here to be read, holds nothing that could be found.
        let forgotten = match Stored::read(&note) {
            Ok(before) if now.as_ref() != Some(&note) => self.forget_left(name, &before, now.as_ref()).await,
            Ok(_) | Err(_) => Ok(None),
        };
        match forgotten {
            Ok(removed) => {
                self.store.remove_document(KIND, name).await?;
                drop(changing);
                if let Some((server, removed)) = removed
                    && let SignedOut::Forgotten { reason } = server.give_back(removed).await
                {
                    tracing::info!(server = name, reason, "its tokens are forgotten here alone");
                }
            }
            Err(reason) => {
                tracing::debug!(server = name, reason, "what is kept of an MCP server that left cannot be forgotten yet");
            }
        }
        Ok(())
    }

    async fn forget_left(
        &self,
        name: &str,
        before: &Stored,
        now: Option<&Document>,
    ) -> Result<Option<(Arc<McpServer>, Removed)>, String> {
        let now = now.and_then(|now| Stored::read(now).ok());
        let is_same_account = |now: &Stored| now.owner == before.owner && now.config.get("url") == before.config.get("url");
        let removed = if now.as_ref().is_some_and(is_same_account) {
            None
        } else {
            let server = if let Ok(server) = self.make(name, before).await {
                server
            } else {
                // Its own secrets may be gone, and are needed for nothing here but an address that holds one.
                let config = sealed::without_references(&before.config);
                self.make(name, &Stored { config, ..before.clone() }).await?
            };
            let removed = server.forget().await.map_err(|error| error.to_string())?;
            Some((server, removed))
        };
        let kept = now.map(|now| now.config).unwrap_or_default();
        sealed::forget(&before.config, &kept, self.tokens()).await;
        Ok(removed)
    }
}
