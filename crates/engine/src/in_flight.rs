//! The message that a model is giving, before it is whole and stored.

use turnwright_core::{Assembler, AssistantBlock, CallId, MessageId, Seq, StreamDelta};

use crate::Event;

/// A message in flight, and what watchers were told of it.
#[derive(Debug)]
pub(crate) struct InFlight {
    /// The place that it takes if nobody appends before it.
    seq: Seq,
    pub(crate) assembler: Assembler,
    /// What people were told of the call since it is made, for who comes before anything is said.
    notices: Vec<String>,
}

/// The most notices of a call that are kept; the newest are.
const MAX_NOTICES: usize = 8;

impl InFlight {
    pub(crate) fn new(seq: Seq) -> Self {
        Self { seq, assembler: Assembler::default(), notices: Vec::new() }
    }

    pub(crate) fn seq(&self) -> Seq {
        self.seq
    }

    /// Takes deltas and, where somebody watches, tells them, neighbours of one block merged: what came together is passed on
    /// together.
    pub(crate) fn push(&mut self, deltas: Vec<StreamDelta>, out: Option<&mut Vec<Event>>) {
        let Some(out) = out else {
            for delta in deltas {
                self.keep_notice(&delta);
                self.assembler.push(delta);
            }
            return;
        };
        for delta in deltas {
            if let Some(text) = self.keep_notice(&delta) {
                out.push(Event::Notice { level: "warning", text });
                continue;
            }
            let told = match &delta {
                StreamDelta::Text(text) | StreamDelta::Reasoning(text) | StreamDelta::Refusal(text) if text.is_empty() => {
                    continue;
                }
                StreamDelta::Text(text) => Some(Told::Text(text.len())),
                StreamDelta::Reasoning(text) => Some(Told::Reasoning(text.len())),
                StreamDelta::Refusal(text) => Some(Told::Refusal(text.len())),
                StreamDelta::CallStarted { name, .. } => Some(Told::Call(name.clone())),
                StreamDelta::CallArguments { key, text } => Some(Told::Arguments(*key, text.clone())),
                StreamDelta::CallNative { .. }
                | StreamDelta::CallRecovered { .. }
                | StreamDelta::BlockEnded { .. }
                | StreamDelta::Opaque(_)
                | StreamDelta::Usage(_)
                | StreamDelta::Finished(_)
                | StreamDelta::Notice(_) => None,
                StreamDelta::Rewritten(blocks) => {
                    self.tell_rewritten(blocks, out);
                    None
                }
            };
            self.assembler.push(delta);
            if let Some(told) = told {
                self.tell(told, out);
            }
        }
    }

    fn keep_notice(&mut self, delta: &StreamDelta) -> Option<String> {
        let StreamDelta::Notice(text) = delta else { return None };
        if self.notices.len() == MAX_NOTICES {
            self.notices.remove(0);
        }
        self.notices.push(text.clone());
        Some(text.clone())
    }

    fn tell(&self, told: Told, out: &mut Vec<Event>) {
        let blocks = self.assembler.blocks();
        let newest = index(blocks.len().saturating_sub(1));
        // The newest words are the end of what there is now: they are not copied on the way.
        let words = |bytes: usize| {
            let whole = newest_text(blocks);
            let (before, words) = whole.split_at_checked(whole.len().saturating_sub(bytes)).unwrap_or(("", whole));
            (size(before), words)
        };
        match told {
            Told::Text(bytes) => match (out.last_mut(), words(bytes)) {
                (Some(Event::TextDelta { block, text: told, .. }), (_, text)) if *block == newest => told.push_str(text),
                (_, (offset, text)) => out.push(Event::TextDelta { block: newest, offset, text: text.to_owned() }),
            },
            Told::Reasoning(bytes) => match (out.last_mut(), words(bytes)) {
                (Some(Event::ReasoningDelta { block, text: told, .. }), (_, text)) if *block == newest => told.push_str(text),
                (_, (offset, text)) => out.push(Event::ReasoningDelta { block: newest, offset, text: text.to_owned() }),
            },
            Told::Refusal(bytes) => match (out.last_mut(), words(bytes)) {
                (Some(Event::RefusalDelta { block, text: told, .. }), (_, text)) if *block == newest => told.push_str(text),
                (_, (offset, text)) => out.push(Event::RefusalDelta { block: newest, offset, text: text.to_owned() }),
            },
            Told::Call(name) => {
                let calls = blocks.iter().filter(|block| matches!(block, AssistantBlock::Call(_))).count();
                let call_id = CallId { message: self.seq, index: index(calls.saturating_sub(1)) };
                out.push(Event::ToolInputStarted { call_id, block: newest, name });
            }
            Told::Arguments(key, text) => {
                let Some(call) = self.assembler.call_index(key) else { return };
                let call_id = CallId { message: self.seq, index: call };
                let place = blocks.iter().enumerate().filter_map(|(at, block)| match block {
                    AssistantBlock::Call(call) => Some((at, call)),
                    _ => None,
                });
                let Some((at, whole)) = usize::try_from(call).ok().and_then(|call| place.into_iter().nth(call)) else { return };
                match out.last_mut() {
                    Some(Event::ToolInputDelta { call_id: told, text: before, .. }) if *told == call_id => {
                        before.push_str(&text);
                    }
                    _ => {
                        let offset = size(&whole.arguments).saturating_sub(size(&text));
                        out.push(Event::ToolInputDelta { call_id, block: index(at), offset, text });
                    }
                }
            }
        }
    }

