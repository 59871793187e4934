//! What servers are given where they ask for it, with servers that nobody here wrote, of both eras.

use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::support::{Fixture, call, context, installed, misbehaving, nothing, quick, started, text};
use async_trait::async_trait;
use serde_json::{Map, json};
use turnwright_core::{
    AnswerAction, AssistantBlock, AssistantMessage, CallId, Completion, Elicitation, ElicitationId, Finish, FinishReason,
    Origin, Sampled, Sampling, SamplingBudget, SamplingOutcome, Seq, ToolCall, ToolChoice, ToolErrorKind, Usage, Wants,
    text_of,
};
use turnwright_engine::{Asks, CallContext, Reply, ToolSource};
use turnwright_mcp::{Granted, Root, ServerConfig, StdioConfig};

const BUDGET: SamplingBudget = SamplingBudget { max_requests: 3, max_output_tokens: 1_000 };

fn with(name: &str, command: &Path, script: &Path, granted: Granted) -> ServerConfig {
    let mut program = StdioConfig::new(command.display().to_string());
    program.args = vec![script.display().to_string()];
    let mut config = ServerConfig::new(name, program);
    quick(&mut config);
    config.granted = Arc::new(granted);
    config
}

fn roots(paths: &[&str]) -> Granted {
    Granted { roots: paths.iter().filter_map(|path| Root::at(Path::new(path))).collect(), ..Granted::default() }
}

fn models() -> Granted {
    Granted { sampling: Some(BUDGET), ..Granted::default() }
}

async fn everything(granted: Granted) -> Option<Fixture> {
    let script = installed()?.join("npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    Some(started(with("everything", Path::new("node"), &script, granted)).await)
}

async fn asks(granted: Granted) -> Option<Fixture> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/asks.py");
    Some(started(with("asks", &installed()?.join("python/bin/python"), &script, granted)).await)
}

/// A model that says the same to all, or somebody who does not allow it; and what was asked.
#[derive(Debug)]
struct Model {
    says: Option<&'static str>,
    /// What it asks for before it says that, where it is offered tools and was given nothing yet.
    calls: Option<(&'static str, &'static str)>,
    asked: Mutex<Vec<Sampling>>,
}

impl Model {
    fn new(says: Option<&'static str>) -> Arc<Self> {
        Arc::new(Self { says, calls: None, asked: Mutex::default() })
    }

    fn asked(&self) -> Vec<(String, u32)> {
        let told = |asked: &Sampling| (asked.messages.iter().map(|said| text_of(&said.content)).collect(), asked.max_tokens);
        self.asked.lock().unwrap().iter().map(told).collect()
    }
}

#[async_trait]
impl Asks for Model {
    async fn ask(&self, ask: Elicitation) -> Option<Reply> {
        let mut calls = None;
        if let Wants::Sampling { request } = ask.wants {
            let is_new = request.messages.iter().all(|said| said.results.is_empty());
            calls = self.calls.filter(|_| is_new && !request.tools.is_empty());
            self.asked.lock().unwrap().push(*request);
        }
        let Some(says) = self.says else {
            return Some(Reply { reason: Some("approve mode none".to_owned()), ..Reply::of(AnswerAction::Decline) });
        };
        let block = calls.map_or(AssistantBlock::Text { text: says.to_owned(), native: None }, |(name, arguments)| {
            let (name, arguments) = (name.to_owned(), arguments.to_owned());
            AssistantBlock::Call(ToolCall { name, arguments, provider_id: None, native: None, recovered: false })
        });
        let outcome = SamplingOutcome::Answered(AssistantMessage {
            origin: Origin { dialect: "d".into(), provider: "p".into(), model: "wise".into() },
            saw: Seq::FIRST,
            blocks: vec![block],
            finish: Finish { reason: FinishReason::Stop, raw: None },
            completion: Completion::Complete,
            usage: Usage::default(),
        });
        let question = ElicitationId { call: CallId { message: Seq::FIRST, index: 0 }, index: 0 };
        Some(Reply { sampled: Some(Arc::new(Sampled { question, outcome })), ..Reply::of(AnswerAction::Accept) })
    }

