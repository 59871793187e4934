//! What the turn's settings say, as the endpoint takes it: the part of the body that may change from request to request.

use serde::Serialize;
use turnwright_core::prompt::Prompt;
use turnwright_core::{ReasoningEffort, ToolChoice};

use crate::demand;
use crate::dialect::Target;
use crate::facts::ReasoningStyle;
use crate::form::{Form, Held};
use crate::limits;
use crate::profile::{MaxTokensField, Profile, ReasoningField, StructuredOutput, ToolChoices};

/// The settings of one request.
pub(super) struct Settings<'a> {
    /// What the model is told of what it must call, where the endpoint cannot be told.
    pub(super) words: Option<String>,
    /// Whether reasoning is asked for apart from the text.
    pub(super) asks_for_format: bool,
    /// The end of the body.
    pub(super) rest: Rest<'a>,
}

/// The end of the body.
#[derive(Serialize)]
pub(super) struct Rest<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(flatten)]
    reasoning: Fields,
    stream: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Choice<'a> {
    Word(&'static str),
    Function {
        #[serde(rename = "type")]
        kind: &'static str,
        function: Named<'a>,
    },
    Allowed {
        #[serde(rename = "type")]
        kind: &'static str,
        allowed_tools: Allowed<'a>,
    },
}

#[derive(Serialize)]
struct Allowed<'a> {
    mode: &'static str,
    tools: Vec<Choice<'a>>,
}

#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
}

#[derive(Serialize)]
struct ResponseFormat<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    json_schema: Option<Form<'a>>,
}

/// What the turn chose of reasoning, in the fields of the endpoint.
#[derive(Debug, Default, PartialEq, Serialize)]
struct Fields {
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    enable_thinking: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Effort>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<ReasoningEffort>,
}

#[derive(Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Thinking {
    Enabled,
    Disabled,
}

#[derive(Debug, PartialEq, Serialize)]
struct Effort {
    effort: ReasoningEffort,
}

/// What `prompt` asks of `target`; `demanded` is what the model must call, where tools are offered.
pub(super) fn of<'a>(target: &Target<'_>, prompt: &'a Prompt<'_>, demanded: Option<&'a ToolChoice>) -> Settings<'a> {
    let (settings, profile) = (prompt.settings, target.profile);
    let (tool_choice, words) = demanded.map_or((None, None), |demanded| choice(profile, demanded));
    let is_forced = tool_choice.as_ref().is_some_and(|choice| !matches!(choice, Choice::Word("none")));
    let may_think = target.model.reasoning != Some(ReasoningStyle::Never);
    let mut effort = settings.reasoning_effort.filter(|_| profile.reasoning_effort && may_think);
    if is_forced && !profile.forced_calls_while_thinking && may_think {
        effort = Some(ReasoningEffort::None);
    }
    let response_format = held(profile, prompt).map(|held| match held {
        Held::Schema(form) => ResponseFormat { kind: "json_schema", json_schema: Some(form) },
        Held::JsonObject => ResponseFormat { kind: "json_object", json_schema: None },
    });
    let most = limits::output_tokens(settings, target.model);
    let limit = |field| most.filter(|_| profile.max_tokens_field == field);
    let rest = Rest {
        tool_choice,
        parallel_tool_calls: settings.parallel_calls.filter(|_| demanded.is_some() && profile.parallel_tool_calls),
        response_format,
        max_tokens: limit(MaxTokensField::MaxTokens),
        max_completion_tokens: limit(MaxTokensField::MaxCompletionTokens),
        temperature: settings.temperature.filter(|_| target.model.temperature != Some(false)),
        reasoning: effort.map(|effort| Fields::new(profile.reasoning_field, effort)).unwrap_or_default(),
        stream: true,
    };
    let asks_for_format = profile.reasoning_format && effort.is_some_and(|effort| effort != ReasoningEffort::None);
    Settings { words, asks_for_format, rest }
}

