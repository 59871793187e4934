//! What a turn runs with.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{IdError, LoopLimits, ToolDefinition};

/// A model of a provider, written `PROVIDER/MODEL` and split at the first `/`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ModelRef {
    provider: String,
    model: String,
}

impl ModelRef {
    /// The model `model` of the provider `provider`: neither is empty, and the provider's name holds no `/`. What else comes in is
    /// refused before it is stored, see [`ModelRef::problem`].
    pub fn new(provider: impl Into<String>, model: impl Into<String>) -> Self {
        Self { provider: provider.into(), model: model.into() }
    }

    /// Why it would not be read again as it was written, in words; `None` where it would.
    pub fn problem(&self) -> Option<String> {
        let written = self.to_string();
        match written.parse::<Self>() {
            Ok(read) if read == *self => None,
            Ok(_) => Some(format!("the provider's name is `{}`; it must be one without `/`", self.provider)),
            Err(error) => Some(error.to_string()),
        }
    }

    /// The provider's name in the configuration.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// The provider's own name for the model.
    pub fn model(&self) -> &str {
        &self.model
    }
}

impl fmt::Display for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.model)
    }
}

impl FromStr for ModelRef {
    type Err = IdError;
    fn from_str(value: &str) -> Result<Self, IdError> {
        match value.split_once('/') {
            Some((provider, model)) if !provider.is_empty() && !model.is_empty() => Ok(Self::new(provider, model)),
            _ => Err(IdError::new(value, "a model (PROVIDER/MODEL)")),
        }
    }
}

impl TryFrom<String> for ModelRef {
    type Error = IdError;
    fn try_from(value: String) -> Result<Self, IdError> {
        value.parse()
    }
}

impl From<ModelRef> for String {
    fn from(model: ModelRef) -> Self {
        model.to_string()
    }
}

/// What happens to a call for which no rule decides (docs/approval.md).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApproveMode {
    /// Tools that the operator declared read-only run, others wait for a person.
    #[default]
    Ask,
    /// Every call runs that no rule denies.
    All,
    /// No call runs that no rule allows.
    None,
    /// Tools declared read-only run, others are denied.
    ReadOnly,
}

impl ApproveMode {
    /// Whether calls run in this mode without a person that would not run so in `other`.
    pub fn is_wider_than(self, other: Self) -> bool {
        self.reach() > other.reach()
    }

    /// How much runs without a person: nothing, what is declared read-only, everything.
    fn reach(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Ask | Self::ReadOnly => 1,
            Self::All => 2,
        }
    }
}

impl fmt::Display for ApproveMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ask => "ask",
            Self::All => "all",
            Self::None => "none",
            Self::ReadOnly => "read-only",
        })
    }
}

/// How much a reasoning model should think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the provider's own words, `reasoning_effort` of OpenAI")]
pub enum ReasoningEffort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

/// Whether and what a model must call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolChoice {
    /// What the model thinks right.
    #[default]
    Auto,
    /// At least one tool.
    Required,
    /// No tool.
    None,
    /// The tool with this qualified name.
    Tool(String),
    /// At least one of the tools with these qualified names.
    Tools(Vec<String>),
}

/// The form that a turn's answer must have: structured output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredOutput", into = "StoredOutput")]
pub enum OutputFormat {
    /// Any JSON object: JSON mode.
    JsonObject,
    /// JSON that fits a schema.
    Schema(OutputSchema),
}

/// A form by its schema.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutputSchema {
    /// A name for the form, `[A-Za-z0-9_-]{1,64}`.
    pub name: String,
    /// The JSON Schema that the answer's text fits.
    pub schema: Value,
    /// Whether the provider is asked to hold the model to the schema exactly, where it can.
    #[serde(default = "is_strict")]
    pub strict: bool,
}

/// A form as it is stored: a word, or the schema's members by themselves.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StoredOutput {
    Word(OutputWord),
    Schema(OutputSchema),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OutputWord {
    JsonObject,
}

impl From<StoredOutput> for OutputFormat {
    fn from(stored: StoredOutput) -> Self {
        match stored {
            StoredOutput::Word(OutputWord::JsonObject) => Self::JsonObject,
            StoredOutput::Schema(schema) => Self::Schema(schema),
        }
    }
}

