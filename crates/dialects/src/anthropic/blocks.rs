//! The content blocks of a stream, told in the order in which they begin.
//!
//! The format's maker sends one block after another. Where a gateway mixes them, what belongs to a later block waits until
//! the earlier one has ended, so that each keeps its place and its own form.

use std::collections::VecDeque;

use serde_json::value::RawValue;
use turnwright_core::{NativeBlock, ProviderFailure, StreamDelta};

use super::wire::{Block, Delta, Members, push_json};
use crate::limits::{self, MAX_ANSWER_BYTES, MAX_ARGUMENT_BYTES, MAX_CALLS};

/// The blocks of one answer. Never sized by what a server says an index is.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// Those that have not been told to their end; the first is being told.
    open: VecDeque<Open>,
    calls: u32,
    bytes: usize,
    has_content: bool,
}

/// A block that has not ended.
#[derive(Debug)]
struct Open {
    index: Option<u64>,
    /// The block as it began, JSON.
    start: String,
    content: Content,
    /// How many bytes of its text or arguments were told.
    told: usize,
    is_begun: bool,
    is_stopped: bool,
}

#[derive(Debug)]
enum Content {
    Text {
        text: String,
        citations: String,
    },
    Thinking {
        text: String,
        signature: String,
    },
    Call {
        key: u32,
        name: String,
        id: Option<String>,
        arguments: String,
    },
    /// Kept for the way back: what the provider ran itself, and what we do not know.
    Opaque {
        input: String,
        content: Option<String>,
    },
}

impl Blocks {
    /// Whether anything was said.
    pub(super) fn has_content(&self) -> bool {
        self.has_content
    }

    /// Whether a block has not ended.
    pub(super) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Begins the block that `raw` shows.
    pub(super) fn start(
        &mut self,
        index: Option<u64>,
        raw: &RawValue,
        out: &mut Vec<StreamDelta>,
    ) -> Result<(), ProviderFailure> {
        // An index that comes again belongs to another block.
        self.stop(index, out);
        let Ok(block) = serde_json::from_str::<Block<'_>>(raw.get()) else { return Ok(()) };
        let text = |text: crate::lenient::Text<'_>| text.filled().map(Into::into).unwrap_or_default();
        let content = match block.kind.any() {
            Some("text") => Content::Text { text: text(block.text), citations: String::new() },
            Some("thinking") => Content::Thinking { text: text(block.thinking), signature: text(block.signature) },
            Some("tool_use") => {
                let key = self.calls;
                self.calls += 1;
                if usize::try_from(key).unwrap_or(usize::MAX) >= MAX_CALLS {
                    return Err(limits::too_many_calls());
                }
                let id = block.id.filled().map(Into::into);
                Content::Call { key, name: text(block.name), id, arguments: String::new() }
            }
            _ => Content::Opaque { input: String::new(), content: None },
        };
        self.count(raw.get().len())?;
        self.push(index, raw.get().to_owned(), content, out)
    }

    fn push(
        &mut self,
        index: Option<u64>,
        start: String,
        content: Content,
        out: &mut Vec<StreamDelta>,
    ) -> Result<(), ProviderFailure> {
        if self.open.len() >= MAX_CALLS {
            return Err(limits::answer_too_large());
        }
        self.open.push_back(Open { index, start, content, told: 0, is_begun: false, is_stopped: false });
        self.tell(out);
        Ok(())
    }

