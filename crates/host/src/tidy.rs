//! What a server does by itself, now and then, beside turns.

use std::convert::Infallible;
use std::time::Duration;

use crate::Host;

/// How often it looks for something to do.
const EVERY: Duration = Duration::from_mins(1);
/// How long an uploaded file waits for a message that names it: a day.
const UNUSED_FILES_MS: u64 = 24 * 3_600_000;

impl Host {
    /// Takes what was said into the search, and removes what is due; again and again, for as long as it is polled.
    pub async fn tidy(&self) -> Infallible {
        loop {
            tokio::time::sleep(EVERY).await;
            self.tidy_once().await;
        }
    }

    /// What [`Host::tidy`] does each time.
    pub async fn tidy_once(&self) {
        if let Err(error) = self.texts().take_in().await {
            tracing::warn!(%error, "what was said could not be taken into the search; whoever searches does it");
        }
        if let Some(retention) = self.config().storage.retention() {
            let age_ms = u64::try_from(retention.as_millis()).unwrap_or(u64::MAX);
            let before_ms = self.engine().clock().now_ms().saturating_sub(age_ms);
            match self.engine().remove_old(&**self.upkeep(), before_ms).await {
                Ok(0) => {}
                Ok(count) => tracing::info!(count, "removed conversations that are older than the retention"),
                Err(error) => {
                    tracing::warn!(%error, "old conversations could not be removed or overwritten; the next round does it");
                }
            }
        }
        let before_ms = self.engine().clock().now_ms().saturating_sub(UNUSED_FILES_MS);
        if let Err(error) = self.artifacts().sweep_artifacts(before_ms).await {
            tracing::warn!(%error, "files that nobody uses could not be removed");
        }
    }
}
