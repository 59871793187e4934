//! A conversation's beginning as a journal of its own.
//!
//! Whole steps are copied, never decisions, claims or open calls: what ran is told with its result, and nothing in a copy
//! can run again. Places move up where something is left out, and all that names a place moves with them.

use std::collections::BTreeMap;

use crate::{
    AssistantMessage, CallId, Compacted, Context, Control, Entry, Journal, MessageId, Seq, StoredEntry, ToolResult, TurnId,
    TurnStatus,
};

/// What a copied turn is said to come from, see [`Control::Imported`]. All of a copied turn stands between that and its end.
pub const FORK_SOURCE: &str = "fork";

/// The journal of what `journal` shows before the message at `before`, of all of it where `None`; with the time of each
/// entry, in milliseconds since 1970 UTC. Its turns are over; one that was cut in the middle counts as stopped, so that
/// it can be taken up again. A message of a person's that joined a turn is shown behind the step that had not seen it: that step is
/// in the copy, with what its calls gave.
pub fn fork(journal: &Journal, before: Option<MessageId>) -> Vec<(Entry, u64)> {
    let cut = before.map_or(journal.next_seq(), |message| message.0);
    let end = joined_until(journal, cut);
    let mut copy = Copy::of(journal, end);
    for stored in journal.entries().iter().take_while(|stored| stored.seq < end) {
        if stored.seq < cut || is_shown_before(&stored.entry, cut) {
            copy.take(stored);
        }
    }
    copy.end();
    copy.hide();
    copy.entries
}

/// Where the turn ends that the message of a person's at `seq` joined; `seq` itself where it is none that did.
fn joined_until(journal: &Journal, seq: Seq) -> Seq {
    let is_joined = journal.entry(seq).is_some_and(|stored| matches!(&*stored.entry, Entry::User(_)));
    if !is_joined || journal.opens_turn(seq) {
        return seq;
    }
    let mut later = journal.entries().iter().filter(|stored| stored.seq > seq);
    let end = later.find(|stored| match &*stored.entry {
        Entry::Control(Control::Ended { .. }) => true,
        Entry::User(_) => journal.opens_turn(stored.seq),
        _ => false,
    });
    end.map_or(journal.next_seq(), |stored| stored.seq)
}

/// Whether an entry that came after the message at `seq`, which joined its turn, is shown before it: of results, those of messages that
/// are.
fn is_shown_before(entry: &Entry, seq: Seq) -> bool {
    match entry {
        Entry::Assistant(message) => message.saw < seq,
        Entry::Result(_) | Entry::Control(Control::Nudged { .. }) => true,
        Entry::User(_)
        | Entry::Decision(_)
        | Entry::Question(_)
        | Entry::Started(_)
        | Entry::TaskAccepted(_)
        | Entry::Elicited(_)
        | Entry::Answered(_)
        | Entry::Sampled(_)
        | Entry::Control(_) => false,
    }
}

/// The journal of what `journal` holds up to a model's message, with these results of its calls in the place of those that they were
/// given; what it does not name keeps its own. The last turn counts as stopped, so that it can be taken up again. `None`, where they are
/// not of one message that is shown, or another of its calls has no result.
pub fn fork_given(journal: &Journal, given: &[ToolResult]) -> Option<Vec<(Entry, u64)>> {
    let message = given.first()?.call.message;
    let stored = journal.entry(message)?;
    let Entry::Assistant(said) = &*stored.entry else { return None };
    let calls = (0..).zip(said.calls()).map(|(index, _)| CallId { message, index });
    let results: Vec<ToolResult> = calls
        .map(|call| given.iter().find(|result| result.call == call).or_else(|| journal.result(call)).cloned())
        .collect::<Option<_>>()?;
    let is_one_of_them = |result: &ToolResult| results.iter().any(|one| one.call == result.call);
    if journal.is_hidden(MessageId(message)) || !given.iter().all(is_one_of_them) {
        return None;
    }
    let mut copy = Copy::of(journal, message);
    for stored in journal.entries().iter().take_while(|stored| stored.seq < message) {
        copy.take(stored);
    }
    copy.turn.as_ref()?;
    let saw = copy.place_up_to(said.saw);
    let place = copy.write(stored, Entry::Assistant(AssistantMessage { saw, ..said.clone() }));
    let results = results.into_iter().map(|result| ToolResult { call: CallId { message: place, ..result.call }, ..result });
    copy.entries.extend(results.map(|result| (Entry::Result(result), stored.at_ms)));
    copy.ends_as(TurnStatus::Cancelled, stored.at_ms);
    copy.end();
    copy.hide();
    Some(copy.entries)
}

/// A journal while it is copied.
struct Copy<'a> {
    journal: &'a Journal,
    /// Entries from this place on are not copied.
    cut: Seq,
    entries: Vec<(Entry, u64)>,
    /// Where what is copied stands in the copy.
    places: BTreeMap<Seq, Seq>,
    turn: Option<Open>,
    /// Messages of people that are shown no more, and when that was copied.
    hidden: Vec<(MessageId, u64)>,
}

/// The turn that is copied.
struct Open {
    id: TurnId,
    /// How it ends if nothing more comes.
    status: TurnStatus,
    at_ms: u64,
}

impl<'a> Copy<'a> {
    fn of(journal: &'a Journal, cut: Seq) -> Self {
        Self { journal, cut, entries: Vec::new(), places: BTreeMap::new(), turn: None, hidden: Vec::new() }
    }

