//! The messages of a request: roles that alternate, beginning and ending with a person.

use std::collections::HashSet;

use serde::Serialize;
use serde_json::value::RawValue;
use turnwright_core::prompt::{PromptMessage, PromptResult};
use turnwright_core::{AssistantBlock, AssistantMessage, CallId, Completion, FinishReason, Seq, ToolCall};

use super::content::{self, Block};
use super::native::{self, Native};
use crate::dialect::Target;
use crate::ids::Ids;
use crate::json;
use crate::kept::MessageWriter;
use crate::media;
use crate::name::wire_name;
use crate::profile::ToolCallIds;

/// What stands before a conversation whose first message is not a person's.
const BEGINNING: &str = "(The conversation begins with your answer.)";
/// What asks a model to go on whose answer nobody answered, since it was cut off.
const GO_ON: &str = "(Your answer was cut off. Go on.)";

/// Marks the end of what is to be kept in the provider's cache: a member of the last block.
const CACHE_MARK: &[u8] = br#","cache_control":{"type":"ephemeral"}"#;
/// The provider looks for what it kept at up to 20 blocks before a mark. Where the last request ended further back, a block
/// in between is marked too: one that is new, so that what was sent before stays as it was.
const MAX_BLOCKS_BETWEEN_MARKS: usize = 18;

/// Writes a prompt's messages for one target.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    ids: Ids,
    /// The ids of the newest assistant message's calls, in call order.
    newest_ids: Vec<String>,
    open: Open,
    /// Blocks of the newest answer that an answer may not end with, in their order; written once another follows.
    held: Vec<Held>,
    /// Whether the provider paused in the newest answer, and goes on when it is asked with it.
    is_paused: bool,
    /// The uses of the provider's own tools in the open answer.
    uses: HashSet<String>,
    /// Where a mark helps that is not at the end.
    between: Between,
}

/// The message whose list of blocks is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    /// Nothing was written.
    Nothing,
    User,
    Assistant,
}

#[derive(Debug, Clone)]
struct Held {
    kind: HeldKind,
    block: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HeldKind {
    /// A thought: no answer may end with one.
    Thought,
    /// The use of a tool of the provider's without its result: the provider alone can go on from it.
    Use,
}

/// The last block that can be marked and is not too far behind the last closed user message: where a request ended.
#[derive(Debug, Clone, Copy, Default)]
struct Between {
    /// How many blocks were written since that message.
    blocks: usize,
    /// What was written behind the block: what comes before all messages is not known here.
    bytes_since: Option<usize>,
    /// Its end, while a message is being written.
    end: Option<usize>,
}

impl Between {
    /// Where the block's closing brace is in messages that end at `end`.
    fn place(&self, end: usize) -> Option<usize> {
        end.checked_sub(self.bytes_since? + 1)
    }
}

/// A block of an answer, ready to be written.
enum Piece {
    /// One that we put together.
    Ours(Vec<u8>),
    /// One of the provider's own.
    Native(Vec<u8>),
    Held(Held),
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "text")]
struct TextBlock<'a> {
    text: &'a str,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "tool_use")]
struct ToolUse<'a> {
    id: &'a str,
    name: &'a str,
    input: &'a RawValue,
}

impl MessageWriter for Writer {
    fn push(&mut self, target: &Target<'_>, message: &PromptMessage<'_>, out: &mut Vec<u8>) {
        let before = out.len();
        match message {
            PromptMessage::User { message, .. } => {
                for block in content::blocks(target, &message.content) {
                    self.user_block(&block, out);
                }
            }
            PromptMessage::Context { context, .. } => {
                for block in content::blocks(target, &[context.block()]) {
                    self.user_block(&block, out);
                }
            }
            PromptMessage::Assistant { seq, message } => self.assistant(target, *seq, message, out),
            PromptMessage::Results(results) => self.results(target, results, out),
        }
        self.between.bytes_since = match self.between.end.take() {
            Some(end) => Some(out.len() - end),
            None => self.between.bytes_since.map(|bytes| bytes + out.len() - before),
        };
    }

    fn finish(&self, _: &Target<'_>, out: &mut Vec<u8>) {
        let between = self.between.place(out.len());
        let mut end = self.end();
        if self.is_paused {
            end.release_to_the_last_use(out);
            if end.open == Open::Assistant {
                native::trim_text_block(out);
                out.extend_from_slice(b"]}");
                return;
            }
        }
        match end.open {
            Open::User => {}
            Open::Nothing => end.user_block(&TextBlock { text: BEGINNING }, out),
            Open::Assistant => end.user_block(&TextBlock { text: GO_ON }, out),
        }
        mark_block(out.len() - 1, out);
        out.extend_from_slice(b"]}");
        if let Some(place) = between
            && self.open == Open::User
            && self.between.blocks > MAX_BLOCKS_BETWEEN_MARKS
        {
            mark_block(place, out);
        }
    }

