//! The spans of a turn, and the one place with the attribute names of the OpenTelemetry semantic conventions for generative AI
//! (`gen_ai.*`) and for MCP (`mcp.*`, with the `network.*`, `server.*` and `jsonrpc.*` that belong to them).
//!
//! They are under a target of their own, so that a log does not show them and a process that exports nothing does not make
//! them. What a log shows beside each line is `turn_context`.

use std::borrow::Cow;
use std::fmt::Display;
use std::time::Duration;

use serde_json::{Map, Value};
use tracing::field::Empty;
use tracing::{Span, error_span, info_span};
use turnwright_core::prompt::Prompt;
use turnwright_core::{
    AssistantMessage, CallId, ContentBlock, ConversationId, ModelRef, ProviderFailure, TurnId, TurnStatus, Usage, text_of,
};

use super::content;

/// The target of the spans that are exported.
pub const TARGET: &str = "turnwright::trace";

/// Why a model ended, which the conventions want as a list of texts. A span has no lists: whoever exports it makes it one.
pub const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";

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
        gen_ai.provider.name = Empty,
        gen_ai.request.model = Empty,
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

/// The turn, whose span is the current one, asks this model.
pub(crate) fn turn_asks(dialect: &str, model: &ModelRef) {
    let turn = Span::current();
    turn.record("gen_ai.provider.name", provider_name(dialect));
    turn.record("gen_ai.request.model", model.model());
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
        gen_ai.response.model = Empty,
        gen_ai.response.finish_reasons = Empty,
        gen_ai.response.time_to_first_chunk = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        gen_ai.usage.cache_read.input_tokens = Empty,
        gen_ai.usage.cache_creation.input_tokens = Empty,
        gen_ai.input.messages = Empty,
        gen_ai.output.messages = Empty,
        turnwright.provider = model.provider(),
        turnwright.failure.kind = Empty,
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
    span.record(FINISH_REASONS, finish);
    let counts = [
        ("gen_ai.usage.input_tokens", usage.input_tokens),
        ("gen_ai.usage.output_tokens", usage.output_tokens),
        ("gen_ai.usage.cache_read.input_tokens", usage.cached_input_tokens),
        ("gen_ai.usage.cache_creation.input_tokens", usage.cache_write_tokens),
    ];
    for (name, count) in counts {
        if let Some(count) = count {
            span.record(name, integer(count));
        }
    }
}

/// An exporter sends other numbers than these as text.
fn integer(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The model that answers the current model call, as its provider names it; without effect where nothing is traced.
pub fn answered_by(model: &str) {
    Span::current().record("gen_ai.response.model", model);
}

/// What the model is shown.
pub(crate) fn shown(span: &Span, prompt: &Prompt<'_>) {
    span.record("gen_ai.input.messages", content::prompt(prompt));
}

/// How long the first took that the model said.
pub(crate) fn began_to_say(span: &Span, elapsed: Duration) {
    span.record("gen_ai.response.time_to_first_chunk", elapsed.as_secs_f64());
}

/// What the model said.
pub(crate) fn said(span: &Span, message: &AssistantMessage) {
    span.record("gen_ai.output.messages", content::output(message));
}

/// What a tool is called with.
pub(crate) fn called_with(span: &Span, arguments: &Map<String, Value>) {
    span.record("gen_ai.tool.call.arguments", serde_json::to_string(arguments).unwrap_or_default());
}

/// What a tool call came to.
pub(crate) fn came_to(span: &Span, content: &[ContentBlock]) {
    span.record("gen_ai.tool.call.result", text_of(content));
}

/// A tool call (`execute_tool`). The MCP host says in it what it came to on the wire: the conventions want no second span
/// where there is one of the tool call.
pub(crate) fn tool_call(conversation: Option<&ConversationId>, call: CallId, source: &str, tool: &str) -> Span {
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
        gen_ai.conversation.id = conversation.map(tracing::field::display),
        turnwright.tool.source = source,
        mcp.method.name = Empty,
        mcp.protocol.version = Empty,
        mcp.session.id = Empty,
        jsonrpc.request.id = Empty,
        network.transport = Empty,
        network.protocol.name = Empty,
        server.address = Empty,
        server.port = Empty,
        error.r#type = Empty,
    )
}

/// A tool call as an MCP server gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct McpCall<'a> {
    /// The version of the protocol that is spoken, such as `2025-11-25`.
    pub protocol_version: &'a str,
    /// The session that it belongs to, where the server opened one.
    pub session: Option<&'a str>,
    /// How the server is reached.
    pub way: McpWay<'a>,
}

