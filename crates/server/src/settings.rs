//! Settings and conversations between the API's form and the engine's.

use turnwright_api as api;
use turnwright_core::{ApproveMode, ContentBlock, ModelRef, OutputFormat, OutputSchema, ReasoningEffort, ToolChoice, is_blank};
use turnwright_engine::{Conversation, Engine, SettingsOverlay};

use crate::error::ApiError;
use crate::timestamp::timestamp;

/// The settings of a request. A field beside `settings` wins over the same one inside.
pub(crate) fn overlay(engine: &Engine, model: Option<String>, settings: api::Settings) -> Result<SettingsOverlay, ApiError> {
    Ok(SettingsOverlay {
        model: model.or(settings.model).map(|model| model_ref(engine, model)).transpose()?,
        approve: settings.approve.map(approve),
        max_steps: settings.max_steps,
        system_prompt: settings.system_prompt,
        temperature: settings.temperature,
        max_output_tokens: settings.max_output_tokens,
        reasoning_effort: settings.reasoning_effort.map(reasoning_effort),
        tools: settings.tools,
        tool_choice: settings.tool_choice.map(tool_choice),
        parallel_calls: settings.parallel_calls,
        output: settings.output.map(output),
        client_tools: None,
        always_ask: None,
        max_tool_calls: None,
        pinned: None,
    })
}

/// What the overlay becomes by a change.
pub(crate) fn patched(
    engine: &Engine,
    before: SettingsOverlay,
    patch: api::ConversationPatch,
) -> Result<SettingsOverlay, ApiError> {
    let mut after = before;
    after.model = patch.model.try_map(|model| model_ref(engine, model))?.apply(after.model);
    after.system_prompt = patch.system_prompt.apply(after.system_prompt);
    after.tools = patch.tools.apply(after.tools);
    after.pinned = patch.pinned.apply(after.pinned).filter(|pinned| *pinned);
    match patch.settings {
        api::Patch::Keep => {}
        api::Patch::Clear => {
            after = SettingsOverlay {
                model: after.model,
                system_prompt: after.system_prompt,
                tools: after.tools,
                pinned: after.pinned,
                ..SettingsOverlay::default()
            };
        }
        api::Patch::Set(settings) => {
            after.approve = map(settings.approve, approve).apply(after.approve);
            after.max_steps = settings.max_steps.apply(after.max_steps);
            after.temperature = settings.temperature.apply(after.temperature);
            after.max_output_tokens = settings.max_output_tokens.apply(after.max_output_tokens);
            after.reasoning_effort = map(settings.reasoning_effort, reasoning_effort).apply(after.reasoning_effort);
            after.tool_choice = map(settings.tool_choice, tool_choice).apply(after.tool_choice);
            after.parallel_calls = settings.parallel_calls.apply(after.parallel_calls);
            after.output = map(settings.output, output).apply(after.output);
        }
    }
    Ok(after)
}

/// A conversation as the API tells it.
pub(crate) fn conversation(conversation: Conversation) -> api::Conversation {
    let overlay = conversation.overlay;
    api::Conversation {
        id: conversation.id.to_string(),
        title: conversation.title,
        model: overlay.model.map(|model| model.to_string()),
        system_prompt: overlay.system_prompt,
        settings: api::Settings {
            approve: overlay.approve.map(told_approve),
            max_steps: overlay.max_steps,
            temperature: overlay.temperature,
            max_output_tokens: overlay.max_output_tokens,
            reasoning_effort: overlay.reasoning_effort.map(|effort| match effort {
                ReasoningEffort::None => api::ReasoningEffort::None,
                ReasoningEffort::Minimal => api::ReasoningEffort::Minimal,
                ReasoningEffort::Low => api::ReasoningEffort::Low,
                ReasoningEffort::Medium => api::ReasoningEffort::Medium,
                ReasoningEffort::High => api::ReasoningEffort::High,
                ReasoningEffort::Xhigh => api::ReasoningEffort::Xhigh,
                ReasoningEffort::Max => api::ReasoningEffort::Max,
            }),
            system_prompt: None,
            model: None,
            tools: None,
            tool_choice: overlay.tool_choice.map(|choice| match choice {
                ToolChoice::Auto => api::ToolChoice::Auto,
                ToolChoice::Required => api::ToolChoice::Required,
                ToolChoice::None => api::ToolChoice::None,
                ToolChoice::Tool(name) => api::ToolChoice::Tool(name),
                ToolChoice::Tools(names) => api::ToolChoice::Tools(names),
            }),
            parallel_calls: overlay.parallel_calls,
            output: overlay.output.map(told_output),
        },
        tools: overlay.tools,
        pinned: overlay.pinned == Some(true),
        created_at: timestamp(conversation.created_at_ms),
        updated_at: timestamp(conversation.updated_at_ms),
        excerpt: None,
        last_seq: None,
        turn: None,
    }
}