    fn settled(&self, newest: usize, end: usize) -> usize {
        self.between.place(end).map_or(newest, |place| place.min(newest))
    }

    fn close(&self, out: &mut Vec<u8>) {
        if self.open != Open::Nothing {
            out.extend_from_slice(b"]}");
        }
    }
}

/// Marks the block whose closing brace is at `place`.
fn mark_block(place: usize, out: &mut Vec<u8>) {
    if out.get(place) == Some(&b'}') {
        out.splice(place..place, CACHE_MARK.iter().copied());
    }
}

impl Writer {
    pub(crate) fn new() -> Self {
        Self {
            ids: Ids::new(ToolCallIds::Word64),
            newest_ids: Vec::new(),
            open: Open::Nothing,
            held: Vec::new(),
            is_paused: false,
            uses: HashSet::new(),
            between: Between::default(),
        }
    }

    /// A copy that ends the messages: it does not know what only further messages need.
    fn end(&self) -> Self {
        Self { open: self.open, held: self.held.clone(), is_paused: self.is_paused, ..Self::new() }
    }

    /// Begins a block of a message with this role, and the message where another is open.
    fn begin(&mut self, role: Open, out: &mut Vec<u8>) {
        if self.open == role {
            out.push(b',');
        } else {
            if self.open == Open::User {
                self.between = Between::default();
            }
            if self.open != Open::Nothing {
                out.extend_from_slice(b"]},");
            }
            let role: &[u8] = if role == Open::User { b"user" } else { b"assistant" };
            out.extend_from_slice(b"{\"role\":\"");
            out.extend_from_slice(role);
            out.extend_from_slice(b"\",\"content\":[");
        }
        self.open = role;
        self.between.blocks += 1;
    }

    /// Takes note of a block that can be marked, now that it is written.
    fn can_be_marked(&mut self, out: &[u8]) {
        if self.between.blocks <= MAX_BLOCKS_BETWEEN_MARKS {
            self.between.end = Some(out.len());
        }
    }

    fn user_block(&mut self, block: &impl Serialize, out: &mut Vec<u8>) {
        // What an answer may not end with goes: the answer ends here.
        self.held.clear();
        self.is_paused = false;
        self.begin(Open::User, out);
        json::write(block, out);
        self.can_be_marked(out);
    }

    fn assistant_block(&mut self, block: &[u8], out: &mut Vec<u8>) {
        self.begin(Open::Assistant, out);
        out.extend_from_slice(block);
    }

    /// Writes what is held up to the last use of the provider's own tools.
    fn release_to_the_last_use(&mut self, out: &mut Vec<u8>) {
        let last = self.held.iter().rposition(|held| held.kind == HeldKind::Use);
        let count = last.map_or(0, |last| last + 1);
        for held in std::mem::take(&mut self.held).into_iter().take(count) {
            self.assistant_block(held.block.as_bytes(), out);
        }
    }

    fn assistant(&mut self, target: &Target<'_>, seq: Seq, message: &AssistantMessage, out: &mut Vec<u8>) {
        let is_origin = message.origin == *target.origin;
        let (reason, is_whole) = (message.finish.reason, message.completion == Completion::Complete);
        self.newest_ids.clear();
        // The provider refuses again what goes on from an answer that it refused.
        if is_origin && reason == FinishReason::Refusal && message.calls().next().is_none() {
            return;
        }
        let goes_on = self.is_paused && is_origin;
        if !goes_on {
            self.uses.clear();
            self.held.retain(|held| self.is_paused && held.kind == HeldKind::Thought);
        }
        let uses_its_own = || message.blocks.iter().any(|block| matches!(read_native(block), Some((Native::Use(_), _))));
        let will_pause = is_origin && is_whole && reason == FinishReason::Pause && uses_its_own();
        let pieces = self.pieces(seq, message, is_origin, will_pause);
        let says_something = pieces.iter().any(|piece| !matches!(piece, Piece::Held(Held { kind: HeldKind::Thought, .. })));
        if !says_something {
            return;
        }
        if self.open == Open::Assistant && !self.is_paused {
            self.user_block(&TextBlock { text: GO_ON }, out);
        }
        if self.open == Open::Nothing {
            self.user_block(&TextBlock { text: BEGINNING }, out);
        }
        // What was held of an answer goes on here, and nothing of it is its end any more.
        for held in std::mem::take(&mut self.held) {
            self.assistant_block(held.block.as_bytes(), out);
        }
        for piece in pieces {
            let (block, is_ours) = match piece {
                Piece::Held(held) => {
                    self.held.push(held);
                    continue;
                }
                Piece::Ours(block) => (block, true),
                Piece::Native(block) => (block, false),
            };
            for held in std::mem::take(&mut self.held).into_iter().filter(|held| held.kind == HeldKind::Thought) {
                self.assistant_block(held.block.as_bytes(), out);
            }
            self.assistant_block(&block, out);
            if is_ours {
                self.can_be_marked(out);
            }
        }
        self.is_paused = will_pause;
    }

