//! Calls that go on by themselves at their servers: in both eras, over restarts of the host and the server.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{Fixture, LONG, Reports, call, context, fixture_in, installed, nothing, quick, started, stdio, text};
use async_trait::async_trait;
use serde_json::{Map, Value, json};
use tokio::sync::Notify;
use turnwright_core::{
    AnswerAction, Answered, AnsweredBy, CallId, Elicitation, ElicitationId, Resumption, Seq, Settled, ToolErrorKind, text_of,
};
use turnwright_engine::{Asks, CallContext, Reply, Tasks, ToolReply, ToolSource};
use turnwright_mcp::{ServerConfig, StdioConfig, ToolDeclaration};

const ERAS: [&str; 2] = ["legacy", "modern"];

/// What was kept of tasks.
#[derive(Debug, Default)]
struct Kept {
    tasks: Mutex<Vec<Value>>,
    is_there: Notify,
}

#[async_trait]
impl Tasks for Kept {
    async fn accepted(&self, task: Value) {
        self.tasks.lock().unwrap().push(task);
        self.is_there.notify_one();
    }
}

/// Somebody who wants everything blue.
#[derive(Debug)]
struct Blue;

#[async_trait]
impl Asks for Blue {
    async fn ask(&self, ask: Elicitation) -> Option<Reply> {
        assert_eq!(ask.message, "Which colour?");
        Some(Reply::accept(Some(Map::from_iter([("colour".to_owned(), json!("blue"))]))))
    }

    fn whose(&self) -> Option<&str> {
        Some("c1")
    }

    fn by(&self) -> Option<&str> {
        Some("local")
    }
}

fn config(era: &str, folder: &Path, polls: u32) -> ServerConfig {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/tasks.py");
    let mut program = StdioConfig::new("python3");
    program.args = vec![script.display().to_string(), era.to_owned(), folder.display().to_string(), polls.to_string()];
    let mut config = ServerConfig::new("shop", program);
    quick(&mut config);
    config
}

fn keeping(kept: &Arc<Kept>) -> (CallContext, Arc<Reports>) {
    let (context, reports) = context();
    (CallContext { tasks: kept.clone(), asks: Arc::new(Blue), ..context }, reports)
}

