//! What must be true of a run, whatever went wrong in it, decided from what was recorded alone.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// How long after a node stood still a call that passed its last look before may still be made (docs/operations.md). What goes on
/// by itself while its node stands still is not excused: the suite's tool has its effect first.
const WINDOW_NS: i128 = 300_000_000;

/// What was recorded of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Record {
    /// What clients sent, by conversation, and whether it was acknowledged.
    pub(crate) sent: Vec<Sent>,
    /// The entries of each conversation as the database has them, in order.
    pub(crate) journals: BTreeMap<String, Vec<Value>>,
    /// What tools did, in order.
    pub(crate) effects: Vec<Effect>,
    /// What watchers saw.
    pub(crate) watched: Vec<Watched>,
    /// When a node went on after it had stood still: its process, and the time since 1970.
    pub(crate) resumed: Vec<(u32, i128)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) conversation: String,
    pub(crate) text: String,
    pub(crate) is_acknowledged: bool,
}

/// One line that a tool wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Effect {
    /// The call, by a name that its model gave it.
    pub(crate) name: String,
    /// The process of the node that made it.
    pub(crate) node: u32,
    pub(crate) at_ns: i128,
}

/// What somebody saw who read a conversation's events over any number of connections to any node.
#[derive(Debug, Clone)]
pub(crate) struct Watched {
    pub(crate) conversation: String,
    pub(crate) entries: Vec<Value>,
    /// The first event that did not fit what was seen before.
    pub(crate) wrong: Option<String>,
}

/// A law that is broken, and where.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Broken {
    /// An acknowledged message is not in the journal, or any is there twice.
    Message { text: String, times: usize },
    /// A call has no result, or two.
    Result { conversation: String, call: String, times: usize },
    /// A tool had its effect twice.
    Twice { effect: String, times: usize },
    /// A call is told to have worked and did not.
    Never { effect: String },
    /// A call was denied and had its effect.
    Denied { effect: String },
    /// A watcher saw something else than what is stored.
    Watcher { conversation: String, why: String },
    /// A turn neither ended nor waits for a person.
    Open { conversation: String },
    /// A turn ended otherwise than with an answer: that a node or a server is away is no failure of a turn.
    Ended { conversation: String, status: String },
}

/// All that is broken.
pub(crate) fn broken(record: &Record) -> Vec<Broken> {
    let mut all = BTreeSet::new();
    all.extend(messages(record));
    for (conversation, journal) in &record.journals {
        all.extend(results(conversation, journal));
        let failed = ends(journal).filter(|ended| !is_lawful(journal, ended));
        all.extend(
            failed.map(|ended| Broken::Ended { conversation: conversation.clone(), status: ended["status"].to_string() }),
        );
        all.extend((!is_at_rest(journal)).then(|| Broken::Open { conversation: conversation.clone() }));
        all.extend(
            denied(journal)
                .into_iter()
                .filter(|name| !effects_of(record, name).is_empty())
                .map(|effect| Broken::Denied { effect }),
        );
        all.extend(
            worked(journal)
                .into_iter()
                .filter(|name| effects_of(record, name).is_empty())
                .map(|effect| Broken::Never { effect }),
        );
    }
    all.extend(twice(record));
    all.extend(record.watched.iter().filter_map(|watched| watcher(record, watched)));
    all.into_iter().collect()
}

fn messages(record: &Record) -> Vec<Broken> {
    let texts: Vec<(&String, String)> =
        record.journals.iter().flat_map(|(id, journal)| journal.iter().filter_map(said).map(move |text| (id, text))).collect();
    let times = |sent: &Sent| texts.iter().filter(|(id, text)| **id == sent.conversation && *text == sent.text).count();
    let wrong = |sent: &Sent, times: usize| times > 1 || (times == 0 && sent.is_acknowledged);
    let counted = record.sent.iter().map(|sent| (sent, times(sent)));
    counted
        .filter(|(sent, times)| wrong(sent, *times))
        .map(|(sent, times)| Broken::Message { text: sent.text.clone(), times })
        .collect()
}