    /// The blocks of a message that can be shown to the target, in their order.
    fn pieces(&mut self, seq: Seq, message: &AssistantMessage, is_origin: bool, will_pause: bool) -> Vec<Piece> {
        let natives: Vec<_> = message.blocks.iter().map(|block| read_native(block).filter(|_| is_origin)).collect();
        let mut pieces = Vec::with_capacity(message.blocks.len());
        let mut calls = 0_u32;
        for (block, form) in message.blocks.iter().zip(&natives) {
            match (block, form) {
                (AssistantBlock::Call(call), _) => {
                    let id = CallId { message: seq, index: calls };
                    calls += 1;
                    pieces.push(Piece::Ours(self.call(id, call, is_origin)));
                }
                (AssistantBlock::Text { text, .. } | AssistantBlock::Refusal { text }, form) => {
                    if text.trim().is_empty() {
                        continue;
                    }
                    if let Some((_, form)) = form {
                        pieces.push(Piece::Native(form.as_bytes().to_vec()));
                        continue;
                    }
                    let mut written = Vec::with_capacity(text.len() + 32);
                    json::write(&TextBlock { text }, &mut written);
                    pieces.push(Piece::Ours(written));
                }
                (AssistantBlock::Reasoning { .. } | AssistantBlock::Opaque { .. }, Some((kind, form))) => {
                    let held = |kind| Piece::Held(Held { kind, block: (*form).to_owned() });
                    let plain = || Piece::Native(form.as_bytes().to_vec());
                    match kind {
                        Native::Thought => pieces.push(held(HeldKind::Thought)),
                        Native::Use(id) => {
                            let result = Native::Result(id.clone());
                            let is_answered = natives.iter().flatten().any(|(other, _)| *other == result);
                            if is_answered || will_pause {
                                self.uses.insert(id.clone().into_owned());
                                pieces.push(if is_answered { plain() } else { held(HeldKind::Use) });
                            }
                        }
                        Native::Result(id) if !self.uses.contains(&**id) => {}
                        Native::Result(_) | Native::Other => pieces.push(plain()),
                    }
                }
                (AssistantBlock::Opaque { .. }, None) => {
                    let text = media::for_others(block, is_origin, "");
                    if !text.is_empty() {
                        let mut written = Vec::new();
                        json::write(&TextBlock { text: &text }, &mut written);
                        pieces.push(Piece::Ours(written));
                    }
                }
                (AssistantBlock::Reasoning { .. }, None) => {}
            }
        }
        pieces
    }

    fn call(&mut self, own: CallId, call: &ToolCall, is_origin: bool) -> Vec<u8> {
        let id = self.ids.id(own, call.provider_id.as_deref().filter(|_| is_origin));
        let mut written = Vec::with_capacity(call.arguments.len() + 128);
        let input = serde_json::from_str(call.arguments_object()).unwrap_or(RawValue::NULL);
        json::write(&ToolUse { id: &id, name: &wire_name(&call.name), input }, &mut written);
        self.newest_ids.push(id);
        let more = call.native.as_ref().filter(|_| is_origin).and_then(|native| native.0.strip_prefix('{'));
        if let Some(more) = more.filter(|more| is_members(more)) {
            written.pop();
            written.push(b',');
            written.extend_from_slice(more.as_bytes());
        }
        written
    }

    fn results(&mut self, target: &Target<'_>, results: &[PromptResult<'_>], out: &mut Vec<u8>) {
        let ids = std::mem::take(&mut self.newest_ids);
        let mut beside = Vec::new();
        for (result, position) in results.iter().zip(0..) {
            let own = result.id.to_string();
            let tool_use_id = ids.get(position).unwrap_or(&own);
            let is_error = result.result.outcome.is_error();
            let content = content::result(target, result);
            beside.extend(content::beside(target, tool_use_id, result));
            self.user_block(&Block::ToolResult { tool_use_id, content, is_error }, out);
        }
        // No block may stand between results.
        for block in beside {
            self.user_block(&block, out);
        }
    }
}

/// A block's own form, and what it is.
fn read_native(block: &AssistantBlock) -> Option<(Native<'_>, &str)> {
    let form = match block {
        AssistantBlock::Text { native, .. } | AssistantBlock::Reasoning { native, .. } => native.as_ref()?,
        AssistantBlock::Opaque { native } => native,
        AssistantBlock::Refusal { .. } | AssistantBlock::Call(_) => return None,
    };
    Some((native::read(&form.0)?, &form.0))
}

/// Whether this is an object's text behind its opening brace, and not an empty one.
fn is_members(text: &str) -> bool {
    text.trim() != "}" && serde_json::from_str::<&RawValue>(&format!("{{{text}")).is_ok()
}
