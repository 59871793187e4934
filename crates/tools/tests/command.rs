//! What the command tool does, and that nothing outlives it.

use std::time::Duration;

use crate::support::{World, call, call_of, context, failure};
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use turnwright_core::ToolErrorKind;
use turnwright_engine::source::{ToolOutput, ToolSource};
use turnwright_tools::{TypedSource, command};

/// Long enough for anything that is going to happen.
const PATIENCE: Duration = Duration::from_secs(20);

async fn run(source: &TypedSource, arguments: Value) -> ToolOutput {
    timeout(PATIENCE, call(source, "run", arguments)).await.expect("the call ends").expect("the command runs")
}

/// The structured content without its duration.
fn content(output: &ToolOutput) -> Value {
    let mut content = output.structured_content.clone().unwrap();
    assert!(content.as_object_mut().unwrap().remove("duration_ms").unwrap().is_u64());
    content
}

/// Waits until no process has this id. A zombie that nobody reaps counts as gone.
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

/// Waits until a file has content, and gives it.
async fn appears(path: &std::path::Path) -> String {
    timeout(PATIENCE, async {
        loop {
            match std::fs::read_to_string(path) {
                Ok(text) if text.ends_with('\n') => return text,
                _ => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    })
    .await
    .expect("the file appears")
}

#[tokio::test]
async fn a_shell_line_gives_its_outputs_and_exit_code() {
    let world = World::new();
    let source = world.command();
    let output = run(&source, json!({"command": "echo one; echo two >&2; echo three | tr a-z A-Z"})).await;
    assert_eq!(content(&output), json!({"exit_code": 0, "stdout": "one\nTHREE\n", "stderr": "two\n"}));
    assert!(!output.is_error);
    let text = turnwright_core::text_of(&output.content);
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), output.structured_content.unwrap());
}

#[tokio::test]
async fn a_failing_command_is_an_error_with_its_whole_result() {
    let world = World::new();
    let output = run(&world.command(), json!({"command": "echo out; echo err >&2; exit 3"})).await;
    assert_eq!(content(&output), json!({"exit_code": 3, "stdout": "out\n", "stderr": "err\n"}));
    assert!(output.is_error);
}

#[tokio::test]
async fn a_command_that_a_signal_ended_names_it() {
    let world = World::new();
    let output = run(&world.command(), json!({"command": "kill -KILL $$"})).await;
    assert_eq!(content(&output), json!({"exit_code": 137, "stdout": "", "stderr": "", "signal": "SIGKILL"}));
    assert!(output.is_error);
}

#[tokio::test]
async fn a_program_with_arguments_meets_no_shell() {
    let world = World::new();
    let source = world.command();
    let output = run(&source, json!({"command": "printf", "args": ["%s|", "a b", "$HOME", "*"]})).await;
    assert_eq!(content(&output)["stdout"], "a b|$HOME|*|");
    assert_eq!(
        failure(&source, "run", json!({"command": "no-such-program", "args": []})).await,
        (ToolErrorKind::NotFound, "there is no program `no-such-program`".to_owned())
    );
}

#[tokio::test]
async fn its_environment_is_what_the_host_gave() {
    let world = World::new();
    let output = run(&world.command(), json!({"command": "/usr/bin/env", "args": []})).await;
    let content = content(&output);
    let (given, own): (Vec<&str>, Vec<&str>) =
        content["stdout"].as_str().unwrap().lines().partition(|line| !line.starts_with("TURNWRIGHT_PROCESS_CALL="));
    assert_eq!((given, own.len()), (vec!["PATH=/usr/bin:/bin"], 1), "with a mark by which its processes are known");
}

#[tokio::test]
async fn it_begins_in_the_first_root_or_where_the_call_says() {
    let world = World::new();
    world.put("inner/file", "");
    world.link("../outside", "out");
    let source = world.command();
    let root = world.root.display();
    assert_eq!(content(&run(&source, json!({"command": "pwd -P"})).await)["stdout"], format!("{root}\n"));
    let inner = json!({"command": "pwd -P", "cwd": "inner"});
    assert_eq!(content(&run(&source, inner).await)["stdout"], format!("{root}/inner\n"));
    for (cwd, kind) in [
        ("out", ToolErrorKind::PermissionDenied),
        ("/", ToolErrorKind::PermissionDenied),
        ("missing", ToolErrorKind::NotFound),
        ("inner/file", ToolErrorKind::ExecutionFailed),
    ] {
        assert_eq!(failure(&source, "run", json!({"command": "pwd", "cwd": cwd})).await.0, kind, "{cwd}");
    }
}

