//! The native feed: every engine event as one server-sent event, `id` the seq of the last stored entry.

use std::io::Write;

use turnwright_core::Seq;
use turnwright_engine::{Event, Frame};

use crate::sse::{COME_BACK, Cut, Fold};

/// Tells all events of a conversation. Never done: what happens next is told too.
#[derive(Debug, Default)]
pub(crate) struct Feed {
    id_line: Vec<u8>,
}

impl Feed {
    /// Goes on after this entry: that is the last stored one until another is told.
    pub(crate) fn after(seq: Option<Seq>) -> Self {
        let mut feed = Self::default();
        if let Some(seq) = seq {
            feed.set_id(seq.get());
        }
        feed
    }

    fn set_id(&mut self, seq: u64) {
        self.id_line.clear();
        // Writing to memory does not fail.
        let _ = writeln!(self.id_line, "id: {seq}");
    }
}

impl Fold for Feed {
    fn fold(&mut self, frame: &Frame, out: &mut Vec<u8>) {
        let has_entry = frame.events.iter().any(|event| matches!(event, Event::Entry { .. }));
        if let (false, Some(seq)) = (has_entry, frame.seq) {
            self.set_id(seq.get());
        }
        for event in frame.events.iter() {
            if let Event::Entry { seq, .. } = event {
                self.set_id(seq.get());
            }
            let before = out.len();
            out.extend_from_slice(&self.id_line);
            out.extend_from_slice(b"data: ");
            match serde_json::to_writer(&mut *out, event) {
                Ok(()) => out.extend_from_slice(b"\n\n"),
                Err(error) => {
                    out.truncate(before);
                    tracing::error!(%error, "an event cannot be written");
                }
            }
        }
    }

    fn is_done(&self) -> bool {
        false
    }

    fn cut_off(&mut self, _cut: Cut, out: &mut Vec<u8>) {
        out.extend_from_slice(COME_BACK);
    }
}
