//! What can go wrong with a request to the engine.

use turnwright_core::{
    BudgetStop, CallId, ConversationId, ElicitationId, FieldProblem, JournalError, ProviderFailure, TurnId, TurnSettings,
};

use crate::{OverLimit, StoreError};

/// A request that was not carried out. Nothing was stored, unless the variant says otherwise.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EngineError {
    /// There is no such thing.
    #[error("there is no {what}")]
    NotFound {
        /// What was asked for.
        what: String,
    },
    /// There is no such tool.
    #[error("there is no tool {what}")]
    NoTool {
        /// What was asked for, and what may have been meant.
        what: String,
    },
    /// There is a conversation with this id.
    #[error("there is a conversation `{id}` already")]
    Exists {
        /// Its name.
        id: ConversationId,
    },
    /// The request is about an open turn and there is none, or another.
    #[error("{why}")]
    NoOpenTurn {
        /// Which turn was meant and what is the case.
        why: String,
    },
    /// The request is about a turn that is over, and it is open.
    #[error("{why}")]
    TurnOpen {
        /// Which turn, and what to do first.
        why: String,
    },
    /// The request chooses settings for an open turn, which keeps what it began with.
    #[error(
        "{turn} is open and goes on with {}, approve {}, max steps {}, and the prompt and tools that it began with; \
         say something in it with another model, leave other settings out, or stop it first",
        .settings.model, .settings.approve, .settings.max_steps
    )]
    OtherSettings {
        /// The turn.
        turn: TurnId,
        /// What it began with.
        settings: Box<TurnSettings>,
    },
    /// The request would go on with an open turn whose tools worked in another folder than they would here.
    #[error("the tools of the open turn work in `{folder}`, and here they would work in another folder; nothing was done")]
    OtherFolder {
        /// Where they worked.
        folder: String,
    },
    /// A message was to be stored only where nobody said anything since its [`KnownAs`](crate::KnownAs) was looked up, and somebody did:
    /// look again.
    #[error("somebody said something meanwhile")]
    SaidMeanwhile,
    /// The call does not wait for this.
    #[error("`{call}` cannot be decided like this: {why}")]
    NotWaiting {
        /// Which call.
        call: CallId,
        /// What is the case.
        why: String,
    },
    /// The question has its answer, or is closed.
    #[error("`{question}` cannot be answered: {why}")]
    NotAsked {
        /// Which question.
        question: ElicitationId,
        /// What is the case.
        why: String,
    },
    /// The answer does not fit the form.
    #[error("the answer does not fit the form: {}", .problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Misfilled {
        /// What is wrong, field by field.
        problems: Vec<FieldProblem>,
    },
    /// The request itself is wrong: arguments that do not fit, a denied change, a value out of range.
    #[error("{what}")]
    Invalid {
        /// What, and what would be right.
        what: String,
    },
    /// Whoever asks may not do this.
    #[error("{what}")]
    NotAllowed {
        /// What, in words.
        what: String,
    },
    /// It is for people alone, and none asks.
    #[error("{why}; only people decide")]
    PeopleOnly {
        /// Why whoever asks is not taken for a person.
        why: String,
    },
    /// The idempotency key was used for another request.
    #[error("the idempotency key `{key}` was used for another request")]
    KeyReused {
        /// The key.
        key: String,
    },
    /// It is more than this engine takes.
    #[error(transparent)]
    OverLimit(#[from] OverLimit),
    /// A budget does not allow a question to a model.
    #[error("the model was not asked: {}", .0.told())]
    OverBudget(BudgetStop),
    /// The model provider.
    #[error(transparent)]
    Provider(#[from] ProviderFailure),
    /// The store.
    #[error(transparent)]
    Store(StoreError),
    /// The journal is damaged and the conversation read-only from there.
    #[error("the conversation's journal is damaged and can only be read: {0}")]
    Journal(#[from] JournalError),
    /// The process is ending.
    #[error("the engine is shutting down")]
    ShuttingDown,
}

impl EngineError {
    /// The words for a client that may be anybody's: without where the database is and why it fails, which is the operator's.
    pub fn for_clients(&self) -> String {
        match self {
            Self::Store(error) => error.for_clients(),
            other => other.to_string(),
        }
    }
}

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Gone { conversation } => Self::NotFound { what: format!("conversation `{conversation}`") },
            StoreError::Exists { conversation } => Self::Exists { id: conversation },
            StoreError::Missing { what } => Self::NotFound { what },
            StoreError::Closed => Self::ShuttingDown,
            StoreError::Conflict { .. }
            | StoreError::Changed { .. }
            | StoreError::Altered { .. }
            | StoreError::LastAdmin { .. }
            | StoreError::Taken { .. }
            | StoreError::Repeated { .. }
            | StoreError::OverBudget
            | StoreError::TooManyTurns
            | StoreError::Newer { .. }
            | StoreError::Damaged { .. }
            | StoreError::Unusable { .. } => Self::Store(error),
        }
    }
}
