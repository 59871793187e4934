//! What a host does besides turns where its program stays, as a server does.

use std::convert::Infallible;

use crate::{Host, HostError};

impl Host {
    /// Takes up its work, before the first request: holds to the limits of `[server.limits]`, joins the other nodes, goes on with the
    /// turns that the last process left and those that others leave, declines what waits too long, tells people of what waits,
    /// and keeps the index of documents. `base` is the address at which people find the page; it is told to those who are
    /// sent there.
    ///
    /// [`Host::keep`] does the rest. A program that asks one question and ends needs neither.
    ///
    /// # Errors
    /// [`HostError`], where the other nodes cannot be joined, the store does not answer, or nobody can be told.
    pub async fn begin(&self, base: &str) -> Result<(), HostError> {
        let engine = self.engine();
        engine.limit(self.config().server.limits.of_engine());
        if self.join_nodes(base).await? {
            tracing::info!(prefix = self.config().nats.prefix, "shares turns with the other servers over the same data");
        }
        match engine.resume_open_turns().await? {
            0 => {}
            resumed => tracing::info!(resumed, "took up open turns"),
        }
        engine.keep_resuming();
        self.keep_telling(base).await?;
        self.keep_indexed();
        Ok(())
    }

    /// Removes what is due (`storage.retention`, old keys, files that nobody names), takes what was said into the search, and takes over
    /// the models that other processes add; again and again, for as long as it is polled.
    pub async fn keep(&self) -> Infallible {
        tokio::select! {
            never = self.tidy() => never,
            never = self.model_providers().follow() => never,
        }
    }
}