impl From<OutputFormat> for StoredOutput {
    fn from(output: OutputFormat) -> Self {
        match output {
            OutputFormat::JsonObject => Self::Word(OutputWord::JsonObject),
            OutputFormat::Schema(schema) => Self::Schema(schema),
        }
    }
}

fn is_strict() -> bool {
    true
}

/// The settings that a turn runs with from its first step to its last, stored with the user message that opened it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnSettings {
    /// The model that is asked.
    pub model: ModelRef,
    /// What happens to calls for which no rule decides.
    #[serde(default)]
    pub approve: ApproveMode,
    /// The most model calls that may follow one another without a new user message; at least 1.
    pub max_steps: u32,
    /// What the model is told before the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Sampling temperature, 0 to 2; the provider's default where `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The most tokens of one model answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// How much a reasoning model should think.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<ReasoningEffort>,
    /// Globs over qualified tool names that narrow what is offered; all tools where `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Whether and what the model must call before it may answer: from each user message on until it made such a
    /// call. Where any tool is demanded and there are client's tools, until it called one of those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Whether one answer may hold several calls. Where not, calls also run one after another, since not every API can be told;
    /// the provider's own way where `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_calls: Option<bool>,
    /// The form that the answer must have; text where `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputFormat>,
    /// The models that are asked in turn where the one before is overloaded, out of reach or takes no more requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<ModelRef>,
    /// Tools that whoever asks runs itself: offered beside those of the sources, and a call to one waits for its result from
    /// there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_tools: Vec<Arc<ToolDefinition>>,
    /// Globs over qualified tool names: what the policy would allow of these, a person is asked about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub always_ask: Vec<String>,
    /// The most calls of tools on this side in the turn; those that the model makes after them are not run. As many as it makes
    /// where `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tool_calls: Option<u32>,
    /// When a model that goes in circles is told, asked about and stopped.
    #[serde(default = "LoopLimits::off", skip_serializing_if = "LoopLimits::is_off")]
    pub loops: LoopLimits,
}

impl TurnSettings {
    /// The step limit without any configuration.
    pub const DEFAULT_MAX_STEPS: u32 = 25;

    /// Settings with nothing chosen but the model.
    pub fn new(model: ModelRef) -> Self {
        Self {
            model,
            approve: ApproveMode::Ask,
            max_steps: Self::DEFAULT_MAX_STEPS,
            system_prompt: None,
            temperature: None,
            max_output_tokens: None,
            reasoning_effort: None,
            tools: None,
            tool_choice: None,
            parallel_calls: None,
            output: None,
            fallback: Vec::new(),
            client_tools: Vec::new(),
            always_ask: Vec::new(),
            max_tool_calls: None,
            loops: LoopLimits::default(),
        }
    }

    /// The client's own tool with this name.
    pub fn client_tool(&self, name: &str) -> Option<&Arc<ToolDefinition>> {
        self.client_tools.iter().find(|tool| tool.name == name)
    }

    /// Whether a message with these calls does what is demanded. Where any tool is, and whoever asks has tools of its own, it
    /// waits for a call of those.
    pub(crate) fn is_met_by<'a>(&self, mut calls: impl Iterator<Item = &'a str>) -> bool {
        match &self.tool_choice {
            None | Some(ToolChoice::Auto | ToolChoice::None) => true,
            Some(ToolChoice::Required) => calls.any(|name| self.client_tools.is_empty() || self.client_tool(name).is_some()),
            Some(ToolChoice::Tool(wanted)) => calls.any(|name| name == wanted),
            Some(ToolChoice::Tools(wanted)) => calls.any(|name| wanted.iter().any(|wanted| name == wanted)),
        }
    }

    /// The oldest version of an entry that holds them; `None` where every one does.
    pub(crate) fn version(&self) -> Option<u8> {
        // An older node reads no form but that of a schema.
        let output = matches!(self.output, Some(OutputFormat::JsonObject)).then_some(11);
        output.or_else(|| self.concerns_a_client().then_some(5))
    }

    /// Whether a node that knows no tools of clients would get the turn wrong.
    fn concerns_a_client(&self) -> bool {
        !self.client_tools.is_empty() || !self.always_ask.is_empty()
    }
}
