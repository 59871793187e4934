//! What watchers are told while it happens.
//!
//! Deltas are told and not stored. Everything else here is a pure function of the entries, see the module `fold`, so that
//! a watcher who comes back and one who stayed see the same.

use std::sync::Arc;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use turnwright_core::{
    ApprovalId, CallId, ContentBlock, ContextPart, ElicitationId, Entry, MessageId, ModelRef, ProviderFailure, Sampling, Seq,
    TurnId, Usage,
};

use crate::weight::of_content;

/// One event. Serialized with its name as `type`, such as `text.delta`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type")]
pub enum Event {
    /// A stored entry. Comes before the events that follow from it.
    #[serde(rename = "entry")]
    Entry {
        /// Its place.
        seq: Seq,
        /// When it was stored, in milliseconds since 1970 UTC.
        at_ms: u64,
        /// The fact.
        entry: Arc<Entry>,
    },
    /// A turn began, or is taken up again after its end.
    #[serde(rename = "turn.started")]
    TurnStarted {
        /// Which.
        turn_id: TurnId,
        /// The model that is asked.
        model: ModelRef,
    },
    /// The model is asked; what it says is told from nothing. Whoever sees it twice drops what the first began.
    #[serde(rename = "step.started")]
    StepStarted {
        /// The message that is being made, if nobody appends in between.
        message_id: MessageId,
    },
    /// What the step produced so far does not count; it begins again.
    #[serde(rename = "step.reset")]
    StepReset,
    /// The message of the step is whole and stored.
    #[serde(rename = "step.finished")]
    StepFinished {
        /// The message.
        message_id: MessageId,
        /// Why the model stopped: `stop | tool_calls | length | content_filter | error`.
        finish_reason: &'static str,
        /// What it cost.
        #[serde(serialize_with = "with_nulls")]
        usage: Usage,
    },
    /// More text.
    #[serde(rename = "text.delta")]
    TextDelta {
        /// The block's index in the message.
        block: u32,
        /// Bytes of the block that were told before.
        offset: u64,
        /// The text.
        text: String,
    },
    /// More reasoning.
    #[serde(rename = "reasoning.delta")]
    ReasoningDelta {
        /// The block's index in the message.
        block: u32,
        /// Bytes of the block that were told before.
        offset: u64,
        /// The text.
        text: String,
    },
    /// More of a refusal.
    #[serde(rename = "refusal.delta")]
    RefusalDelta {
        /// The block's index in the message.
        block: u32,
        /// Bytes of the block that were told before.
        offset: u64,
        /// The text.
        text: String,
    },
    /// The model begins to ask for a tool.
    #[serde(rename = "tool.input_started")]
    ToolInputStarted {
        /// The call.
        call_id: CallId,
        /// The block's index in the message.
        block: u32,
        /// The tool's name as the model wrote it.
        name: String,
    },
    /// More of a call's arguments.
    #[serde(rename = "tool.input_delta")]
    ToolInputDelta {
        /// The call.
        call_id: CallId,
        /// The block's index in the message.
        block: u32,
        /// Bytes of the arguments that were told before.
        offset: u64,
        /// The text.
        text: String,
    },
    /// A call is whole and stored.
    #[serde(rename = "tool.input_ready")]
    ToolInputReady {
        /// The call.
        call_id: CallId,
        /// The tool's name as the model wrote it.
        name: String,
        /// The arguments as the model wrote them.
        arguments: String,
    },
    /// A person is asked about a call.
    #[serde(rename = "tool.approval_requested")]
    ToolApprovalRequested {
        /// The call.
        call_id: CallId,
        /// The question, for whoever decides: see `approval_id` of waiting calls.
        approval_id: ApprovalId,
        /// `approval | unknown_outcome | definition_changed | client_tool | loop`.
        reason: &'static str,
        /// The rule that asks, where one does.
        rule: Option<String>,
    },
    /// It was decided about a call.
    #[serde(rename = "tool.approval_decided")]
    ToolApprovalDecided {
        /// The call.
        call_id: CallId,
        /// `allow | deny | happened | run_again | skip`.
        decision: turnwright_core::Verdict,
        /// The rule, where the policy decided; `None` for a person.
        rule: Option<String>,
        /// The changed arguments, where a person changed them.
        arguments: Option<String>,
        /// The person's words.
        reason: Option<String>,
    },
    /// A call asks people for something.
    #[serde(rename = "elicitation.requested")]
    ElicitationRequested {
        /// The question.
        question_id: ElicitationId,
        /// The call that asks.
        call_id: CallId,
        /// Who asks: the tool source's name.
        server: String,
        /// `form | url | sampling`.
        mode: &'static str,
        /// What it says.
        message: String,
        /// The fields of a form, a flat JSON Schema.
        requested_schema: Option<Value>,
        /// The address to open.
        url: Option<String>,
        /// What a model is to be asked.
        #[serde(skip_serializing_if = "Option::is_none")]
        sampling: Option<Box<Sampling>>,
        /// Whether the call stays open meanwhile, so that the question ends with it.
        holds_connection: bool,
        /// Until when it can be answered, in milliseconds since 1970 UTC; `None` where it waits as long as an approval.
        expires_at_ms: Option<u64>,
    },
    /// What a call asked has its answer.
    #[serde(rename = "elicitation.answered")]
    ElicitationAnswered {
        /// The question.
        question_id: ElicitationId,
        /// The call that asked.
        call_id: CallId,
        /// `accept | decline | cancel`.
        action: &'static str,
        /// The values of a form that was accepted.
        content: Option<Map<String, Value>>,
        /// `person | nobody | deadline | asker | policy`.
        by: &'static str,
        /// The rule that answered, or why nobody was asked.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A model was asked for a call that was allowed to.
    #[serde(rename = "sampling.finished")]
    SamplingFinished {
        /// The question that allowed it.
        question_id: ElicitationId,
        /// The call that asked.
        call_id: CallId,
        /// Why there is no answer, where there is none.
        error: Option<String>,
        /// What it cost.
        #[serde(serialize_with = "with_nulls")]
        usage: Usage,
    },
    /// A call runs.
    #[serde(rename = "tool.started")]
    ToolStarted {
        /// The call.
        call_id: CallId,
    },
    /// A call says how far it is. Told, not stored.
    #[serde(rename = "tool.progress")]
    ToolProgress {
        /// The call.
        call_id: CallId,
        /// Rises with time.
        progress: f64,
        /// The value at the end, where known.
        total: Option<f64>,
        /// What is being done.
        message: Option<String>,
    },
    /// A call has its result.
    #[serde(rename = "tool.finished")]
    ToolFinished {
        /// The call.
        call_id: CallId,
        /// `success`, `denied`, or an error kind such as `timeout`.
        outcome: &'static str,
        /// Whether the model should take it as a failure.
        is_error: bool,
        /// What the model is shown.
        content: Vec<ContentBlock>,
        /// The result as JSON, where there is one.
        structured_content: Option<Value>,
        /// How long it ran; `None` where it did not.
        duration_ms: Option<u64>,
    },
    /// Tokens of the turn so far.
    #[serde(rename = "usage")]
    Usage {
        /// The sum over its model calls.
        #[serde(serialize_with = "with_nulls")]
        usage: Usage,
    },
    /// Something that people should know. Told, not stored, unless it follows from an entry.
    #[serde(rename = "notice")]
    Notice {
        /// `info` or `warning`.
        level: &'static str,
        /// One sentence.
        text: String,
    },
    /// What models are shown besides a message, by where it comes from.
    #[serde(rename = "context.gathered")]
    ContextGathered {
        /// The message.
        message_id: MessageId,
        /// Of what it consists.
        parts: Vec<ContextPart>,
    },
    /// Nothing goes on before a person answers.
    #[serde(rename = "turn.suspended")]
    TurnSuspended {
        /// Which turn.
        turn_id: TurnId,
        /// The calls that wait.
        waiting: Vec<CallId>,
    },
    /// Nothing goes on before a person answers, and a call holds its connection for it: the turn is not parked.
    #[serde(rename = "turn.held")]
    TurnHeld {
        /// Which turn.
        turn_id: TurnId,
        /// The calls that wait.
        waiting: Vec<CallId>,
    },
    /// The turn is over.
    #[serde(rename = "turn.finished")]
    TurnFinished {
        /// Which turn.
        turn_id: TurnId,
        /// `completed | cancelled | failed | step_limit | stopped`.
        status: &'static str,
        /// Why it was stopped: `refused | loop | budget`.
        #[serde(skip_serializing_if = "Option::is_none")]
        stop: Option<&'static str>,
        /// What was tried and what came of it, where it was stopped since the model went in circles or a budget is spent.
        #[serde(skip_serializing_if = "Option::is_none")]
        stop_summary: Option<String>,
        /// Why, where it failed.
        error: Option<TurnError>,
    },
}

/// Why a turn failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TurnError {
    /// A stable word, such as `rate_limit`; `turn_failed` where no provider did.
    pub kind: &'static str,
    /// The provider's HTTP status, where there was one.
    pub status: Option<u16>,
    /// For people.
    pub message: String,
    /// The provider's name for the request, where it gave one.
    pub request_id: Option<String>,
}

