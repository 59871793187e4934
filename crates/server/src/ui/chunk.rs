//! Chunks of the UI message stream as bytes, written by hand: this is the hot path of every streamed turn.

use std::io::Write;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use turnwright_api as api;
use turnwright_core::{ApprovalId, CallId, ContentBlock, ContextPart, ElicitationId, Media, ToolDefinition, Usage, text_of};

use super::UiVersion;
use crate::report::context_part;

/// A kind of block that grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockKind {
    /// Text for the person.
    Text,
    /// What the model thinks.
    Reasoning,
}

impl BlockKind {
    fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Reasoning => "reasoning",
        }
    }

    fn letter(self) -> char {
        match self {
            Self::Text => 't',
            Self::Reasoning => 'r',
        }
    }
}

/// Writes chunks, each as a server-sent event with the `id` that counts at the time.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    /// `id: N` and a line break; empty while no entry was seen.
    id_line: Vec<u8>,
}

impl Chunks {
    pub(super) fn set_id(&mut self, seq: u64) {
        self.id_line.clear();
        // Writing to memory does not fail.
        let _ = writeln!(self.id_line, "id: {seq}");
    }

    /// From here on there is no place to come back to but the beginning.
    pub(super) fn clear_id(&mut self) {
        self.id_line = b"id\n".to_vec();
    }

    fn begin(&self, out: &mut Vec<u8>, head: &str) {
        out.extend_from_slice(&self.id_line);
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(head.as_bytes());
    }

    /// A chunk that is always the same.
    pub(super) fn plain(&self, out: &mut Vec<u8>, json: &str) {
        self.begin(out, json);
        out.extend_from_slice(b"\n\n");
    }

