//! What a running tool asks of a model (MCP `sampling/createMessage`), and what the model said.
//!
//! It goes the way of every question of a tool: stored, allowed or not, then carried out and stored. *Not here:* whether it is
//! allowed, and the asking of the model.

use serde::{Deserialize, Serialize};

use crate::prompt::{Prompt, PromptMessage};
use crate::{
    AssistantBlock, AssistantMessage, Completion, ContentBlock, ElicitationId, Finish, FinishReason, ModelRef, Origin,
    ProviderFailure, Seq, TurnSettings, Usage, UserMessage,
};

/// What a tool wants a model to be asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// The model that is asked. A tool source leaves it open; whoever stores the question chooses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// What the model is told before the messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// What is said; at least one message, the last the user's.
    pub messages: Vec<SamplingMessage>,
    /// The most tokens of the answer.
    pub max_tokens: u32,
    /// The temperature; the provider's default where `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Texts at which the answer ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop_sequences: Vec<String>,
    /// Parts of names of models that the tool would like, the best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
    /// What the operator lets the source have in a turn.
    pub budget: SamplingBudget,
}

/// One message of what a tool wants a model to be asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SamplingMessage {
    /// Whose it is.
    pub role: SamplingRole,
    /// What it says.
    pub content: Vec<ContentBlock>,
}

/// Whose a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SamplingRole {
    /// As a person's.
    User,
    /// As a model's.
    Assistant,
}

impl SamplingRole {
    /// The word of the protocol.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// The most that a tool source may have of models in one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SamplingBudget {
    /// Requests.
    pub max_requests: u32,
    /// Tokens of all answers together.
    pub max_output_tokens: u32,
}

/// What a tool source had of models in a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SamplingSpent {
    /// Requests that were allowed.
    pub requests: u32,
    /// Tokens of their answers; as many as were allowed where an answer is not there or does not say.
    pub output_tokens: u32,
}

impl SamplingBudget {
    /// How many tokens the next answer may have.
    ///
    /// # Errors
    /// What is used up, for people and for the source.
    pub fn left(self, spent: SamplingSpent) -> Result<u32, String> {
        let Self { max_requests, max_output_tokens } = self;
        if spent.requests >= max_requests {
            return Err(format!("its {max_requests} requests to a model of this turn are used up"));
        }
        match max_output_tokens.saturating_sub(spent.output_tokens) {
            0 => Err(format!("its {max_output_tokens} tokens of answers of this turn are used up")),
            left => Ok(left),
        }
    }
}

/// What came of asking a model for a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sampled {
    /// The question that it answers.
    pub question: ElicitationId,
    /// What came.
    pub outcome: SamplingOutcome,
}

/// What a model said to a tool, or why it did not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SamplingOutcome {
    /// What it said.
    Answered(AssistantMessage),
    /// Why there is no answer.
    Failed {
        /// Why.
        failure: ProviderFailure,
        /// What it cost all the same.
        #[serde(default)]
        usage: Usage,
    },
}

impl Sampled {
    /// What it cost.
    pub fn usage(&self) -> Usage {
        match &self.outcome {
            SamplingOutcome::Answered(message) => message.usage,
            SamplingOutcome::Failed { usage, .. } => *usage,
        }
    }
}

/// The question to the model, apart from the conversation and without tools.
#[derive(Debug, Clone, PartialEq)]
pub struct SamplingRequest {
    settings: TurnSettings,
    said: Vec<Said>,
}

#[derive(Debug, Clone, PartialEq)]
enum Said {
    User(UserMessage),
    Assistant(AssistantMessage),
}

impl Said {
    fn shown(&self) -> PromptMessage<'_> {
        match self {
            Self::User(message) => PromptMessage::User { seq: Seq::FIRST, message },
            Self::Assistant(message) => PromptMessage::Assistant { seq: Seq::FIRST, message },
        }
    }
}

impl Sampling {
    /// As `model` is asked it.
    pub fn request(&self, model: &ModelRef) -> SamplingRequest {
        let settings = TurnSettings {
            system_prompt: self.system_prompt.clone(),
            max_output_tokens: Some(self.max_tokens),
            temperature: self.temperature,
            ..TurnSettings::new(model.clone())
        };
        let said = |message: &SamplingMessage| match message.role {
            SamplingRole::User => Said::User(UserMessage { content: message.content.clone(), settings: settings.clone() }),
            SamplingRole::Assistant => Said::Assistant(as_assistant(&message.content)),
        };
        let said = self.messages.iter().map(said).collect();
        SamplingRequest { settings, said }
    }

    /// An answer up to the first text at which it was to end, and whether it reached one.
    pub fn up_to_stop<'a>(&self, answer: &'a str) -> (&'a str, bool) {
        let ends = self.stop_sequences.iter().filter(|stop| !stop.is_empty()).filter_map(|stop| answer.find(stop.as_str()));
        match ends.min().and_then(|end| answer.get(..end)) {
            Some(cut) => (cut, true),
            None => (answer, false),
        }
    }
}

fn as_assistant(content: &[ContentBlock]) -> AssistantMessage {
    AssistantMessage {
        origin: Origin { dialect: String::new(), provider: String::new(), model: String::new() },
        saw: Seq::FIRST,
        blocks: vec![AssistantBlock::Text { text: crate::text_of(content), native: None }],
        finish: Finish { reason: FinishReason::Stop, raw: None },
        completion: Completion::Complete,
        usage: Usage::default(),
    }
}

impl SamplingRequest {
    /// The prompt.
    pub fn prompt(&self) -> Prompt<'_> {
        let messages = self.said.iter().map(Said::shown).collect();
        Prompt { conversation: None, settings: &self.settings, messages, tools: &[], allow_calls: false }
    }
}