impl TurnError {
    /// Why a turn failed for this reason, by the failure of its provider where it has one.
    pub fn new(reason: &str, failure: Option<&ProviderFailure>) -> Self {
        Self {
            kind: failure.map_or("turn_failed", |failure| failure.kind.as_str()),
            status: failure.and_then(|failure| failure.status),
            message: reason.to_owned(),
            request_id: failure.and_then(|failure| failure.request_id.clone()),
        }
    }
}

/// Usage with all that there is to know, null where it is not known.
fn with_nulls<S: Serializer>(usage: &Usage, serializer: S) -> Result<S::Ok, S::Error> {
    let Usage { input_tokens, output_tokens, cached_input_tokens, cache_write_tokens, reasoning_tokens, cost_usd } = usage;
    let mut told = serializer.serialize_struct("Usage", 6)?;
    told.serialize_field("input_tokens", input_tokens)?;
    told.serialize_field("output_tokens", output_tokens)?;
    told.serialize_field("cached_input_tokens", cached_input_tokens)?;
    told.serialize_field("cache_write_tokens", cache_write_tokens)?;
    told.serialize_field("reasoning_tokens", reasoning_tokens)?;
    told.serialize_field("cost_usd", cost_usd)?;
    told.end()
}

impl Event {
    /// Why a turn failed or was stopped, in words, where this is its end.
    pub fn why_it_ended(&self) -> Option<&str> {
        let Self::TurnFinished { stop_summary, error, .. } = self else { return None };
        error.as_ref().map(|error| error.message.as_str()).or(stop_summary.as_deref())
    }

