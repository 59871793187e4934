//! Commands in the background: started, read, written to and stopped by calls of their own, and ended with what they belong to.

use std::time::Duration;

use crate::support::{World, call_of, context};
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use turnwright_core::{ConversationId, ToolErrorKind, UserId};
use turnwright_engine::source::{CallContext, ToolError, ToolSource};
use turnwright_tools::{BackgroundLimits, TypedSource, command};

/// Long enough for anything that is going to happen.
const PATIENCE: Duration = Duration::from_secs(30);

fn id(name: &str) -> ConversationId {
    name.parse().unwrap()
}

fn of(name: &str) -> CallContext {
    CallContext { conversation: Some(id(name)), ..context(&CancellationToken::new()) }
}

async fn tried(source: &TypedSource, name: &str, tool: &str, arguments: Value) -> Result<Value, ToolError> {
    let call = source.call(call_of(tool, arguments), of(name));
    timeout(PATIENCE, call).await.expect("the call ends").map(|output| output.structured_content.unwrap())
}

async fn called(source: &TypedSource, name: &str, tool: &str, arguments: Value) -> Value {
    tried(source, name, tool, arguments).await.expect("the call works")
}

/// Starts a line in a conversation; its id.
async fn started(source: &TypedSource, name: &str, line: &str) -> String {
    let told = called(source, name, "start", json!({"command": line, "wait_ms": 0})).await;
    assert_eq!((&told["state"], &told["command"]), (&json!("running"), &json!(line)));
    told["process"].as_str().unwrap().to_owned()
}

/// Reads until the output fits, and gives what was told last.
async fn until(source: &TypedSource, name: &str, process: &str, fits: impl Fn(&str) -> bool) -> Value {
    let mut output = String::new();
    let mut from = json!(0);
    timeout(PATIENCE, async {
        loop {
            let told = called(source, name, "output", json!({"process": process, "from": from, "wait_ms": 60_000})).await;
            output.push_str(told["output"].as_str().unwrap());
            from = told["next"].clone();
            if fits(&output) || told["state"] == "ended" {
                return told;
            }
        }
    })
    .await
    .expect("it prints")
}

async fn ended(source: &TypedSource, name: &str, process: &str) -> Value {
    until(source, name, process, |_| false).await
}

async fn gone(pid: &str) {
    let stat = format!("/proc/{}/stat", pid.trim());
    let is_alive = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
    timeout(PATIENCE, async {
        while is_alive() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .expect("the process ends");
}

/// A line that says its number, also of a child of its own that leaves the group, and stays.
const STAYS: &str = "trap '' HUP; (setsid sh -c 'echo $$ > other; exec sleep 1000' > /dev/null 2>&1 &) \
    ; until [ -s other ]; do sleep 0.01; done; echo $$ > own; echo up; sleep 1000";

#[tokio::test]
async fn a_process_is_read_in_parts_and_written_to_and_ends_by_itself() {
    let world = World::new();
    let source = world.command();
    let process = started(&source, "a", "echo first; while read line; do echo got $line; done; echo last >&2; exit 3").await;
    let told = until(&source, "a", &process, |output| output == "first\n").await;
    assert_eq!((&told["state"], &told["next"], &told["from"]), (&json!("running"), &json!(6), &json!(0)));
    called(&source, "a", "input", json!({"process": process, "text": "one\n"})).await;
    let told = called(&source, "a", "output", json!({"process": process, "from": 6, "wait_ms": 60_000})).await;
    assert_eq!((&told["output"], &told["next"]), (&json!("got one\n"), &json!(14)));
    called(&source, "a", "input", json!({"process": process, "close": true})).await;
    let told = ended(&source, "a", &process).await;
    assert_eq!((&told["ended_by"], &told["exit_code"]), (&json!("itself"), &json!(3)));
    // What is read twice is the same twice.
    let told = called(&source, "a", "output", json!({"process": process})).await;
    assert_eq!(told["output"], "first\ngot one\nlast\n");
    let error = tried(&source, "a", "input", json!({"process": process, "text": "x"})).await.unwrap_err();
    let expected = format!("process `{process}` takes no input: its input is closed");
    assert_eq!((error.kind, error.model_text), (ToolErrorKind::ExecutionFailed, expected));
}

#[tokio::test]
async fn what_ends_at_once_is_told_by_the_start() {
    let world = World::new();
    let source = world.command();
    let told = called(&source, "a", "start", json!({"command": "echo bad >&2; exit 7", "wait_ms": 60_000})).await;
    assert_eq!((&told["state"], &told["exit_code"], &told["output"]), (&json!("ended"), &json!(7), &json!("bad\n")));
    let error = tried(&source, "a", "start", json!({"command": "no-such-program", "args": []})).await.unwrap_err();
    assert_eq!((error.kind, error.model_text.as_str()), (ToolErrorKind::NotFound, "there is no program `no-such-program`"));
}

#[tokio::test]
async fn a_stop_ends_it_with_all_that_it_started() {
    let world = World::new();
    let source = world.command();
    let process = started(&source, "a", STAYS).await;
    until(&source, "a", &process, |output| output == "up\n").await;
    let told = called(&source, "a", "stop", json!({"process": process})).await;
    let facts = [&told["state"], &told["ended_by"], &told["signal"], &told["output"]];
    assert_eq!(facts, [&json!("ended"), &json!("stop"), &json!("SIGTERM"), &json!("up\n")]);
    gone(&world.get("own")).await;
    gone(&world.get("other")).await;
}

#[tokio::test]
async fn it_ends_with_its_conversation_and_that_of_another_goes_on() {
    let world = World::new();
    let source = world.command();
    let (mine, others) = (started(&source, "a", STAYS).await, started(&source, "b", "echo up; sleep 1000").await);
    until(&source, "a", &mine, |output| output == "up\n").await;
    source.conversation_over(&id("a"));
    assert_eq!(ended(&source, "a", &mine).await["ended_by"], "stop");
    gone(&world.get("other")).await;
    assert_eq!(called(&source, "b", "output", json!({"process": others})).await["state"], "running");
}

#[tokio::test]
async fn it_ends_with_its_source_whether_that_is_stopped_or_dropped() {
    for is_stopped in [true, false] {
        let world = World::new();
        let source = world.command();
        let process = started(&source, "a", STAYS).await;
        until(&source, "a", &process, |output| output == "up\n").await;
        if is_stopped {
            timeout(PATIENCE, source.stop()).await.expect("the source stops");
        }
        drop(source);
        gone(&world.get("own")).await;
        gone(&world.get("other")).await;
    }
}

#[tokio::test]
async fn no_other_conversation_and_no_other_user_reaches_it() {
    let world = World::new();
    let source = world.command();
    let process = started(&source, "a", "sleep 1000").await;
    for (tool, arguments) in [
        ("output", json!({"process": process})),
        ("input", json!({"process": process, "text": "x"})),
        ("stop", json!({"process": process})),
    ] {
        let error = tried(&source, "b", tool, arguments.clone()).await.unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::NotFound, "{tool}");
        let expected = format!("there is no background process `{process}` in this conversation (there is none); ");
        assert!(error.model_text.starts_with(&expected), "{}", error.model_text);
        let stranger: UserId = "stranger".parse().unwrap();
        let error = source.call(call_of(tool, arguments), of("a").of(&stranger)).await.unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::NotFound, "{tool}");
    }
    assert_eq!(called(&source, "b", "output", json!({})).await, json!({"processes": []}));
    let listed = called(&source, "a", "output", json!({})).await;
    assert_eq!((&listed["processes"][0]["process"], &listed["processes"][0]["state"]), (&json!(process), &json!("running")));
}

