//! What watchers here were told of a message that is in flight at another node, and what of a whole one is left to tell.
//! Pure: functions of what was told and what is.

use turnwright_core::{AssistantBlock, CallId, MessageId, Seq};

use super::{LiveEvent, LiveFrame, LiveNews, TextKind};
use crate::Event;
use crate::in_flight::tell_message;

/// A message in flight elsewhere, as it was told here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mirror {
    message: MessageId,
    blocks: Vec<Told>,
    /// Whether all was told in order up to where the next entry stands: then the watchers here know what those know who
    /// watch where it is driven.
    pub(crate) is_exact: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Told {
    block: u32,
    kind: Kind,
    text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Text(TextKind),
    Call { call_id: CallId, name: String },
}

impl Mirror {
    /// A message of which nothing was told but that it begins.
    pub(crate) fn of(message: MessageId) -> Self {
        Self { message, blocks: Vec::new(), is_exact: false }
    }

    pub(crate) fn message(&self) -> MessageId {
        self.message
    }

    /// Takes what a delta adds to what was told before, and gives it as it is to be told; nothing where all of it was told,
    /// or where something between is missing.
    pub(crate) fn take(&mut self, event: &LiveEvent) -> Option<Event> {
        match event {
            LiveEvent::Delta { kind, block, offset, text } => {
                let kind = *kind;
                let (offset, text) = self.grow(*block, &Kind::Text(kind), *offset, text)?;
                let block = *block;
                Some(match kind {
                    TextKind::Text => Event::TextDelta { block, offset, text },
                    TextKind::Reasoning => Event::ReasoningDelta { block, offset, text },
                    TextKind::Refusal => Event::RefusalDelta { block, offset, text },
                })
            }
            LiveEvent::CallStarted { call_id, block, name } => {
                if self.blocks.iter().any(|told| told.block == *block) {
                    return None;
                }
                let kind = Kind::Call { call_id: *call_id, name: name.clone() };
                self.blocks.push(Told { block: *block, kind, text: String::new() });
                Some(Event::ToolInputStarted { call_id: *call_id, block: *block, name: name.clone() })
            }
            LiveEvent::Arguments { call_id, block, offset, text } => {
                let known = self.blocks.iter().find(|told| told.block == *block)?.kind.clone();
                let (offset, text) = self.grow(*block, &known, *offset, text)?;
                Some(Event::ToolInputDelta { call_id: *call_id, block: *block, offset, text })
            }
            LiveEvent::StepStarted { .. } | LiveEvent::StepReset | LiveEvent::Progress { .. } | LiveEvent::Notice { .. } => {
                None
            }
        }
    }

    /// What of `text`, which stands at `offset`, is new.
    fn grow(&mut self, block: u32, kind: &Kind, offset: u64, text: &str) -> Option<(u64, String)> {
        if !self.blocks.iter().any(|told| told.block == block) {
            self.blocks.push(Told { block, kind: kind.clone(), text: String::new() });
        }
        let told = self.blocks.iter_mut().find(|told| told.block == block && told.kind == *kind)?;
        let before = usize::try_from(offset).ok()?;
        let known = told.text.len().checked_sub(before)?;
        let new = text.get(known..).filter(|new| !new.is_empty())?;
        let at = u64::try_from(told.text.len()).ok()?;
        told.text.push_str(new);
        Some((at, new.to_owned()))
    }

    /// What is left to tell of a message, where what was told is its beginning.
    fn rest_of(&mut self, whole: &[LiveEvent]) -> Option<Vec<Event>> {
        for told in &self.blocks {
            let of_block = |event: &&LiveEvent| match event {
                LiveEvent::Delta { block, .. } | LiveEvent::Arguments { block, .. } => *block == told.block,
                _ => false,
            };
            let is_same_kind = whole.iter().any(|event| match (event, &told.kind) {
                (LiveEvent::Delta { block, kind, .. }, Kind::Text(known)) => *block == told.block && kind == known,
                (LiveEvent::CallStarted { block, call_id, name }, Kind::Call { call_id: known, name: as_told }) => {
                    *block == told.block && call_id == known && name == as_told
                }
                _ => false,
            });
            let text = match whole.iter().find(of_block) {
                Some(LiveEvent::Delta { text, .. } | LiveEvent::Arguments { text, .. }) => text.as_str(),
                _ => "",
            };
            if !is_same_kind || !text.starts_with(&told.text) {
                return None;
            }
        }
        Some(whole.iter().filter_map(|event| self.take(event)).collect())
    }

    /// The message so far, each block in one delta, for a watcher who comes now.
    pub(crate) fn tell_all(&self, out: &mut Vec<Event>) {
        let mut fresh = Self::of(self.message);
        out.push(Event::StepStarted { message_id: self.message });
        for told in &self.blocks {
            let (block, text) = (told.block, told.text.clone());
            let events = match &told.kind {
                Kind::Text(kind) => vec![LiveEvent::Delta { kind: *kind, block, offset: 0, text }],
                Kind::Call { call_id, name } => vec![
                    LiveEvent::CallStarted { call_id: *call_id, block, name: name.clone() },
                    LiveEvent::Arguments { call_id: *call_id, block, offset: 0, text },
                ],
            };
            out.extend(events.iter().filter_map(|event| fresh.take(event)));
        }
    }
}