#[tokio::test]
async fn its_input_is_what_the_call_gives_and_nothing_by_default() {
    let world = World::new();
    let source = world.command();
    let text = "line\n".repeat(100_000);
    let output = run(&source, json!({"command": "wc -l", "stdin": text})).await;
    assert_eq!(content(&output)["stdout"].as_str().unwrap().trim(), "100000");
    assert_eq!(content(&run(&source, json!({"command": "cat"})).await)["stdout"], "");
    // What nobody reads is no failure.
    assert_eq!(content(&run(&source, json!({"command": "true", "stdin": text})).await)["exit_code"], 0);
}

#[tokio::test]
async fn of_an_endless_output_the_head_and_the_tail_are_kept() {
    let world = World::new();
    let mut config = world.command_config();
    config.max_output_bytes = 20;
    let source = command(config).unwrap();
    let output = run(&source, json!({"command": "echo begin; head -c 100000000 /dev/zero | tr '\\0' x; echo; echo end"})).await;
    assert_eq!(content(&output)["stdout"], "begin\nxxxx\n[… 99,999,991 bytes left out …]\nxxxxx\nend\n");
}

#[tokio::test]
async fn a_command_over_its_time_is_killed_with_its_grandchildren() {
    let world = World::new();
    let source = world.command();
    let line = "echo started; (trap '' TERM; sleep 1000 & echo $! > pid; wait; sleep 1000)";
    let mut config = world.command_config();
    config.grace = Duration::from_millis(50);
    drop(source);
    let source = command(config).unwrap();
    let (kind, text) = failure(&source, "run", json!({"command": line, "timeout_ms": 300})).await;
    assert_eq!(kind, ToolErrorKind::Timeout);
    assert_eq!(text, "the command did not end within 300 ms and was killed\nstdout: started\n");
    gone(&world.get("pid")).await;
}

#[tokio::test]
async fn what_a_command_leaves_behind_neither_hangs_the_call_nor_outlives_it() {
    let world = World::new();
    let source = world.command();
    // One holds the outputs, the other does not.
    let line = "sleep 1000 & echo $! > pid_1; sleep 1000 >/dev/null 2>&1 & echo $! > pid_2; echo done";
    let output = run(&source, json!({"command": line})).await;
    assert_eq!(content(&output), json!({"exit_code": 0, "stdout": "done\n", "stderr": ""}));
    gone(&world.get("pid_1")).await;
    gone(&world.get("pid_2")).await;
}

#[tokio::test]
async fn a_process_that_cannot_be_found_does_not_hang_the_call() {
    let world = World::new();
    // Without the environment that it was given nobody knows whose it is.
    let line = "setsid env -i sh -c 'echo up > up; exec sleep 30' & echo $! > pid; until [ -s up ]; do :; done; echo done";
    let output = run(&world.command(), json!({"command": line})).await;
    assert_eq!(content(&output)["stdout"], "done\n");
    let pid = nix::unistd::Pid::from_raw(world.get("pid").trim().parse().unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).expect("it lives until we end it");
}

#[tokio::test]
async fn a_cancelled_command_is_interrupted_and_gone() {
    let world = World::new();
    let source = world.command();
    let cancel = CancellationToken::new();
    let line = json!({"command": "echo began; sleep 1000 & echo $! > pid; wait"});
    let running = source.call(call_of("run", line), context(&cancel));
    let stop = async {
        appears(&world.root.join("pid")).await;
        cancel.cancel();
    };
    let (result, ()) = timeout(PATIENCE, async { tokio::join!(running, stop) }).await.unwrap();
    let error = result.unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Interrupted);
    assert!(error.model_text.ends_with("; what it did until then happened\nstdout: began\n"), "{}", error.model_text);
    gone(&world.get("pid")).await;
}

