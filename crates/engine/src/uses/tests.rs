use std::sync::Arc;

use serde_json::json;
use turnwright_core::{
    AssistantBlock, AssistantMessage, CallId, Claim, Completion, ContentBlock, Control, DecidedBy, Decision, DriverId, Entry,
    Finish, FinishReason, Journal, ModelRef, Origin, Outcome, Seq, Started, StoredEntry, ToolCall, ToolDefinition, ToolResult,
    TurnId, TurnSettings, TurnStatus, Usage, UserMessage, Verdict,
};

use super::{homes, last_before};

/// A conversation whose turns each make some calls, by the names of their tools.
#[derive(Default)]
struct Told(Journal);

impl Told {
    fn push(&mut self, entry: Entry) {
        let seq = self.0.next_seq();
        self.0.apply(StoredEntry { seq, at_ms: 0, entry: Arc::new(entry) }).unwrap();
    }

    fn claim(&mut self, driver: &str) {
        let claim = Claim { driver: DriverId(driver.to_owned()), epoch: self.0.next_epoch(), folder: None };
        self.push(Entry::Control(Control::Claimed(claim)));
    }

    /// A turn of this driver up to where its calls run.
    fn calls(&mut self, driver: &str, tools: &[&str]) -> Vec<CallId> {
        let settings = TurnSettings::new(ModelRef::new("test", "scripted"));
        self.push(Entry::User(UserMessage { content: vec![ContentBlock::text("Go.")], settings }));
        self.claim(driver);
        let definitions = ["counter__add", "counter__look", "files__read", "browser__open"].map(definition).into();
        self.push(Entry::Control(Control::Offered { definitions }));
        let message = self.0.next_seq();
        let call = |name: &&str| {
            let (name, arguments) = ((*name).to_owned(), "{}".to_owned());
            AssistantBlock::Call(ToolCall { name, arguments, provider_id: None, native: None, recovered: false })
        };
        self.push(Entry::Assistant(AssistantMessage {
            origin: Origin { dialect: "test".to_owned(), provider: "test".to_owned(), model: "scripted".to_owned() },
            saw: self.0.last_seq().unwrap_or(Seq::FIRST),
            blocks: tools.iter().map(call).collect(),
            finish: Finish { reason: FinishReason::ToolCalls, raw: None },
            completion: Completion::Complete,
            usage: Usage::default(),
        }));
        let calls: Vec<CallId> = (0..).zip(tools).map(|(index, _)| CallId { message, index }).collect();
        for call in &calls {
            self.push(Entry::Decision(Decision {
                call: *call,
                verdict: Verdict::Allow,
                by: DecidedBy::Person,
                definition_hash: None,
                arguments: None,
                reason: None,
                remembered: None,
            }));
        }
        calls
    }

    fn start(&mut self, calls: &[CallId]) {
        for call in calls {
            self.push(Entry::Started(Started::new(*call, true)));
        }
    }

    /// Their results, and the end of the turn.
    fn end(&mut self, calls: &[CallId]) {
        for call in calls {
            self.push(Entry::Result(ToolResult::of(*call, Outcome::Success, "Done.")));
        }
        let turn = self.0.turn().map_or(TurnId(Seq::FIRST), turnwright_core::Turn::id);
        self.push(Entry::Control(Control::Ended { turn, status: TurnStatus::Cancelled }));
    }

    /// A whole turn.
    fn turn(&mut self, driver: &str, tools: &[&str]) -> Vec<CallId> {
        let calls = self.calls(driver, tools);
        self.start(&calls);
        self.end(&calls);
        calls
    }

    fn homes(&self) -> Vec<String> {
        homes(&self.0, |tool| tool.source != "files").into_iter().map(|driver| driver.0).collect()
    }

    fn last_before(&self, call: CallId, source: &str) -> Option<&str> {
        last_before(&self.0, call, |tool| tool.source == source).map(|driver| driver.0.as_str())
    }
}

fn definition(name: &str) -> Arc<ToolDefinition> {
    let (source, tool) = name.split_once("__").unwrap();
    Arc::new(ToolDefinition {
        name: name.to_owned(),
        source: source.to_owned(),
        tool: tool.to_owned(),
        title: None,
        description: String::new(),
        input_schema: json!({"type": "object"}),
        annotations: None,
        declared: turnwright_core::Declared::default(),
    })
}

#[test]
fn a_conversation_is_at_home_where_a_source_that_keeps_something_was_used_last() {
    let mut told = Told::default();
    assert_eq!(told.homes(), [""; 0]);
    told.turn("a", &["files__read"]);
    assert_eq!(told.homes(), [""; 0], "nothing is kept by files");
    told.turn("b", &["counter__add"]);
    told.turn("a", &["files__read"]);
    assert_eq!(told.homes(), ["b"]);
    told.turn("c", &["browser__open"]);
    told.turn("b", &["counter__look"]);
    assert_eq!(told.homes(), ["b", "c"]);
    told.turn("d", &["counter__add"]);
    told.turn("e", &["counter__add"]);
    assert_eq!(told.homes(), ["e", "d", "b"], "no more than are worth asking for");
}

#[test]
fn what_is_not_offered_any_more_is_nowhere_at_home() {
    let mut told = Told::default();
    told.turn("b", &["counter__add"]);
    told.push(Entry::Control(Control::Offered { definitions: Vec::new() }));
    assert_eq!(told.homes(), [""; 0]);
}

#[test]
fn the_call_before_one_is_the_newest_that_began_before_it() {
    let mut told = Told::default();
    let first = told.turn("a", &["counter__add"]);
    assert_eq!(told.last_before(first[0], "counter"), None);
    told.turn("b", &["browser__open"]);
    let calls = told.calls("c", &["counter__add", "counter__look"]);
    assert_eq!(told.last_before(calls[0], "counter"), Some("a"), "it may ask before it is stored that it starts");
    told.start(&calls);
    assert_eq!(told.last_before(calls[0], "counter"), Some("a"), "not the one that started after it");
    assert_eq!(told.last_before(calls[1], "counter"), Some("c"));
    assert_eq!(told.last_before(calls[1], "browser"), Some("b"));
}

#[test]
fn a_call_that_starts_again_elsewhere_is_not_the_one_before_itself() {
    let mut told = Told::default();
    told.turn("a", &["counter__add"]);
    let calls = told.calls("b", &["counter__look"]);
    told.start(&calls);
    told.claim("c");
    told.start(&calls);
    assert_eq!(told.last_before(calls[0], "counter"), Some("a"));
    assert_eq!(told.homes(), ["c", "b", "a"]);
}
