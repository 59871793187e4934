//! What servers ask of people, with servers that nobody here wrote: over an open call, and by calls that are made again.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::support::{Fixture, call, context, fixture_in, installed, misbehaving, nothing, quick, started, text, told};
use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use turnwright_core::{
    AnswerAction, Answered, AnsweredBy, CallId, Elicitation, ElicitationId, Form, Resumption, Seq, Settled, ToolErrorKind,
    Wants, text_of,
};
use turnwright_engine::{Asks, CallContext, Reply, ToolReply, ToolSource};
use turnwright_mcp::{ServerConfig, StdioConfig};

/// People who answer in this order, and what they were asked.
#[derive(Debug)]
struct People {
    whose: &'static str,
    answers: Mutex<VecDeque<Reply>>,
    asked: Mutex<Vec<Elicitation>>,
    /// A permit for each answer.
    gate: Semaphore,
    /// A permit for each question.
    arrived: Semaphore,
}

impl People {
    fn who(whose: &'static str, answers: impl IntoIterator<Item = Reply>) -> Arc<Self> {
        let gate = Semaphore::new(0);
        Arc::new(Self {
            whose,
            answers: Mutex::new(answers.into_iter().collect()),
            asked: Mutex::default(),
            gate,
            arrived: Semaphore::new(0),
        })
    }

    fn at_once(answers: impl IntoIterator<Item = Reply>) -> Arc<Self> {
        let people = Self::who("c1", answers);
        people.gate.add_permits(100);
        people
    }

    fn asked(&self) -> Vec<Elicitation> {
        self.asked.lock().unwrap().clone()
    }
}

#[async_trait]
impl Asks for People {
    async fn ask(&self, ask: Elicitation) -> Option<Reply> {
        self.asked.lock().unwrap().push(ask);
        self.arrived.add_permits(1);
        self.gate.acquire().await.unwrap().forget();
        Some(self.answers.lock().unwrap().pop_front().unwrap_or(Reply::of(AnswerAction::Cancel)))
    }

    fn whose(&self) -> Option<&str> {
        Some(self.whose)
    }

    fn by(&self) -> Option<&str> {
        Some("local")
    }
}

fn of(people: &Arc<People>) -> CallContext {
    CallContext { asks: people.clone(), ..context().0 }
}

fn accept(content: Value) -> Reply {
    let content = match content {
        Value::Object(content) => Some(content),
        _ => None,
    };
    Reply::accept(content)
}

fn program(name: &str, command: &Path, args: &[PathBuf]) -> ServerConfig {
    let mut program = StdioConfig::new(command.display().to_string());
    program.args = args.iter().map(|argument| argument.display().to_string()).collect();
    let mut config = ServerConfig::new(name, program);
    quick(&mut config);
    config
}

async fn everything() -> Option<Fixture> {
    let script = installed()?.join("npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    Some(started(program("everything", Path::new("node"), &[script])).await)
}

fn asks_config() -> Option<ServerConfig> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/asks.py");
    Some(program("asks", &installed()?.join("python/bin/python"), &[script]))
}

fn resumed(asks: &[Elicitation], resume: Value, replies: &[Reply]) -> CallContext {
    let call = CallId { message: Seq::FIRST, index: 0 };
    let answered = |(reply, index): (&Reply, u32)| {
        let question = ElicitationId { call, index };
        Answered { question, action: reply.action, content: reply.content.clone(), by: AnsweredBy::Person, reason: None }
    };
    let answers = asks.iter().zip(replies.iter().zip(0..)).map(|(ask, reply)| Settled {
        ask: Arc::new(ask.clone()),
        answer: Arc::new(answered(reply)),
        sampled: None,
    });
    CallContext { resume: Some(Resumption { resume: Arc::new(resume), answers: answers.collect() }), ..context().0 }
}

fn asked(reply: ToolReply) -> (Vec<Elicitation>, Value) {
    match reply {
        ToolReply::Asks { asks, resume } => (asks, resume),
        other => panic!("{other:?}"),
    }
}