/// What is said, as blocks.
pub(crate) fn content(content: api::Content) -> Result<Vec<ContentBlock>, ApiError> {
    let blocks = match content {
        api::Content::Text(text) => vec![ContentBlock::Text { text }],
        api::Content::Blocks(blocks) => blocks
            .into_iter()
            .enumerate()
            .map(|(index, block)| {
                let wrong =
                    |error: &dyn std::fmt::Display| ApiError::invalid(format!("content block {index} is wrong: {error}"));
                let block: ContentBlock = serde_json::from_value(block).map_err(|error| wrong(&error))?;
                block.shown().map_err(|error| wrong(&error))
            })
            .collect::<Result<_, _>>()?,
    };
    if is_blank(&blocks) { Err(ApiError::invalid("`content` is empty; say something")) } else { Ok(blocks) }
}

/// A model of a provider that there is: a turn with another could only fail.
fn model_ref(engine: &Engine, model: String) -> Result<ModelRef, ApiError> {
    let model = ModelRef::try_from(model).map_err(|error| ApiError::invalid(error.to_string()))?;
    match engine.providers().get(model.provider()) {
        Ok(_) => Ok(model),
        Err(failure) => Err(ApiError::invalid(failure.message)),
    }
}

fn map<T, U>(patch: api::Patch<T>, read: impl FnOnce(T) -> U) -> api::Patch<U> {
    match patch {
        api::Patch::Keep => api::Patch::Keep,
        api::Patch::Clear => api::Patch::Clear,
        api::Patch::Set(value) => api::Patch::Set(read(value)),
    }
}

fn tool_choice(choice: api::ToolChoice) -> ToolChoice {
    match choice {
        api::ToolChoice::Auto => ToolChoice::Auto,
        api::ToolChoice::Required => ToolChoice::Required,
        api::ToolChoice::None => ToolChoice::None,
        api::ToolChoice::Tool(name) => ToolChoice::Tool(name),
        api::ToolChoice::Tools(names) => ToolChoice::Tools(names),
    }
}

fn output(output: api::OutputFormat) -> OutputFormat {
    match output {
        api::OutputFormat::Word(api::OutputWord::JsonObject) => OutputFormat::JsonObject,
        api::OutputFormat::Schema(api::OutputSchema { name, schema, strict }) => {
            OutputFormat::Schema(OutputSchema { name, schema, strict: strict.unwrap_or(true) })
        }
    }
}

fn told_output(output: OutputFormat) -> api::OutputFormat {
    match output {
        OutputFormat::JsonObject => api::OutputFormat::Word(api::OutputWord::JsonObject),
        OutputFormat::Schema(OutputSchema { name, schema, strict }) => {
            api::OutputFormat::Schema(api::OutputSchema { name, schema, strict: Some(strict) })
        }
    }
}

pub(crate) fn approve(mode: api::Approve) -> ApproveMode {
    match mode {
        api::Approve::Ask => ApproveMode::Ask,
        api::Approve::All => ApproveMode::All,
        api::Approve::None => ApproveMode::None,
        api::Approve::ReadOnly => ApproveMode::ReadOnly,
    }
}

pub(crate) fn told_approve(mode: ApproveMode) -> api::Approve {
    match mode {
        ApproveMode::Ask => api::Approve::Ask,
        ApproveMode::All => api::Approve::All,
        ApproveMode::None => api::Approve::None,
        ApproveMode::ReadOnly => api::Approve::ReadOnly,
    }
}

fn reasoning_effort(effort: api::ReasoningEffort) -> ReasoningEffort {
    match effort {
        api::ReasoningEffort::None => ReasoningEffort::None,
        api::ReasoningEffort::Minimal => ReasoningEffort::Minimal,
        api::ReasoningEffort::Low => ReasoningEffort::Low,
        api::ReasoningEffort::Medium => ReasoningEffort::Medium,
        api::ReasoningEffort::High => ReasoningEffort::High,
        api::ReasoningEffort::Xhigh => ReasoningEffort::Xhigh,
        api::ReasoningEffort::Max => ReasoningEffort::Max,
    }
}