#[tokio::test]
async fn their_number_is_limited_and_those_that_ended_do_not_count() {
    let world = World::new();
    let mut config = world.command_config();
    config.background = BackgroundLimits { per_conversation: 2, overall: 3, ..BackgroundLimits::default() };
    let source = command(config).unwrap();
    let first = started(&source, "a", "sleep 1000").await;
    started(&source, "a", "sleep 1000").await;
    let refused = async |name: &str| tried(&source, name, "start", json!({"command": "true"})).await.unwrap_err().model_text;
    assert_eq!(refused("a").await, "2 background processes run in this conversation, limit 2; stop one first");
    started(&source, "b", "sleep 1000").await;
    assert_eq!(refused("c").await, "3 background processes run, limit 3; try again later");
    called(&source, "a", "stop", json!({"process": first})).await;
    started(&source, "c", "sleep 1000").await;
}

#[tokio::test]
async fn none_may_run_longer_than_its_limit() {
    let world = World::new();
    let mut config = world.command_config();
    config.background.longest = Duration::from_millis(50);
    let source = command(config).unwrap();
    let process = started(&source, "a", "exec sleep 1000").await;
    let told = ended(&source, "a", &process).await;
    assert_eq!((&told["ended_by"], &told["signal"]), (&json!("time_limit"), &json!("SIGTERM")));
}

#[tokio::test]
async fn of_a_long_output_the_newest_is_kept_and_the_places_tell_what_is_missing() {
    let world = World::new();
    let mut config = world.command_config();
    config.max_output_bytes = 100;
    let source = command(config).unwrap();
    let process = started(&source, "a", "head -c 1000000 /dev/zero | tr '\\0' x; echo; echo end").await;
    ended(&source, "a", &process).await;
    let told = called(&source, "a", "output", json!({"process": process})).await;
    assert_eq!((&told["from"], &told["next"]), (&json!(999_905), &json!(1_000_005)));
    assert_eq!(told["output"], "x".repeat(95) + "\nend\n");
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let world = World::new();
    let source = world.command();
    let process = started(&source, "a", "sleep 1000").await;
    let cases = [
        ("output", json!({"process": process, "from": 7}), "from is 7, and the process has printed 0 bytes"),
        ("output", json!({"process": process, "wait_ms": 60_001}), "wait_ms is 60,001, limit 60,000; ask again for more"),
        ("start", json!({"command": ""}), "command is empty"),
    ];
    for (tool, arguments, expected) in cases {
        let error = tried(&source, "a", tool, arguments).await.unwrap_err();
        assert_eq!((error.kind, error.model_text.as_str()), (ToolErrorKind::InvalidArguments, expected));
    }
    let long = tried(&source, "a", "input", json!({"process": process, "text": "x".repeat(65_537)})).await.unwrap_err();
    assert_eq!(long.model_text, "text is 65,537 bytes, limit 65,536; write it in parts");
}

#[tokio::test]
async fn where_none_is_allowed_the_tools_are_not_offered() {
    let world = World::new();
    let mut config = world.command_config();
    config.background.per_conversation = 0;
    let names: Vec<String> = command(config).unwrap().tools().iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(names, ["run"]);
}
