//! Messages, tool calls and tool results.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{CallId, ContentBlock, Finish, FinishReason, ProviderFailure, Seq, TurnSettings, Usage};

/// What a person said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserMessage {
    /// What was said; at least one block.
    pub content: Vec<ContentBlock>,
    /// The settings of the turn that this message opens; without effect where it joins an open turn.
    pub settings: TurnSettings,
}

/// Where an assistant message came from. Native blocks are replayed only to the same origin (law 4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The wire format, such as `openai-chat`.
    pub dialect: String,
    /// The provider's name in the configuration.
    pub provider: String,
    /// The provider's own name for the model.
    pub model: String,
}

/// One answer of a model: one step's text, reasoning and calls, in their order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AssistantMessage {
    /// Who said it.
    pub origin: Origin,
    /// The last entry that the model was shown.
    pub saw: Seq,
    /// What it said, in order.
    pub blocks: Vec<AssistantBlock>,
    /// Why it stopped.
    pub finish: Finish,
    /// Whether it is whole.
    #[serde(default)]
    pub completion: Completion,
    /// What it cost.
    #[serde(default)]
    pub usage: Usage,
}

/// Whether an assistant message is whole.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Completion {
    /// It ended with its provider's terminal marker.
    #[default]
    Complete,
    /// It did not; none of its calls runs.
    CutOff(CutOffCause),
}

/// Why a message is not whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CutOffCause {
    /// The provider failed in the middle.
    Provider(Box<ProviderFailure>),
    /// A person stopped the turn.
    Cancelled,
}

/// A provider's own JSON text of a block, byte for byte (law 4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NativeBlock(pub String);

/// One block of an assistant message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AssistantBlock {
    /// Text for the person.
    Text {
        /// The text.
        text: String,
        /// The provider's own form, where it holds more than the text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        native: Option<NativeBlock>,
    },
    /// What the model thought.
    Reasoning {
        /// The readable part; may be empty.
        text: String,
        /// The provider's own form: signatures, ciphertext, the field it came in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        native: Option<NativeBlock>,
    },
    /// The words with which the model refused.
    Refusal {
        /// The text.
        text: String,
    },
    /// A tool call.
    Call(ToolCall),
    /// Something that only its provider understands, kept for the way back.
    Opaque {
        /// The provider's own form.
        native: NativeBlock,
    },
}

/// A model's request to run a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The name as the model wrote it: a qualified name, or one that does not exist.
    pub name: String,
    /// The arguments as the model wrote them: JSON text, but not for sure. Empty means `{}`.
    pub arguments: String,
    /// The provider's id, which may repeat or be missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// The provider's own form, where it holds more than name, id and arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native: Option<NativeBlock>,
    /// Whether the model wrote the call as text and we recovered it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recovered: bool,
}

impl AssistantMessage {
    /// The calls, in order; a call's index here is the index of its [`CallId`].
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.blocks.iter().filter_map(|block| match block {
            AssistantBlock::Call(call) => Some(call),
            AssistantBlock::Text { .. }
            | AssistantBlock::Reasoning { .. }
            | AssistantBlock::Refusal { .. }
            | AssistantBlock::Opaque { .. } => None,
        })
    }

    /// Whether the model refused: its provider says so, or the message has nothing for the person but words of refusal. Not
    /// every format has a finish reason for that.
    pub fn is_refusal(&self) -> bool {
        let has_words = |is_wanted: fn(&AssistantBlock) -> bool| self.blocks.iter().any(is_wanted);
        let refuses = has_words(|block| matches!(block, AssistantBlock::Refusal { text } if !text.trim().is_empty()));
        let speaks = has_words(|block| match block {
            AssistantBlock::Text { text, .. } => !text.trim().is_empty(),
            AssistantBlock::Call(_) => true,
            AssistantBlock::Reasoning { .. } | AssistantBlock::Refusal { .. } | AssistantBlock::Opaque { .. } => false,
        });
        self.finish.reason == FinishReason::Refusal || (self.finish.reason == FinishReason::Stop && refuses && !speaks)
    }

    /// The words with which the model refused; `None` where it did not.
    pub fn refusal(&self) -> Option<String> {
        let words = self.blocks.iter().filter_map(|block| match block {
            AssistantBlock::Refusal { text } => Some(text.as_str()),
            AssistantBlock::Text { .. }
            | AssistantBlock::Reasoning { .. }
            | AssistantBlock::Call(_)
            | AssistantBlock::Opaque { .. } => None,
        });
        Some(words.collect::<String>()).filter(|words| !words.is_empty())
    }

    /// The text for the person, without reasoning and refusal.
    pub fn text(&self) -> String {
        self.blocks
            .iter()
            .filter_map(|block| match block {
                AssistantBlock::Text { text, .. } => Some(text.as_str()),
                AssistantBlock::Reasoning { .. }
                | AssistantBlock::Refusal { .. }
                | AssistantBlock::Call(_)
                | AssistantBlock::Opaque { .. } => None,
            })
            .collect()
    }
}

/// The one answer to a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// Which call it answers.
    pub call: CallId,
    /// Whether it worked.
    pub outcome: Outcome,
    /// What the model is shown.
    pub content: Vec<ContentBlock>,
    /// The result as JSON, where the tool gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Value>,
    /// What the operator should know and the model need not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnostic: Option<String>,
    /// How long it ran, in milliseconds; `None` where it did not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Whether it is what an earlier call of the same came to: the tool did not run for this one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cached: bool,
}

/// Whether a call worked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It ran and says so.
    Success,
    /// It failed, in this way.
    Error(ToolErrorKind),
    /// A person or a rule denied it; it did not run.
    Denied,
}

impl Outcome {
    /// Whether the model should take it as a failure.
    pub fn is_error(self) -> bool {
        match self {
            Self::Success => false,
            Self::Error(_) | Self::Denied => true,
        }
    }
}

/// How a tool call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolErrorKind {
    /// The arguments are not JSON or do not fit the tool's schema.
    InvalidArguments,
    /// There is no such tool, file or thing.
    NotFound,
    /// It may not do that.
    PermissionDenied,
    /// It ran and failed.
    ExecutionFailed,
    /// It took too long.
    Timeout,
    /// It was cancelled before it began.
    Cancelled,
    /// Its source is not there.
    Unavailable,
    /// It began and its end is unknown: it may have happened.
    Interrupted,
}

impl ToolErrorKind {
    /// The word used in JSON, such as `invalid_arguments`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidArguments => "invalid_arguments",
            Self::NotFound => "not_found",
            Self::PermissionDenied => "permission_denied",
            Self::ExecutionFailed => "execution_failed",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Unavailable => "unavailable",
            Self::Interrupted => "interrupted",
        }
    }
}

impl ToolResult {
    /// A failed result with one text for the model.
    pub fn failed(call: CallId, kind: ToolErrorKind, text: impl Into<String>) -> Self {
        Self::of(call, Outcome::Error(kind), text)
    }

    /// A result with one text.
    pub fn of(call: CallId, outcome: Outcome, text: impl Into<String>) -> Self {
        Self {
            call,
            outcome,
            content: vec![ContentBlock::text(text)],
            structured_content: None,
            diagnostic: None,
            duration_ms: None,
            is_cached: false,
        }
    }
}
