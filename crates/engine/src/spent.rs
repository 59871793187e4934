//! What models were asked and what tools did, by day. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use turnwright_core::{
    CallId, Control, Entry, FORK_SOURCE, Origin, Outcome, Sampled, SamplingOutcome, Seq, StoredEntry, ToolDefinition,
    ToolResult, TurnId, TurnStatus, Usage,
};

/// Milliseconds of a day.
const DAY_MS: u64 = 86_400_000;
/// How much is shown of a name that a model made up, in characters; those of tools are no longer.
const MAX_NAME_CHARS: usize = 64;

/// What happened in some days. Each list has the oldest day first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Spending {
    /// A line for each model on each day. What a program answers in place of one ([`crate::Provider::asks_no_model`]) is in none.
    pub models: Vec<Spent>,
    /// A line for each tool on each day.
    pub tools: Vec<ToolUse>,
    /// A line for each day on which a turn ended.
    pub turns: Vec<DayOfTurns>,
}

/// What one model was asked on one day (UTC).
#[derive(Debug, Clone, PartialEq)]
pub struct Spent {
    /// Days since 1970-01-01.
    pub day: u64,
    /// The provider's name in the configuration.
    pub provider: String,
    /// The provider's name for the model.
    pub model: String,
    /// How often it answered.
    pub model_calls: u64,
    /// What that cost, as far as the provider told.
    pub usage: Usage,
}

/// What one tool was asked on one day (UTC).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolUse {
    /// Days since 1970-01-01.
    pub day: u64,
    /// Its qualified name, as the model wrote it.
    pub name: String,
    /// Its source, where it was offered one.
    pub source: Option<String>,
    /// How often it was called.
    pub calls: u64,
    /// How many of these failed.
    pub failures: u64,
    /// How many were denied, by a person or a rule; they did not run.
    pub denials: u64,
    /// How many ran; these have a time.
    pub timed: u64,
    /// How long they ran together, in milliseconds.
    pub total_ms: u64,
    /// How long the longest ran, in milliseconds.
    pub longest_ms: u64,
}

/// How the turns ended that ended on one day (UTC).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DayOfTurns {
    /// Days since 1970-01-01.
    pub day: u64,
    /// How many ended.
    pub turns: u64,
    /// How many of these failed.
    pub failures: u64,
}

/// Adds up the entries of a time.
pub(crate) struct Bill<'a> {
    from_ms: u64,
    until_ms: u64,
    /// Whether a provider of this name asks no model: what it answers is counted for no model.
    asks_no_model: &'a (dyn Fn(&str) -> bool + Send + Sync),
    models: BTreeMap<(u64, String, String), (u64, Usage)>,
    tools: BTreeMap<(u64, String, Option<String>), ToolUse>,
    turns: BTreeMap<u64, DayOfTurns>,
}

/// What must be known of one conversation's earlier entries to understand the later ones.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    offered: Vec<Arc<ToolDefinition>>,
    /// The newest message that a model wrote, with the names of its calls: results come before the next.
    newest: Option<(Seq, Vec<String>)>,
    /// The turn that was counted last, on which day, and whether as failed. One that is tried again ends once more.
    counted: Option<(TurnId, u64, bool)>,
    /// Whether the open turn is the copy of one of another conversation, where it counts.
    is_copy: bool,
}

impl<'a> Bill<'a> {
    /// Nothing yet, of the time from `from_ms` to before `until_ms`, in milliseconds since 1970 UTC.
    pub(crate) fn new(from_ms: u64, until_ms: u64, asks_no_model: &'a (dyn Fn(&str) -> bool + Send + Sync)) -> Self {
        let (models, tools, turns) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { from_ms, until_ms, asks_no_model, models, tools, turns }
    }

