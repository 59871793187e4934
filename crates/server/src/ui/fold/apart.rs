//! Answers to what joined an open turn, as messages of their own in one stream.

use turnwright_core::{Entry, Seq};
use turnwright_engine::Event;

use super::{Begin, Phase, Step, UiFold};

/// What a person said in a turn that was open.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) seq: Seq,
    pub(super) at_ms: u64,
    pub(super) text: String,
}

impl UiFold {
    /// Whether the client has this message of a person's at its place, so that the answer to it is a message of its own.
    pub(super) fn is_apart(&self, message: Seq) -> bool {
        matches!(self.begin, Begin::Apart(known) | Begin::Answer(known) if message <= known)
    }

    /// Takes up what a person said before the next answer.
    pub(super) fn said_before(&mut self, said: Said, out: &mut Vec<u8>) {
        let is_apart = self.is_apart(said.seq) || self.said_before.iter().any(|said| self.is_apart(said.seq));
        self.said_before.push(said);
        // What calls came to that run yet belongs to the message before.
        if !is_apart {
            self.steer(out);
        }
    }

    /// Begins the message of the answer that comes next, where that has one of its own.
    pub(super) fn answer_apart(&mut self, out: &mut Vec<u8>) {
        let Some(last) = self.said_before.iter().rposition(|said| self.is_apart(said.seq)) else { return };
        let Some(said) = self.said_before.drain(..=last).next_back() else { return };
        (self.answers, self.created_at_ms) = (Some(said.seq), Some(said.at_ms));
        if self.phase == Phase::Telling {
            self.is_started = false;
            self.start(out);
        } else if self.begin == Begin::Answer(said.seq) {
            self.step = Step::Closed;
            self.speak(out);
        }
    }

    /// Forgets what nothing answers.
    pub(super) fn forget_apart(&mut self) {
        let last = self.said_before.iter().rposition(|said| self.is_apart(said.seq));
        self.said_before.drain(..last.map_or(0, |last| last.saturating_add(1)));
    }

    /// Tells the turn as one message where the answer alone was to be told and has not begun.
    pub(super) fn begin_whole(&mut self, events: &[Event]) {
        if let Begin::Answer(message) = self.begin
            && self.last.is_none()
            && !is_answered(message, events)
        {
            self.begin = Begin::Turn;
            self.phase = Phase::Telling;
        }
    }
}

/// Whether an answer to this message is among these events, or begins with them.
fn is_answered(message: Seq, events: &[Event]) -> bool {
    let said = events.iter().position(|event| matches!(event, Event::Entry { seq, .. } if *seq == message));
    let rest = events.get(said.unwrap_or(events.len())..).unwrap_or_default();
    rest.iter().enumerate().any(|(at, event)| match event {
        Event::StepStarted { message_id } => {
            let stored = rest.iter().skip(at).find_map(answer);
            stored.map_or(message_id.0 > message, |saw| saw >= message)
        }
        _ => false,
    })
}

/// What the model was shown last, of an answer that is stored.
fn answer(event: &Event) -> Option<Seq> {
    let Event::Entry { entry, .. } = event else { return None };
    let Entry::Assistant(message) = &**entry else { return None };
    Some(message.saw)
}

/// Whether the next answer was begun before a person said this; `None` where nobody says anything, or it is not known yet.
pub(super) fn is_unseen_by_next(event: &Event, rest: &[Event]) -> Option<bool> {
    let Event::Entry { seq, entry, .. } = event else { return None };
    let Entry::User(_) = &**entry else { return None };
    rest.iter().find_map(|event| match event {
        // In flight, at a place that was taken meanwhile.
        Event::StepStarted { message_id } if message_id.0 <= *seq => Some(true),
        event => answer(event).map(|saw| saw < *seq),
    })
}