    /// Takes more of a block. What does not fit its kind means nothing.
    pub(super) fn delta(
        &mut self,
        index: Option<u64>,
        delta: Delta<'_>,
        out: &mut Vec<StreamDelta>,
    ) -> Result<(), ProviderFailure> {
        let position = match index {
            Some(_) => self.open.iter().rposition(|open| open.index == index),
            None => self.open.len().checked_sub(1),
        };
        let Some(open) = position.and_then(|position| self.open.get_mut(position)) else {
            return self.unannounced(index, delta, out);
        };
        let is_first = position == Some(0);
        let added = match (&mut open.content, delta.kind.any()) {
            (Content::Text { text, .. }, Some("text_delta")) => {
                let Some(more) = delta.text.filled() else { return Ok(()) };
                text.push_str(&more);
                let added = more.len();
                if is_first {
                    open.told = text.len();
                    out.push(StreamDelta::Text(more.into_owned()));
                }
                added
            }
            (Content::Text { citations, .. }, Some("citations_delta")) => {
                let Some(citation) = delta.citation else { return Ok(()) };
                if !citations.is_empty() {
                    citations.push(',');
                }
                citations.push_str(citation.get());
                citation.get().len()
            }
            (Content::Thinking { text, .. }, Some("thinking_delta")) => {
                let Some(more) = delta.thinking.filled() else { return Ok(()) };
                text.push_str(&more);
                let added = more.len();
                if is_first {
                    open.told = text.len();
                    out.push(StreamDelta::Reasoning(more.into_owned()));
                }
                added
            }
            (Content::Thinking { signature, .. }, Some("signature_delta")) => {
                let Some(more) = delta.signature.filled() else { return Ok(()) };
                signature.push_str(&more);
                more.len()
            }
            (Content::Call { key, name, arguments, .. }, Some("input_json_delta")) => {
                let Some(more) = delta.partial_json.filled() else { return Ok(()) };
                arguments.push_str(&more);
                if arguments.len() > MAX_ARGUMENT_BYTES {
                    return Err(limits::arguments_too_large(name));
                }
                let added = more.len();
                if is_first {
                    open.told = arguments.len();
                    out.push(StreamDelta::CallArguments { key: *key, text: more.into_owned() });
                }
                added
            }
            (Content::Opaque { input, .. }, Some("input_json_delta")) => {
                let Some(more) = delta.partial_json.filled() else { return Ok(()) };
                input.push_str(&more);
                if input.len() > MAX_ARGUMENT_BYTES {
                    return Err(limits::arguments_too_large("a tool of the provider"));
                }
                more.len()
            }
            (Content::Opaque { content, .. }, Some("compaction_delta")) => {
                let Some(more) = delta.content.filled() else { return Ok(()) };
                content.get_or_insert_default().push_str(&more);
                more.len()
            }
            _ => return Ok(()),
        };
        self.count(added)
    }

    /// Takes text or thinking of a block that was not begun: gateways forget.
    fn unannounced(&mut self, index: Option<u64>, delta: Delta<'_>, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        let (start, content) = match delta.kind.any() {
            Some("text_delta") => {
                (r#"{"type":"text","text":""}"#, Content::Text { text: String::new(), citations: String::new() })
            }
            Some("thinking_delta") => (
                r#"{"type":"thinking","thinking":"","signature":""}"#,
                Content::Thinking { text: String::new(), signature: String::new() },
            ),
            _ => return Ok(()),
        };
        self.push(index, start.to_owned(), content, out)?;
        self.delta(index, delta, out)
    }

    /// Ends the block at `index`; the newest where there is none.
    pub(super) fn stop(&mut self, index: Option<u64>, out: &mut Vec<StreamDelta>) {
        let open = match index {
            Some(_) => self.open.iter_mut().rfind(|open| open.index == index),
            None => self.open.back_mut(),
        };
        if let Some(open) = open {
            open.is_stopped = true;
            self.tell(out);
        }
    }

    /// Ends every block.
    pub(super) fn stop_all(&mut self, out: &mut Vec<StreamDelta>) {
        for open in &mut self.open {
            open.is_stopped = true;
        }
        self.tell(out);
    }

    /// Tells what there is of blocks that will not end.
    pub(super) fn cut_off(&mut self, out: &mut Vec<StreamDelta>) {
        for mut open in self.open.drain(..) {
            open.tell(out);
            if open.is_stopped {
                open.tell_end(out);
            } else if matches!(open.content, Content::Text { .. } | Content::Thinking { .. }) {
                out.push(StreamDelta::BlockEnded { native: None });
            }
        }
    }

    /// Tells the first block as far as it came, and the next where it has ended.
    fn tell(&mut self, out: &mut Vec<StreamDelta>) {
        while let Some(first) = self.open.front_mut() {
            first.tell(out);
            if !first.is_stopped {
                return;
            }
            first.tell_end(out);
            self.open.pop_front();
        }
    }

    fn count(&mut self, bytes: usize) -> Result<(), ProviderFailure> {
        self.has_content = true;
        self.bytes += bytes;
        if self.bytes > MAX_ANSWER_BYTES { Err(limits::answer_too_large()) } else { Ok(()) }
    }
}