/// What a person said, where the entry is a message.
fn said(entry: &Value) -> Option<String> {
    entry["user"]["content"][0]["text"].as_str().map(str::to_owned)
}

/// The calls of a journal by their names, with the arguments.
fn calls(journal: &[Value]) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (seq, entry) in (1..).zip(journal) {
        let blocks = entry["assistant"]["blocks"].as_array().map(Vec::as_slice).unwrap_or_default();
        let calls = blocks.iter().filter_map(|block| block["call"]["arguments"].as_str());
        all.extend((0..).zip(calls).map(|(at, arguments): (u32, &str)| (format!("call_{seq}_{at}"), arguments.to_owned())));
    }
    all
}

fn results(conversation: &str, journal: &[Value]) -> Vec<Broken> {
    let is_at_rest = is_ended(journal);
    let wrong = |times: usize| times > 1 || (times == 0 && is_at_rest);
    let times = |call: &str| journal.iter().filter(|entry| entry["result"]["call"] == call).count();
    calls(journal)
        .into_iter()
        .map(|(call, _)| (times(&call), call))
        .filter(|(times, _)| wrong(*times))
        .map(|(times, call)| Broken::Result { conversation: conversation.to_owned(), call, times })
        .collect()
}

/// The effects of the calls that have a result which says that they worked.
fn worked(journal: &[Value]) -> Vec<String> {
    let is_success = |call: &str| {
        let mut results = journal.iter().filter(|entry| entry["result"]["call"] == call);
        results.any(|entry| entry["result"]["outcome"] == "success" && entry["result"]["duration_ms"].is_number())
    };
    calls(journal)
        .into_iter()
        .filter(|(call, _)| is_success(call))
        .filter_map(|(_, arguments)| effect_named(&arguments))
        .collect()
}

/// The effects that calls would have had which were denied.
fn denied(journal: &[Value]) -> Vec<String> {
    let is_denied = |call: &str| {
        let mut decisions = journal.iter().filter(|entry| entry["decision"]["call"] == call);
        decisions.any(|entry| entry["decision"]["verdict"] == "deny")
    };
    calls(journal)
        .into_iter()
        .filter(|(call, _)| is_denied(call))
        .filter_map(|(_, arguments)| effect_named(&arguments))
        .collect()
}

/// The name of the effect that a command has: `echo NAME …`.
pub(crate) fn effect_named(arguments: &str) -> Option<String> {
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    arguments["command"].as_str()?.strip_prefix("echo ")?.split(' ').next().map(str::to_owned)
}

fn effects_of<'a>(record: &'a Record, name: &str) -> Vec<&'a Effect> {
    record.effects.iter().filter(|effect| effect.name == name).collect()
}

/// Effects that came twice. One of a run may be of a node that had stood still directly before: some microseconds of each call
/// are open to that. Two are no chance.
fn twice(record: &Record) -> Vec<Broken> {
    let names: BTreeSet<&String> = record.effects.iter().map(|effect| &effect.name).collect();
    let is_late = |effect: &&Effect| {
        record.resumed.iter().any(|(node, at)| *node == effect.node && (0..WINDOW_NS).contains(&(effect.at_ns - at)))
    };
    let counted = names.into_iter().map(|name| (name, effects_of(record, name)));
    let all: Vec<(&String, Vec<&Effect>)> = counted.filter(|(_, effects)| effects.len() > 1).collect();
    match &*all {
        [(_, effects)] if effects.len() == 2 && effects.iter().any(is_late) => Vec::new(),
        all => all.iter().map(|(name, effects)| Broken::Twice { effect: (*name).clone(), times: effects.len() }).collect(),
    }
}

/// A turn has ended, or none began.
fn is_ended(journal: &[Value]) -> bool {
    let begun = journal.iter().rposition(|entry| entry["user"].is_object() || entry["control"]["retried"].is_object());
    let ended = journal.iter().rposition(|entry| entry["control"]["ended"].is_object());
    begun.is_none() || ended > begun
}

