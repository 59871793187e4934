//! What the calls of one endpoint share: who waits for which, and what was told.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnwright_core::{ConversationId, TurnId};
use turnwright_engine::{CONVERSATION_DOCUMENTS, Document, Documents, StoreError};

use super::Questions;
use super::earlier::Quiet;
use super::pool::Pool;

/// See the module.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) pool: Pool,
    pub(super) tasks: TaskTracker,
    pub(super) stop: CancellationToken,
    pub(super) questions: Questions,
    pub(super) quiet: Quiet,
    documents: Arc<dyn Documents>,
    attended: Mutex<HashMap<ConversationId, usize>>,
}

impl Shared {
    pub(super) fn new(questions: Questions, documents: Arc<dyn Documents>) -> Self {
        let (pool, tasks, stop, quiet) = (Pool::default(), TaskTracker::new(), CancellationToken::new(), Quiet::default());
        Self { pool, tasks, stop, questions, quiet, documents, attended: Mutex::default() }
    }

    /// A client waits for the call of this conversation, until what is answered is dropped.
    pub(super) fn attend(self: &Arc<Self>, conversation: &ConversationId) -> Attending {
        *self.attended().entry(conversation.clone()).or_default() += 1;
        Attending { shared: self.clone(), conversation: conversation.clone() }
    }

    /// Whether a client of this process waits for the call of this conversation.
    pub(super) fn is_attended(&self, conversation: &ConversationId) -> bool {
        self.attended().contains_key(conversation)
    }

    /// Notes that clients have the results of a conversation's calls up to this one. Where that fails it is told once more.
    pub(super) async fn note_told(&self, conversation: &ConversationId, turn: TurnId) {
        let document = Document { key: told(conversation), body: turn.to_string() };
        if let Err(error) = self.documents.put_document(CONVERSATION_DOCUMENTS, document).await {
            tracing::debug!(%conversation, %turn, %error, "it is not kept that the result of a call was told");
        }
    }

    /// Whether a client has the result of a call.
    pub(super) async fn is_told(&self, conversation: &ConversationId, turn: TurnId) -> Result<bool, StoreError> {
        let newest = self.documents.document(CONVERSATION_DOCUMENTS, &told(conversation)).await?;
        Ok(newest.and_then(|newest| newest.body.parse().ok()).is_some_and(|newest: TurnId| newest >= turn))
    }

    /// Notes that nobody waits for a call any more that this process goes on with. Where that fails, other nodes take it for one that
    /// somebody waits for.
    pub(super) async fn note_left(&self, conversation: &ConversationId, turn: TurnId) {
        let document = Document { key: left(conversation), body: turn.to_string() };
        if let Err(error) = self.documents.put_document(CONVERSATION_DOCUMENTS, document).await {
            tracing::debug!(%conversation, %turn, %error, "it is not kept that a call was left");
        }
    }

    /// Whether a call was left, at whichever node. Of several that want to go on with it one hears so.
    pub(super) async fn take_left(&self, conversation: &ConversationId, turn: TurnId) -> Result<bool, StoreError> {
        let noted = self.documents.document(CONVERSATION_DOCUMENTS, &left(conversation)).await?;
        let Some(noted) = noted.filter(|noted| noted.body == turn.to_string()) else { return Ok(false) };
        match self.documents.change_document(CONVERSATION_DOCUMENTS, &noted, None).await {
            Ok(()) => Ok(true),
            Err(StoreError::Altered { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn attended(&self) -> MutexGuard<'_, HashMap<ConversationId, usize>> {
        self.attended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn told(conversation: &ConversationId) -> String {
    format!("{conversation}/told/mcp")
}

fn left(conversation: &ConversationId) -> String {
    format!("{conversation}/left/mcp")
}

/// That a client waits for a call.
#[derive(Debug)]
pub(super) struct Attending {
    shared: Arc<Shared>,
    conversation: ConversationId,
}

impl Drop for Attending {
    fn drop(&mut self) {
        let mut attended = self.shared.attended();
        if let Some(count) = attended.get_mut(&self.conversation) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                attended.remove(&self.conversation);
            }
        }
    }
}