    /// Takes the next entry of a conversation. What was taken over from elsewhere counts too: it says what it cost there. What a
    /// fork copied counts in the conversation of which it is.
    pub(crate) fn add(&mut self, stored: &StoredEntry, calls: &mut Calls) {
        calls.take(stored);
        if calls.is_copy {
            calls.is_copy = !matches!(&*stored.entry, Entry::Control(Control::Ended { .. }));
            return;
        }
        if let Entry::Control(Control::Ended { turn, .. }) = &*stored.entry
            && let Some((_, day, has_failed)) = calls.counted.take_if(|(counted, ..)| counted == turn)
            && let Some(turns) = self.turns.get_mut(&day)
        {
            turns.turns -= 1;
            turns.failures -= u64::from(has_failed);
        }
        if !(self.from_ms..self.until_ms).contains(&stored.at_ms) {
            return;
        }
        let day = stored.at_ms / DAY_MS;
        match &*stored.entry {
            Entry::Assistant(message) => self.add_usage(day, &message.origin, message.usage),
            Entry::Control(Control::Compacted(compacted)) => {
                if let Some(origin) = &compacted.origin {
                    self.add_usage(day, origin, compacted.usage);
                }
            }
            Entry::Sampled(Sampled { outcome: SamplingOutcome::Answered(message), .. }) => {
                self.add_usage(day, &message.origin, message.usage);
            }
            Entry::Result(result) => {
                if let Some(name) = calls.name(result.call) {
                    self.add_result(day, name, calls.source(name), result);
                }
            }
            Entry::Control(Control::Ended { turn, status }) => {
                let has_failed = matches!(status, TurnStatus::Failed { .. });
                let turns = self.turns.entry(day).or_insert(DayOfTurns { day, ..DayOfTurns::default() });
                turns.turns += 1;
                turns.failures += u64::from(has_failed);
                calls.counted = Some((*turn, day, has_failed));
            }
            Entry::User(_)
            | Entry::Decision(_)
            | Entry::Started(_)
            | Entry::Question(_)
            | Entry::Elicited(_)
            | Entry::Answered(_)
            | Entry::Sampled(_)
            | Entry::TaskAccepted(_)
            | Entry::Control(_) => {}
        }
    }

    fn add_usage(&mut self, day: u64, origin: &Origin, usage: Usage) {
        if (self.asks_no_model)(&origin.provider) {
            return;
        }
        let key = (day, origin.provider.clone(), origin.model.clone());
        let (calls, sum) = self.models.entry(key).or_default();
        *calls = calls.saturating_add(1);
        *sum = sum.plus(usage);
    }

    fn add_result(&mut self, day: u64, name: &str, source: Option<&str>, result: &ToolResult) {
        let key = (day, name.to_owned(), source.map(str::to_owned));
        let none = || ToolUse {
            day,
            name: name.to_owned(),
            source: source.map(str::to_owned),
            calls: 0,
            failures: 0,
            denials: 0,
            timed: 0,
            total_ms: 0,
            longest_ms: 0,
        };
        let tool = self.tools.entry(key).or_insert_with(none);
        tool.calls += 1;
        tool.failures += u64::from(matches!(result.outcome, Outcome::Error(_)));
        tool.denials += u64::from(result.outcome == Outcome::Denied);
        if let Some(duration_ms) = result.duration_ms {
            tool.timed += 1;
            tool.total_ms = tool.total_ms.saturating_add(duration_ms);
            tool.longest_ms = tool.longest_ms.max(duration_ms);
        }
    }

    /// What it came to.
    pub(crate) fn spending(self) -> Spending {
        let line = |((day, provider, model), (model_calls, usage))| Spent { day, provider, model, model_calls, usage };
        Spending {
            models: self.models.into_iter().map(line).collect(),
            tools: self.tools.into_values().collect(),
            turns: self.turns.into_values().filter(|day| day.turns > 0).collect(),
        }
    }
}

