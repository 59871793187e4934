//! Programs as tools: what they are given, what comes of what they print, and what happens where they misbehave.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::support::{call_of, context};
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use turnwright_core::{Declared, ToolErrorKind, text_of};
use turnwright_engine::source::{SourceState, ToolError, ToolOutput, ToolSource};
use turnwright_tools::{ExecutableTool, Executables, PlainLauncher};

/// Long enough for anything that is going to happen.
const PATIENCE: Duration = Duration::from_secs(30);

struct World {
    folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A program of these lines for the shell.
    fn program(&self, name: &str, lines: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{lines}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn tool(&self, name: &str, program: impl Into<PathBuf>) -> ExecutableTool {
        ExecutableTool {
            name: name.to_owned(),
            command: vec![program.into().into()],
            description: Some("Does it.".to_owned()),
            input_schema: Some(json!({"type": "object"})),
            declared: Declared::default(),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
            folder: self.folder.path().to_owned(),
            timeout: Duration::from_secs(20),
            grace: Duration::from_millis(50),
            cache_ttl: None,
            max_result_bytes: 100_000,
            launcher: Arc::new(PlainLauncher),
        }
    }

    fn source(&self, lines: &str) -> Executables {
        Executables::new("own", vec![self.tool("it", self.program("it", lines))])
    }
}

async fn call(source: &Executables, arguments: Value) -> Result<ToolOutput, ToolError> {
    let call = source.call(call_of("it", arguments), context(&CancellationToken::new()));
    timeout(PATIENCE, call).await.expect("the call ends")
}

async fn failure(source: &Executables) -> (ToolErrorKind, String) {
    let error = call(source, json!({})).await.expect_err("the call fails");
    (error.kind, error.model_text)
}

#[tokio::test]
async fn it_reads_its_arguments_as_json_and_its_result_is_what_it_prints() {
    let world = World::new();
    let source = world.source("cat");
    let arguments = json!({"city": "Köln", "days": [1, 2]});
    assert_eq!(call(&source, arguments.clone()).await.unwrap(), ToolOutput::json(arguments));
    let text = world.source("cat > /dev/null; printf '%s' '\"sunny\\nand warm\"'");
    assert_eq!(text_of(&call(&text, json!({})).await.unwrap().content), "sunny\nand warm");
    // One that does not read is no failure, and what it says beside its result is not part of it.
    assert_eq!(call(&world.source("echo log >&2; echo 7"), json!({})).await.unwrap(), ToolOutput::json(json!(7)));
}

#[tokio::test]
async fn what_it_is_comes_from_the_operator_or_from_itself() {
    let world = World::new();
    let asked = "case $1 in --schema) echo '{\"description\": \"Tells it.\", \"input_schema\": {\"type\": \"object\", \
        \"required\": [\"city\"]}}';; *) cat;; esac";
    let mut tools = vec![world.tool("said", world.program("said", "cat")), world.tool("asks", world.program("asks", asked))];
    (tools[1].description, tools[1].input_schema) = (None, None);
    let mut bad = world.tool("bad", world.program("bad", "echo nonsense"));
    bad.input_schema = None;
    bad.description = None;
    tools.push(bad);
    let source = Executables::new("own", tools);
    assert_eq!(source.state(), SourceState::Starting);
    timeout(PATIENCE, source.settled()).await.unwrap();
    assert_eq!(source.state(), SourceState::Ready);
    let offered: Vec<(String, String, Value)> =
        source.tools().iter().map(|tool| (tool.name.clone(), tool.description.clone(), tool.input_schema.clone())).collect();
    let expected = [
        ("said".to_owned(), "Does it.".to_owned(), json!({"type": "object"})),
        ("asks".to_owned(), "Tells it.".to_owned(), json!({"type": "object", "required": ["city"]})),
    ];
    assert_eq!(offered, expected);
    let aside: Vec<String> = source.set_aside().iter().map(|aside| aside.reason.clone()).collect();
    assert!(
        aside.len() == 1
            && aside[0].ends_with(
                "the tool's program printed what is not one JSON value (expected ident at line 1 column 2): nonsense"
            ),
        "{aside:?}"
    );
}

#[tokio::test]
async fn each_way_to_misbehave_is_an_error_that_says_what_happened() {
    let world = World::new();
    let missing = Executables::new("own", vec![world.tool("it", "/nowhere/it")]);
    assert_eq!(failure(&missing).await, (ToolErrorKind::NotFound, "there is no program `/nowhere/it`".to_owned()));
    let cases = [
        (
            "echo '{\"a\": 1} more'",
            "the tool's program printed what is not one JSON value (trailing characters at line 1 column 10): {\"a\": 1} more",
        ),
        ("true", "the tool's program ended well and printed nothing; it must print one JSON value"),
        (
            "echo '{\"half\": 1}'; echo went wrong >&2; exit 3",
            "the tool's program failed (exit code 3)\nstdout: {\"half\": 1}\nstderr: went wrong",
        ),
        ("kill -KILL $$", "the tool's program failed (signal SIGKILL)"),
        ("head -c 100000000 /dev/zero", "the tool's program printed more than 100,000 bytes and was killed; ask it for less"),
        ("yes", "the tool's program printed more than 100,000 bytes and was killed; ask it for less"),
    ];
    for (lines, expected) in cases {
        assert_eq!(failure(&world.source(lines)).await, (ToolErrorKind::ExecutionFailed, expected.to_owned()), "{lines}");
    }
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

#[tokio::test]
async fn one_that_hangs_is_killed_with_what_it_started() {
    let world = World::new();
    let mut tool =
        world.tool("it", world.program("it", "trap '' TERM; sleep 1000 & echo $! > pid; echo waits >&2; wait; sleep 1000"));
    tool.timeout = Duration::from_millis(500);
    let source = Executables::new("own", vec![tool]);
    let (kind, text) = failure(&source).await;
    assert_eq!(kind, ToolErrorKind::Timeout);
    assert!(text.starts_with("the tool's program did not end within 500 ms and was killed"), "{text}");
    if let Ok(pid) = std::fs::read_to_string(world.folder.path().join("pid")) {
        gone(&pid).await;
    }
}

#[tokio::test]
async fn one_that_is_stopped_ends_and_so_it_does_with_its_source() {
    let world = World::new();
    let source = world.source("echo $$ > pid; exec sleep 1000");
    let cancel = CancellationToken::new();
    let pid = async || {
        timeout(PATIENCE, async {
            loop {
                match std::fs::read_to_string(world.folder.path().join("pid")) {
                    Ok(text) if text.ends_with('\n') => return text,
                    _ => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            }
        })
        .await
        .unwrap()
    };
    let stop = async {
        let pid = pid().await;
        cancel.cancel();
        pid
    };
    let (result, first) = tokio::join!(source.call(call_of("it", json!({})), context(&cancel)), stop);
    assert_eq!(result.unwrap_err().kind, ToolErrorKind::Interrupted);
    gone(&first).await;
    std::fs::remove_file(world.folder.path().join("pid")).unwrap();
    let end = async {
        let pid = pid().await;
        source.stop().await;
        pid
    };
    let never = CancellationToken::new();
    let (result, second) = tokio::join!(source.call(call_of("it", json!({})), context(&never)), end);
    assert_eq!(result.unwrap_err().kind, ToolErrorKind::Unavailable);
    gone(&second).await;
}