impl Open {
    /// Tells what is new of its text or arguments.
    fn tell(&mut self, out: &mut Vec<StreamDelta>) {
        let is_begun = std::mem::replace(&mut self.is_begun, true);
        let (text, delta): (&str, fn(String) -> StreamDelta) = match &self.content {
            Content::Text { text, .. } => (text, StreamDelta::Text),
            Content::Thinking { text, .. } => (text, StreamDelta::Reasoning),
            Content::Call { key, name, id, arguments } => {
                if !is_begun {
                    let (key, name, provider_id) = (*key, name.clone(), id.clone());
                    out.push(StreamDelta::CallStarted { key, name, provider_id });
                }
                let more = arguments.get(self.told..).unwrap_or_default();
                if !more.is_empty() {
                    out.push(StreamDelta::CallArguments { key: *key, text: more.to_owned() });
                    self.told = arguments.len();
                }
                return;
            }
            Content::Opaque { .. } => return,
        };
        let more = text.get(self.told..).unwrap_or_default();
        if !more.is_empty() {
            out.push(delta(more.to_owned()));
            self.told = text.len();
        }
    }

    /// Tells its end, with its own form where that holds more.
    fn tell_end(&self, out: &mut Vec<StreamDelta>) {
        let members = Members::of(&self.start);
        match &self.content {
            Content::Text { text, .. } if text.is_empty() => {}
            Content::Text { text, citations } => {
                let native = text_native(&members, text, citations);
                out.push(StreamDelta::BlockEnded { native });
            }
            Content::Thinking { text, signature } => {
                // Without a signature the provider takes no thought back.
                let native = (!signature.is_empty()).then(|| {
                    let (text, signature) = (json(text), json(signature));
                    NativeBlock(members.with(&[("thinking", &text), ("signature", &signature)]))
                });
                match native {
                    Some(native) if text.is_empty() => out.push(StreamDelta::Opaque(native)),
                    native if !text.is_empty() => out.push(StreamDelta::BlockEnded { native }),
                    _ => {}
                }
            }
            Content::Call { key, arguments, .. } => {
                if arguments.is_empty()
                    && let Some((_, input)) = members.0.iter().find(|(name, _)| name == "input")
                    && input.get() != "null"
                {
                    out.push(StreamDelta::CallArguments { key: *key, text: input.get().to_owned() });
                }
                if let Some(more) = members.without(&["type", "id", "name", "input"]) {
                    out.push(StreamDelta::CallNative { key: *key, native: NativeBlock(more) });
                }
            }
            Content::Opaque { input, content } => {
                let content = content.as_deref().map(json);
                let is_input = serde_json::from_str::<&RawValue>(input).is_ok();
                let input = is_input.then_some(("input", input.as_str()));
                let changed: Vec<_> = input.into_iter().chain(content.as_deref().map(|text| ("content", text))).collect();
                let native = if changed.is_empty() { self.start.clone() } else { members.with(&changed) };
                out.push(StreamDelta::Opaque(NativeBlock(native)));
            }
        }
    }
}

/// A text block's own form, where it holds more than its text.
fn text_native(members: &Members<'_>, text: &str, citations: &str) -> Option<NativeBlock> {
    let is_more = members.0.iter().any(|(key, value)| match key.as_ref() {
        "type" | "text" => false,
        "citations" => !matches!(value.get(), "null" | "[]"),
        _ => value.get() != "null",
    });
    if citations.is_empty() && !is_more {
        return None;
    }
    let text = json(text);
    let seed = members.0.iter().find(|(key, _)| key == "citations").map_or("", |(_, value)| value.get());
    let seed = seed.strip_prefix('[').and_then(|seed| seed.strip_suffix(']')).unwrap_or_default().trim();
    let comma = if seed.is_empty() || citations.is_empty() { "" } else { "," };
    let citations = format!("[{seed}{comma}{citations}]");
    let mut changed = vec![("text", text.as_str())];
    if citations != "[]" {
        changed.push(("citations", &citations));
    }
    Some(NativeBlock(members.with(&changed)))
}

fn json(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    push_json(&mut json, text);
    json
}
