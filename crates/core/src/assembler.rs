//! From stream deltas to a message.

use serde::{Deserialize, Serialize};

use crate::{
    AssistantBlock, AssistantMessage, Completion, CutOffCause, Finish, FinishReason, NativeBlock, Origin, ProviderFailure,
    ProviderFailureKind, Seq, ToolCall, Usage,
};

/// A piece of a model's answer, in the order in which it came. Every dialect decodes to these.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamDelta {
    /// More text; opens a text block unless the newest block is one.
    Text(String),
    /// More reasoning; opens a reasoning block unless the newest block is one.
    Reasoning(String),
    /// More of a refusal.
    Refusal(String),
    /// A call begins. `key` names it for the deltas that follow, unique within the message.
    CallStarted {
        /// The stream's own name for the call.
        key: u32,
        /// The tool's name as the model wrote it.
        name: String,
        /// The provider's id for the call.
        provider_id: Option<String>,
    },
    /// More of a call's arguments, JSON text. Calls may interleave.
    CallArguments {
        /// Which call.
        key: u32,
        /// The text.
        text: String,
    },
    /// The provider's own form of a call that was started.
    CallNative {
        /// Which call.
        key: u32,
        /// JSON text, byte for byte.
        native: NativeBlock,
    },
    /// The call was recovered from text that the model wrote.
    CallRecovered {
        /// Which call.
        key: u32,
    },
    /// Closes the newest block, with the provider's own form of it where it has one.
    BlockEnded {
        /// JSON text, byte for byte.
        native: Option<NativeBlock>,
    },
    /// Something that only its provider understands.
    Opaque(NativeBlock),
    /// The whole answer as its provider gives it at the end, where that is not what the pieces came to: it counts in their
    /// place. Nothing but [`StreamDelta::Usage`] and [`StreamDelta::Finished`] follows.
    Rewritten(Vec<AssistantBlock>),
    /// Tokens; the last report counts.
    Usage(Usage),
    /// The model stopped.
    Finished(Finish),
    /// What people should know of the call while it is made, such as that its provider is waited for. No part of the message.
    Notice(String),
}

/// Builds one [`AssistantMessage`] from deltas. Give every delta to [`Assembler::push`], then call
/// [`Assembler::complete`] or [`Assembler::cut_off`] once.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Assembler {
    blocks: Vec<AssistantBlock>,
    /// The key and the block of each call.
    calls: Vec<(u32, usize)>,
    is_newest_closed: bool,
    usage: Usage,
    finish: Option<Finish>,
}

impl Assembler {
    /// Takes the next delta. A delta for a call that never started is ignored.
    pub fn push(&mut self, delta: StreamDelta) {
        match delta {
            StreamDelta::Text(more) => self.push_text(
                more,
                |block| match block {
                    AssistantBlock::Text { text, native: None } => Some(text),
                    _ => None,
                },
                |text| AssistantBlock::Text { text, native: None },
            ),
            StreamDelta::Reasoning(more) => self.push_text(
                more,
                |block| match block {
                    AssistantBlock::Reasoning { text, native: None } => Some(text),
                    _ => None,
                },
                |text| AssistantBlock::Reasoning { text, native: None },
            ),
            StreamDelta::Refusal(more) => self.push_text(
                more,
                |block| match block {
                    AssistantBlock::Refusal { text } => Some(text),
                    _ => None,
                },
                |text| AssistantBlock::Refusal { text },
            ),
            StreamDelta::CallStarted { key, name, provider_id } => {
                self.calls.push((key, self.blocks.len()));
                let call = ToolCall { name, arguments: String::new(), provider_id, native: None, recovered: false };
                self.open(AssistantBlock::Call(call));
            }
            StreamDelta::CallArguments { key, text } => self.with_call(key, |call| call.arguments.push_str(&text)),
            StreamDelta::CallNative { key, native } => self.with_call(key, |call| call.native = Some(native)),
            StreamDelta::CallRecovered { key } => self.with_call(key, |call| call.recovered = true),
            StreamDelta::BlockEnded { native } => self.close(native),
            StreamDelta::Opaque(native) => self.open(AssistantBlock::Opaque { native }),
            StreamDelta::Rewritten(blocks) => self.rewrite(blocks),
            StreamDelta::Usage(usage) => self.usage = usage,
            StreamDelta::Finished(finish) => self.finish = Some(finish),
            StreamDelta::Notice(_) => {}
        }
    }

