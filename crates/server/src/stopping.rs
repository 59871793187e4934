//! A stop that is stored while what runs has not ended: streams tell it at once, since tools may take their time.

use turnwright_core::{Control, Entry};
use turnwright_engine::Event;

/// What people are told.
pub(crate) const TOLD: &str = "The turn was stopped; what still runs was told to end.";

/// Whether this is the stop.
pub(crate) fn is_stop(event: &Event) -> bool {
    matches!(event, Event::Entry { entry, .. } if matches!(**entry, Entry::Control(Control::CancelRequested { .. })))
}
