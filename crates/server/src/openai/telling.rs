//! A part of a turn as a stream: each event, and its end once.

use std::time::Duration;

use turnwright_engine::{Event, Frame};

use super::track::Track;
use crate::error::ApiError;
use crate::sse::{Cut, Fold};
use crate::ui::seen;

/// Tells a part of a turn in the form of one protocol.
pub(crate) trait Tells: Send + Unpin + 'static {
    /// What is known of the part.
    fn track(&mut self) -> &mut Track;
    /// Whether its end was told.
    fn has_ended(&self) -> bool;
    /// Tells an event.
    fn event(&mut self, event: &Event, out: &mut Vec<u8>);
    /// Tells how it ended.
    fn finish(&mut self, out: &mut Vec<u8>);
    /// Tells that no more is told although it did not end.
    fn interrupt(&mut self, cut: Cut, out: &mut Vec<u8>);
    /// See [`Fold::head_waits`].
    fn head_waits(&self) -> Option<Duration> {
        None
    }
    /// See [`Fold::refusal`].
    fn refusal(&self) -> Option<ApiError> {
        None
    }
}

impl<T: Tells> Fold for T {
    fn fold(&mut self, frame: &Frame, out: &mut Vec<u8>) {
        for (at, event) in frame.events.iter().enumerate() {
            if self.track().is_told {
                return;
            }
            if let Event::StepStarted { message_id } = event {
                let rest = frame.events.get(at.saturating_add(1)..).unwrap_or_default();
                self.track().begins(seen(*message_id, rest));
            }
            self.event(event, out);
            if self.track().end.is_some() {
                self.track().is_told = true;
                self.finish(out);
            }
        }
    }

    fn is_done(&self) -> bool {
        self.has_ended()
    }

    fn head_waits(&self) -> Option<Duration> {
        Tells::head_waits(self)
    }

    fn refusal(&self) -> Option<ApiError> {
        Tells::refusal(self)
    }

    fn cut_off(&mut self, cut: Cut, out: &mut Vec<u8>) {
        if !self.track().is_told {
            self.track().is_told = true;
            self.interrupt(cut, out);
        }
    }
}