fn noted(folder: &Path, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn done(reply: ToolReply) -> String {
    match reply {
        ToolReply::Done(output) => text_of(&output.content),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_task_is_kept_asked_for_and_shown_until_it_is_done() {
    for era in ERAS {
        let folder = tempfile::tempdir().unwrap();
        let fixture = started(config(era, folder.path(), 3)).await;
        let kept = Arc::new(Kept::default());
        let (context, reports) = keeping(&kept);
        let said = done(fixture.server.advance(call("build", nothing()), context).await.unwrap());
        assert_eq!(said, "build is done, colour none", "{era}");
        assert_eq!(*kept.tasks.lock().unwrap(), [json!({"taskId": "t0", "pollInterval": 30})]);
        let told: Vec<_> =
            reports.0.lock().unwrap().clone().into_iter().map(|progress| (progress.progress, progress.message)).collect();
        let expected = [1.0, 2.0, 3.0].map(|polls| (polls, Some(format!("asked {polls} times"))));
        assert_eq!(told, expected, "{era}");
        assert_eq!(noted(folder.path(), "made"), ["build"]);
        fixture.stop().await;
    }
}

#[tokio::test]
async fn a_task_is_taken_up_by_the_next_host_and_not_made_again() {
    for era in ERAS {
        let (folder, first_ledger, second_ledger) =
            (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let first = fixture_in(config(era, folder.path(), 1_000_000), first_ledger.path());
        let kept = Arc::new(Kept::default());
        let (waits, _) = keeping(&kept);
        tokio::select! {
            reply = first.advance(call("build", nothing()), waits) => panic!("{reply:?}"),
            () = kept.is_there.notified() => {}
        }
        first.stop().await;
        let task = kept.tasks.lock().unwrap().pop().unwrap();
        let second = fixture_in(config(era, folder.path(), 2), second_ledger.path());
        let heard = Arc::new(Kept::default());
        let (goes_on, _) = keeping(&heard);
        let goes_on = CallContext { task: Some(Arc::new(task.clone())), ..goes_on };
        let said = done(second.advance(call("build", nothing()), goes_on).await.unwrap());
        assert_eq!(said, "build is done, colour none");
        assert_eq!(*heard.tasks.lock().unwrap(), [task], "{era}: that it goes on is kept once");
        assert_eq!(noted(folder.path(), "made"), ["build"], "{era}");
        second.stop().await;
    }
}

#[tokio::test]
async fn a_task_that_its_server_does_not_know_any_more_has_an_unknown_outcome() {
    for era in ERAS {
        let folder = tempfile::tempdir().unwrap();
        let fixture = started(config(era, folder.path(), 1)).await;
        let error = fixture.call("forget", nothing()).await.unwrap_err();
        let why = "The MCP server `shop` had accepted `forget` as a task and does not know it any more. What came of it is \
                   unknown: check before you call it again.";
        assert_eq!((error.kind, error.model_text.as_str()), (ToolErrorKind::Interrupted, why), "{era}");
        assert_eq!(error.diagnostic.as_deref(), Some("JSON-RPC error -32602: no such task"));
        fixture.stop().await;
    }
}

#[tokio::test]
async fn a_server_that_cannot_tell_of_a_task_for_a_moment_is_asked_again() {
    for era in ERAS {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("fails"), "2").unwrap();
        let fixture = started(config(era, folder.path(), 1)).await;
        let said = text(&fixture.call("build", nothing()).await.unwrap()).to_owned();
        assert_eq!(
            (said.as_str(), noted(folder.path(), "made")),
            ("build is done, colour none", vec!["build".to_owned()]),
            "{era}"
        );
        fixture.stop().await;
    }
}

#[tokio::test]
async fn a_task_that_fails_fails_the_call_in_its_servers_words() {
    for era in ERAS {
        let folder = tempfile::tempdir().unwrap();
        let fixture = started(config(era, folder.path(), 1)).await;
        let error = fixture.call("break", nothing()).await.unwrap_err();
        let why = "The call of `break` on the MCP server `shop` failed: it fell apart";
        assert_eq!((error.kind, error.model_text.as_str()), (ToolErrorKind::ExecutionFailed, why), "{era}");
        fixture.stop().await;
    }
}

#[tokio::test]
async fn a_stop_tells_the_server_that_the_task_is_not_needed() {
    for era in ERAS {
        let folder = tempfile::tempdir().unwrap();
        let fixture = started(config(era, folder.path(), 1_000_000)).await;
        let kept = Arc::new(Kept::default());
        let (context, _) = keeping(&kept);
        let cancel = context.cancel.clone();
        let stops = async {
            kept.is_there.notified().await;
            cancel.cancel();
        };
        let (reply, ()) = tokio::join!(fixture.server.advance(call("build", nothing()), context), stops);
        let error = reply.unwrap_err();
        let why = "The task of `build` on the MCP server `shop` was cancelled, and its server was told. Whether it took effect is \
                   unknown.";
        assert_eq!((error.kind, error.model_text.as_str()), (ToolErrorKind::Interrupted, why), "{era}");
        assert_eq!(noted(folder.path(), "cancelled"), ["t0"]);
        fixture.stop().await;
    }
}

#[tokio::test]
async fn a_task_of_2025_11_25_asks_while_its_result_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = started(config("legacy", folder.path(), 1)).await;
    let (context, _) = keeping(&Arc::default());
    let said = done(fixture.server.advance(call("paint", nothing()), context).await.unwrap());
    assert_eq!(said, "paint is done, colour blue");
    fixture.stop().await;
}

/// The call of `paint` as it goes on once it asked for a colour, at a server that ended meanwhile, and somebody said red.
async fn answered_red(folder: &Path) -> CallContext {
    let first = started(config("modern", folder, 1)).await;
    let (context, _) = keeping(&Arc::default());
    let ToolReply::Asks { asks, resume } = first.server.advance(call("paint", nothing()), context.clone()).await.unwrap()
    else {
        panic!("it asks for a colour")
    };
    first.stop().await;
    assert_eq!(
        asks.iter().map(|ask| (ask.key.as_str(), ask.message.as_str())).collect::<Vec<_>>(),
        [("colour", "Which colour?")]
    );
    let question = ElicitationId { call: CallId { message: Seq::FIRST, index: 0 }, index: 0 };
    let filled = Some(Map::from_iter([("colour".to_owned(), json!("red"))]));
    let answer = Answered { question, action: AnswerAction::Accept, content: filled, by: AnsweredBy::Person, reason: None };
    let answers = vec![Settled { ask: Arc::new(asks[0].clone()), answer: Arc::new(answer), sampled: None }];
    let resume: Value = serde_json::from_str(&resume.to_string()).unwrap();
    CallContext { resume: Some(Resumption { resume: Arc::new(resume), answers }), ..context }
}

/// The same server behind a door that is shut while there is FOLDER/down, and that counts who knocks.
fn down(folder: &Path) -> ServerConfig {
    let mut config = config("modern", folder, 1);
    let program = stdio(&mut config);
    let knock = format!("echo >> {0}/knocks; test -e {0}/down && exit 1; exec python3 \"$@\"", folder.display());
    program.args.splice(..0, ["-c".to_owned(), knock, "sh".to_owned()]);
    "sh".clone_into(&mut program.command);
    std::fs::write(folder.join("down"), "").unwrap();
    config
}
async fn knocked(folder: &Path) {
    let knocked = async {
        while noted(folder, "knocks").is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, knocked).await.expect("it is started");
}

#[tokio::test]
async fn an_answer_reaches_a_task_whose_server_cannot_be_started_just_then() {
    let (folder, ledger) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let again = answered_red(folder.path()).await;
    let second = fixture_in(down(folder.path()), ledger.path());
    let comes_up = async {
        knocked(folder.path()).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        std::fs::remove_file(folder.path().join("down")).unwrap();
    };
    let (reply, ()) = tokio::join!(second.advance(call("paint", nothing()), again), comes_up);
    assert_eq!(done(reply.unwrap()), "paint is done, colour red");
    assert_eq!(noted(folder.path(), "made"), ["paint"]);
    second.stop().await;
}

#[tokio::test]
async fn a_stop_ends_the_wait_for_a_server_that_is_to_be_given_an_answer() {
    let (folder, ledger) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let again = answered_red(folder.path()).await;
    let second = fixture_in(down(folder.path()), ledger.path());
    let cancel = again.cancel.clone();
    let stops = async {
        knocked(folder.path()).await;
        cancel.cancel();
    };
    let (reply, ()) = tokio::join!(second.advance(call("paint", nothing()), again), stops);
    let why = "The task of `paint` on the MCP server `shop` was cancelled, and its server could not be told. Whether it took effect \
               is unknown.";
    assert_eq!(reply.unwrap_err().model_text, why);
    second.stop().await;
}

#[tokio::test]
async fn what_a_task_was_given_is_not_asked_again_where_its_server_lists_it_a_while_longer() {
    let (folder, ledger) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(folder.path().join("late"), "").unwrap();
    let again = answered_red(folder.path()).await;
    let second = fixture_in(config("modern", folder.path(), 1), ledger.path());
    assert_eq!(done(second.advance(call("paint", nothing()), again).await.unwrap()), "paint is done, colour red");
    assert_eq!(noted(folder.path(), "updates").len(), 1);
    second.stop().await;
}

#[tokio::test]
async fn a_task_of_2026_07_28_ends_to_ask_and_goes_on_with_the_answer_after_a_restart() {
    let (folder, ledger) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let again = answered_red(folder.path()).await;
    let second = fixture_in(config("modern", folder.path(), 1), ledger.path());
    let said = done(second.advance(call("paint", nothing()), again).await.unwrap());
    assert_eq!((said.as_str(), noted(folder.path(), "made")), ("paint is done, colour red", vec!["paint".to_owned()]));
    second.stop().await;
}

async fn everything() -> Option<Fixture> {
    let script = installed()?.join("npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let mut program = StdioConfig::new("node");
    program.args = vec![script.display().to_string()];
    let mut config = ServerConfig::new("everything", program);
    quick(&mut config);
    Some(started(config).await)
}

/// Somebody who takes the first of what is offered.
#[derive(Debug)]
struct First;

#[async_trait]
impl Asks for First {
    async fn ask(&self, _: Elicitation) -> Option<Reply> {
        Some(Reply::accept(Some(Map::from_iter([("interpretation".to_owned(), json!("snake"))]))))
    }

    fn whose(&self) -> Option<&str> {
        Some("c1")
    }

    fn by(&self) -> Option<&str> {
        Some("local")
    }
}

#[tokio::test]
async fn everything_takes_a_call_as_a_task_and_asks_on_the_way() {
    let Some(fixture) = everything().await else { return };
    let kept = Arc::new(Kept::default());
    let (context, reports) = keeping(&kept);
    let context = CallContext { asks: Arc::new(First), ..context };
    let arguments = json!({"topic": "python", "ambiguous": true});
    let said = done(fixture.server.advance(call("simulate-research-query", arguments), context).await.unwrap());
    assert!(said.starts_with("# Research Report: python (snake)"), "{said}");
    assert_eq!(kept.tasks.lock().unwrap().len(), 1);
    let messages: Vec<String> = reports.0.lock().unwrap().clone().into_iter().filter_map(|progress| progress.message).collect();
    assert!(messages.contains(&"Gathering sources...".to_owned()), "{messages:?}");
    fixture.stop().await;
}

#[tokio::test]
async fn a_tool_that_does_not_say_that_it_is_a_task_alone_is_called_as_one_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = started(config("legacy-quiet", folder.path(), 1)).await;
    assert_eq!(text(&fixture.call("build", nothing()).await.unwrap()), "build is done, colour none");
    assert_eq!(noted(folder.path(), "made"), ["build"]);
    fixture.stop().await;
}

#[tokio::test]
async fn a_tool_that_takes_both_forms_is_called_as_a_task_unless_it_may_be_called_anew() {
    for (replayable, expected) in [(false, "build is done, colour none"), (true, "plain")] {
        let folder = tempfile::tempdir().unwrap();
        let mut config = config("legacy-both", folder.path(), 1);
        config.tools.insert("build".to_owned(), ToolDeclaration { replayable: Some(replayable), ..ToolDeclaration::default() });
        let fixture = started(config).await;
        assert_eq!(text(&fixture.call("build", nothing()).await.unwrap()), expected);
        fixture.stop().await;
    }
}

#[tokio::test]
async fn a_task_of_a_host_that_is_gone_is_called_off_by_the_next() {
    for era in ERAS {
        let (folder, first_ledger, second_ledger) =
            (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let first = fixture_in(config(era, folder.path(), 1_000_000), first_ledger.path());
        let kept = Arc::new(Kept::default());
        let (waits, _) = keeping(&kept);
        tokio::select! {
            reply = first.advance(call("build", nothing()), waits) => panic!("{reply:?}"),
            () = kept.is_there.notified() => {}
        }
        first.stop().await;
        assert_eq!(noted(folder.path(), "cancelled"), [""; 0], "that a host ends is no reason to cancel");
        let task = kept.tasks.lock().unwrap().pop().unwrap();
        let second = fixture_in(config(era, folder.path(), 1_000_000), second_ledger.path());
        second.call_off("build", &task).await;
        assert_eq!(noted(folder.path(), "cancelled"), ["t0"], "{era}");
        second.stop().await;
    }
}