/// How an MCP server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpWay<'a> {
    /// Over its standard input and output.
    Pipe,
    /// Over HTTP.
    Http {
        /// The name or address of its host.
        host: &'a str,
        /// Its port, also where the address leaves it to the scheme.
        port: Option<u16>,
    },
}

/// What the current tool call comes to on the wire; without effect where nothing is traced.
pub fn mcp_call(call: &McpCall<'_>) {
    let span = Span::current();
    span.record("mcp.method.name", "tools/call");
    span.record("mcp.protocol.version", call.protocol_version);
    if let Some(session) = call.session {
        span.record("mcp.session.id", session);
    }
    match call.way {
        McpWay::Pipe => {
            span.record("network.transport", "pipe");
        }
        McpWay::Http { host, port } => {
            span.record("network.transport", "tcp");
            span.record("network.protocol.name", "http");
            span.record("server.address", host);
            if let Some(port) = port {
                span.record("server.port", i64::from(port));
            }
        }
    }
}

/// The JSON-RPC id under which the current tool call was sent.
pub fn mcp_request(id: &dyn Display) {
    Span::current().record("jsonrpc.request.id", tracing::field::display(id));
}

/// A model call failed.
pub(crate) fn model_failed(span: &Span, failure: &ProviderFailure) {
    span.record("turnwright.failure.kind", failure.kind.as_str());
    failed(span, &error_type(failure));
}

/// The status with which the provider refused, as the conventions want it; where it gave none, our kind.
fn error_type(failure: &ProviderFailure) -> Cow<'static, str> {
    match failure.status {
        Some(status) if status >= 400 => Cow::Owned(status.to_string()),
        Some(_) | None => Cow::Borrowed(failure.kind.as_str()),
    }
}

/// It failed, in this way.
pub(crate) fn failed(span: &Span, kind: &str) {
    span.record("otel.status_code", "ERROR");
    span.record("error.type", kind);
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;
    use std::sync::{Arc, Mutex};

    use tracing::field::{Field, Visit};
    use tracing::span::{Id, Record};
    use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
    use turnwright_core::{CallId, ModelRef, ProviderFailure, ProviderFailureKind, Seq, Usage};

    use super::{McpCall, McpWay, error_type, mcp_call, model_call, tool_call, used};

    /// What an exporter makes of what is recorded: what is no `i64` is text.
    #[derive(Clone, Default)]
    struct Recorded(Arc<Mutex<Vec<(&'static str, &'static str)>>>);

    impl Visit for Recorded {
        fn record_i64(&mut self, field: &Field, _value: i64) {
            self.0.lock().unwrap().push((field.name(), "int"));
        }

        fn record_debug(&mut self, field: &Field, _value: &dyn Debug) {
            self.0.lock().unwrap().push((field.name(), "text"));
        }
    }

    impl<S: tracing::Subscriber> Layer<S> for Recorded {
        fn on_record(&self, _span: &Id, values: &Record<'_>, _context: Context<'_, S>) {
            values.record(&mut self.clone());
        }
    }

    #[test]
    fn numbers_are_recorded_as_what_is_exported_as_numbers() {
        let recorded = Recorded::default();
        let subscriber = tracing_subscriber::registry().with(recorded.clone());
        tracing::subscriber::with_default(subscriber, || {
            let conversation = "c".parse().unwrap();
            let usage = Usage { input_tokens: Some(11), output_tokens: Some(2), ..Usage::default() };
            used(&model_call(&conversation, "openai-chat", &ModelRef::new("p", "m")), &usage, "stop");
            let way = McpWay::Http { host: "localhost", port: Some(80) };
            let call = CallId { message: Seq::FIRST, index: 0 };
            tool_call(Some(&conversation), call, "s", "t")
                .in_scope(|| mcp_call(&McpCall { protocol_version: "2025-11-25", session: None, way }));
        });
        let numbers: Vec<_> =
            recorded.0.lock().unwrap().iter().filter(|(_, kind)| *kind == "int").map(|(name, _)| *name).collect();
        assert_eq!(numbers, ["gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "server.port"]);
    }

    #[test]
    fn the_type_of_an_error_is_the_status_where_the_provider_refused_with_one() {
        let failure = ProviderFailure::new(ProviderFailureKind::RateLimit, "slow down");
        for (status, expected) in [(Some(429), "429"), (Some(200), "rate_limit"), (None, "rate_limit")] {
            assert_eq!(error_type(&ProviderFailure { status, ..failure.clone() }), expected);
        }
    }
}
