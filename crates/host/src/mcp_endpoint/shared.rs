//! What the calls of one endpoint share: who waits for which, and what was told.

use std::collections::HashMap;
use std::fmt::{self, Display, Formatter};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnwright_core::{ConversationId, DriverId, TurnId};
use turnwright_engine::{CONVERSATION_DOCUMENTS, Document, Documents, StoreError};

use super::Questions;
use super::earlier::Quiet;
use super::pool::Pool;

/// See the module.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) pool: Pool,
    pub(super) tasks: TaskTracker,
    /// What notes that results were told.
    pub(super) tellings: TaskTracker,
    pub(super) stop: CancellationToken,
    pub(super) questions: Questions,
    pub(super) quiet: Quiet,
    /// With which the command that decides reaches this data.
    pub(super) command_flags: String,
    documents: Arc<dyn Documents>,
    attended: Mutex<HashMap<ConversationId, usize>>,
}

impl Shared {
    pub(super) fn new(questions: Questions, documents: Arc<dyn Documents>, command_flags: String) -> Self {
        let (pool, stop, quiet) = (Pool::default(), CancellationToken::new(), Quiet::default());
        let (tasks, tellings) = (TaskTracker::new(), TaskTracker::new());
        Self { pool, tasks, tellings, stop, questions, quiet, command_flags, documents, attended: Mutex::default() }
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

    /// Notes that this driver is giving the result of a call out. Where that fails it is told once more.
    pub(super) async fn note_handed(&self, conversation: &ConversationId, turn: TurnId, own: &DriverId) {
        let document = Document { key: told(conversation), body: format!("{turn} {own}") };
        let noted = self.documents.put_document(CONVERSATION_DOCUMENTS, document).await;
        log_unkept(noted, conversation, turn);
    }

    /// Notes that clients have the results of a conversation's calls up to this one. Where that fails it is told once more.
    pub(super) async fn note_told(&self, conversation: &ConversationId, turn: TurnId) {
        log_unkept(self.put_told(conversation, turn).await, conversation, turn);
    }

    async fn put_told(&self, conversation: &ConversationId, turn: TurnId) -> Result<(), StoreError> {
        let document = Document { key: told(conversation), body: turn.to_string() };
        let Some(stored) = self.documents.document(CONVERSATION_DOCUMENTS, &document.key).await? else {
            return self.documents.add_document(CONVERSATION_DOCUMENTS, document).await;
        };
        // A later call is told already, or being told.
        if noted(&stored.body).is_some_and(|(newest, _)| newest > turn) {
            return Ok(());
        }
        self.documents.change_document(CONVERSATION_DOCUMENTS, &stored, Some(document.body)).await
    }

    /// Whether a client has the result of a call.
    pub(super) async fn telling(&self, conversation: &ConversationId, turn: TurnId) -> Result<Telling, StoreError> {
        let newest = self.documents.document(CONVERSATION_DOCUMENTS, &told(conversation)).await?;
        Ok(newest.map_or(Telling::Not, |newest| Telling::read(&newest.body, turn)))
    }

    /// Notes that nobody waits for a call any more that this process goes on with. Where that fails, other nodes take it for one that
    /// somebody waits for.
    pub(super) async fn note_left(&self, conversation: &ConversationId, turn: TurnId) {
        if let Err(error) = self.note(conversation, &Attendance::Left(turn)).await {
            tracing::debug!(%conversation, %turn, %error, "it is not kept that a call was left");
        }
    }

    /// Notes that a client waits for a call at this driver, whichever one drives it.
    pub(super) async fn note_attended(
        &self,
        conversation: &ConversationId,
        turn: TurnId,
        own: &DriverId,
    ) -> Result<(), StoreError> {
        self.note(conversation, &Attendance::At(turn, own.clone())).await
    }

    /// What is noted about who waits for a call.
    pub(super) async fn noted(&self, conversation: &ConversationId, turn: TurnId) -> Result<Option<Noted>, StoreError> {
        let document = self.documents.document(CONVERSATION_DOCUMENTS, &left(conversation)).await?;
        Ok(document.and_then(|document| Noted::read(document, turn)))
    }

    /// Goes on with a call at this driver, about which this was noted. Of several that want to one hears that it may.
    pub(super) async fn take(&self, noted: &Noted, turn: TurnId, own: &DriverId) -> Result<bool, StoreError> {
        let attended = Attendance::At(turn, own.clone()).to_string();
        match self.documents.change_document(CONVERSATION_DOCUMENTS, &noted.document, Some(attended)).await {
            Ok(()) => Ok(true),
            Err(StoreError::Altered { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn note(&self, conversation: &ConversationId, attendance: &Attendance) -> Result<(), StoreError> {
        let document = Document { key: left(conversation), body: attendance.to_string() };
        self.documents.put_document(CONVERSATION_DOCUMENTS, document).await
    }

    fn attended(&self) -> MutexGuard<'_, HashMap<ConversationId, usize>> {
        self.attended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is known of whether a client has a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Telling {
    Not,
    /// This driver was giving it out: the client has it, unless that was killed then.
    By(DriverId),
    Done,
}

impl Telling {
    fn read(newest: &str, turn: TurnId) -> Self {
        match noted(newest) {
            // A conversation takes no further call before the one before it was told.
            Some((newest, _)) if newest > turn => Self::Done,
            Some((newest, by)) if newest == turn => by.map_or(Self::Done, Self::By),
            Some(_) | None => Self::Not,
        }
    }
}

/// The newest call that was told, and who was giving its result out where that is all that is known.
fn noted(body: &str) -> Option<(TurnId, Option<DriverId>)> {
    match body.split_once(' ') {
        Some((turn, by)) => Some((turn.parse().ok()?, Some(DriverId(by.to_owned())))),
        None => Some((body.parse().ok()?, None)),
    }
}

fn log_unkept(noted: Result<(), StoreError>, conversation: &ConversationId, turn: TurnId) {
    if let Err(error) = noted {
        tracing::debug!(%conversation, %turn, %error, "it is not kept that the result of a call was told");
    }
}

fn told(conversation: &ConversationId) -> String {
    format!("{conversation}/told/mcp")
}

fn left(conversation: &ConversationId) -> String {
    format!("{conversation}/left/mcp")
}

/// Who waits for a call that another process than its driver may have to go on with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Attendance {
    /// Nobody.
    Left(TurnId),
    /// A client at this driver, for as long as that lives.
    At(TurnId, DriverId),
}

impl Display for Attendance {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Left(turn) => write!(to, "{turn}"),
            Self::At(turn, driver) => write!(to, "{turn} {driver}"),
        }
    }
}

/// An attendance as it is stored.
#[derive(Debug, Clone)]
pub(super) struct Noted {
    /// `None` where nobody waits.
    pub(super) driver: Option<DriverId>,
    document: Document,
}

impl Noted {
    /// Nothing where the document is about another turn.
    fn read(document: Document, turn: TurnId) -> Option<Self> {
        let (of, driver) = match document.body.split_once(' ') {
            Some((of, driver)) => (of, Some(DriverId(driver.to_owned()))),
            None => (document.body.as_str(), None),
        };
        let is_this = of == turn.to_string();
        is_this.then_some(Self { driver, document })
    }
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