impl Rest<'_> {
    /// The members that a server may refuse and that can be done without.
    pub(super) fn optional(&self) -> Vec<&'static str> {
        let members = [
            (self.reasoning.reasoning_effort.is_some(), "reasoning_effort"),
            (self.reasoning.reasoning.is_some(), "reasoning"),
            (self.max_tokens.is_some(), "max_tokens"),
            (self.max_completion_tokens.is_some(), "max_completion_tokens"),
        ];
        members.into_iter().filter(|(is_there, _)| *is_there).map(|(_, name)| name).collect()
    }
}

/// What the endpoint is asked for where the answer is to have a form: nothing where it takes no form, or none beside tools. What is
/// not asked for by its schema is told to the model.
pub(super) fn held<'a>(profile: &Profile, prompt: &'a Prompt<'_>) -> Option<Held<'a>> {
    let output = prompt.settings.output.as_ref()?;
    let has_tools = profile.tools && !prompt.tools.is_empty();
    if has_tools && !profile.structured_output_with_tools {
        return None;
    }
    let held = match profile.structured_output {
        StructuredOutput::JsonSchema | StructuredOutput::JsonSchemaAlone => Held::of(output, profile),
        StructuredOutput::JsonObject => Held::JsonObject,
        StructuredOutput::Prompt => return None,
    };
    let is_taken = held != Held::JsonObject || profile.structured_output != StructuredOutput::JsonSchemaAlone;
    is_taken.then_some(held)
}

/// What the model must call, as the endpoint takes it, and in words where that says less.
fn choice<'a>(profile: &Profile, demanded: &'a ToolChoice) -> (Option<Choice<'a>>, Option<String>) {
    let function = |name: &'a str| Choice::Function { kind: "function", function: Named { name } };
    let any = Choice::Word(if profile.tool_choice == ToolChoices::AnyWord { "any" } else { "required" });
    match (demanded, profile.tool_choice) {
        (ToolChoice::Auto, _) => (None, None),
        (ToolChoice::None, _) => (Some(Choice::Word("none")), None),
        (_, ToolChoices::NoneOnly) => (None, demand::in_words(demanded)),
        (ToolChoice::Required, _) => (Some(any), None),
        (ToolChoice::Tool(_) | ToolChoice::Tools(_), ToolChoices::Unnamed)
        | (ToolChoice::Tools(_), ToolChoices::All | ToolChoices::AnyWord) => (Some(any), demand::in_words(demanded)),
        (ToolChoice::Tool(name), ToolChoices::Listed | ToolChoices::All | ToolChoices::AnyWord) => (Some(function(name)), None),
        (ToolChoice::Tools(names), ToolChoices::Listed) => {
            let tools = names.iter().map(|name| function(name)).collect();
            let allowed_tools = Allowed { mode: "required", tools };
            (Some(Choice::Allowed { kind: "allowed_tools", allowed_tools }), None)
        }
    }
}

impl Fields {
    fn new(field: ReasoningField, effort: ReasoningEffort) -> Self {
        let thinks = effort != ReasoningEffort::None;
        let thinking = Some(if thinks { Thinking::Enabled } else { Thinking::Disabled });
        match field {
            ReasoningField::Effort => Self { reasoning_effort: Some(effort), ..Self::default() },
            ReasoningField::Reasoning => Self { reasoning: Some(Effort { effort: known(effort) }), ..Self::default() },
            ReasoningField::Thinking => Self { thinking, ..Self::default() },
            ReasoningField::ThinkingEffort => {
                Self { thinking, reasoning_effort: thinks.then(|| one_of_three(effort)), ..Self::default() }
            }
            ReasoningField::EnableThinking => Self { enable_thinking: Some(thinks), ..Self::default() },
        }
    }
}

/// The efforts that `OpenRouter` knows.
fn known(effort: ReasoningEffort) -> ReasoningEffort {
    if effort == ReasoningEffort::Max { ReasoningEffort::Xhigh } else { effort }
}

/// The efforts that `DeepSeek` knows.
fn one_of_three(effort: ReasoningEffort) -> ReasoningEffort {
    match effort {
        ReasoningEffort::None | ReasoningEffort::Minimal | ReasoningEffort::Low => ReasoningEffort::Low,
        ReasoningEffort::Medium | ReasoningEffort::High => ReasoningEffort::High,
        ReasoningEffort::Xhigh | ReasoningEffort::Max => ReasoningEffort::Max,
    }
}
