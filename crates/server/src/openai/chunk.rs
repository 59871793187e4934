//! Chunks of a streamed chat completion as bytes, written by hand: this is the hot path of every stream.

use std::io::Write;
use std::ops::Range;

use serde::Serialize;
use turnwright_api::openai::{ChatCall, ChatUsage, ToolEvent};

/// A text that grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    /// Text for the person.
    Content,
    /// What the model thinks.
    Reasoning,
    /// The words of a refusal.
    Refusal,
}

impl Field {
    fn key(self) -> &'static str {
        match self {
            Self::Content => r#""content":""#,
            Self::Reasoning => r#""reasoning_content":""#,
            Self::Refusal => r#""refusal":""#,
        }
    }
}

/// Writes chunks that begin and end alike.
#[derive(Debug)]
pub(crate) struct Chunks {
    /// Up to the inside of `delta`.
    head: Vec<u8>,
    /// Where in the head the model is named.
    model: Range<usize>,
    /// What stands behind `choices`.
    tail: &'static str,
    /// A text chunk that is the last of what is to be sent: its field, and where its text ends.
    open: Option<(Field, usize)>,
}

const AFTER_DELTA: &str = r#"},"finish_reason":null}]"#;
const AFTER_TEXT: &str = r#""},"finish_reason":null}]"#;

impl Chunks {
    /// The chunks of one answer.
    pub(crate) fn new(id: &str, created: u64, model: &str, tells_usage: TellsUsage) -> Self {
        let mut head = b"data: {\"id\":".to_vec();
        json(&mut head, id);
        // Writing to memory does not fail.
        let _ = write!(head, r#","object":"chat.completion.chunk","created":{created},"model":"#);
        let begins = head.len();
        json(&mut head, model);
        let model = begins..head.len();
        head.extend_from_slice(br#","choices":[{"index":0,"delta":{"#);
        let tail = match tells_usage {
            TellsUsage::AtItsEnd => ",\"usage\":null}\n\n",
            TellsUsage::Never => "}\n\n",
        };
        Self { head, model, tail, open: None }
    }

    /// Names this model in what comes.
    pub(crate) fn name_model(&mut self, name: &str) {
        let mut written = Vec::new();
        json(&mut written, name);
        let ends = self.model.start + written.len();
        self.head.splice(self.model.clone(), written);
        self.model.end = ends;
    }

    /// The first chunk.
    pub(crate) fn start(&mut self, out: &mut Vec<u8>, conversation: &str, turn: &str) {
        self.open = None;
        out.extend_from_slice(&self.head);
        out.extend_from_slice(br#""role":"assistant","content":"""#);
        out.extend_from_slice(AFTER_DELTA.as_bytes());
        out.extend_from_slice(br#","turnwright":{"conversation_id":"#);
        json(out, conversation);
        out.extend_from_slice(br#","turn_id":"#);
        json(out, turn);
        out.push(b'}');
        out.extend_from_slice(self.tail.as_bytes());
    }

    /// More text. Where nothing was sent since the last, it becomes one with it.
    pub(crate) fn text(&mut self, out: &mut Vec<u8>, field: Field, text: &str) {
        let end = match self.open {
            Some((open, end)) if open == field && end < out.len() && out.len() == end + self.text_tail_bytes() => {
                out.truncate(end);
                append_escaped(out, text);
                out.len()
            }
            _ => {
                out.extend_from_slice(&self.head);
                out.extend_from_slice(field.key().as_bytes());
                append_escaped(out, text);
                out.len()
            }
        };
        out.extend_from_slice(AFTER_TEXT.as_bytes());
        out.extend_from_slice(self.tail.as_bytes());
        self.open = Some((field, end));
    }

    fn text_tail_bytes(&self) -> usize {
        AFTER_TEXT.len() + self.tail.len()
    }

    /// What a tool did on our side, beside an empty text.
    pub(crate) fn tool_event(&mut self, out: &mut Vec<u8>, event: &ToolEvent) {
        self.open = None;
        out.extend_from_slice(&self.head);
        out.extend_from_slice(br#""content":"""#);
        out.extend_from_slice(AFTER_DELTA.as_bytes());
        out.extend_from_slice(br#","turnwright":{"tool_event":"#);
        json(out, event);
        out.push(b'}');
        out.extend_from_slice(self.tail.as_bytes());
    }

    /// That the turn was stopped, beside an empty text.
    pub(crate) fn stopping(&mut self, out: &mut Vec<u8>) {
        self.open = None;
        out.extend_from_slice(&self.head);
        out.extend_from_slice(br#""content":"""#);
        out.extend_from_slice(AFTER_DELTA.as_bytes());
        out.extend_from_slice(br#","turnwright":{"is_stopping":true}"#);
        out.extend_from_slice(self.tail.as_bytes());
    }

    /// A call that the client runs.
    pub(crate) fn tool_call(&mut self, out: &mut Vec<u8>, index: usize, call: &ChatCall) {
        #[derive(Serialize)]
        struct Indexed<'a> {
            index: usize,
            #[serde(flatten)]
            call: &'a ChatCall,
        }
        self.open = None;
        out.extend_from_slice(&self.head);
        out.extend_from_slice(br#""tool_calls":["#);
        json(out, &Indexed { index, call });
        out.push(b']');
        out.extend_from_slice(AFTER_DELTA.as_bytes());
        out.extend_from_slice(self.tail.as_bytes());
    }

    /// The last choice, how the turn ended where it is not whole and why it was stopped, the tokens where they are told, and the end.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>, finish_reason: &str, ended: Ended, usage: Option<&ChatUsage>) {
        self.open = None;
        out.extend_from_slice(&self.head);
        out.extend_from_slice(br#"},"finish_reason":"#);
        json(out, finish_reason);
        out.extend_from_slice(b"}]");
        if ended.status.is_some() {
            out.extend_from_slice(br#","turnwright":"#);
            json(out, &ended);
        }
        out.extend_from_slice(self.tail.as_bytes());
        if let Some(usage) = usage {
            let head = self.head.strip_suffix(br#"[{"index":0,"delta":{"#).unwrap_or(&self.head);
            out.extend_from_slice(head);
            out.extend_from_slice(br#"[],"usage":"#);
            json(out, usage);
            out.extend_from_slice(b"}\n\n");
        }
        out.extend_from_slice(b"data: [DONE]\n\n");
    }
}

/// How a turn ended that gave no whole answer.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct Ended {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<&'static str>,
    /// Why it was stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stop: Option<&'static str>,
}

/// Whether a stream tells the tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TellsUsage {
    /// In a chunk of its own before the end; in the others it is null.
    AtItsEnd,
    /// Not at all.
    Never,
}

/// A value as JSON. What we write are texts, numbers and structs of them, which always can be.
pub(crate) fn json<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let before = out.len();
    if let Err(error) = serde_json::to_writer(&mut *out, value) {
        out.truncate(before);
        out.extend_from_slice(b"null");
        tracing::error!(%error, "a value cannot be written");
    }
}

/// A text inside quotes that are there already.
fn append_escaped(out: &mut Vec<u8>, text: &str) {
    let is_plain = text.bytes().all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\');
    if is_plain {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    let before = out.len();
    json(out, text);
    out.pop();
    out.remove(before);
}
