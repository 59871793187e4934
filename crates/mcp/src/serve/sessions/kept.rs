//! How sessions were opened, in the database.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rmcp::model::InitializeRequestParams;
use rmcp::transport::streamable_http_server::session::{SessionState, SessionStore, SessionStoreError};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use turnwright_engine::{Clock, Document, Documents, StoreError};

/// The kind of the documents; the key is the session's name.
const KIND: &str = "mcp_session";
/// The kind of those that say that a call is not wanted any more.
const CANCELLED: &str = "mcp_cancelled";
/// How long a session can be gone on with after it was used the last time. Clocks of nodes may differ by much less.
const KEPT_FOR: Duration = Duration::from_hours(24);
/// How often it is written down that a session is used.
const NOTED_EVERY: Duration = Duration::from_hours(1);
/// How often those are removed that nobody can go on with any more.
const SWEPT_EVERY: Duration = Duration::from_mins(10);
/// How long it is known that a call is not wanted any more.
const CANCELLED_FOR: Duration = Duration::from_hours(1);
/// The longest description that is kept; what opens a session is a few hundred bytes.
const MAX_BYTES: usize = 16 << 10;

/// Where sessions are kept, and whose they are.
#[derive(Debug, Clone)]
pub struct SessionKeeping {
    /// The database.
    pub documents: Arc<dyn Documents>,
    /// The time of day, by which they run out.
    pub clock: Arc<dyn Clock>,
    /// Whose they are: nobody else goes on with them.
    pub owner: String,
}

/// The sessions of one owner.
pub(in crate::serve) struct Kept {
    keeping: SessionKeeping,
    noted: Mutex<HashMap<String, Instant>>,
    swept: Mutex<Option<Instant>>,
}

/// What is kept of a session.
#[derive(Debug, Serialize, Deserialize)]
struct Opened {
    owner: String,
    used_at_ms: u64,
    hello: InitializeRequestParams,
}

impl Opened {
    fn is_over(&self, now_ms: u64) -> bool {
        self.used_at_ms.saturating_add(millis(KEPT_FOR)) < now_ms
    }
}

impl Kept {
    pub(in crate::serve) fn new(keeping: SessionKeeping) -> Self {
        Self { keeping, noted: Mutex::default(), swept: Mutex::default() }
    }

    /// What the client of a session calls itself.
    pub(super) async fn client(&self, session: &str) -> Option<String> {
        let opened = self.read(session).await.ok().flatten()?;
        Some(opened.hello.client_info.name)
    }

    /// The time of day, in milliseconds since 1970 UTC.
    pub(super) fn now_ms(&self) -> u64 {
        self.keeping.clock.now_ms()
    }

    /// Writes down that a session is used, where that was not done lately.
    pub(super) async fn is_used(&self, session: &str) {
        let is_noted = self.noted().get(session).is_some_and(|noted| noted.elapsed() < NOTED_EVERY);
        if is_noted {
            return;
        }
        self.note(session);
        let again = async {
            let Some(opened) = self.read(session).await? else { return Ok(()) };
            self.write(session, opened.hello).await
        };
        if let Err(error) = again.await {
            tracing::debug!(%error, "it is not kept that a session of an MCP client is used");
        }
    }

    /// Writes down that a call is not wanted any more, for the process that runs it.
    pub(super) async fn cancel(&self, call: &str) {
        let document = Document { key: call.to_owned(), body: self.keeping.clock.now_ms().to_string() };
        if let Err(error) = self.keeping.documents.put_document(CANCELLED, document).await {
            tracing::debug!(%error, "a call of an MCP client goes on although it is not wanted any more");
        }
    }

    /// Whether a call is not wanted any more. That is told once.
    pub(super) async fn is_cancelled(&self, call: &str) -> bool {
        let found = self.keeping.documents.document(CANCELLED, call).await;
        if !matches!(found, Ok(Some(_))) {
            return false;
        }
        // Where it stays, the sweep has it.
        drop(self.keeping.documents.remove_document(CANCELLED, call).await);
        true
    }

    /// The session is not in this process any more.
    pub(super) fn forget(&self, session: &str) {
        self.noted().remove(session);
    }

    fn note(&self, session: &str) {
        self.noted().insert(session.to_owned(), Instant::now());
    }

    fn noted(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn read(&self, session: &str) -> Result<Option<Opened>, StoreError> {
        let found = self.keeping.documents.document(KIND, session).await?;
        // What a later version wrote in another form is opened anew.
        let opened = found.and_then(|document| serde_json::from_str::<Opened>(&document.body).ok());
        let now_ms = self.keeping.clock.now_ms();
        Ok(opened.filter(|opened| opened.owner == self.keeping.owner && !opened.is_over(now_ms)))
    }

    async fn write(&self, session: &str, hello: InitializeRequestParams) -> Result<(), StoreError> {
        let opened = Opened { owner: self.keeping.owner.clone(), used_at_ms: self.keeping.clock.now_ms(), hello };
        let body = serde_json::to_string(&opened).unwrap_or_default();
        if body.is_empty() || body.len() > MAX_BYTES {
            tracing::debug!(bytes = body.len(), "a session of an MCP client is not kept: its description is too long");
            return Ok(());
        }
        self.keeping.documents.put_document(KIND, Document { key: session.to_owned(), body }).await
    }

    /// Removes what nobody can go on with any more.
    async fn sweep(&self) -> Result<(), StoreError> {
        {
            let mut swept = self.swept.lock().unwrap_or_else(PoisonError::into_inner);
            if swept.is_some_and(|swept| swept.elapsed() < SWEPT_EVERY) {
                return Ok(());
            }
            *swept = Some(Instant::now());
        }
        let now_ms = self.keeping.clock.now_ms();
        for Document { key, body } in self.keeping.documents.documents(KIND).await? {
            if serde_json::from_str::<Opened>(&body).map_or(true, |opened| opened.is_over(now_ms)) {
                self.keeping.documents.remove_document(KIND, &key).await?;
            }
        }
        for Document { key, body } in self.keeping.documents.documents(CANCELLED).await? {
            let at_ms: u64 = body.parse().unwrap_or_default();
            if at_ms.saturating_add(millis(CANCELLED_FOR)) < now_ms {
                self.keeping.documents.remove_document(CANCELLED, &key).await?;
            }
        }
        Ok(())
    }
}

#[async_trait]
impl SessionStore for Kept {
    async fn load(&self, session_id: &str) -> Result<Option<SessionState>, SessionStoreError> {
        let opened = self.read(session_id).await?;
        Ok(opened.map(|opened| SessionState::new(opened.hello)))
    }

    async fn store(&self, session_id: &str, state: &SessionState) -> Result<(), SessionStoreError> {
        self.note(session_id);
        self.write(session_id, state.initialize_params.clone()).await?;
        self.sweep().await?;
        Ok(())
    }

    async fn delete(&self, session_id: &str) -> Result<(), SessionStoreError> {
        self.forget(session_id);
        // Another owner's is not there.
        if self.read(session_id).await?.is_some() {
            self.keeping.documents.remove_document(KIND, session_id).await?;
        }
        Ok(())
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Kept").field("owner", &self.keeping.owner).finish_non_exhaustive()
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