impl Calls {
    fn take(&mut self, stored: &StoredEntry) {
        match &*stored.entry {
            Entry::Assistant(message) => {
                let name = |name: &str| name.chars().take(MAX_NAME_CHARS).collect();
                self.newest = Some((stored.seq, message.calls().map(|call| name(&call.name)).collect()));
            }
            Entry::Control(Control::Offered { definitions }) => self.offered.clone_from(definitions),
            Entry::Control(Control::Imported { source }) => self.is_copy = source == FORK_SOURCE,
            Entry::User(_)
            | Entry::Decision(_)
            | Entry::Started(_)
            | Entry::Question(_)
            | Entry::Elicited(_)
            | Entry::Answered(_)
            | Entry::Sampled(_)
            | Entry::TaskAccepted(_)
            | Entry::Result(_)
            | Entry::Control(_) => {}
        }
    }

    fn name(&self, call: CallId) -> Option<&str> {
        let (_, names) = self.newest.as_ref().filter(|(message, _)| *message == call.message)?;
        names.get(usize::try_from(call.index).ok()?).map(String::as_str)
    }

    fn source(&self, name: &str) -> Option<&str> {
        self.offered.iter().find(|tool| tool.name == name).map(|tool| tool.source.as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use turnwright_core::{Seq, StoredEntry, ToolErrorKind};

    use super::*;

    const DAY: u64 = 20_000;

    fn stored(seq: u64, at_ms: u64, entry: serde_json::Value) -> StoredEntry {
        let entry: Entry = serde_json::from_value(entry).unwrap();
        StoredEntry { seq: Seq::new(seq).unwrap(), at_ms, entry: Arc::new(entry) }
    }

    fn result(index: u32, outcome: Outcome, duration_ms: Option<u64>) -> serde_json::Value {
        json!({"result": ToolResult {
            call: CallId { message: Seq::new(2).unwrap(), index },
            outcome,
            content: Vec::new(),
            structured_content: None,
            diagnostic: None,
            duration_ms,
            is_cached: false,
        }})
    }

    #[test]
    fn a_call_counts_on_the_day_of_its_result_for_its_tool_and_where_that_is_from() {
        let at = |day: u64| day * DAY_MS;
        let tool = json!({"name": "time__now", "source": "time", "tool": "now", "input_schema": {"type": "object"}});
        let call = |name: &str| json!({"call": {"name": name, "arguments": "{}"}});
        let asked = json!({"assistant": {
            "blocks": [call("time__now"), call("made_up"), call("time__now"), call("time__now")],
            "origin": {"dialect": "d", "provider": "p", "model": "m"},
            "saw": 1, "finish": {"reason": "tool_calls"}, "usage": {},
        }});
        let entries = [
            stored(1, at(DAY - 1), json!({"control": {"offered": {"definitions": [tool]}}})),
            stored(2, at(DAY) - 1, asked),
            stored(3, at(DAY), result(0, Outcome::Success, Some(30))),
            stored(4, at(DAY), result(1, Outcome::Error(ToolErrorKind::NotFound), None)),
            stored(5, at(DAY), result(2, Outcome::Error(ToolErrorKind::Timeout), Some(70))),
            stored(6, at(DAY + 1) - 1, result(3, Outcome::Denied, None)),
            stored(
                7,
                at(DAY + 1) - 1,
                json!({"control": {"ended": {"turn": "turn_1", "status": {"failed": {"reason": "x"}}}}}),
            ),
            stored(8, at(DAY + 1), json!({"control": {"ended": {"turn": "turn_2", "status": "completed"}}})),
        ];
        let mut bill = Bill::new(at(DAY), at(DAY + 1), &|_| false);
        let mut calls = Calls::default();
        for entry in &entries {
            bill.add(entry, &mut calls);
        }
        let unused = ToolUse {
            day: DAY,
            name: "made_up".to_owned(),
            source: None,
            calls: 1,
            failures: 1,
            denials: 0,
            timed: 0,
            total_ms: 0,
            longest_ms: 0,
        };
        let used = ToolUse {
            name: "time__now".to_owned(),
            source: Some("time".to_owned()),
            calls: 3,
            failures: 1,
            denials: 1,
            timed: 2,
            total_ms: 100,
            longest_ms: 70,
            ..unused.clone()
        };
        let turns = vec![DayOfTurns { day: DAY, turns: 1, failures: 1 }];
        assert_eq!(bill.spending(), Spending { models: Vec::new(), tools: vec![unused, used], turns });
    }

    #[test]
    fn what_a_fork_copied_counts_where_it_was_said_and_what_is_said_in_the_fork_counts_there() {
        let asked = |saw: u64| {
            json!({"assistant": {
                "blocks": [{"call": {"name": "look", "arguments": "{}"}}],
                "origin": {"dialect": "d", "provider": "p", "model": "m"},
                "saw": saw, "finish": {"reason": "tool_calls"}, "usage": {"input_tokens": 5},
            }})
        };
        let summary = json!({"control": {"compacted": {"through": 1, "summary": "s",
            "origin": {"dialect": "d", "provider": "p", "model": "m"}, "usage": {"input_tokens": 5}}}});
        let ended = json!({"control": {"ended": {"turn": "turn_1", "status": "completed"}}});
        let of = |source: &str| {
            let imported = json!({"control": {"imported": {"source": source}}});
            let copied = [imported, asked(1), result(0, Outcome::Success, Some(30)), summary.clone(), ended.clone()];
            // The turn is taken up again, and what came of it is put in a summary by hand.
            let own = [asked(1), ended.clone(), summary.clone()];
            let (mut bill, mut calls) = (Bill::new(0, u64::MAX, &|_| false), Calls::default());
            for (seq, entry) in (1..).zip(copied.into_iter().chain(own)) {
                bill.add(&stored(seq, 1, entry), &mut calls);
            }
            let Spending { models, tools, turns } = bill.spending();
            let calls = models.iter().map(|spent| (spent.model_calls, spent.usage.input_tokens)).collect::<Vec<_>>();
            (calls, tools.len(), turns.iter().map(|day| day.turns).collect::<Vec<_>>())
        };
        assert_eq!(of(FORK_SOURCE), (vec![(2, Some(10))], 0, vec![1]));
        assert_eq!(of("chatgpt"), (vec![(4, Some(20))], 1, vec![1]));
    }

    #[test]
    fn a_turn_that_is_tried_again_counts_once_on_the_day_and_by_the_way_of_its_last_end() {
        let at = |day: u64| day * DAY_MS;
        let ended = |turn: &str, status: serde_json::Value| json!({"control": {"ended": {"turn": turn, "status": status}}});
        let failed = || json!({"failed": {"reason": "x"}});
        let entries = [
            stored(1, at(DAY), ended("turn_1", failed())),
            stored(2, at(DAY) + 1, ended("turn_1", failed())),
            stored(3, at(DAY) + 2, ended("turn_2", failed())),
            stored(4, at(DAY) + 3, ended("turn_3", json!("completed"))),
            stored(5, at(DAY) + 4, ended("turn_4", failed())),
            stored(6, at(DAY + 1), ended("turn_4", json!("completed"))),
            stored(7, at(DAY + 1) + 1, ended("turn_5", failed())),
            stored(8, at(DAY + 2), ended("turn_5", failed())),
        ];
        let of = |from: u64, until: u64| {
            let (mut bill, mut calls) = (Bill::new(at(from), at(until), &|_| false), Calls::default());
            for entry in &entries {
                bill.add(entry, &mut calls);
            }
            bill.spending().turns
        };
        let first = DayOfTurns { day: DAY, turns: 3, failures: 2 };
        let second = DayOfTurns { day: DAY + 1, turns: 1, failures: 0 };
        let third = DayOfTurns { day: DAY + 2, turns: 1, failures: 1 };
        assert_eq!(of(DAY, DAY + 3), [first, second, third]);
        // What a day comes to is the same whichever days are asked for.
        for day in [first, second, third] {
            assert_eq!(of(day.day, day.day + 1), [day]);
        }
    }
}
