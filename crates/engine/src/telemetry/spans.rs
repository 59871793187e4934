//! The spans of a turn, and the one place with the attribute names of the OpenTelemetry semantic conventions for generative AI
//! (`gen_ai.*`) and for MCP (`mcp.*`).
//!
//! They are under a target of their own, so that a log does not show them and a process that exports nothing does not make
//! them. What a log shows beside each line is `turn_context`.

use tracing::field::Empty;
use tracing::{Span, error_span, info_span};
use turnwright_core::{CallId, ConversationId, ModelRef, TurnId, TurnStatus, Usage};

/// The target of the spans that are exported.
pub const TARGET: &str = "turnwright::trace";

/// What the log says with each line about a turn: its conversation and its name. At the level of errors, so that no filter
/// takes it away from a line that is shown.
pub(crate) fn turn_context(conversation: &ConversationId, turn: Option<TurnId>) -> Span {
    let span = error_span!("turn", %conversation, turn = Empty);
    if let Some(turn) = turn {
        span.record("turn", tracing::field::display(turn));
    }
    span
}

/// A turn, or what is driven of it at a stretch (`invoke_agent`).
pub(crate) fn turn(conversation: &ConversationId, turn: Option<TurnId>) -> Span {
    let span = info_span!(
        target: TARGET,
        "invoke_agent",
        otel.name = "invoke_agent turnwright",
        otel.kind = "internal",
        otel.status_code = Empty,
        gen_ai.operation.name = "invoke_agent",
        gen_ai.agent.name = "turnwright",
        gen_ai.conversation.id = %conversation,
        turnwright.turn.id = Empty,
        turnwright.turn.status = Empty,
        error.r#type = Empty,
    );
    if let Some(turn) = turn {
        span.record("turnwright.turn.id", tracing::field::display(turn));
    }
    span
}

/// The turn is over.
pub(crate) fn end_turn(span: &Span, status: &TurnStatus) {
    span.record("turnwright.turn.status", status.as_contract());
    if matches!(status, TurnStatus::Failed { .. }) {
        span.record("otel.status_code", "ERROR");
        span.record("error.type", "failed");
    }
}

/// A model call (`chat`).
pub(crate) fn model_call(conversation: &ConversationId, dialect: &str, model: &ModelRef) -> Span {
    info_span!(
        target: TARGET,
        "chat",
        otel.name = format_args!("chat {}", model.model()),
        otel.kind = "client",
        otel.status_code = Empty,
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = provider_name(dialect),
        gen_ai.conversation.id = %conversation,
        gen_ai.request.model = model.model(),
        gen_ai.request.stream = true,
        gen_ai.response.finish_reasons = Empty,
        gen_ai.response.time_to_first_chunk = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        gen_ai.usage.cache_read.input_tokens = Empty,
        gen_ai.usage.cache_creation.input_tokens = Empty,
        gen_ai.input.messages = Empty,
        gen_ai.output.messages = Empty,
        turnwright.provider = model.provider(),
        error.r#type = Empty,
    )
}

/// The conventions' name for who speaks a dialect. Of a compatible endpoint no more is known than what it speaks.
fn provider_name(dialect: &str) -> &str {
    match dialect {
        "openai-chat" | "openai-responses" => "openai",
        "gemini" => "gcp.gemini",
        other => other,
    }
}

/// What a model call used.
pub(crate) fn used(span: &Span, usage: &Usage, finish: &str) {
    span.record("gen_ai.response.finish_reasons", finish);
    let counts = [
        ("gen_ai.usage.input_tokens", usage.input_tokens),
        ("gen_ai.usage.output_tokens", usage.output_tokens),
        ("gen_ai.usage.cache_read.input_tokens", usage.cached_input_tokens),
        ("gen_ai.usage.cache_creation.input_tokens", usage.cache_write_tokens),
    ];
    for (name, count) in counts {
        if let Some(count) = count {
            span.record(name, count);
        }
    }
}

/// A tool call (`execute_tool`). The MCP host says in it which method it came to.
pub(crate) fn tool_call(conversation: &ConversationId, call: CallId, source: &str, tool: &str) -> Span {
    info_span!(
        target: TARGET,
        "execute_tool",
        otel.name = format_args!("execute_tool {tool}"),
        otel.kind = "internal",
        otel.status_code = Empty,
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = tool,
        gen_ai.tool.call.id = %call,
        gen_ai.tool.r#type = "function",
        gen_ai.tool.call.arguments = Empty,
        gen_ai.tool.call.result = Empty,
        gen_ai.conversation.id = %conversation,
        turnwright.tool.source = source,
        mcp.method.name = Empty,
        error.r#type = Empty,
    )
}

/// What the current tool call comes to on the wire; without effect where nothing is traced.
pub fn is_mcp_call() {
    Span::current().record("mcp.method.name", "tools/call");
}

/// It failed, in this way.
pub(crate) fn failed(span: &Span, kind: &str) {
    span.record("otel.status_code", "ERROR");
    span.record("error.type", kind);
}
