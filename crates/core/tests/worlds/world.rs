//! The store, the effects, and what goes wrong when.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use turnwright_core::budgets::Amount;
use turnwright_core::{
    AnswerAction, Answered, AnsweredBy, CallId, Claim, ContentBlock, Control, Entry, Journal, Seq, StoredEntry, Turn,
    UserMessage, check,
};

use crate::driver::{claim_entries, drive};
use crate::laws::Depth;
use crate::script::Script;

/// What goes wrong, or comes from elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// The driver's process dies.
    Crash,
    /// A person writes another message.
    User,
    /// A person stops the turn.
    Cancel,
    /// A person decides about the first call that waits, or answers the first question.
    Decide,
    /// Another driver takes the turn and waits a little; the first goes on unaware.
    ClaimOnly,
    /// Another driver takes the turn and drives it as far as it goes; then the first goes on unaware.
    Usurp,
}

/// What goes wrong, and when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mishap {
    pub(crate) at: usize,
    pub(crate) what: What,
}

/// The driver's process died.
#[derive(Debug)]
pub(crate) struct Crash;

/// Somebody else appended first.
#[derive(Debug)]
pub(crate) struct Conflict;

/// Everything outside of a driver's memory.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) script: Script,
    pub(crate) log: Vec<StoredEntry>,
    /// The log, folded as it grows, for those who are no driver.
    pub(crate) shadow: Journal,
    /// The arguments of every run of every call.
    pub(crate) effects: BTreeMap<CallId, Vec<String>>,
    /// What a ledger beside the log makes of it: what is reserved, by purpose, and what was spent.
    pub(crate) ledger: (BTreeMap<String, Amount>, Amount),
    /// Counts the points at which something can go wrong.
    pub(crate) now: usize,
    /// Drivers so far, to name them.
    pub(crate) drivers: usize,
    /// A claim whose driver has not begun to drive.
    pub(crate) idle_claim: Option<Claim>,
    pub(crate) depth: Depth,
    mishaps: Vec<Mishap>,
}

impl World {
    pub(crate) fn new(script: Script, mishaps: Vec<Mishap>, depth: Depth) -> Self {
        let mut world = Self {
            script,
            log: Vec::new(),
            shadow: Journal::default(),
            effects: BTreeMap::new(),
            ledger: (BTreeMap::new(), Amount::default()),
            now: 0,
            drivers: 0,
            idle_claim: None,
            depth,
            mishaps,
        };
        let first = world.user_message("the task");
        world.put(vec![first]);
        world
    }

    pub(crate) fn user_message(&self, text: &str) -> Entry {
        Entry::User(UserMessage { content: vec![ContentBlock::text(text)], settings: self.script.settings() })
    }

    /// What a driver makes of the log that knows nothing yet.
    pub(crate) fn journal(&self) -> Journal {
        Journal::replay(self.log.iter().cloned()).expect("what is stored fits")
    }

    pub(crate) fn runs(&self, call: CallId) -> usize {
        self.effects.get(&call).map_or(0, Vec::len)
    }

    /// A point at which something may go wrong.
    pub(crate) fn point(&mut self) -> Result<(), Crash> {
        let now = self.now;
        self.now += 1;
        let due: Vec<What> = self.mishaps.iter().filter(|mishap| mishap.at == now).map(|mishap| mishap.what).collect();
        let mut crashed = Ok(());
        for what in due {
            match what {
                What::Crash => crashed = Err(Crash),
                What::User => {
                    let entry = self.user_message("and another thing");
                    self.put(vec![entry]);
                }
                What::Cancel => {
                    let turn = self.shadow.open_turn().map(Turn::id);
                    if let Some(turn) = turn {
                        self.put(vec![Entry::Control(Control::CancelRequested { turn })]);
                    }
                }
                What::Decide => self.decide_first(),
                What::ClaimOnly => {
                    let name = self.driver();
                    if let Some(turn) = self.shadow.open_turn() {
                        let (claim, entries) = claim_entries(name, &self.shadow, turn);
                        self.put(entries);
                        self.idle_claim = Some(claim);
                    }
                }
                What::Usurp => {
                    let _ = drive(self, None);
                }
            }
        }
        crashed
    }

    /// A person decides about the first call that waits, or answers the first question.
    pub(crate) fn decide_first(&mut self) {
        let decision = self.shadow.open_turn().and_then(|turn| {
            let (call, question) = turn.waiting().next()?;
            Some(self.script.decision(&call, question))
        });
        let question = self.shadow.open_turn().and_then(|turn| turn.questions().next()).map(|question| question.id);
        if let Some(decision) = decision {
            self.put(vec![Entry::Decision(decision)]);
        } else if let Some(question) = question {
            let (action, by) = (AnswerAction::Accept, AnsweredBy::Person);
            self.put(vec![Entry::Answered(Answered { question, action, content: None, by, reason: None })]);
        }
    }

    pub(crate) fn driver(&mut self) -> String {
        self.drivers += 1;
        format!("driver {}", self.drivers)
    }

    /// An append of somebody who is not driving and sees the newest entries.
    pub(crate) fn put(&mut self, entries: Vec<Entry>) {
        check(&self.shadow, &entries).expect("others append what fits");
        let at = self.next();
        self.append(at, entries).expect("nobody is between");
    }

    pub(crate) fn next(&self) -> Seq {
        Seq::new(self.log.len() as u64 + 1).expect("not zero")
    }

    /// All or nothing, at `at` or not at all.
    pub(crate) fn append(&mut self, at: Seq, entries: Vec<Entry>) -> Result<Vec<StoredEntry>, Conflict> {
        if at != self.next() {
            return Err(Conflict);
        }
        let (reserved, spent) = &mut self.ledger;
        for closed in self.shadow.closed_by(&entries) {
            reserved.remove(&closed.purpose.key()).expect("what is closed was reserved");
            *spent = spent.plus(closed.amount);
        }
        for entry in &entries {
            if let Entry::Control(Control::Reserved(one)) = entry {
                let before = reserved.insert(one.purpose.key(), one.amount());
                assert_eq!(before, None, "one of each at once");
            }
        }
        let mut seq = at;
        let mut stored = Vec::new();
        for entry in entries {
            let entry = StoredEntry { seq, at_ms: 0, entry: Arc::new(entry) };
            self.shadow.apply(entry.clone()).expect("what is stored fits");
            stored.push(entry);
            seq = seq.next();
        }
        self.log.extend(stored.iter().cloned());
        Ok(stored)
    }

    /// The entries, a line each.
    pub(crate) fn story(&self) -> String {
        let mut story = String::new();
        for stored in &self.log {
            let told = match &*stored.entry {
                Entry::User(_) => "user".to_owned(),
                Entry::Assistant(message) => {
                    format!("assistant saw {} {:?} {} calls", message.saw, message.finish.reason, message.calls().count())
                }
                Entry::Result(result) => format!("result {} {:?}", result.call, result.outcome),
                entry => format!("{entry:?}"),
            };
            let _ = writeln!(story, "{} {told}", stored.seq);
        }
        let _ = writeln!(story, "effects {:?}", self.effects);
        story
    }
}
