//! Steps: where they begin, and what becomes of one that is asked again.

use turnwright_core::{MessageId, Seq};
use turnwright_engine::Event;

use super::apart::seen;
use super::{Begin, Phase, Step, UiFold, Untold};
use crate::ui::UiVersion;

/// The open step's place among what is to be sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unsent {
    /// Where it begins, or the message that begins with it.
    from: usize,
    /// Whether a message begins with it.
    begins_message: bool,
    /// Where what it says begins.
    said: usize,
}

impl UiFold {
    /// A step begins, after which these are told.
    pub(super) fn step_started(&mut self, message: MessageId, rest: &[Event], out: &mut Vec<u8>) {
        let saw = seen(message, rest);
        if matches!(self.begin, Begin::Join(joined) if joined <= saw) {
            self.heard();
        }
        if self.step == Step::Streaming {
            self.reset(out);
        }
        if self.step == Step::Empty && self.untold == Untold::Nothing {
            // It is asked again; what a person said meanwhile may be seen by it that was not before.
            if !self.is_elsewhere(saw) {
                return;
            }
            self.take_back_step(out);
        }
        if self.step != Step::Closed && self.untold == Untold::Nothing && self.phase == Phase::Telling {
            self.chunks.plain(out, r#"{"type":"finish-step"}"#);
        }
        self.begin_step(saw, out);
    }

    fn begin_step(&mut self, saw: Seq, out: &mut Vec<u8>) {
        self.unsent_step = None;
        self.step = Step::Empty;
        if self.untold == Untold::Answer {
            return;
        }
        self.untold = Untold::Nothing;
        let begun = self.begin_message(saw, out);
        let before = out.len();
        self.steer_up_to(saw, out);
        // What a person said stays.
        let begun = begun.filter(|_| out.len() == before);
        self.move_on();
        let from = begun.unwrap_or(out.len());
        self.chunks.plain(out, r#"{"type":"start-step"}"#);
        self.unsent_step = Some(Unsent { from, begins_message: begun.is_some(), said: out.len() });
    }

    /// Takes the open step back, and the message that begins with it, where nothing of them was sent.
    pub(super) fn take_back_step(&mut self, out: &mut Vec<u8>) {
        let Some(Unsent { from, begins_message, .. }) = self.unsent_step.take_if(|unsent| unsent.said == out.len()) else {
            return;
        };
        out.truncate(from);
        self.step = Step::Closed;
        if begins_message {
            self.is_started = false;
            if self.begin == Begin::Turn || self.is_in_turns_own() {
                self.chunks.set_id(self.turn.0.get().saturating_sub(1));
            }
        }
    }

    /// What the model says next is told.
    pub(super) fn heard(&mut self) {
        if self.untold == Untold::Answer {
            self.untold = Untold::Step;
        }
    }

    /// Drops what the step produced, as far as the client can.
    pub(super) fn reset(&mut self, out: &mut Vec<u8>) {
        self.heard();
        if self.step != Step::Streaming {
            return;
        }
        if let Some(unsent) = self.unsent_step {
            out.truncate(unsent.said);
            self.open = None;
            self.calls.retain(|call| call.arguments.is_some());
        } else if self.untold != Untold::Nothing {
            self.calls.retain(|call| call.arguments.is_some());
        } else if self.version >= UiVersion::V7 {
            self.close_block(out);
            self.chunks.plain(out, r#"{"type":"reset-step"}"#);
            self.calls.retain(|call| call.arguments.is_some());
        } else {
            self.close_block(out);
            self.chunks.notice(out, "info", "The model's answer was interrupted and begins again.");
        }
        self.step = Step::Empty;
    }
}
