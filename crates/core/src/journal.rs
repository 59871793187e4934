//! A conversation's entries, folded.

use std::collections::HashSet;
use std::sync::Arc;

use crate::budgets::Books;
use crate::compaction::Compaction;
use crate::{
    AssistantMessage, CallId, Control, Entry, MessageId, Seq, SharedBeginning, StoredEntry, ToolDefinition, ToolResult, Turn,
    TurnId,
};

/// For how many items more than it has a copied list has room, about a turn of a few calls.
const MORE: usize = 16;

/// An entry that cannot stand where it does. The conversation is read-only from there.
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
/// [`Journal::apply`] is the only mutation; the rest looks. Cloning is cheap however long it is: all is shared until one of the
/// two takes another entry.
#[derive(Debug, Clone, Default)]
pub struct Journal {
    /// Where others begin with the very same entries.
    beginning: Option<SharedBeginning>,
    entries: Arc<Vec<StoredEntry>>,
    /// The turns that there were, oldest first: where looking back begins.
    turns: Arc<Vec<TurnId>>,
    /// What each of them began with.
    begun: Arc<Vec<Begun>>,
    folded: Folded,
}

/// What a turn's entries need of those before it, to be folded without them.
#[derive(Debug, Clone, PartialEq)]
struct Begun {
    offered: Arc<[Arc<ToolDefinition>]>,
    compaction: Option<Arc<Compaction>>,
}

/// What entries add up to.
#[derive(Debug, Clone, Default, PartialEq)]
struct Folded {
    turn: Option<Turn>,
    offered: Arc<[Arc<ToolDefinition>]>,
    hidden: Arc<HashSet<Seq>>,
    compaction: Option<Arc<Compaction>>,
    /// Whether anything was ever gathered for a message.
    has_context: bool,
    books: Books,
    epoch: u64,
}

