//! What a journal tells of what was reserved and spent: the fold.

use super::{Amount, CallEnd, Purpose, Reserved};
use crate::{AssistantBlock, AssistantMessage, Completion, Control, Entry, Journal, Sampled, SamplingOutcome, Seq, Usage};

/// What was spent in a conversation, and what is reserved. Calls count that were reserved: those that were made while there were
/// budgets.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Books {
    turn: Amount,
    conversation: Amount,
    open: Vec<OpenReservation>,
}

/// A reservation of which it is not known what the call came to.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenReservation {
    /// The place of its entry.
    pub seq: Seq,
    /// The claim under which it was made.
    pub epoch: u64,
    /// What it holds.
    pub reserved: Reserved,
}

/// A reservation, and what its call came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closed {
    /// What the call was for.
    pub purpose: Purpose,
    /// What it came to.
    pub amount: Amount,
}

impl Books {
    /// What was spent since the newest turn began, or was taken up again by a retry.
    pub fn turn(&self) -> Amount {
        self.turn
    }

    /// What was spent in the conversation.
    pub fn conversation(&self) -> Amount {
        self.conversation
    }

    /// What is reserved.
    pub fn open(&self) -> &[OpenReservation] {
        &self.open
    }

    /// What is reserved for calls for other purposes.
    pub fn reserved_besides(&self, purpose: Purpose) -> Amount {
        let others = self.open.iter().filter(|open| open.reserved.purpose != purpose);
        others.fold(Amount::default(), |sum, open| sum.plus(open.reserved.amount()))
    }

    /// Takes the entry at `seq`, stored under the claim of `epoch`; tells what it closes.
    pub(crate) fn take(&mut self, seq: Seq, epoch: u64, entry: &Entry, mut closed: impl FnMut(Closed)) {
        match entry {
            Entry::Control(Control::Reserved(reserved)) => {
                // Who makes a summary by hand says itself what it came to: one that did not is not heard of any more.
                let end = if reserved.purpose == Purpose::SummaryByHand { CallEnd::Lost } else { CallEnd::Dropped };
                self.close(|open| open.purpose == reserved.purpose, (end, Usage::default(), 0), &mut closed);
                self.open.push(OpenReservation { seq, epoch, reserved: reserved.clone() });
            }
            Entry::Assistant(message) => {
                let end = match message.completion {
                    Completion::Complete => CallEnd::Whole,
                    Completion::CutOff(_) => CallEnd::CutOff,
                };
                self.close(|open| open.purpose == Purpose::Answer, (end, message.usage, bytes(message)), &mut closed);
            }
            Entry::Control(Control::Failed(_)) => {
                self.close(|open| open.purpose == Purpose::Answer, (CallEnd::Failed, Usage::default(), 0), &mut closed);
            }
            Entry::Control(Control::Compacted(compacted)) => {
                let end = if compacted.origin.is_some() { CallEnd::Whole } else { CallEnd::Failed };
                let said = u64::try_from(compacted.summary.len()).unwrap_or(u64::MAX);
                self.close(|open| open.purpose == Purpose::Summary, (end, compacted.usage, said), &mut closed);
            }
            Entry::Sampled(Sampled { question, outcome }) => {
                let ended = match outcome {
                    SamplingOutcome::Answered(message) => (CallEnd::Whole, message.usage, bytes(message)),
                    SamplingOutcome::Failed { usage, .. } => (CallEnd::Failed, *usage, 0),
                };
                self.close(|open| open.purpose == Purpose::Sampling(*question), ended, &mut closed);
            }
            // What an earlier driver reserved was for calls that it cannot hear of any more.
            Entry::Control(Control::Claimed(claim)) => {
                let is_lost =
                    |open: &Reserved| open.purpose != Purpose::SummaryByHand || open.driver.as_ref() != Some(&claim.driver);
                self.close(is_lost, (CallEnd::Lost, Usage::default(), 0), &mut closed);
            }
            Entry::Control(Control::Ended { .. }) => {
                let is_of_the_turn = |open: &Reserved| open.purpose != Purpose::SummaryByHand;
                self.close(is_of_the_turn, (CallEnd::Dropped, Usage::default(), 0), &mut closed);
            }
            Entry::Control(Control::Settled { reservation, amount }) => {
                if let Some(at) = self.open.iter().position(|open| open.seq == *reservation) {
                    let open = self.open.remove(at);
                    self.spend(open.reserved.purpose, *amount, &mut closed);
                }
            }
            Entry::Control(Control::Retried { .. }) => self.turn = Amount::default(),
            Entry::User(_)
            | Entry::Decision(_)
            | Entry::Question(_)
            | Entry::Started(_)
            | Entry::TaskAccepted(_)
            | Entry::Elicited(_)
            | Entry::Answered(_)
            | Entry::Result(_)
            | Entry::Control(
                Control::Resumed { .. }
                | Control::Offered { .. }
                | Control::Found { .. }
                | Control::Context(_)
                | Control::CancelRequested { .. }
                | Control::Settings { .. }
                | Control::Suspended
                | Control::Uncompacted { .. }
                | Control::Nudged { .. }
                | Control::Hidden { .. }
                | Control::Imported { .. },
            ) => {}
        }
    }

    /// A turn begins.
    pub(crate) fn begin_turn(&mut self) {
        self.turn = Amount::default();
    }

    fn close(
        &mut self,
        is_meant: impl Fn(&Reserved) -> bool,
        (end, usage, said_bytes): (CallEnd, Usage, u64),
        closed: &mut impl FnMut(Closed),
    ) {
        if self.open.is_empty() {
            return;
        }
        for open in std::mem::take(&mut self.open) {
            if !is_meant(&open.reserved) {
                self.open.push(open);
                continue;
            }
            let amount = open.reserved.came_to(end, &usage, said_bytes);
            self.spend(open.reserved.purpose, amount, closed);
        }
    }

    fn spend(&mut self, purpose: Purpose, amount: Amount, closed: &mut impl FnMut(Closed)) {
        self.turn = self.turn.plus(amount);
        self.conversation = self.conversation.plus(amount);
        closed(Closed { purpose, amount });
    }
}

/// How many bytes a model said, thoughts and arguments included.
fn bytes(message: &AssistantMessage) -> u64 {
    let of_block = |block: &AssistantBlock| match block {
        AssistantBlock::Text { text, .. } | AssistantBlock::Reasoning { text, .. } | AssistantBlock::Refusal { text } => {
            text.len()
        }
        AssistantBlock::Call(call) => call.name.len().saturating_add(call.arguments.len()),
        AssistantBlock::Opaque { .. } => 0,
    };
    message.blocks.iter().map(of_block).fold(0, |sum, bytes| sum.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX)))
}

impl Journal {
    /// What `entries` close of what is reserved, if they are stored next.
    pub fn closed_by(&self, entries: &[Entry]) -> Vec<Closed> {
        let mut closed = Vec::new();
        let has_reservations = !self.books().open.is_empty();
        let reserves = || entries.iter().any(|entry| matches!(entry, Entry::Control(Control::Reserved(_))));
        if has_reservations || reserves() {
            let (mut books, mut seq) = (self.books().clone(), self.next_seq());
            for entry in entries {
                books.take(seq, 0, entry, |one| closed.push(one));
                seq = seq.next();
            }
        }
        closed
    }
}