    fn whose(&self) -> Option<&str> {
        Some("c1")
    }

    fn by(&self) -> Option<&str> {
        Some("local")
    }
}

fn of(model: &Arc<Model>) -> CallContext {
    CallContext { asks: model.clone(), ..context().0 }
}

#[tokio::test]
async fn a_server_of_2025_11_25_asks_for_its_roots_and_is_told_them() {
    let Some(fixture) = everything(roots(&["/srv/notes", "/srv/my music"])).await else { return };
    let said = text(&fixture.call("get-roots-list", nothing()).await.unwrap()).to_owned();
    let wanted =
        "Current MCP Roots (2 total):\n\n1. notes\n   URI: file:///srv/notes\n\n2. my music\n   URI: file:///srv/my%20music";
    assert!(said.starts_with(wanted), "{said}");
    fixture.stop().await;
}

#[tokio::test]
async fn a_server_that_was_given_nothing_is_not_told_that_it_could_ask() {
    let Some(fixture) = everything(Granted::default()).await else { return };
    let names = fixture.tool_names();
    let found = ["get-roots-list", "trigger-sampling-request", "trigger-elicitation-request"];
    let found = found.map(|name| names.iter().any(|offered| offered == name));
    assert_eq!(found, [false, false, true], "{names:?}");
    fixture.stop().await;
}

#[tokio::test]
async fn a_call_of_2026_07_28_that_wants_its_roots_is_made_again_with_them_and_nobody_is_asked() {
    let Some(fixture) = asks(roots(&["/srv/notes"])).await else { return };
    let said = fixture.call("where", nothing()).await.unwrap();
    assert_eq!(text(&said), "looking: notes at file:///srv/notes");
    let prompt = fixture.server.prompt("tidy", &Map::new()).await.unwrap();
    let said: Vec<String> = prompt.messages.iter().map(|said| text_of(std::slice::from_ref(&said.content))).collect();
    assert_eq!(said, ["Tidy up notes"]);
    fixture.stop().await;
}

#[tokio::test]
async fn a_server_of_2025_11_25_has_a_model_asked_over_its_open_call() {
    let Some(fixture) = everything(models()).await else { return };
    let model = Model::new(Some("four"));
    let arguments = json!({"prompt": "2+2?", "maxTokens": 7});
    let said = fixture.server.call(call("trigger-sampling-request", arguments.clone()), of(&model)).await.unwrap();
    let said = text(&said).strip_prefix("LLM sampling result: \n").unwrap_or_default().to_owned();
    let expected = json!({
        "role": "assistant", "model": "wise", "stopReason": "endTurn", "content": {"type": "text", "text": "four"},
    });
    assert_eq!(serde_json::from_str::<serde_json::Value>(&said).unwrap(), expected);
    assert_eq!(model.asked(), [("Resource trigger-sampling-request context: 2+2?".to_owned(), 7)]);
    let nobody = Model::new(None);
    let said = fixture.server.call(call("trigger-sampling-request", arguments), of(&nobody)).await.unwrap();
    assert!(said.is_error, "{said:?}");
    assert_eq!(text(&said), "MCP error -1: User rejected sampling request: approve mode none");
    fixture.stop().await;
}

#[tokio::test]
async fn a_call_of_2026_07_28_that_wants_a_model_asked_is_made_again_with_what_it_said() {
    let Some(fixture) = asks(models()).await else { return };
    let model = Model::new(Some("moon"));
    let rhyme = || call("rhyme", json!({"word": "June"}));
    let said = fixture.server.call(rhyme(), of(&model)).await.unwrap();
    assert_eq!(text(&said), "June rhymes with moon, says wise");
    assert_eq!(model.asked(), [("What rhymes with June?".to_owned(), 50)]);
    let error = fixture.server.call(rhyme(), of(&Model::new(None))).await.unwrap_err();
    let why = "The tool `rhyme` of the MCP server `asks` wants an answer of a model first, and that was not allowed (approve mode \
               none). It did not finish.";
    assert_eq!((error.kind, error.model_text.as_str()), (ToolErrorKind::PermissionDenied, why));
    fixture.stop().await;
}