    /// Tells a message anew where watchers were told another.
    fn tell_rewritten(&self, blocks: &[AssistantBlock], out: &mut Vec<Event>) {
        let (mut told, mut events) = (Vec::new(), Vec::new());
        tell_message(self.seq, self.assembler.blocks(), &mut told);
        tell_message(self.seq, blocks, &mut events);
        if told != events {
            out.push(Event::StepReset);
            out.extend(events);
        }
    }

    /// Everything so far, each block in one delta, for a watcher who comes now.
    pub(crate) fn tell_all(&self, out: &mut Vec<Event>) {
        tell_message(self.seq, self.assembler.blocks(), out);
        if self.assembler.is_empty() {
            out.extend(self.notices.iter().map(|text| Event::Notice { level: "warning", text: text.clone() }));
        }
    }
}

/// A step's beginning and all its blocks, each in one delta.
pub(crate) fn tell_message(seq: Seq, blocks: &[AssistantBlock], out: &mut Vec<Event>) {
    out.push(Event::StepStarted { message_id: MessageId(seq) });
    let mut calls = 0_u32;
    for (at, block) in blocks.iter().enumerate() {
        let block_index = index(at);
        match block {
            AssistantBlock::Text { text, .. } => {
                out.push(Event::TextDelta { block: block_index, offset: 0, text: text.clone() });
            }
            AssistantBlock::Reasoning { text, .. } => {
                out.push(Event::ReasoningDelta { block: block_index, offset: 0, text: text.clone() });
            }
            AssistantBlock::Refusal { text } => {
                out.push(Event::RefusalDelta { block: block_index, offset: 0, text: text.clone() });
            }
            AssistantBlock::Call(call) => {
                let call_id = CallId { message: seq, index: calls };
                calls = calls.saturating_add(1);
                out.push(Event::ToolInputStarted { call_id, block: block_index, name: call.name.clone() });
                if !call.arguments.is_empty() {
                    let text = call.arguments.clone();
                    out.push(Event::ToolInputDelta { call_id, block: block_index, offset: 0, text });
                }
            }
            AssistantBlock::Opaque { .. } => {}
        }
    }
}

/// Tells a stored message, which took another place than the one it was told at: somebody appended meanwhile. Where it was told
/// `before` as it is now nothing is told again, unless it has calls, whose names are of the place.
pub(crate) fn tell_at_another_place(before: Option<Vec<Event>>, mut whole: Vec<Event>, out: &mut Vec<Event>) {
    let has_calls = whole.iter().any(|event| matches!(event, Event::ToolInputStarted { .. }));
    match before {
        Some(before) if before == whole && !has_calls => return,
        Some(_) => out.push(Event::StepReset),
        None => {}
    }
    out.append(&mut whole);
}

/// What is told; of words, how many bytes they are.
enum Told {
    Text(usize),
    Reasoning(usize),
    Refusal(usize),
    Call(String),
    Arguments(u32, String),
}

fn newest_text(blocks: &[AssistantBlock]) -> &str {
    match blocks.last() {
        Some(AssistantBlock::Text { text, .. } | AssistantBlock::Reasoning { text, .. } | AssistantBlock::Refusal { text }) => {
            text
        }
        Some(AssistantBlock::Call(_) | AssistantBlock::Opaque { .. }) | None => "",
    }
}

fn index(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn size(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}
