//! What a server does by itself, now and then, beside turns.

use std::convert::Infallible;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;
use turnwright_engine::{Document, REPEATABLE_REQUESTS, StoreError};

use crate::Host;

mod seen;

pub(crate) use seen::Rounds;

/// How often it looks for something to do.
const EVERY: Duration = Duration::from_mins(1);
/// How often it looks for answers to idempotency keys that are old: an hour.
const KEYS_EVERY_MS: u64 = 3_600_000;
/// How long answers to idempotency keys are kept that go with no conversation, where no retention says it: thirty days.
const KEYS_MS: u64 = 30 * 24 * 3_600_000;
/// How long it is kept what a request began that may be sent again, and how often it looks for older ones: an hour.
const REQUESTS_MS: u64 = 3_600_000;
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
        let believes = self.believes_its_clock().await.unwrap_or_else(|error| {
            tracing::warn!(%error, "it cannot be known when a server last ran; the next round removes what is old");
            false
        });
        let retention = self.config().storage.retention();
        let age_ms = retention.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
        let now_ms = self.engine().clock().now_ms();
        let keys_before_ms = now_ms.saturating_sub(age_ms.unwrap_or(KEYS_MS));
        if believes && let Err(error) = self.forget_keys(keys_before_ms).await {
            tracing::warn!(%error, "old answers to idempotency keys could not be removed; the next round does it");
        }
        if let Some(age_ms) = age_ms.filter(|_| believes) {
            let before_ms = now_ms.saturating_sub(age_ms);
            match self.engine().remove_old(&**self.upkeep(), before_ms).await {
                Ok(0) => {}
                Ok(count) => tracing::info!(count, "removed conversations that are older than the retention"),
                Err(error) => {
                    tracing::warn!(%error, "old conversations could not be removed or overwritten; the next round does it");
                }
            }
        } else if let Err(error) = self.engine().erase_due(&**self.upkeep()).await {
            tracing::warn!(%error, "what was deleted could not be overwritten; the next round does it");
        }
        if let Err(error) = self.engine().forget_deleted().await {
            tracing::warn!(%error, "it is not known which conversations others deleted; the next round looks again");
        }
        if let Err(error) = self.mcp().set.finish_leaving().await {
            tracing::warn!(%error, "what is kept of MCP servers that left could not be forgotten; the next round does it");
        }
        if believes && let Err(error) = self.forget_requests().await {
            tracing::warn!(%error, "requests that may be sent again no more could not be forgotten; the next round does it");
        }
        let before_ms = self.engine().clock().now_ms().saturating_sub(UNUSED_FILES_MS);
        if believes && let Err(error) = self.artifacts().sweep_artifacts(before_ms).await {
            tracing::warn!(%error, "files that nobody uses could not be removed");
        }
    }

    /// Forgets what requests began that are not taken for the same any more if they come again.
    async fn forget_requests(&self) -> Result<(), StoreError> {
        let now_ms = self.engine().clock().now_ms();
        if now_ms.saturating_sub(self.requests_looked_at_ms.load(Ordering::Relaxed)) < REQUESTS_MS {
            return Ok(());
        }
        self.upkeep().forget_requests(now_ms.saturating_sub(REQUESTS_MS)).await?;
        self.requests_looked_at_ms.store(now_ms, Ordering::Relaxed);
        Ok(())
    }

    /// Removes the answers to idempotency keys that are older, as those go with their conversations that stand in a journal. All are
    /// read for that, so it is done now and then.
    async fn forget_keys(&self, before_ms: u64) -> Result<(), StoreError> {
        let now_ms = self.engine().clock().now_ms();
        if now_ms.saturating_sub(self.keys_looked_at_ms.load(Ordering::Relaxed)) < KEYS_EVERY_MS {
            return Ok(());
        }
        let documents = self.documents();
        for document in documents.documents(REPEATABLE_REQUESTS).await? {
            let Ok(Value::Object(mut kept)) = serde_json::from_str(&document.body) else { continue };
            let is_under_way = kept.contains_key("under_way");
            match kept.get("at_ms").and_then(Value::as_u64) {
                Some(at_ms) if at_ms < before_ms => documents.remove_document(REPEATABLE_REQUESTS, &document.key).await?,
                Some(_) => {}
                None if is_under_way => {}
                // An older version stored it: its time begins here.
                None => {
                    kept.insert("at_ms".to_owned(), Value::from(now_ms));
                    let document = Document { body: Value::Object(kept).to_string(), ..document };
                    documents.put_document(REPEATABLE_REQUESTS, document).await?;
                }
            }
        }
        self.keys_looked_at_ms.store(now_ms, Ordering::Relaxed);
        Ok(())
    }
}