/// With an answer, by a person's stop, or where its drivers died one after the other, which the engine counts.
fn is_lawful(journal: &[Value], ended: &Value) -> bool {
    let is_stopped = || journal.iter().any(|entry| entry["control"]["cancel_requested"]["turn"] == ended["turn"]);
    let is_given_up = |reason: &str| reason.starts_with("the turn was resumed ");
    match ended["status"].as_str() {
        Some("completed") => true,
        Some("cancelled") => is_stopped(),
        _ => ended["status"]["failed"]["reason"].as_str().is_some_and(is_given_up),
    }
}

/// How the turns of a journal ended.
pub(crate) fn ends(journal: &[Value]) -> impl Iterator<Item = &Value> {
    journal.iter().map(|entry| &entry["control"]["ended"]).filter(|ended| ended.is_object())
}

/// Nothing of it goes on by itself: the last word of its driver is that it ended, or that it waits.
fn is_at_rest(journal: &[Value]) -> bool {
    let last = journal.iter().rfind(|entry| entry["question"].is_null());
    is_ended(journal) || last.is_some_and(|entry| entry["control"] == "suspended")
}

fn watcher(record: &Record, watched: &Watched) -> Option<Broken> {
    let broken = |why: String| Some(Broken::Watcher { conversation: watched.conversation.clone(), why });
    if let Some(why) = &watched.wrong {
        return broken(why.clone());
    }
    let empty = Vec::new();
    let journal = record.journals.get(&watched.conversation).unwrap_or(&empty);
    if watched.entries.len() != journal.len() {
        return broken(format!("saw {} entries of {}", watched.entries.len(), journal.len()));
    }
    let differs = watched.entries.iter().zip(journal).position(|(seen, stored)| seen != stored);
    differs.and_then(|at| broken(format!("entry {} was told as {}, stored is {}", at + 1, watched.entries[at], journal[at])))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A run of one turn with one call in which all is well.
    fn good() -> Record {
        let command = json!({"command": "echo c-1-a $PPID"}).to_string();
        let journal = vec![
            json!({"user": {"content": [{"type": "text", "text": "c 1"}]}}),
            json!({"control": {"claimed": {"epoch": 1}}}),
            json!({"assistant": {"blocks": [{"text": {"text": "I do."}}, {"call": {"name": "run", "arguments": command}}]}}),
            json!({"started": {"call": "call_3_0"}}),
            json!({"result": {"call": "call_3_0", "outcome": "success", "duration_ms": 3}}),
            json!({"control": {"ended": {"turn": "turn_1", "status": "completed"}}}),
        ];
        Record {
            sent: vec![Sent { conversation: "c".to_owned(), text: "c 1".to_owned(), is_acknowledged: true }],
            effects: vec![Effect { name: "c-1-a".to_owned(), node: 1, at_ns: 0 }],
            watched: vec![Watched { conversation: "c".to_owned(), entries: journal.clone(), wrong: None }],
            journals: BTreeMap::from([("c".to_owned(), journal)]),
            resumed: Vec::new(),
        }
    }

    fn bad(change: impl FnOnce(&mut Record)) -> Vec<Broken> {
        let mut record = good();
        change(&mut record);
        broken(&record)
    }

    /// The same with a journal that the watcher sees as it is.
    fn bad_journal(change: impl FnOnce(&mut Vec<Value>)) -> Vec<Broken> {
        bad(|record| {
            change(record.journals.get_mut("c").unwrap());
            record.watched[0].entries = record.journals["c"].clone();
        })
    }

    #[test]
    fn a_good_run_breaks_nothing() {
        assert_eq!(broken(&good()), []);
    }

    #[test]
    fn a_message_that_is_lost_or_there_twice_is_seen() {
        let again = |times| vec![Broken::Message { text: "c 1".to_owned(), times }];
        assert_eq!(bad_journal(|journal| journal[0]["user"]["content"][0]["text"] = json!("c 2")), again(0));
        assert_eq!(bad_journal(|journal| journal.insert(0, journal[0].clone()))[..1], again(2));
        // What was not acknowledged may be there or not.
        assert_eq!(
            bad(|record| record.sent.push(Sent { text: "c 2".to_owned(), is_acknowledged: false, ..record.sent[0].clone() })),
            []
        );
    }

    #[test]
    fn a_call_without_a_result_and_one_with_two_is_seen() {
        let wrong = |times| Broken::Result { conversation: "c".to_owned(), call: "call_3_0".to_owned(), times };
        assert_eq!(bad_journal(|journal| drop(journal.remove(4))), [wrong(0)]);
        assert_eq!(bad_journal(|journal| journal.insert(5, journal[4].clone())), [wrong(2)]);
    }

    #[test]
    fn an_effect_that_comes_twice_or_never_is_seen() {
        let again =
            |record: &mut Record| record.effects.push(Effect { node: 2, at_ns: 9_000_000_000, ..record.effects[0].clone() });
        assert_eq!(bad(again), [Broken::Twice { effect: "c-1-a".to_owned(), times: 2 }]);
        assert_eq!(bad(|record| record.effects.clear()), [Broken::Never { effect: "c-1-a".to_owned() }]);
        // The window that is told of: directly after its node had stood still, and not later.
        let after = |ns: i128| {
            bad(|record| {
                again(record);
                record.resumed.push((2, 9_000_000_000 - ns));
            })
        };
        assert_eq!(after(WINDOW_NS - 1), []);
        assert_eq!(after(WINDOW_NS).len(), 1);
        // Nor twice in one run.
        let both = bad(|record| {
            again(record);
            record.resumed.push((2, 9_000_000_000));
            let other = |at: usize| Effect { name: "c-1-b".to_owned(), ..record.effects[at].clone() };
            let others = [other(0), other(1)];
            record.effects.extend(others);
        });
        assert_eq!(both.len(), 2);
    }

    #[test]
    fn an_effect_of_a_call_that_was_denied_is_seen() {
        let deny = |journal: &mut Vec<Value>| {
            journal[3] = json!({"decision": {"call": "call_3_0", "verdict": "deny", "by": "person"}});
            journal[4] = json!({"result": {"call": "call_3_0", "outcome": "denied"}});
        };
        assert_eq!(bad_journal(deny), [Broken::Denied { effect: "c-1-a".to_owned() }]);
    }

    #[test]
    fn a_watcher_that_saw_something_else_is_seen() {
        let seen = |change: &dyn Fn(&mut Watched)| bad(|record| change(&mut record.watched[0])).len();
        assert_eq!(seen(&|watched| drop(watched.entries.pop())), 1);
        assert_eq!(seen(&|watched| watched.entries[1]["control"]["claimed"]["epoch"] = json!(2)), 1);
        assert_eq!(seen(&|watched| watched.wrong = Some("a gap".to_owned())), 1);
    }

    #[test]
    fn a_turn_that_failed_or_was_stopped_by_nobody_is_seen() {
        let ended = |status: Value| bad_journal(|journal| journal[5]["control"]["ended"]["status"] = status).len();
        assert_eq!(ended(json!({"failed": {"reason": "the database does not answer"}})), 1);
        assert_eq!(ended(json!({"failed": {"reason": "the turn was resumed 3 times without getting further"}})), 0);
        assert_eq!(ended(json!("cancelled")), 1);
    }

    #[test]
    fn a_turn_that_neither_ended_nor_waits_is_seen() {
        let open = [Broken::Open { conversation: "c".to_owned() }];
        assert_eq!(bad_journal(|journal| drop(journal.pop())), open);
        assert_eq!(bad_journal(|journal| journal[5] = json!({"control": "suspended"})), []);
    }
}