    pub(super) fn start(&self, out: &mut Vec<u8>, start: &Start<'_>) {
        self.begin(out, r#"{"type":"start","messageId":"#);
        string(out, start.message_id);
        push(out, r#","messageMetadata":{"turnId":"#);
        string(out, start.turn_id);
        push(out, r#","conversationId":"#);
        string(out, start.conversation_id);
        if let Some(model) = start.model {
            push(out, r#","model":"#);
            string(out, model);
        }
        if let Some(created_at) = start.created_at {
            push(out, r#","createdAt":"#);
            string(out, created_at);
        }
        push(out, "}}\n\n");
    }

    pub(super) fn block_start(&self, out: &mut Vec<u8>, kind: BlockKind, number: u32) {
        self.begin(out, r#"{"type":""#);
        let _ = write!(out, "{}-start\",\"id\":\"{}{number}\"}}\n\n", kind.word(), kind.letter());
    }

    pub(super) fn block_delta(&self, out: &mut Vec<u8>, kind: BlockKind, number: u32, text: &str) {
        self.begin(out, r#"{"type":""#);
        push(out, kind.word());
        let _ = write!(out, "-delta\",\"id\":\"{}{number}\",\"delta\":", kind.letter());
        string(out, text);
        push(out, "}\n\n");
    }

    pub(super) fn block_end(&self, out: &mut Vec<u8>, kind: BlockKind, number: u32) {
        self.begin(out, r#"{"type":""#);
        let _ = write!(out, "{}-end\",\"id\":\"{}{number}\"}}\n\n", kind.word(), kind.letter());
    }

    pub(super) fn file(&self, out: &mut Vec<u8>, media: &Media<'_>) {
        self.begin(out, r#"{"type":"file","mediaType":"#);
        string(out, &media.mime_type);
        push(out, r#","url":"#);
        string(out, &media.url());
        push(out, "}\n\n");
    }

    pub(super) fn input_start(&self, out: &mut Vec<u8>, call: CallId, name: &str, tool: Option<&ToolDefinition>) {
        self.begin(out, r#"{"type":"tool-input-start","toolCallId":""#);
        let _ = write!(out, "{call}");
        push(out, r#"","toolName":"#);
        string(out, name);
        tool_head(out, tool);
        tool_metadata(out, &Metadata { tool, ..Metadata::default() });
        push(out, "}\n\n");
    }

    pub(super) fn input_delta(&self, out: &mut Vec<u8>, call: CallId, text: &str) {
        self.begin(out, r#"{"type":"tool-input-delta","toolCallId":""#);
        let _ = write!(out, "{call}");
        push(out, r#"","inputTextDelta":"#);
        string(out, text);
        push(out, "}\n\n");
    }

    /// The whole input; where it is not JSON, the text and that it is none.
    pub(super) fn input(&self, out: &mut Vec<u8>, call: CallId, name: &str, arguments: &str, tool: Option<&ToolDefinition>) {
        let json = Json::of(arguments);
        let head = match json {
            Json::Raw(_) | Json::Again(_) => r#"{"type":"tool-input-available","toolCallId":""#,
            Json::None => r#"{"type":"tool-input-error","toolCallId":""#,
        };
        self.begin(out, head);
        let _ = write!(out, "{call}");
        push(out, r#"","toolName":"#);
        string(out, name);
        tool_head(out, tool);
        push(out, r#","input":"#);
        match json {
            Json::Raw(text) => push(out, text),
            Json::Again(value) => value_of(out, &value),
            Json::None => {
                string(out, arguments);
                push(out, r#","errorText":"the arguments are not JSON""#);
            }
        }
        tool_metadata(out, &Metadata { tool, ..Metadata::default() });
        push(out, "}\n\n");
    }

    pub(super) fn approval_request(&self, out: &mut Vec<u8>, asked: ApprovalId, question: &Question<'_>) {
        self.begin(out, r#"{"type":"tool-approval-request","#);
        let _ = write!(out, "\"approvalId\":\"{asked}\",\"toolCallId\":\"{}\"", asked.call);
        if let Some(reason) = question.reason.as_deref().filter(|_| question.version >= UiVersion::V7) {
            push(out, r#","reason":"#);
            string(out, reason);
        }
        if question.is_automatic {
            push(out, r#","isAutomatic":true"#);
        }
        push(out, "}\n\n");
    }

    /// `reason`: the person's words; `changed`: the arguments that they put in the place of the call's.
    pub(super) fn approval_response(
        &self,
        out: &mut Vec<u8>,
        asked: ApprovalId,
        is_approved: bool,
        (reason, changed): (Option<&str>, Option<&str>),
    ) {
        self.begin(out, r#"{"type":"tool-approval-response","approvalId":""#);
        let _ = write!(out, "{asked}\",\"approved\":{is_approved}");
        if let Some(reason) = reason {
            push(out, r#","reason":"#);
            string(out, reason);
        }
        tool_metadata(out, &Metadata { changed, ..Metadata::default() });
        push(out, "}\n\n");
    }

    pub(super) fn output(&self, out: &mut Vec<u8>, call: CallId, output: &Output<'_>) {
        self.begin(out, r#"{"type":"tool-output-available","toolCallId":""#);
        let _ = write!(out, "{call}");
        push(out, r#"","dynamic":true,"output":{"content":"#);
        value_of(out, output.content);
        if let Some(structured) = output.structured_content {
            push(out, r#","structuredContent":"#);
            value_of(out, structured);
        }
        if output.is_error {
            push(out, r#","isError":true"#);
        }
        push(out, "}");
        tool_metadata(out, &Metadata { tool: output.tool, changed: output.changed, duration_ms: output.duration_ms });
        push(out, "}\n\n");
    }

    pub(super) fn output_error(
        &self,
        out: &mut Vec<u8>,
        call: CallId,
        text: &str,
        (tool, changed): (Option<&ToolDefinition>, Option<&str>),
    ) {
        self.begin(out, r#"{"type":"tool-output-error","toolCallId":""#);
        let _ = write!(out, "{call}");
        push(out, r#"","dynamic":true,"errorText":"#);
        string(out, text);
        tool_metadata(out, &Metadata { tool, changed, ..Metadata::default() });
        push(out, "}\n\n");
    }

    pub(super) fn output_denied(&self, out: &mut Vec<u8>, call: CallId) {
        self.begin(out, r#"{"type":"tool-output-denied","toolCallId":""#);
        let _ = write!(out, "{call}\"}}\n\n");
    }

    pub(super) fn progress(&self, out: &mut Vec<u8>, call: CallId, progress: f64, total: Option<f64>, message: Option<&str>) {
        self.begin(out, r#"{"type":"data-progress","data":{"callId":""#);
        let _ = write!(out, "{call}\",\"progress\":");
        value_of(out, &progress);
        if let Some(total) = total {
            push(out, r#","total":"#);
            value_of(out, &total);
        }
        if let Some(message) = message {
            push(out, r#","message":"#);
            string(out, message);
        }
        push(out, "},\"transient\":true}\n\n");
    }

    pub(super) fn usage(&self, out: &mut Vec<u8>, usage: &Usage, model: Option<&str>) {
        let mut is_first = true;
        let mut field = |out: &mut Vec<u8>, name: &str, value: &dyn Fn(&mut Vec<u8>)| {
            push(out, if is_first { "\"" } else { ",\"" });
            is_first = false;
            push(out, name);
            push(out, "\":");
            value(out);
        };
        self.begin(out, r#"{"type":"data-usage","id":"usage","data":{"#);
        let counts = [
            ("inputTokens", usage.input_tokens),
            ("outputTokens", usage.output_tokens),
            ("cachedInputTokens", usage.cached_input_tokens),
            ("cacheWriteTokens", usage.cache_write_tokens),
            ("reasoningTokens", usage.reasoning_tokens),
        ];
        for (name, count) in counts {
            if let Some(count) = count {
                field(out, name, &|out| value_of(out, &count));
            }
        }
        if let Some(cost) = usage.cost_usd {
            field(out, "costUsd", &|out| value_of(out, &cost));
        }
        if let Some(model) = model {
            field(out, "model", &|out| string(out, model));
        }
        push(out, "}}\n\n");
    }

    /// What a call asks; told again with the same id when it is answered or closed.
    pub(super) fn elicitation(&self, out: &mut Vec<u8>, id: ElicitationId, data: &Value) {
        self.begin(out, r#"{"type":"data-elicitation","id":""#);
        let _ = write!(out, "{id}\",\"data\":");
        value_of(out, data);
        push(out, "}\n\n");
    }

    pub(super) fn notice(&self, out: &mut Vec<u8>, level: &str, text: &str) {
        self.begin(out, r#"{"type":"data-notice","data":{"level":"#);
        string(out, level);
        push(out, r#","text":"#);
        string(out, text);
        push(out, "}}\n\n");
    }

    /// A notice that the turn was stopped, and why in a word.
    pub(super) fn stopped(&self, out: &mut Vec<u8>, stop: &str, text: &str) {
        self.begin(out, r#"{"type":"data-notice","data":{"level":"warning","stop":"#);
        string(out, stop);
        push(out, r#","text":"#);
        string(out, text);
        push(out, "}}\n\n");
    }

    /// A notice that is no part of the message.
    pub(super) fn passing_notice(&self, out: &mut Vec<u8>, level: &str, text: &str) {
        self.begin(out, r#"{"type":"data-notice","data":{"level":"#);
        string(out, level);
        push(out, r#","text":"#);
        string(out, text);
        push(out, "},\"transient\":true}\n\n");
    }

    /// What models are shown besides a message, see `api::ContextPart`.
    pub(super) fn sources(&self, out: &mut Vec<u8>, message_id: &str, parts: &[ContextPart]) {
        self.begin(out, r#"{"type":"data-context","data":{"message_id":"#);
        string(out, message_id);
        push(out, r#","parts":"#);
        let parts: Vec<api::ContextPart> = parts.iter().map(context_part).collect();
        out.extend_from_slice(&serde_json::to_vec(&parts).unwrap_or_else(|_| b"[]".to_vec()));
        push(out, "}}\n\n");
    }

    /// What a person said in the turn: its words, and the blocks themselves where it is more than a text.
    pub(super) fn steering(&self, out: &mut Vec<u8>, message_id: &str, content: &[ContentBlock]) {
        self.begin(out, r#"{"type":"steering-message","id":"#);
        string(out, message_id);
        push(out, r#","parts":[{"type":"text","text":"#);
        string(out, &text_of(content));
        push(out, "}]");
        if !matches!(content, [ContentBlock::Text { .. }]) {
            push(out, r#","content":"#);
            out.extend_from_slice(&serde_json::to_vec(content).unwrap_or_else(|_| b"[]".to_vec()));
        }
        push(out, "}\n\n");
    }

    pub(super) fn error(&self, out: &mut Vec<u8>, text: &str) {
        self.begin(out, r#"{"type":"error","errorText":"#);
        string(out, text);
        push(out, "}\n\n");
    }

    pub(super) fn finish(&self, out: &mut Vec<u8>, reason: &str) {
        self.begin(out, r#"{"type":"finish","finishReason":""#);
        push(out, reason);
        push(out, "\"}\n\n");
    }
}

/// What a message begins with.
#[derive(Debug)]
pub(super) struct Start<'a> {
    pub(super) message_id: &'a str,
    pub(super) turn_id: &'a str,
    pub(super) conversation_id: &'a str,
    pub(super) model: Option<&'a str>,
    pub(super) created_at: Option<&'a str>,
}

/// A question about a call.
#[derive(Debug)]
pub(super) struct Question<'a> {
    pub(super) version: UiVersion,
    pub(super) reason: Option<std::borrow::Cow<'a, str>>,
    pub(super) is_automatic: bool,
}

/// A call's result.
#[derive(Debug)]
pub(super) struct Output<'a> {
    pub(super) content: &'a [ContentBlock],
    pub(super) structured_content: Option<&'a Value>,
    pub(super) is_error: bool,
    pub(super) duration_ms: Option<u64>,
    pub(super) tool: Option<&'a ToolDefinition>,
    /// The arguments that a person put in the place of the call's.
    pub(super) changed: Option<&'a str>,
}

/// What is told of a call besides what the library knows.
#[derive(Debug, Default)]
struct Metadata<'a> {
    tool: Option<&'a ToolDefinition>,
    changed: Option<&'a str>,
    duration_ms: Option<u64>,
}

/// Arguments as they can stand in a line.
enum Json<'a> {
    /// As they are.
    Raw(&'a str),
    /// They hold line breaks: written again without.
    Again(Value),
    /// They are not JSON.
    None,
}

impl<'a> Json<'a> {
    fn of(arguments: &'a str) -> Self {
        if arguments.trim().is_empty() {
            return Self::Raw("{}");
        }
        match serde_json::from_str::<&RawValue>(arguments) {
            Ok(raw) if !raw.get().contains(['\n', '\r']) => Self::Raw(raw.get()),
            Ok(raw) => serde_json::from_str(raw.get()).map_or(Self::None, Self::Again),
            Err(_) => Self::None,
        }
    }
}

fn tool_head(out: &mut Vec<u8>, tool: Option<&ToolDefinition>) {
    push(out, r#","dynamic":true"#);
    if let Some(title) = tool.and_then(|tool| tool.title.as_deref()) {
        push(out, r#","title":"#);
        string(out, title);
    }
}

fn tool_metadata(out: &mut Vec<u8>, metadata: &Metadata<'_>) {
    let Metadata { tool, changed, duration_ms } = metadata;
    if tool.is_none() && changed.is_none() && duration_ms.is_none() {
        return;
    }
    push(out, r#","toolMetadata":{"#);
    let start = out.len();
    if let Some(tool) = tool {
        push(out, r#""server":"#);
        string(out, &tool.source);
        push(out, r#","tool":"#);
        string(out, &tool.tool);
    }
    let between = |out: &mut Vec<u8>| push(out, if out.len() == start { "" } else { "," });
    if let Some(changed) = changed {
        between(out);
        push(out, r#""changedArguments":"#);
        match Json::of(changed) {
            Json::Raw(text) => push(out, text),
            Json::Again(value) => value_of(out, &value),
            Json::None => string(out, changed),
        }
    }
    if let Some(duration_ms) = duration_ms {
        between(out);
        let _ = write!(out, "\"durationMs\":{duration_ms}");
    }
    push(out, "}");
}

fn push(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

fn string(out: &mut Vec<u8>, text: &str) {
    value_of(out, text);
}

/// Writes a value as JSON. Writing these to memory does not fail; if it did, null keeps the frame whole.
fn value_of<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let before = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(before);
        push(out, "null");
    }
}