#[tokio::test]
async fn a_cancelled_command_that_ends_by_itself_gives_its_real_result() {
    let world = World::new();
    let source = world.command();
    let cancel = CancellationToken::new();
    let line = json!({"command": "trap 'echo cleaned; exit 0' TERM; echo ready > ready; while :; do sleep 0.01; done"});
    let running = source.call(call_of("run", line), context(&cancel));
    let stop = async {
        appears(&world.root.join("ready")).await;
        cancel.cancel();
    };
    let (result, ()) = timeout(PATIENCE, async { tokio::join!(running, stop) }).await.unwrap();
    let output = result.unwrap();
    assert_eq!((content(&output)["exit_code"].clone(), content(&output)["stdout"].clone()), (json!(0), json!("cleaned\n")));
}

/// Starts a process that leaves the group and its parent, and writes its number into `pid`.
const ESCAPE: &str = "(setsid sh -c 'echo $$ > pid; exec sleep 1000' > /dev/null 2>&1 &)";

#[tokio::test]
async fn what_left_the_group_ends_with_a_cancelled_command() {
    let world = World::new();
    let source = world.command();
    let cancel = CancellationToken::new();
    let running = source.call(call_of("run", json!({"command": format!("{ESCAPE}; sleep 1000")})), context(&cancel));
    let stop = async {
        appears(&world.root.join("pid")).await;
        cancel.cancel();
    };
    let (result, ()) = timeout(PATIENCE, async { tokio::join!(running, stop) }).await.unwrap();
    assert_eq!(result.unwrap_err().kind, ToolErrorKind::Interrupted);
    gone(&world.get("pid")).await;
}

#[tokio::test]
async fn what_left_the_group_ends_with_a_command_that_ended() {
    let world = World::new();
    let line = format!("{ESCAPE}; until [ -s pid ]; do sleep 0.01; done");
    let output = run(&world.command(), json!({"command": line})).await;
    assert_eq!(content(&output), json!({"exit_code": 0, "stdout": "", "stderr": ""}));
    gone(&world.get("pid")).await;
}

#[tokio::test]
async fn a_dropped_call_takes_its_processes_with_it() {
    let world = World::new();
    let source = world.command();
    let running = call(&source, "run", json!({"command": "trap '' TERM; sleep 1000 & echo $! > pid; wait"}));
    let pid_file = world.root.join("pid");
    let pid = tokio::select! {
        _ = running => panic!("the command does not end"),
        pid = appears(&pid_file) => pid,
    };
    gone(&pid).await;
}

#[tokio::test]
async fn stopping_the_source_ends_its_commands() {
    let world = World::new();
    let source = world.command();
    let running = call(&source, "run", json!({"command": "sleep 1000 & echo $! > pid; wait"}));
    let stop = async {
        appears(&world.root.join("pid")).await;
        source.stop().await;
    };
    let (result, ()) = timeout(PATIENCE, async { tokio::join!(running, stop) }).await.unwrap();
    assert_eq!(result.unwrap_err().kind, ToolErrorKind::Unavailable);
    gone(&world.get("pid")).await;
}

#[tokio::test]
async fn arguments_out_of_bounds_are_refused() {
    let world = World::new();
    let source = world.command();
    let cases = [
        (json!({"command": "  "}), "command is empty"),
        (json!({"command": "true", "timeout_ms": 600_001}), "timeout_ms is 600,001, limit 600,000"),
        (json!({"command": "a\0b"}), "a command holds no zero bytes"),
        (json!({"command": "x".repeat(65_537)}), "the command is 65,537 bytes, limit 65,536; write it to a file and run that"),
    ];
    for (arguments, expected) in cases {
        assert_eq!(failure(&source, "run", arguments).await, (ToolErrorKind::InvalidArguments, expected.to_owned()));
    }
}

#[tokio::test]
async fn a_root_that_went_away_is_named() {
    let world = World::new();
    let source = world.command();
    std::fs::remove_dir_all(&world.root).unwrap();
    let expected = format!("the folder `{}` is not there any more", world.root.display());
    assert_eq!(failure(&source, "run", json!({"command": "true"})).await, (ToolErrorKind::NotFound, expected));
}
