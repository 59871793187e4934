//! Coming back in the middle of a message.

use turnwright_engine::Event;

use super::{Begin, End, Phase, Step, UiFold};

impl UiFold {
    /// Where the client comes back from here on: it needs nothing again of what was stored up to now.
    pub(super) fn move_on(&mut self) {
        let has_ids = matches!(self.begin, Begin::Turn | Begin::Continue { .. } | Begin::After(_)) || self.is_in_turns_own();
        if let Some(last) = self.last.filter(|_| has_ids) {
            self.chunks.set_id(last.get());
        }
    }

    /// Ends the quiet part where the client has all that is before this event and not what it tells.
    pub(super) fn come_back_before(&mut self, event: &Event, out: &mut Vec<u8>) {
        let (Phase::Quiet, Begin::After(after)) = (self.phase, self.begin) else { return };
        let is_missed = match event {
            Event::Entry { seq, .. } => *seq > after,
            // Of a message that is stored, or in flight: its deltas come before its entry.
            Event::StepStarted { .. } => self.last >= Some(after),
            _ => false,
        };
        if is_missed {
            self.speak(out);
        }
    }

    /// Ends the quiet part where the client has all there is.
    pub(super) fn come_back(&mut self, out: &mut Vec<u8>) {
        if let (Phase::Quiet, Begin::After(after)) = (self.phase, self.begin)
            && self.last >= Some(after)
        {
            self.speak(out);
        }
    }

    /// Goes on in the step that the client has open: drops what it has of it, since all of it is told again.
    pub(super) fn take_up_step(&mut self, out: &mut Vec<u8>) {
        if let Some(end) = &self.end {
            // It has the end of the stream too. A retry takes the newest message back.
            let can_be_retried = !matches!(end, End::Finished { status: "completed", .. });
            self.step = if can_be_retried && self.retaken.is_some() { Step::Told } else { Step::Closed };
            self.said_before.clear();
            self.said_meanwhile.clear();
        } else if self.calls.iter().all(|call| call.is_finished || call.arguments.is_none()) {
            self.chunks.plain(out, r#"{"type":"reset-step"}"#);
            self.step = Step::Empty;
            // It was told before the step began.
            self.said_before.clear();
        }
        // Else no step began there, so it is no id of this stream: the step whose calls run is gone on with.
    }
}
