//! A conversation's entries, folded.

use std::collections::HashSet;
use std::sync::Arc;

use crate::{CallId, Control, Entry, MessageId, Seq, StoredEntry, ToolDefinition, ToolResult, Turn, TurnId};

/// An entry that cannot stand where it does. The conversation is read-only from there (DESIGN section 9).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// Entries are missing or repeated.
    #[error("entry {found} where entry {expected} was expected")]
    OutOfOrder {
        /// The place that comes next.
        expected: Seq,
        /// The place that came.
        found: Seq,
    },
    /// The entry does not fit what came before.
    #[error("entry {seq} ({kind}) does not fit: {why}")]
    Misfit {
        /// Its place.
        seq: Seq,
        /// Its kind.
        kind: &'static str,
        /// Why it does not fit.
        why: &'static str,
    },
}

impl JournalError {
    /// The place of the entry that does not fit.
    pub fn seq(&self) -> Seq {
        match self {
            Self::OutOfOrder { found, .. } => *found,
            Self::Misfit { seq, .. } => *seq,
        }
    }
}

/// A conversation's entries and what they add up to.
///
/// [`Journal::apply`] is the only mutation; the rest looks. Cloning is cheap per entry: entries are shared.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Journal {
    entries: Vec<StoredEntry>,
    turn: Option<Turn>,
    offered: Arc<[Arc<ToolDefinition>]>,
    hidden: HashSet<Seq>,
    epoch: u64,
}

impl Journal {
    /// A journal of these entries.
    ///
    /// # Errors
    /// The first entry that does not fit.
    pub fn replay(entries: impl IntoIterator<Item = StoredEntry>) -> Result<Self, JournalError> {
        let mut journal = Self::default();
        for entry in entries {
            journal.apply(entry)?;
        }
        Ok(journal)
    }

    /// Takes the next stored entry. Nothing changes where it does not fit.
    ///
    /// # Errors
    /// [`JournalError`], where the entry is out of order or cannot stand here.
    pub fn apply(&mut self, stored: StoredEntry) -> Result<(), JournalError> {
        let expected = self.next_seq();
        if stored.seq != expected {
            return Err(JournalError::OutOfOrder { expected, found: stored.seq });
        }
        self.fold(stored.seq, &stored.entry).map_err(|why| JournalError::Misfit {
            seq: stored.seq,
            kind: stored.entry.kind(),
            why,
        })?;
        self.entries.push(stored);
        Ok(())
    }

    fn fold(&mut self, seq: Seq, entry: &Entry) -> Result<(), &'static str> {
        match entry {
            Entry::User(message) if self.open_turn().is_none() => {
                self.turn = Some(Turn::open(seq, message.settings.clone()));
                return Ok(());
            }
            Entry::Control(Control::Claimed(claim)) if claim.epoch <= self.epoch => {
                return Err("the claim's epoch is not above the one that holds");
            }
            Entry::Control(Control::Offered { definitions }) => {
                self.offered = definitions.clone().into();
                return Ok(());
            }
            Entry::Control(Control::Hidden { message }) => {
                if !self.entries.iter().any(|stored| stored.seq == message.0 && is_message(&stored.entry)) {
                    return Err("there is no such message");
                }
                self.hidden.insert(message.0);
                return Ok(());
            }
            _ => {}
        }
        let turn = self.turn.as_mut().ok_or("no turn is open")?;
        let cut_off = retried_message(entry, turn, &self.entries);
        turn.apply(seq, entry)?;
        self.hidden.extend(cut_off);
        if let Entry::Control(Control::Claimed(claim)) = entry {
            self.epoch = claim.epoch;
        }
        Ok(())
    }

    /// The entries, oldest first.
    pub fn entries(&self) -> &[StoredEntry] {
        &self.entries
    }

    /// The entry at `seq`.
    pub fn entry(&self, seq: Seq) -> Option<&StoredEntry> {
        let index = usize::try_from(seq.get().saturating_sub(1)).ok()?;
        self.entries.get(index)
    }

    /// The place of the last entry; `None` where there is none.
    pub fn last_seq(&self) -> Option<Seq> {
        self.entries.last().map(|stored| stored.seq)
    }

    /// The place that the next entry takes.
    pub fn next_seq(&self) -> Seq {
        self.last_seq().map_or(Seq::FIRST, Seq::next)
    }

    /// The epoch that the next claim must carry.
    pub fn next_epoch(&self) -> u64 {
        self.epoch.saturating_add(1)
    }

    /// The newest turn, open or over.
    pub fn turn(&self) -> Option<&Turn> {
        self.turn.as_ref()
    }

    /// The turn that is not over.
    pub fn open_turn(&self) -> Option<&Turn> {
        self.turn.as_ref().filter(|turn| turn.ended().is_none())
    }

    /// What is offered to the model, in the order in which requests list it.
    pub fn offered(&self) -> &Arc<[Arc<ToolDefinition>]> {
        &self.offered
    }

    /// The offered tool with this qualified name.
    pub fn definition(&self, name: &str) -> Option<&Arc<ToolDefinition>> {
        self.offered.iter().find(|definition| definition.name == name)
    }

    /// Whether a message is hidden, by a person or since its turn was retried.
    pub fn is_hidden(&self, message: MessageId) -> bool {
        self.hidden.contains(&message.0)
    }

    /// The entries of a turn, from its user message on.
    pub fn turn_entries(&self, turn: TurnId) -> impl Iterator<Item = &StoredEntry> {
        let start = usize::try_from(turn.0.get().saturating_sub(1)).unwrap_or(usize::MAX);
        let mut over = false;
        self.entries
            .get(start..)
            .unwrap_or_default()
            .iter()
            .enumerate()
            .take_while(move |(index, stored)| {
                let opens_next = *index > 0 && over && matches!(*stored.entry, Entry::User(_));
                match &*stored.entry {
                    Entry::Control(Control::Ended { .. }) => over = true,
                    Entry::Control(Control::Retried { .. }) => over = false,
                    _ => {}
                }
                !opens_next
            })
            .map(|(_, stored)| stored)
    }

    /// The result of a call, where it is stored.
    pub fn result(&self, call: CallId) -> Option<&ToolResult> {
        let after = usize::try_from(call.message.get()).unwrap_or(usize::MAX);
        self.entries.get(after..)?.iter().find_map(|stored| match &*stored.entry {
            Entry::Result(result) if result.call == call => Some(result),
            _ => None,
        })
    }
}

fn is_message(entry: &Entry) -> bool {
    matches!(entry, Entry::User(_) | Entry::Assistant(_))
}

/// The cut-off message that a retry hides: what is asked again is not shown again.
fn retried_message(entry: &Entry, turn: &Turn, entries: &[StoredEntry]) -> Option<Seq> {
    let Entry::Control(Control::Retried { turn: retried, .. }) = entry else {
        return None;
    };
    let newest = entries
        .iter()
        .rev()
        .take_while(|stored| stored.seq >= retried.0)
        .find(|stored| matches!(*stored.entry, Entry::Assistant(_)))?;
    match &*newest.entry {
        Entry::Assistant(message) if *retried == turn.id() && message.completion != crate::Completion::Complete => {
            Some(newest.seq)
        }
        _ => None,
    }
}