#[tokio::test]
async fn what_was_not_granted_is_refused_in_both_eras() {
    let Some(fixture) = asks(Granted::default()).await else { return };
    for (tool, method) in [("where", "roots/list"), ("rhyme", "sampling/createMessage")] {
        let error = fixture.call(tool, json!({"word": "June"})).await.unwrap_err();
        let why = format!("asks for more input by `{method}`, which was not offered to it");
        assert_eq!(error.model_text, format!("The tool `{tool}` of the MCP server `asks` {why}."));
    }
    fixture.stop().await;
    for method in ["roots/list", "sampling/createMessage"] {
        let fixture = started(misbehaving("asks", method)).await;
        let said = fixture.call("t", nothing()).await.unwrap();
        assert_eq!(text(&said), format!("{{\"code\": -32601, \"message\": \"{method}\"}}"));
        fixture.stop().await;
    }
}

#[tokio::test]
async fn a_server_brings_tools_of_its_own_for_the_model_and_runs_them_itself() {
    let Some(fixture) = asks(models()).await else { return };
    let model = Model { says: Some("it is a six"), calls: Some(("dice", r#"{"sides": 6}"#)), asked: Mutex::default() };
    let model = Arc::new(model);
    let said = fixture.server.call(call("throw", nothing()), of(&model)).await.unwrap();
    assert_eq!(text(&said), "endTurn: it is a six");
    let asked = model.asked.lock().unwrap().clone();
    let told = |asked: &Sampling| {
        let tools: Vec<String> = asked.tools.iter().map(|tool| tool.name.clone()).collect();
        let gave = asked.messages.iter().flat_map(|said| &said.results).map(|gave| (gave.call.clone(), text_of(&gave.content)));
        (tools, asked.tool_choice.clone(), gave.collect::<Vec<_>>())
    };
    let gave = ("question_1_0_0_0".to_owned(), "6 sides, a six".to_owned());
    let expected = |gave| (vec!["dice".to_owned()], Some(ToolChoice::Required), gave);
    assert_eq!(asked.iter().map(told).collect::<Vec<_>>(), [expected(vec![]), expected(vec![gave])]);
    fixture.stop().await;
}

#[tokio::test]
async fn a_server_that_runs_is_told_that_its_roots_are_others_and_reads_them_anew() {
    let Some(fixture) = everything(roots(&["/srv/notes"])).await else { return };
    let said = text(&fixture.call("get-roots-list", nothing()).await.unwrap()).to_owned();
    assert!(said.starts_with("Current MCP Roots (1 total):\n\n1. notes\n"), "{said}");
    let config = |granted| ServerConfig { granted: Arc::new(granted), ..fixture.server.config().clone() };
    assert!(!fixture.server.take_roots(&config(roots(&["/srv/notes"]))), "nothing is new");
    assert!(!fixture.server.take_roots(&config(Granted::default())), "that is for a new connection");
    assert!(!fixture.server.take_roots(&ServerConfig { serial: true, ..config(roots(&["/srv/plans"])) }), "more is new");
    assert!(fixture.server.take_roots(&config(roots(&["/srv/plans", "/srv/notes"]))));
    let mut said = String::new();
    // It reads them when it has heard of it.
    for _ in 0..1_000 {
        said = text(&fixture.call("get-roots-list", nothing()).await.unwrap()).to_owned();
        if said.contains("2 total") {
            break;
        }
    }
    assert!(said.starts_with("Current MCP Roots (2 total):\n\n1. plans\n"), "{said}");
    fixture.stop().await;
    let config = ServerConfig { granted: Arc::new(roots(&["/srv/notes"])), ..misbehaving("good", "") };
    let fixture = started(config).await;
    let other = ServerConfig { granted: Arc::new(roots(&["/srv/plans"])), ..fixture.server.config().clone() };
    assert!(fixture.server.take_roots(&other));
    fixture.logged("told: notifications/roots/list_changed").await;
    fixture.stop().await;
}