fn done(reply: ToolReply) -> String {
    match reply {
        ToolReply::Done(output) => text_of(&output.content),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn everything_asks_over_its_open_call_and_gets_each_kind_of_answer() {
    let Some(fixture) = everything().await else { return };
    let given = json!({"name": "Ann", "check": true, "email": "ann@example.org", "integer": 7});
    let people = People::at_once([accept(given), Reply::of(AnswerAction::Decline), Reply::of(AnswerAction::Cancel)]);
    let mut said = Vec::new();
    for _ in 0..3 {
        let output = fixture.server.call(call("trigger-elicitation-request", nothing()), of(&people)).await.unwrap();
        said.push(text_of(&output.content));
    }
    assert!(said[0].contains("User provided the requested information"), "{said:?}");
    assert!(said[1].contains("User declined"), "{said:?}");
    assert!(said[2].contains("User cancelled"), "{said:?}");
    let asked = people.asked();
    let Wants::Form { schema } = &asked[0].wants else { panic!("{asked:?}") };
    let form = Form::read(schema).unwrap();
    let names: Vec<&str> = form.fields.iter().map(|field| field.name.as_str()).collect();
    assert_eq!(names[..5], ["name", "check", "firstLine", "email", "homepage"], "in the order in which it asks");
    assert_eq!(names.len(), 13);
    let filled = form.fill(json!({"name": "Ann"}).as_object().unwrap().clone()).unwrap();
    assert_eq!(filled.get("titledSingleSelectEnum"), Some(&json!("hero-1")));
    fixture.stop().await;
}

#[tokio::test]
async fn everything_shows_an_address_and_never_opens_it() {
    let Some(fixture) = everything().await else { return };
    let people = People::at_once([Reply::of(AnswerAction::Accept)]);
    let arguments = json!({"url": "https://pay.example.org/a?b=c", "message": "Pay."});
    let output = fixture.server.call(call("trigger-url-elicitation", arguments), of(&people)).await.unwrap();
    assert!(text_of(&output.content).contains("User completed the URL elicitation flow"), "{output:?}");
    let wants = people.asked().pop().map(|asked| asked.wants);
    assert_eq!(wants, Some(Wants::Url { url: "https://pay.example.org/a?b=c".to_owned() }));
    fixture.stop().await;
}

#[tokio::test]
async fn everything_wants_an_address_opened_before_the_call_and_is_called_again() {
    let Some(fixture) = everything().await else { return };
    let arguments = || json!({"url": "https://pay.example.org/", "message": "Pay.", "errorPath": true});
    let tool = || call("trigger-url-elicitation", arguments());
    let (asks, resume) = asked(fixture.server.advance(tool(), context().0).await.unwrap());
    let wants = Wants::Url { url: "https://modelcontextprotocol.io".to_owned() };
    assert_eq!(asks.iter().map(|ask| &ask.wants).collect::<Vec<_>>(), [&wants]);
    let refused = resumed(&asks, resume.clone(), &[Reply::of(AnswerAction::Decline)]);
    let error = fixture.server.advance(tool(), refused).await.unwrap_err();
    let (kind, why, _) = told(&error);
    assert_eq!(
        (kind, why),
        (
            ToolErrorKind::PermissionDenied,
            "The tool `trigger-url-elicitation` of the MCP server `everything` wants an address to be opened first, and the \
             user did not agree to that. It was not called again."
        )
    );
    let people = People::at_once([Reply::of(AnswerAction::Accept)]);
    let agreed = resumed(&asks, resume, &[Reply::of(AnswerAction::Accept)]);
    let done = done(fixture.server.advance(tool(), CallContext { asks: people.clone(), ..agreed }).await.unwrap());
    assert!(done.contains("User completed the URL elicitation flow"), "{done}");
    let wants = Wants::Url { url: "https://pay.example.org/".to_owned() };
    assert_eq!(people.asked().pop().map(|asked| asked.wants), Some(wants), "over the open call");
    fixture.stop().await;
}

#[tokio::test]
async fn a_call_of_2026_07_28_ends_to_ask_and_is_made_again_with_the_answer_and_its_state() {
    let Some(config) = asks_config() else { return };
    let fixture = started(config).await;
    let (asks, resume) = asked(fixture.server.advance(call("book", json!({"town": "Oslo"})), context().0).await.unwrap());
    assert_eq!((asks.len(), asks[0].message.as_str()), (1, "Who travels to Oslo?"));
    let replies = [accept(json!({"name": "Ann", "nights": 3, "breakfast": true}))];
    let again = resumed(&asks, resume.clone(), &replies);
    let booked = fixture.server.advance(call("book", json!({"town": "Oslo"})), again).await.unwrap();
    assert_eq!(done(booked), "booked Oslo for Ann, 3 nights, breakfast True");
    let declined = resumed(&asks, resume, &[Reply::of(AnswerAction::Decline)]);
    let ToolReply::Done(output) = fixture.server.advance(call("book", json!({"town": "Oslo"})), declined).await.unwrap() else {
        panic!("it asks again")
    };
    assert!(output.is_error, "{output:?}");
    fixture.stop().await;
}

#[tokio::test]
async fn what_it_asked_outlives_the_server_and_the_host() {
    let Some(config) = asks_config() else { return };
    let first = started(config.clone()).await;
    let (asks, resume) = asked(first.server.advance(call("suite", json!({"town": "Bergen"})), context().0).await.unwrap());
    let stored = resume.to_string();
    first.stop().await;
    let folder = tempfile::tempdir().unwrap();
    let second = fixture_in(config, folder.path());
    let resume: Value = serde_json::from_str(&stored).unwrap();
    let again = resumed(&asks, resume, &[accept(json!({"name": "Bo"}))]);
    let (asks, resume) = asked(second.advance(call("suite", json!({"town": "Bergen"})), again).await.unwrap());
    assert_eq!(asks[0].message, "Which room for Bo?");
    let again = resumed(&asks, resume, &[accept(json!({"kind": "double"}))]);
    let booked = second.advance(call("suite", json!({"town": "Bergen"})), again).await.unwrap();
    assert_eq!(done(booked), "booked a double room in Bergen for Bo");
    second.stop().await;
}

#[tokio::test]
async fn an_address_of_2026_07_28_is_shown_and_its_answer_sent() {
    let Some(config) = asks_config() else { return };
    let fixture = started(config).await;
    let (asks, resume) = asked(fixture.server.advance(call("pay", nothing()), context().0).await.unwrap());
    let wants = Wants::Url { url: "https://pay.example.org/i/7?x=1".to_owned() };
    assert_eq!(asks, [Elicitation { key: "pay".to_owned(), message: "Pay 5 EUR.".to_owned(), wants }]);
    let paid = fixture.server.advance(call("pay", nothing()), resumed(&asks, resume, &[Reply::of(AnswerAction::Accept)])).await;
    assert_eq!(done(paid.unwrap()), "invoice 7: accept");
    fixture.stop().await;
}

#[tokio::test]
async fn a_call_that_cannot_be_parked_asks_its_caller_until_it_is_done() {
    let Some(config) = asks_config() else { return };
    let fixture = started(config).await;
    let people = People::at_once([accept(json!({"name": "Ann"})), accept(json!({"kind": "single"}))]);
    let output = fixture.server.call(call("suite", json!({"town": "Oslo"})), of(&people)).await.unwrap();
    assert_eq!(text(&output), "booked a single room in Oslo for Ann");
    let messages: Vec<String> = people.asked().into_iter().map(|asked| asked.message).collect();
    assert_eq!(messages, ["Who travels to Oslo?", "Which room for Ann?"]);
    let nobody = fixture.call("book", json!({"town": "Oslo"})).await.unwrap();
    assert!(nobody.is_error, "{nobody:?}");
    fixture.stop().await;
}

#[tokio::test]
async fn a_question_goes_to_no_conversation_rather_than_to_the_wrong_one() {
    let Some(fixture) = everything().await else { return };
    let (mine, theirs) = (People::who("c1", [accept(json!({"name": "Ann"}))]), People::who("c2", []));
    let waits = fixture.server.call(call("trigger-elicitation-request", nothing()), of(&mine));
    let other = async {
        mine.arrived.acquire().await.unwrap().forget();
        let output = fixture.server.call(call("trigger-elicitation-request", nothing()), of(&theirs)).await.unwrap();
        mine.gate.add_permits(1);
        output
    };
    let (mine_said, other_said) = tokio::join!(waits, other);
    assert!(text_of(&mine_said.unwrap().content).contains("User provided"));
    assert!(other_said.is_error, "{other_said:?}");
    assert!(text_of(&other_said.content).contains("calls of several conversations are open"), "{other_said:?}");
    assert_eq!(theirs.asked(), []);
    fixture.logged("calls of several conversations are open").await;
    fixture.stop().await;
}

#[tokio::test]
async fn over_http_a_question_goes_to_the_conversation_whose_call_it_came_with_and_keeps_its_order() {
    let Some((_child, fixture)) = crate::support::far::everything().await else { return };
    let mine = People::who("c1", [accept(json!({"name": "Ann"}))]);
    let theirs = People::who("c2", [accept(json!({"name": "Bob"}))]);
    let asks = |people| fixture.server.call(call("trigger-elicitation-request", nothing()), of(people));
    let other = async {
        mine.arrived.acquire().await.unwrap().forget();
        theirs.gate.add_permits(1);
        let output = asks(&theirs).await.unwrap();
        mine.gate.add_permits(1);
        output
    };
    let (mine_said, other_said) = tokio::join!(asks(&mine), other);
    let said = [text_of(&mine_said.unwrap().content), text_of(&other_said.content)];
    assert!(said[0].contains("Name: Ann") && said[1].contains("Name: Bob"), "{said:?}");
    let asked = mine.asked();
    let Wants::Form { schema } = &asked[0].wants else { panic!("{asked:?}") };
    let names: Vec<String> = Form::read(schema).unwrap().fields.into_iter().map(|field| field.name).collect();
    assert_eq!(names[..5], ["name", "check", "firstLine", "email", "homepage"], "in the order in which it asks");
    fixture.stop().await;
}

#[tokio::test]
async fn a_question_that_is_none_is_refused_and_the_call_goes_on() {
    for (params, why) in [
        (
            json!({"message": "?", "requestedSchema": {"properties": {"a": {"type": "object"}}}}),
            "its field `a` is of type object, which no form has",
        ),
        (json!({"mode": "url", "url": "javascript:alert(1)"}), "the url of an elicitation is a whole http or https address"),
    ] {
        let fixture = started(misbehaving("elicits", &params.to_string())).await;
        let people = People::at_once([]);
        let output = fixture.server.call(call("t", nothing()), of(&people)).await.unwrap();
        assert_eq!(text(&output), format!("refused: {why}"));
        assert_eq!(people.asked(), []);
        fixture.stop().await;
    }
}

#[tokio::test]
async fn a_question_that_the_server_takes_back_is_closed() {
    let fixture = started(misbehaving("takes_back", "")).await;
    let people = People::who("c1", []);
    let output = fixture.server.call(call("t", nothing()), of(&people)).await.unwrap();
    assert_eq!((text(&output), people.asked().len()), ("never mind", 1));
    fixture.stop().await;
}