/// Brings what was told to where `whole`, a message in flight from its `StepStarted` on, stands; nothing in flight where that
/// is empty.
pub(crate) fn reconcile(mirror: &mut Option<Mirror>, whole: &[LiveEvent], out: &mut Vec<Event>) {
    let message = whole.iter().find_map(|event| match event {
        LiveEvent::StepStarted { message_id } => Some(*message_id),
        _ => None,
    });
    let Some(message) = message else {
        *mirror = None;
        return;
    };
    if let Some(told) = mirror.as_mut().filter(|told| told.message == message)
        && let Some(rest) = told.rest_of(whole)
    {
        out.extend(rest);
        return;
    }
    if mirror.is_some() {
        out.push(Event::StepReset);
    }
    let mut fresh = Mirror::of(message);
    out.push(Event::StepStarted { message_id: message });
    out.extend(whole.iter().filter_map(|event| fresh.take(event)));
    *mirror = Some(fresh);
}

/// Tells what is left of a message that is stored at `seq`. Its texts are the same wherever it stands; its calls are named by their
/// place.
pub(crate) fn complete(mut mirror: Mirror, seq: Seq, blocks: &[AssistantBlock], out: &mut Vec<Event>) {
    if mirror.is_exact && mirror.message.0 == seq {
        return;
    }
    let mut events = Vec::new();
    tell_message(seq, blocks, &mut events);
    let whole: Vec<LiveEvent> = events.iter().filter_map(live_event).collect();
    let has_calls = mirror.blocks.iter().any(|told| matches!(told.kind, Kind::Call { .. }))
        || whole.iter().any(|event| matches!(event, LiveEvent::CallStarted { .. }));
    if !has_calls {
        mirror.message = MessageId(seq);
    }
    reconcile(&mut Some(mirror), &whole, out);
}

/// An event as it is told to other nodes, where it is not stored.
pub(crate) fn live_event(event: &Event) -> Option<LiveEvent> {
    let delta = |kind, block, offset, text: &String| Some(LiveEvent::Delta { kind, block, offset, text: text.clone() });
    match event {
        Event::StepStarted { message_id } => Some(LiveEvent::StepStarted { message_id: *message_id }),
        Event::StepReset => Some(LiveEvent::StepReset),
        Event::TextDelta { block, offset, text } => delta(TextKind::Text, *block, *offset, text),
        Event::ReasoningDelta { block, offset, text } => delta(TextKind::Reasoning, *block, *offset, text),
        Event::RefusalDelta { block, offset, text } => delta(TextKind::Refusal, *block, *offset, text),
        Event::ToolInputStarted { call_id, block, name } => {
            Some(LiveEvent::CallStarted { call_id: *call_id, block: *block, name: name.clone() })
        }
        Event::ToolInputDelta { call_id, block, offset, text } => {
            Some(LiveEvent::Arguments { call_id: *call_id, block: *block, offset: *offset, text: text.clone() })
        }
        Event::ToolProgress { call_id, progress, total, message } => {
            Some(LiveEvent::Progress { call_id: *call_id, progress: *progress, total: *total, message: message.clone() })
        }
        Event::Notice { level, text } => Some(LiveEvent::Notice { is_warning: *level != "info", text: text.clone() }),
        // These follow from entries, which every node reads for itself.
        Event::Entry { .. }
        | Event::TurnStarted { .. }
        | Event::StepFinished { .. }
        | Event::ToolInputReady { .. }
        | Event::ToolApprovalRequested { .. }
        | Event::ToolApprovalDecided { .. }
        | Event::ElicitationRequested { .. }
        | Event::ElicitationAnswered { .. }
        | Event::SamplingFinished { .. }
        | Event::ToolStarted { .. }
        | Event::ToolFinished { .. }
        | Event::Usage { .. }
        | Event::ContextGathered { .. }
        | Event::TurnSuspended { .. }
        | Event::TurnHeld { .. }
        | Event::TurnFinished { .. } => None,
    }
}

/// The place of a follower in what relays tell.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    relay: String,
    next: Option<u64>,
}

impl Place {
    /// Whether a frame is the next one, or begins anew; not where something between was lost, or its relay is not known.
    pub(crate) fn take(&mut self, frame: &LiveFrame) -> bool {
        let follows = self.next == Some(frame.number) && self.relay == frame.relay;
        if !follows && !matches!(frame.news, LiveNews::Snapshot { .. }) {
            self.next = None;
            return false;
        }
        if self.relay != frame.relay {
            self.relay.clone_from(&frame.relay);
        }
        self.next = frame.number.checked_add(1);
        true
    }

    /// Whether the next frame is known.
    pub(crate) fn is_known(&self) -> bool {
        self.next.is_some()
    }

    pub(crate) fn lose(&mut self) {
        self.next = None;
    }
}

#[cfg(test)]
mod tests;
