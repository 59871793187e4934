//! The heart of Turnwright: what a conversation is and what happens next in it.
//!
//! Nothing here does input or output, waits, reads a clock or draws a random number; every function gives the same answer
//! to the same question. [`Journal`] folds stored entries, [`Turn::step`] says what comes next, [`plan`] turns what just
//! happened into the entries that belong in one append, [`prompt`] shows the journal to a model, [`Assembler`] builds a
//! message from stream deltas, and [`policy`] decides whether a call may run. Carrying all that out is the engine's work.

mod assembler;
mod beginning;
mod brought;
pub mod budget;
pub mod budgets;
pub mod compaction;
mod content;
pub mod context;
mod counted;
mod direction;
mod elicitation;
mod entry;
mod facts;
mod failure;
mod finish;
mod fork;
mod form;
mod glob;
mod held_back;
mod id;
mod journal;
mod loops;
mod media;
mod message;
mod nearest;
mod plan;
pub mod policy;
pub mod prompt;
mod sampling;
pub mod secrets;
mod settings;
mod shell_word;
mod tool;
mod tried;
mod turn;

pub use assembler::{Assembler, StreamDelta};
pub use beginning::SharedBeginning;
pub use brought::{NotShown, is_text_type};
pub use budgets::{BudgetStop, Reserved};
pub use content::{ContentBlock, EmbeddedResource, is_blank, text_of};
pub use context::{Context, ContextKind, ContextPart, ContextPlace};
pub use counted::counted;
pub use direction::changes_direction;
pub use elicitation::{AnswerAction, Answered, AnsweredBy, Elicitation, Elicited, Waits, Wants};
pub use entry::{
    Claim, Compacted, Control, DecidedBy, Decision, DecodeError, ENTRY_VERSION, Entry, KeyForm, Question, QuestionReason,
    Started, StoredEntry, TaskAccepted, Verdict,
};
pub use facts::{LongPromptPrices, ModelFacts, Prices, ReasoningStyle, TokenCounting};
pub use failure::{ProviderFailure, ProviderFailureKind, ProviderSaid};
pub use finish::{Finish, FinishReason, StopReason, TurnStatus, Usage};
pub use fork::{FORK_SOURCE, fork, fork_given};
pub use form::{Choice as FormChoice, Field, FieldKind, FieldProblem, Form, TextFormat};
pub use glob::Glob;
pub use held_back::{SEARCH_TOOL, search_tool};
pub use id::{ApprovalId, CallId, ConversationId, DriverId, ElicitationId, IdError, MessageId, Seq, TurnId, UserId};
pub use journal::{Journal, JournalError};
pub use loops::{LoopLimits, Repetition};
pub use media::{Media, MediaKind};
pub use message::{
    AssistantBlock, AssistantMessage, Completion, CutOffCause, NativeBlock, Origin, Outcome, ToolCall, ToolErrorKind,
    ToolResult, UserMessage,
};
pub use nearest::{letters, nearest};
pub use plan::{Next, Plan, Ruler, Ruling, StartRuling, check, plan};
pub use sampling::{
    Sampled, Sampling, SamplingBudget, SamplingCall, SamplingMessage, SamplingOutcome, SamplingRequest, SamplingResult,
    SamplingRole, SamplingSpent,
};
pub use settings::{ApproveMode, ModelRef, OutputFormat, OutputSchema, ReasoningEffort, ToolChoice, TurnSettings};
pub use shell_word::shell_word;
pub use tool::{Declared, ToolDefinition};
pub use turn::{CallNeed, CallView, Hold, OpenQuestion, PendingCall, Resumption, RunsAt, Settled, Step, SyntheticResult, Turn};
