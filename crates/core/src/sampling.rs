//! What a running tool asks of a model (MCP `sampling/createMessage`), and what the model said.
//!
//! It goes the way of every question of a tool: stored, allowed or not, then carried out and stored. *Not here:* whether it is
//! allowed, and the asking of the model.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::prompt::{Prompt, PromptMessage, PromptResult, ShownResult};
use crate::{
    AssistantBlock, AssistantMessage, CallId, Completion, ContentBlock, ElicitationId, Finish, FinishReason, ModelRef, Origin,
    Outcome, ProviderFailure, Seq, ToolCall, ToolChoice, ToolDefinition, ToolErrorKind, ToolResult, TurnSettings, Usage,
    UserMessage,
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
    /// The tools that the model may ask for. They are the asker's: it runs them itself and asks again with their results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Arc<ToolDefinition>>,
    /// Whether the model must ask for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
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
    /// What it asks for, where it is a model's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<SamplingCall>,
    /// What came of all that the message before it asks for, in that order, where it is a person's; then it says nothing else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<SamplingResult>,
}

/// A call that a model asked the asker for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SamplingCall {
    /// The asker's name for it.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
}

/// What came of such a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SamplingResult {
    /// Which one.
    pub call: String,
    /// What it gave.
    pub content: Vec<ContentBlock>,
    /// The same as JSON, where there is a JSON form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Value>,
    /// Whether it failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

impl SamplingMessage {
    /// One that says this and nothing else.
    pub fn saying(role: SamplingRole, content: Vec<ContentBlock>) -> Self {
        Self { role, content, calls: Vec::new(), results: Vec::new() }
    }
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

/// The question to the model, apart from the conversation and with no tools but the asker's.
#[derive(Debug, Clone, PartialEq)]
pub struct SamplingRequest {
    settings: TurnSettings,
    said: Vec<Said>,
    tools: Vec<Arc<ToolDefinition>>,
}

#[derive(Debug, Clone, PartialEq)]
enum Said {
    User(UserMessage),
    Assistant(Seq, AssistantMessage),
    Results(Vec<(ToolCall, ToolResult)>),
}

impl Said {
    fn shown(&self) -> PromptMessage<'_> {
        match self {
            Self::User(message) => PromptMessage::User { seq: Seq::FIRST, message },
            Self::Assistant(seq, message) => PromptMessage::Assistant { seq: *seq, message },
            Self::Results(results) => {
                PromptMessage::Results(results.iter().map(|(call, result)| shown(call, result)).collect())
            }
        }
    }
}

fn shown<'a>(call: &'a ToolCall, result: &'a ToolResult) -> PromptResult<'a> {
    PromptResult { id: result.call, call, result: ShownResult::from(result), edit: None, nudge: None }
}

impl Sampling {
    /// As `model` is asked it.
    pub fn request(&self, model: &ModelRef) -> SamplingRequest {
        let settings = TurnSettings {
            system_prompt: self.system_prompt.clone(),
            max_output_tokens: Some(self.max_tokens),
            temperature: self.temperature,
            tool_choice: self.tool_choice.clone(),
            ..TurnSettings::new(model.clone())
        };
        let (mut said, mut seq, mut before): (Vec<Said>, _, &[SamplingCall]) = (Vec::new(), Seq::FIRST, &[]);
        for message in &self.messages {
            match message.role {
                SamplingRole::User if message.results.is_empty() => {
                    said.push(Said::User(UserMessage { content: message.content.clone(), settings: settings.clone() }));
                }
                SamplingRole::User => {
                    let results = before.iter().zip(&message.results).zip(0..);
                    let results =
                        results.map(|((call, result), index)| (as_call(call), result.of(CallId { message: seq, index })));
                    said.push(Said::Results(results.collect()));
                }
                SamplingRole::Assistant => {
                    // Calls are told apart by the place of their message.
                    seq = seq.next();
                    said.push(Said::Assistant(seq, message.as_assistant()));
                }
            }
            before = &message.calls;
        }
        SamplingRequest { settings, said, tools: self.tools.clone() }
    }

    /// Whether tools have to do with it.
    pub fn has_tools(&self) -> bool {
        let in_message = |said: &SamplingMessage| !said.calls.is_empty() || !said.results.is_empty();
        !self.tools.is_empty() || self.messages.iter().any(in_message)
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

fn as_call(call: &SamplingCall) -> ToolCall {
    let arguments = Value::Object(call.arguments.clone()).to_string();
    ToolCall { name: call.name.clone(), arguments, provider_id: Some(call.id.clone()), native: None, recovered: false }
}

impl SamplingResult {
    fn of(&self, call: CallId) -> ToolResult {
        ToolResult {
            call,
            outcome: if self.is_error { Outcome::Error(ToolErrorKind::ExecutionFailed) } else { Outcome::Success },
            content: self.content.clone(),
            structured_content: self.structured_content.clone(),
            diagnostic: None,
            duration_ms: None,
            is_cached: false,
        }
    }
}

impl SamplingMessage {
    fn as_assistant(&self) -> AssistantMessage {
        let text = crate::text_of(&self.content);
        let text = (!text.is_empty()).then_some(AssistantBlock::Text { text, native: None });
        let calls = self.calls.iter().map(|call| AssistantBlock::Call(as_call(call)));
        let reason = if self.calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
        AssistantMessage {
            origin: Origin { dialect: String::new(), provider: String::new(), model: String::new() },
            saw: Seq::FIRST,
            blocks: text.into_iter().chain(calls).collect(),
            finish: Finish { reason, raw: None },
            completion: Completion::Complete,
            usage: Usage::default(),
        }
    }
}

impl SamplingRequest {
    /// The prompt.
    pub fn prompt(&self) -> Prompt<'_> {
        let messages = self.said.iter().map(Said::shown).collect();
        let allow_calls = !self.tools.is_empty();
        Prompt {
            conversation: None,
            settings: &self.settings,
            messages,
            tools: &self.tools,
            allow_calls,
            has_open_demand: false,
        }
    }
}
