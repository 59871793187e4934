//! The request (Ollama, `POST /api/chat`).
//!
//! Tools and messages come first and in one order, so the bytes before a new message stay the same (law 7).

use serde::Serialize;
use serde_json::Value;
use turnwright_core::prompt::Prompt;
use turnwright_core::{ReasoningEffort, ToolChoice};

use super::message::{Message, Writer, pictures};
use crate::demand;
use crate::dialect::{HttpRequest, Target};
use crate::facts::ReasoningStyle;
use crate::form::{self, Held};
use crate::json;
use crate::kept::Kept;
use crate::openai_chat::Tools;
use crate::schema::SchemaTarget;

/// The smallest window that is asked for, in tokens: a conversation should not outgrow it at once.
const SMALLEST_WINDOW: u64 = 8192;
/// What is left for an answer whose length nobody limits, in tokens.
const ANSWER_TOKENS: u64 = 4096;
/// What an image costs, in tokens, about.
const IMAGE_TOKENS: u64 = 1024;

#[derive(Serialize)]
struct Options {
    num_ctx: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_predict: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Think {
    Whether(bool),
    Level(&'static str),
}

pub(super) fn request(target: &Target<'_>, prompt: &Prompt<'_>, kept: &mut Kept) -> HttpRequest {
    let settings = prompt.settings;
    kept.keep_for(target);
    let mut body = Vec::new();
    body.extend_from_slice(b"{\"model\":");
    json::write(&target.origin.model, &mut body);
    let choice = prompt.tool_choice();
    // There is no way but this to say that nothing may be called.
    let may_call = !prompt.tools.is_empty() && choice != ToolChoice::None;
    if may_call {
        kept.write_tools(prompt, &mut body, |out| {
            json::write_member("tools", &Tools { tools: prompt.tools, schemas: SchemaTarget::Compatible }, out);
        });
    }
    body.extend_from_slice(b",\"messages\":[");
    let own = settings.system_prompt.as_deref().filter(|text| !text.is_empty());
    // A grammar for the answer would let the model call nothing.
    let held = settings.output.as_ref().filter(|_| !may_call).map(|output| Held::lowered(output, SchemaTarget::Compatible));
    let told = settings.output.as_ref().filter(|_| !matches!(held, Some(Held::Schema(_))));
    if let Some(text) = form::system(own, told) {
        Message::system(&text).write(&mut body);
    }
    kept.write_messages(target, prompt, &mut body, Writer::default);
    // The format has no word for what must be called.
    if let Some(demand) = demand::in_words(&choice) {
        Message::system(&demand).write(&mut body);
    }
    body.push(b']');
    let think = think(target, settings.reasoning_effort);
    if let Some(think) = &think {
        json::write_member("think", think, &mut body);
    }
    let optional = think.iter().map(|_| "think").collect();
    if let Some(held) = held {
        json::write_member("format", &held.into_schema().unwrap_or_else(|| Value::from("json")), &mut body);
    }
    let options = Options {
        num_ctx: window(target, prompt, body.len()),
        num_predict: settings.max_output_tokens,
        temperature: settings.temperature.filter(|_| target.model.temperature != Some(false)),
    };
    json::write_member("options", &options, &mut body);
    // What does not fit is an error that can be acted upon, not a prompt that lost its beginning.
    body.extend_from_slice(b",\"truncate\":false,\"shift\":false,\"stream\":true}");
    HttpRequest { path: "/api/chat".to_owned(), headers: Vec::new(), body: kept.keep(body), optional }
}

/// Models that think by levels take no switch, the others no level.
fn think(target: &Target<'_>, effort: Option<ReasoningEffort>) -> Option<Think> {
    let effort = effort?;
    let has_levels = match target.model.reasoning {
        Some(ReasoningStyle::Never) => return None,
        Some(ReasoningStyle::Effort) => true,
        Some(ReasoningStyle::Budget | ReasoningStyle::Adaptive) | None => target.origin.model.contains("gpt-oss"),
    };
    Some(match effort {
        ReasoningEffort::None | ReasoningEffort::Minimal | ReasoningEffort::Low if has_levels => Think::Level("low"),
        ReasoningEffort::Medium if has_levels => Think::Level("medium"),
        ReasoningEffort::High | ReasoningEffort::Xhigh | ReasoningEffort::Max if has_levels => Think::Level("high"),
        ReasoningEffort::None => Think::Whether(false),
        ReasoningEffort::Minimal
        | ReasoningEffort::Low
        | ReasoningEffort::Medium
        | ReasoningEffort::High
        | ReasoningEffort::Xhigh
        | ReasoningEffort::Max => Think::Whether(true),
    })
}

/// The window that prompt and answer need, in tokens: the server's own is small, and what it cannot hold is lost. A power of
/// two, since the server loads the model anew for each other size, and no larger than needed, since it costs memory.
fn window(target: &Target<'_>, prompt: &Prompt<'_>, body_bytes: usize) -> u64 {
    let pictures = pictures(target, prompt);
    let text = u64::try_from(body_bytes.saturating_sub(pictures.bytes)).unwrap_or(u64::MAX);
    let answer = prompt.settings.max_output_tokens.map_or(ANSWER_TOKENS, u64::from);
    // A token is three bytes or more of JSON in nearly every language.
    let needed = text.div_ceil(3).saturating_add(pictures.count.saturating_mul(IMAGE_TOKENS)).saturating_add(answer);
    let largest = target.model.context_window.map_or(u64::MAX, u64::from);
    needed.max(SMALLEST_WINDOW).checked_next_power_of_two().unwrap_or(u64::MAX).min(largest)
}