    /// About how many bytes it holds by itself; an entry is shared with the journal.
    pub(crate) fn weight(&self) -> usize {
        let texts = match self {
            Self::Entry { .. }
            | Self::TurnStarted { .. }
            | Self::StepStarted { .. }
            | Self::StepReset
            | Self::StepFinished { .. }
            | Self::ToolInputStarted { .. }
            | Self::ToolApprovalRequested { .. }
            | Self::ToolStarted { .. }
            | Self::Usage { .. }
            | Self::TurnSuspended { .. }
            | Self::TurnHeld { .. }
            | Self::SamplingFinished { .. }
            | Self::TurnFinished { .. } => 0,
            Self::TextDelta { text, .. }
            | Self::ReasoningDelta { text, .. }
            | Self::RefusalDelta { text, .. }
            | Self::ToolInputDelta { text, .. }
            | Self::Notice { text, .. } => text.len(),
            Self::ContextGathered { parts, .. } => parts.iter().map(|part| part.source.len() + part.document.len() + 100).sum(),
            Self::ElicitationRequested { message, .. } => message.len().saturating_mul(4),
            Self::ElicitationAnswered { content, .. } => content.as_ref().map_or(0, |content| content.len().saturating_mul(64)),
            Self::ToolInputReady { arguments, .. } => arguments.len(),
            Self::ToolApprovalDecided { arguments, .. } => arguments.as_ref().map_or(0, String::len),
            Self::ToolProgress { message, .. } => message.as_ref().map_or(0, String::len),
            // The structured form is about as long as the text beside it.
            Self::ToolFinished { content, .. } => of_content(content).saturating_mul(2),
        };
        texts.saturating_add(size_of::<Self>())
    }
}
