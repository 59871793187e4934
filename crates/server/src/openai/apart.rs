//! Which answers of a turn are of a part of it, where people say something while the turn is open: what was begun before a message is no
//! answer to that, and whoever said something before has theirs with the answer that is whole without it. Pure.

use turnwright_core::{Completion, Control, Entry, Seq};

use super::track::Part;

/// What is known of a part up to an entry.
#[derive(Debug)]
pub(crate) struct Apart {
    /// The message that the part begins after, where that joined an open turn, until a model is asked that is shown it.
    unseen: Option<Seq>,
    /// What people said behind it, the newest.
    said: Option<Seq>,
    /// What the model was shown last of the newest answer, where that is whole and makes no calls.
    answered: Option<Seq>,
}

impl Apart {
    /// Of a part that begins after this entry.
    pub(crate) fn of(part: &Part, entry: &Entry) -> Self {
        let joins = part.after > part.turn.0 && matches!(entry, Entry::User(_));
        Self { unseen: joins.then_some(part.after), said: None, answered: None }
    }

    /// Whether what comes is of what was begun before.
    pub(crate) fn is_before(&self) -> bool {
        self.unseen.is_some()
    }

    /// An answer begins whose model is shown all up to this entry.
    pub(crate) fn begins(&mut self, saw: Seq) {
        self.unseen = self.unseen.filter(|message| saw < *message);
    }

    /// Takes an entry behind the one that the part begins after.
    pub(crate) fn take(&mut self, seq: Seq, entry: &Entry) {
        match entry {
            Entry::User(_) => self.said = Some(seq),
            Entry::Assistant(message) => {
                self.begins(message.saw);
                let is_whole = message.completion == Completion::Complete && message.calls().next().is_none();
                self.answered = (is_whole && !self.is_before()).then_some(message.saw);
            }
            // Whoever goes on with the turn begins its answer anew, and shows all that there is.
            Entry::Control(Control::Resumed { .. }) => self.unseen = None,
            _ => {}
        }
    }

    /// Whether its last answer is there, and what comes answers what was said since.
    pub(crate) fn is_over(&self) -> bool {
        self.answered.zip(self.said).is_some_and(|(saw, said)| said > saw)
    }
}
