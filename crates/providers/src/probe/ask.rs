//! One question to an endpoint, and what came of it.

use std::sync::Arc;

use futures_util::StreamExt;
use serde_json::json;
use turnwright_core::prompt::{Prompt, PromptMessage};
use turnwright_core::{
    Assembler, AssistantMessage, ContentBlock, Declared, ModelRef, Origin, OutputFormat, ProviderFailure, Seq, ToolChoice,
    ToolDefinition, TurnSettings, UserMessage,
};
use turnwright_engine::Provider;

use crate::HttpProvider;

/// The most tokens of an answer.
const MAX_TOKENS: u32 = 200;

/// The tool that is offered.
pub(super) const TOOL: &str = "clock__time_in";

/// A question.
#[derive(Debug, Default)]
pub(super) struct Ask {
    pub(super) system: Option<&'static str>,
    pub(super) content: Vec<ContentBlock>,
    pub(super) has_tools: bool,
    pub(super) tool_choice: Option<ToolChoice>,
    pub(super) output: Option<OutputFormat>,
}

impl Ask {
    /// A question for words.
    pub(super) fn says(text: &str) -> Self {
        Self { content: vec![ContentBlock::text(text)], ..Self::default() }
    }

    /// A question with a tool.
    pub(super) fn calls(text: &str) -> Self {
        Self { has_tools: true, ..Self::says(text) }
    }
}

/// An answer.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) message: AssistantMessage,
    /// In how many pieces it came.
    pub(super) batches: usize,
}

pub(super) fn tools() -> Vec<Arc<ToolDefinition>> {
    vec![Arc::new(ToolDefinition {
        name: TOOL.to_owned(),
        source: "clock".to_owned(),
        tool: "time_in".to_owned(),
        title: None,
        description: "The time in a time zone".to_owned(),
        input_schema: json!({"type": "object", "properties": {"zone": {"type": "string"}}, "required": ["zone"]}),
        annotations: None,
        declared: Declared::default(),
    })]
}

pub(super) async fn ask(provider: &HttpProvider, name: &str, model: &str, ask: Ask) -> Result<Said, ProviderFailure> {
    let settings = TurnSettings {
        max_output_tokens: Some(MAX_TOKENS),
        system_prompt: ask.system.map(str::to_owned),
        tool_choice: ask.tool_choice,
        output: ask.output,
        ..TurnSettings::new(ModelRef::new(name, model))
    };
    let user = UserMessage { content: ask.content, settings: settings.clone() };
    let tools = if ask.has_tools { tools() } else { Vec::new() };
    let messages = vec![PromptMessage::User { seq: Seq::FIRST, message: &user }];
    let prompt =
        Prompt { conversation: None, settings: &settings, messages, tools: &tools, allow_calls: true, has_open_demand: false };
    let mut stream = provider.call(model, &prompt)?;
    let (mut assembler, mut batches) = (Assembler::default(), 0);
    while let Some(deltas) = stream.next().await {
        batches += 1;
        deltas?.into_iter().for_each(|delta| assembler.push(delta));
    }
    let origin = Origin { dialect: provider.dialect().to_owned(), provider: name.to_owned(), model: model.to_owned() };
    Ok(Said { message: assembler.complete(origin, Seq::FIRST), batches })
}