    fn push_text(
        &mut self,
        more: String,
        of_kind: impl Fn(&mut AssistantBlock) -> Option<&mut String>,
        new: impl Fn(String) -> AssistantBlock,
    ) {
        if more.is_empty() {
            return;
        }
        let newest = if self.is_newest_closed { None } else { self.blocks.last_mut().and_then(of_kind) };
        match newest {
            Some(text) => text.push_str(&more),
            None => self.open(new(more)),
        }
    }

    fn open(&mut self, block: AssistantBlock) {
        self.blocks.push(block);
        self.is_newest_closed = false;
    }

    fn close(&mut self, own_form: Option<NativeBlock>) {
        self.is_newest_closed = true;
        let Some(own_form) = own_form else { return };
        match self.blocks.last_mut() {
            Some(AssistantBlock::Text { native, .. } | AssistantBlock::Reasoning { native, .. }) => *native = Some(own_form),
            Some(AssistantBlock::Call(call)) => call.native = Some(own_form),
            Some(AssistantBlock::Refusal { .. } | AssistantBlock::Opaque { .. }) | None => {}
        }
    }

    fn rewrite(&mut self, blocks: Vec<AssistantBlock>) {
        let calls = blocks.iter().enumerate().filter(|(_, block)| matches!(block, AssistantBlock::Call(_)));
        self.calls = (0..).zip(calls.map(|(at, _)| at)).collect();
        self.blocks = blocks;
        self.is_newest_closed = true;
    }

    fn with_call(&mut self, key: u32, change: impl FnOnce(&mut ToolCall)) {
        let Some((_, index)) = self.calls.iter().rev().find(|(known, _)| *known == key) else {
            return;
        };
        if let Some(AssistantBlock::Call(call)) = self.blocks.get_mut(*index) {
            change(call);
        }
    }

    /// What there is so far.
    pub fn blocks(&self) -> &[AssistantBlock] {
        &self.blocks
    }

    /// The index among the message's calls of the call with this key.
    pub fn call_index(&self, key: u32) -> Option<u32> {
        self.calls.iter().rposition(|(known, _)| *known == key).and_then(|index| u32::try_from(index).ok())
    }

    /// Whether the model has said why it stopped: little more comes.
    pub fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// Whether nothing was said yet.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The message of a stream that reached its terminal marker.
    pub fn complete(self, origin: Origin, saw: Seq) -> AssistantMessage {
        let has_calls = !self.calls.is_empty();
        let mut finish = self.finish.unwrap_or(Finish { reason: FinishReason::Stop, raw: None });
        // Servers say `stop` where they mean tool calls.
        if has_calls && finish.reason == FinishReason::Stop {
            finish.reason = FinishReason::ToolCalls;
        }
        if !has_calls && finish.reason == FinishReason::ToolCalls {
            finish.reason = FinishReason::Stop;
        }
        AssistantMessage { origin, saw, blocks: self.blocks, finish, completion: Completion::Complete, usage: self.usage }
    }

    /// The message of a stream that did not.
    pub fn cut_off(self, origin: Origin, saw: Seq, cause: CutOffCause) -> AssistantMessage {
        let finish = Finish { reason: FinishReason::Error, raw: self.finish.and_then(|finish| finish.raw) };
        AssistantMessage { origin, saw, blocks: self.blocks, finish, completion: Completion::CutOff(cause), usage: self.usage }
    }
}

impl ProviderFailure {
    /// The failure of a stream that ended without its terminal marker.
    pub fn cut_off() -> Self {
        Self::new(ProviderFailureKind::CutOff, "the provider's answer ended before its end")
    }
}