/// By what they say; with whom they share it is no part of that.
impl PartialEq for Journal {
    fn eq(&self, other: &Self) -> bool {
        let Self { beginning: _, entries, turns, begun, folded } = self;
        *entries == other.entries && *turns == other.turns && *begun == other.begun && *folded == other.folded
    }
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
        self.folded.apply(stored.seq, &stored.entry, |seq| self.entries.get(index(seq)?).map(|stored| &*stored.entry))?;
        if let Some(turn) = self.folded.turn.as_ref().map(Turn::id).filter(|turn| turn.0 == stored.seq) {
            push(&mut self.turns, turn);
            let (offered, compaction) = (Arc::clone(&self.folded.offered), self.folded.compaction.clone());
            push(&mut self.begun, Begun { offered, compaction });
        }
        push(&mut self.entries, stored);
        Ok(())
    }

    /// A journal of the entries through `last`, in which every turn should be over, for others to begin with as its clones; `None`
    /// where there are not so many. In what begins with it, [`Journal::beginning`] is the same.
    pub fn begin_with(&self, last: Seq) -> Option<Self> {
        let entries = self.entries.get(..index(last)?.checked_add(1)?)?;
        // They fitted when they were taken.
        let mut journal = Self::replay(entries.iter().cloned()).ok()?;
        journal.beginning = Some(SharedBeginning::new(last));
        Some(journal)
    }

    /// The entries that others begin with too, where it was made from such.
    pub fn beginning(&self) -> Option<&SharedBeginning> {
        self.beginning.as_ref()
    }

    /// Whether `entries` would fit next.
    ///
    /// # Errors
    /// The first that does not.
    pub(crate) fn check(&self, entries: &[Entry]) -> Result<(), JournalError> {
        let start = self.next_seq();
        let mut folded = self.folded.clone();
        let mut at = start;
        for entry in entries {
            folded.apply(at, entry, |seq| {
                let ahead = seq.get().checked_sub(start.get()).and_then(|ahead| usize::try_from(ahead).ok());
                match ahead {
                    Some(ahead) => entries.get(ahead).filter(|_| seq < at),
                    None => self.entry(seq).map(|stored| &*stored.entry),
                }
            })?;
            at = at.next();
        }
        Ok(())
    }

    /// The entries, oldest first.
    pub fn entries(&self) -> &[StoredEntry] {
        &self.entries
    }

    /// The entry at `seq`.
    pub fn entry(&self, seq: Seq) -> Option<&StoredEntry> {
        self.entries.get(index(seq)?)
    }

    /// The place of the last entry; `None` where there is none.
    pub fn last_seq(&self) -> Option<Seq> {
        self.entries.last().map(|stored| stored.seq)
    }

    /// What people said last, hidden or not; `None` where nobody said anything.
    pub fn newest_user(&self) -> Option<Seq> {
        self.entries.iter().rev().find(|stored| matches!(&*stored.entry, Entry::User(_))).map(|stored| stored.seq)
    }

    /// The place that the next entry takes.
    pub fn next_seq(&self) -> Seq {
        self.last_seq().map_or(Seq::FIRST, Seq::next)
    }

    /// The epoch that the next claim must carry.
    pub fn next_epoch(&self) -> u64 {
        self.folded.epoch.saturating_add(1)
    }

    /// The newest turn, open or over.
    pub fn turn(&self) -> Option<&Turn> {
        self.folded.turn.as_ref()
    }

    /// The turn that is not over.
    pub fn open_turn(&self) -> Option<&Turn> {
        self.folded.turn.as_ref().filter(|turn| turn.ended().is_none())
    }

    /// What is offered to the model, in the order in which requests list it.
    pub fn offered(&self) -> &Arc<[Arc<ToolDefinition>]> {
        &self.folded.offered
    }

    /// The offered tool with this qualified name.
    pub fn definition(&self, name: &str) -> Option<&Arc<ToolDefinition>> {
        self.folded.offered.iter().find(|definition| definition.name == name)
    }

    /// Whether tools are held back: what is offered finds them.
    pub fn holds_back(&self) -> bool {
        self.folded.offered.iter().any(|definition| definition.is_search())
    }

    /// What was reserved and spent, as far as there were budgets.
    pub fn books(&self) -> &Books {
        &self.folded.books
    }

    /// What is shown in the place of the conversation's beginning, where it was compacted.
    pub fn compaction(&self) -> Option<&Compaction> {
        self.folded.compaction.as_deref()
    }

    /// Whether anything was ever gathered for a message, shown or not.
    pub(crate) fn has_context(&self) -> bool {
        self.folded.has_context
    }

    /// Whether a message is hidden, by a person or since its turn was retried.
    pub fn is_hidden(&self, message: MessageId) -> bool {
        self.folded.hidden.contains(&message.0)
    }

    /// The turns, oldest first; the newest may be open.
    pub fn turns(&self) -> &[TurnId] {
        &self.turns
    }

    /// The entries of a turn, from its user message on, up to the user message that opens the next.
    pub fn turn_entries(&self, turn: TurnId) -> impl Iterator<Item = &StoredEntry> {
        let next = self.turns.get(self.turns.partition_point(|known| *known <= turn));
        let end = next.and_then(|next| index(next.0)).unwrap_or(self.entries.len());
        self.entries.get(index(turn.0).unwrap_or(usize::MAX)..end).unwrap_or_default().iter()
    }

    /// The newest message of the model in a turn: its answer, once the turn is completed.
    pub fn answer(&self, turn: TurnId) -> Option<&AssistantMessage> {
        let messages = self.turn_entries(turn).filter_map(|stored| match &*stored.entry {
            Entry::Assistant(message) => Some(message),
            _ => None,
        });
        messages.last()
    }

    /// Shows the entries after `after`, oldest first, each with the newest turn as it stood once the entry was taken. Folds
    /// again from the beginning of the turn that the first of them is in, not from the journal's.
    pub fn look_back(&self, after: Option<Seq>, mut show: impl FnMut(Option<&Turn>, &StoredEntry)) {
        let first = after.map_or(Seq::FIRST, Seq::next);
        let opened = self.turns.partition_point(|turn| turn.0 <= first).checked_sub(1);
        let begin = opened.and_then(|at| index(self.turns.get(at)?.0)).unwrap_or_default();
        let mut folded = Folded::default();
        if let Some(begun) = opened.and_then(|at| self.begun.get(at)) {
            folded.offered = Arc::clone(&begun.offered);
            folded.compaction.clone_from(&begun.compaction);
        }
        for stored in self.entries.get(begin..).unwrap_or_default() {
            // It fitted when it was taken; what else it needs from before its turn is in this journal.
            let fits = folded.apply(stored.seq, &stored.entry, |seq| self.entry(seq).map(|stored| &*stored.entry));
            debug_assert_eq!(fits, Ok(()), "an entry fits once and not again");
            if stored.seq >= first {
                show(folded.turn.as_ref(), stored);
            }
        }
    }

    /// Whether the entry at `seq` opened a turn.
    pub(crate) fn opens_turn(&self, seq: Seq) -> bool {
        self.turns.binary_search(&TurnId(seq)).is_ok()
    }

    /// The place of a call's result, where it is stored.
    pub(crate) fn result_place(&self, call: CallId) -> Option<Seq> {
        self.stored_result(call).map(|(seq, _)| seq)
    }

    /// The result of a call, where it is stored.
    pub fn result(&self, call: CallId) -> Option<&ToolResult> {
        self.stored_result(call).map(|(_, result)| result)
    }

    fn stored_result(&self, call: CallId) -> Option<(Seq, &ToolResult)> {
        let after = usize::try_from(call.message.get()).ok()?;
        // Every call has its result before the next message of a model.
        let until_next = self.entries.get(after..)?.iter().take_while(|stored| !matches!(*stored.entry, Entry::Assistant(_)));
        until_next.into_iter().find_map(|stored| match &*stored.entry {
            Entry::Result(result) if result.call == call => Some((stored.seq, result)),
            _ => None,
        })
    }
}