    fn take(&mut self, stored: &StoredEntry) {
        match &*stored.entry {
            Entry::User(message) => {
                let opens = self.journal.opens_turn(stored.seq);
                if opens {
                    self.end();
                }
                let place = self.write(stored, Entry::User(message.clone()));
                if opens {
                    self.turn = Some(Open { id: TurnId(place), status: TurnStatus::Cancelled, at_ms: stored.at_ms });
                    let taken_over = Entry::Control(Control::Imported { source: FORK_SOURCE.to_owned() });
                    self.entries.push((taken_over, stored.at_ms));
                }
                if self.journal.is_hidden(MessageId(stored.seq)) {
                    self.hidden.push((MessageId(place), stored.at_ms));
                }
                self.ends_as(TurnStatus::Cancelled, stored.at_ms);
            }
            Entry::Assistant(message) if self.is_whole(stored.seq, message) => {
                let saw = self.place_up_to(message.saw);
                self.write(stored, Entry::Assistant(AssistantMessage { saw, ..message.clone() }));
                let has_calls = message.calls().next().is_some();
                let status = if has_calls { TurnStatus::Cancelled } else { TurnStatus::Completed };
                self.ends_as(status, stored.at_ms);
            }
            Entry::Result(result) => {
                let Some(message) = self.places.get(&result.call.message).copied() else { return };
                let call = CallId { message, index: result.call.index };
                self.write(stored, Entry::Result(ToolResult { call, ..result.clone() }));
            }
            Entry::Control(control) => self.take_control(stored, control),
            Entry::Assistant(_)
            | Entry::Decision(_)
            | Entry::Question(_)
            | Entry::Started(_)
            | Entry::TaskAccepted(_)
            | Entry::Elicited(_)
            | Entry::Answered(_)
            | Entry::Sampled(_) => {}
        }
    }

    fn take_control(&mut self, stored: &StoredEntry, control: &Control) {
        match control {
            Control::Offered { .. } | Control::Found { .. } => {
                self.write(stored, Entry::Control(control.clone()));
            }
            Control::Context(context) => {
                let Some(message) = self.places.get(&context.message.0).copied().map(MessageId) else { return };
                if self.turn.is_some() {
                    self.write(stored, Entry::Control(Control::Context(Context { message, ..context.clone() })));
                }
            }
            // A summary that was replaced, or that tells of what is hidden since, stands for nothing.
            Control::Compacted(compacted) if self.journal.compaction().is_some_and(|held| held.seq() == stored.seq) => {
                let Some(Open { id, .. }) = self.turn else { return };
                let through = self.place_up_to(compacted.through);
                let turn = compacted.turn.map(|_| id);
                let compacted = Compacted { turn, through, ..compacted.clone() };
                self.write(stored, Entry::Control(Control::Compacted(compacted)));
            }
            // It stands beside the result that it is about.
            Control::Nudged { call, text } => {
                let Some(message) = self.places.get(&call.message).copied() else { return };
                let nudged = Control::Nudged { call: CallId { message, index: call.index }, text: text.clone() };
                self.write(stored, Entry::Control(nudged));
            }
            Control::Ended { status, .. } => self.ends_as(status.clone(), stored.at_ms),
            Control::Retried { .. } => self.ends_as(TurnStatus::Cancelled, stored.at_ms),
            Control::Compacted(_)
            | Control::Uncompacted { .. }
            | Control::Claimed(_)
            | Control::Resumed { .. }
            | Control::CancelRequested { .. }
            | Control::Suspended
            | Control::Settings { .. }
            | Control::Failed(_)
            | Control::Hidden { .. }
            | Control::Reserved(_)
            | Control::Settled { .. }
            | Control::Imported { .. } => {}
        }
    }

    /// Whether a model's message is shown, and all its calls have their results before the cut.
    fn is_whole(&self, seq: Seq, message: &AssistantMessage) -> bool {
        let calls = (0..).zip(message.calls()).map(|(index, _)| CallId { message: seq, index });
        let mut results = calls.map(|call| self.journal.result_place(call));
        !self.journal.is_hidden(MessageId(seq)) && results.all(|place| place.is_some_and(|place| place < self.cut))
    }

    /// The place in the copy of the last that was copied up to `seq`.
    fn place_up_to(&self, seq: Seq) -> Seq {
        self.places.range(..=seq).next_back().map_or(Seq::FIRST, |(_, place)| *place)
    }

    /// Copies an entry as it stands now; its place.
    fn write(&mut self, stored: &StoredEntry, entry: Entry) -> Seq {
        self.entries.push((entry, stored.at_ms));
        let place = u64::try_from(self.entries.len()).ok().and_then(Seq::new).unwrap_or(Seq::FIRST);
        self.places.insert(stored.seq, place);
        place
    }

    fn ends_as(&mut self, ending: TurnStatus, now_ms: u64) {
        if let Some(Open { status, at_ms, .. }) = &mut self.turn {
            (*status, *at_ms) = (ending, now_ms);
        }
    }

    fn end(&mut self) {
        if let Some(Open { id: turn, status, at_ms }) = self.turn.take() {
            self.entries.push((Entry::Control(Control::Ended { turn, status }), at_ms));
        }
    }

    /// Messages of a turn that is open cannot be hidden, so this comes last.
    fn hide(&mut self) {
        let hidden = std::mem::take(&mut self.hidden).into_iter();
        self.entries.extend(hidden.map(|(message, at_ms)| (Entry::Control(Control::Hidden { message }), at_ms)));
    }
}