impl Folded {
    /// Takes the entry at `seq`; `earlier` looks up those before it. Nothing changes where it does not fit.
    fn apply<'a>(&mut self, seq: Seq, entry: &Entry, earlier: impl Fn(Seq) -> Option<&'a Entry>) -> Result<(), JournalError> {
        self.fold(seq, entry, earlier).map_err(|why| JournalError::Misfit { seq, kind: entry.kind(), why })
    }

    fn fold<'a>(&mut self, seq: Seq, entry: &Entry, earlier: impl Fn(Seq) -> Option<&'a Entry>) -> Result<(), &'static str> {
        match entry {
            Entry::User(message) if self.turn.as_ref().is_none_or(|turn| turn.ended().is_some()) => {
                let mut turn = Turn::open(seq, message.settings.clone());
                turn.offer(self.offered.iter());
                self.turn = Some(turn);
                self.books.begin_turn();
                return Ok(());
            }
            Entry::Control(Control::Claimed(claim)) if claim.epoch <= self.epoch => {
                return Err("the claim's epoch is not above the one that holds");
            }
            Entry::Control(Control::Offered { definitions }) => {
                self.offered = definitions.as_slice().into();
                if let Some(turn) = &mut self.turn {
                    turn.offer(definitions.iter());
                }
                return Ok(());
            }
            Entry::Control(Control::Found { definitions }) => {
                let is_new = |tool: &&Arc<ToolDefinition>| self.offered.iter().all(|offered| offered.name != tool.name);
                let new: Vec<_> = definitions.iter().filter(is_new).cloned().collect();
                self.offered = self.offered.iter().cloned().chain(new).collect();
                if let Some(turn) = &mut self.turn {
                    turn.offer(self.offered.iter());
                }
                return Ok(());
            }
            Entry::Control(Control::Hidden { message }) => return self.hide(message.0, earlier(message.0)),
            Entry::Control(Control::Retried { .. })
                if self.turn.as_ref().is_some_and(|turn| self.hidden.contains(&turn.newest_user())) =>
            {
                return Err("the message that it answers is hidden");
            }
            _ => {}
        }
        self.must_follow_summaries(entry)?;
        let turn = self.turn.as_mut().ok_or("no turn is open")?;
        let not_shown_again = match entry {
            Entry::Control(Control::Retried { .. }) => turn.hidden_by_retry(),
            _ => None,
        };
        turn.apply(seq, entry)?;
        let settings = turn.settings_arc();
        if let Some(message) = not_shown_again {
            self.not_shown(message);
        }
        match entry {
            Entry::Control(Control::Compacted(compacted)) => {
                self.compaction = Some(Arc::new(Compaction::new(seq, compacted, &settings, self.compaction.take())));
            }
            Entry::Control(Control::Uncompacted { .. }) => self.show_what_was_before(),
            Entry::Control(Control::Context(_)) => self.has_context = true,
            _ => {}
        }
        if let Entry::Control(Control::Claimed(claim)) = entry {
            self.epoch = claim.epoch;
        }
        self.books.take(seq, self.epoch, entry, |_| {});
        Ok(())
    }

    /// The message at `seq` is shown no more. Summaries that may tell of it go with it, the older ones stay.
    fn not_shown(&mut self, seq: Seq) {
        Arc::make_mut(&mut self.hidden).insert(seq);
        while self.compaction.as_ref().is_some_and(|compaction| compaction.through() >= seq) {
            self.show_what_was_before();
        }
    }

    fn show_what_was_before(&mut self) {
        self.compaction = self.compaction.take().and_then(|compaction| compaction.before().cloned());
    }

    /// A summary stands for no less than the one before it, and the newest alone is undone.
    fn must_follow_summaries(&self, entry: &Entry) -> Result<(), &'static str> {
        let shown = self.compaction.as_ref();
        match entry {
            Entry::Control(Control::Compacted(compacted)) => match shown {
                Some(shown) if compacted.through < shown.through() => Err("the summary stands for less than the one before it"),
                Some(_) | None => Ok(()),
            },
            Entry::Control(Control::Uncompacted { summary }) => match shown {
                Some(shown) if shown.seq() == *summary => Ok(()),
                Some(_) => Err("another summary is shown"),
                None => Err("no summary is shown"),
            },
            _ => Ok(()),
        }
    }

    fn hide(&mut self, seq: Seq, message: Option<&Entry>) -> Result<(), &'static str> {
        let is_open = |turn: &Turn| turn.ended().is_none() && turn.id().0 <= seq;
        match message {
            Some(Entry::User(_)) if self.turn.as_ref().is_some_and(is_open) => {
                Err("the message is being answered: cancel its turn first")
            }
            Some(Entry::User(_) | Entry::Assistant(_)) => {
                self.not_shown(seq);
                Ok(())
            }
            Some(
                Entry::Decision(_)
                | Entry::Question(_)
                | Entry::Started(_)
                | Entry::Elicited(_)
                | Entry::TaskAccepted(_)
                | Entry::Answered(_)
                | Entry::Sampled(_)
                | Entry::Result(_)
                | Entry::Control(_),
            )
            | None => Err("there is no such message"),
        }
    }
}

/// Puts `item` at the end of a list that others may have. A copy has room for those that come next: it is made for one turn at least.
fn push<T: Clone>(list: &mut Arc<Vec<T>>, item: T) {
    if let Some(list) = Arc::get_mut(list) {
        return list.push(item);
    }
    let mut copy = Vec::with_capacity(list.len().saturating_add(MORE));
    copy.extend_from_slice(list);
    copy.push(item);
    *list = Arc::new(copy);
}

/// Where the entry at `seq` stands in the list.
fn index(seq: Seq) -> Option<usize> {
    usize::try_from(seq.get().saturating_sub(1)).ok()
}
