//! Servers that misbehave, each in one way: what the model is told, what the operator is told, and that nothing hangs.

use std::time::Duration;

use crate::support::{LONG, call, context, fixture, misbehaving, nothing, started, stdio, text, told};
use serde_json::json;
use turnwright_core::{ContentBlock, ToolErrorKind};
use turnwright_engine::{CallLimits, SourceState, ToolSource};
use turnwright_mcp::{LogOrigin, Quarantined};
fn failing(state: &SourceState) -> &str {
    match state {
        SourceState::Failing { reason } => reason,
        other => panic!("failing: {other:?}"),
    }
}

fn quarantined(tool: &str, reason: &str) -> Quarantined {
    Quarantined { tool: tool.into(), reason: reason.into() }
}

#[tokio::test]
async fn a_command_that_does_not_exist_is_named() {
    let mut config = misbehaving("good", "");
    stdio(&mut config).command = "turnwright-no-such-command".into();
    let fixture = fixture(config);
    fixture.server.settled().await;
    let reason = "the command `turnwright-no-such-command` was not found; it must be a path, or a name in the PATH that servers are given";
    assert_eq!(failing(&fixture.server.state()), reason);
    let error = fixture.call("t", nothing()).await.unwrap_err();
    let model_text = "The MCP server `bad` cannot be started: `t` was not called. Go on without it, or tell the user.";
    assert_eq!(told(&error), (ToolErrorKind::Unavailable, model_text, Some(reason)));
    fixture.stop().await;
}

#[tokio::test]
async fn a_working_directory_that_does_not_exist_is_named() {
    let mut config = misbehaving("good", "");
    stdio(&mut config).cwd = Some("/no/such/folder".into());
    let fixture = fixture(config);
    fixture.server.settled().await;
    assert_eq!(failing(&fixture.server.state()), "the working directory /no/such/folder does not exist");
    fixture.stop().await;
}

#[tokio::test]
async fn a_server_that_dies_at_once_leaves_its_exit_code_and_last_words() {
    let fixture = fixture(misbehaving("dies_at_once", ""));
    fixture.server.settled().await;
    let reason = "it ended during its start (exit code 3); its last lines:\nboom: missing API key";
    assert_eq!(failing(&fixture.server.state()), reason);
    let error = fixture.call("t", nothing()).await.unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Unavailable);
    assert!(!error.model_text.contains("boom"), "what a server writes may be secret");
    assert!(error.diagnostic.unwrap().contains("boom: missing API key"));
    fixture.stop().await;
}

#[tokio::test]
async fn a_server_that_starts_at_the_third_attempt_is_ready_then() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = fixture(misbehaving("dies_first", &folder.path().join("starts").display().to_string()));
    fixture.server.start();
    fixture.until(|state| *state == SourceState::Ready).await;
    assert_eq!(text(&fixture.call("t", nothing()).await.unwrap()), "ok {}");
    fixture.stop().await;
}

#[tokio::test]
async fn a_server_that_always_fails_is_started_again_only_when_it_is_needed() {
    let mut config = misbehaving("dies_at_once", "");
    config.restart.attempts = 1;
    let fixture = fixture(config);
    fixture.server.settled().await;
    let ends = || fixture.server.logs().iter().filter(|line| line.origin == LogOrigin::Host).count();
    assert_eq!(ends(), 1);
    fixture.call("t", nothing()).await.unwrap_err();
    assert_eq!(ends(), 2);
    fixture.stop().await;
}

#[tokio::test]
async fn a_server_that_never_answers_the_handshake_fails_at_the_start_limit() {
    for mode in ["init_silent", "init_silent_deaf", "echo"] {
        let mut config = misbehaving(mode, "");
        config.start_limit = Duration::from_millis(700);
        let fixture = fixture(config);
        fixture.server.start();
        let state = fixture.until(|state| matches!(state, SourceState::Failing { .. })).await;
        let reason = "it did not finish its start within 700 ms: no answer to server/discover or initialize came";
        assert_eq!(failing(&state), reason, "{mode}");
        fixture.stop().await;
    }
}

#[tokio::test]
async fn a_server_that_refuses_the_handshake_is_quoted() {
    let fixture = fixture(misbehaving("init_error", ""));
    fixture.server.settled().await;
    assert_eq!(failing(&fixture.server.state()), "it refused the handshake: database locked (-32603)");
    fixture.stop().await;
}

#[tokio::test]
async fn an_unknown_version_is_refused_and_an_old_one_taken() {
    let unknown = fixture(misbehaving("unknown_version", ""));
    unknown.server.settled().await;
    let state = unknown.server.state();
    assert!(failing(&state).starts_with("it speaks the protocol version `2099-01-01`, known are 2024-11-05, "), "{state:?}");
    unknown.stop().await;
    let old = started(misbehaving("old_version", "")).await;
    assert_eq!(text(&old.call("t", nothing()).await.unwrap()), "ok {}");
    old.stop().await;
}

#[tokio::test]
async fn a_server_without_an_answer_to_the_probe_is_of_the_old_era() {
    let mut config = misbehaving("discover_silent", "");
    config.start_limit = Duration::from_secs(3);
    for config in [config, misbehaving("discover_empty", "")] {
        let fixture = started(config).await;
        assert_eq!(fixture.tool_names(), ["t", "u"]);
        fixture.stop().await;
    }
}

#[tokio::test]
async fn a_server_of_the_new_era_that_starts_slowly_is_ready_in_the_end() {
    for (delay, start_limit) in [("0", 20), ("3.5", 6)] {
        let mut config = misbehaving("slow_modern", delay);
        config.start_limit = Duration::from_secs(start_limit);
        config.restart.attempts = 1;
        let fixture = fixture(config);
        fixture.server.start();
        fixture.until(|state| *state != SourceState::Starting).await;
        assert_eq!(fixture.server.state(), SourceState::Ready, "{:?}", fixture.server.logs());
        assert_eq!(text(&fixture.call("t", nothing()).await.unwrap()), "ok {}");
        fixture.stop().await;
    }
}

#[tokio::test]
async fn log_lines_on_stdout_are_kept_and_do_no_harm() {
    let fixture = started(misbehaving("banner", "")).await;
    assert_eq!(text(&fixture.call("t", json!({"a": 1})).await.unwrap()), r#"ok {"a": 1}"#);
    let logs = fixture.server.logs();
    let stdout: Vec<&str> =
        logs.iter().filter(|line| line.origin == LogOrigin::Stdout).map(|line| line.text.as_str()).collect();
    assert_eq!(stdout, ["Starting server ...", "\u{1b}[32mready\u{1b}[0m", "{not json}", "[1,2]", r#"{"level":"info"}"#]);
    fixture.stop().await;
}

#[tokio::test]
async fn sloppy_answers_reach_their_call() {
    for (mode, expected) in
        [("glued", "after a glued log line"), ("string_id", "by text"), ("twice", "first"), ("stderr_flood", "ok {}")]
    {
        let fixture = started(misbehaving(mode, "")).await;
        assert_eq!(text(&fixture.call("t", nothing()).await.unwrap()), expected, "{mode}");
        fixture.stop().await;
    }
}

#[tokio::test]
async fn an_answer_of_100_megabytes_fails_its_call_and_nothing_else() {
    let fixture = started(misbehaving("huge", "100000000")).await;
    let error = fixture.call("t", nothing()).await.unwrap_err();
    let model_text =
        "The call of `t` on the MCP server `bad` failed: the answer is 100000082 bytes, limit 67108864: ask for less";
    let (kind, said, _) = told(&error);
    assert_eq!((kind, said), (ToolErrorKind::ExecutionFailed, model_text));
    assert_eq!(fixture.server.state(), SourceState::Ready);
    fixture.stop().await;
}

#[tokio::test]
async fn an_answer_below_the_limit_arrives_whole() {
    let fixture = started(misbehaving("huge", "20000000")).await;
    assert_eq!(text(&fixture.call("t", nothing()).await.unwrap()).len(), 20_000_000);
    fixture.stop().await;
}

#[tokio::test]
async fn noise_of_100_megabytes_is_dropped() {
    let mut config = misbehaving("noise", "100000000");
    // As long as a busy machine takes to read that much.
    config.start_limit = Duration::from_mins(2);
    let fixture = started(config).await;
    assert_eq!(text(&fixture.call("t", nothing()).await.unwrap()), "after the noise");
    assert_eq!(fixture.server.logs().len(), 200);
    fixture.stop().await;
}

#[tokio::test]
async fn a_server_that_prints_without_end_still_fails_at_the_start_limit() {
    let mut config = misbehaving("floods", "");
    config.start_limit = Duration::from_millis(500);
    let fixture = fixture(config);
    fixture.server.start();
    let state = fixture.until(|state| matches!(state, SourceState::Failing { .. })).await;
    assert!(failing(&state).starts_with("it did not finish its start within 500 ms: "), "{state:?}");
    fixture.stop().await;
}

#[tokio::test]
async fn a_server_that_begins_to_print_without_end_is_ended() {
    let fixture = started(misbehaving("floods_at_call", "")).await;
    let error = fixture.call("t", nothing()).await.unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Unavailable);
    let reason = "it was ended because it prints without end what is no message of the protocol: only stderr is for that";
    assert!(error.diagnostic.as_deref().unwrap().starts_with(reason), "{error:?}");
    fixture.stop().await;
}

#[tokio::test]
async fn a_call_that_hangs_ends_at_its_limit_and_the_server_is_told() {
    let mut config = misbehaving("silent", "");
    config.limits = CallLimits { idle: Duration::from_millis(200), total: Duration::from_millis(200) };
    let fixture = started(config).await;
    let error = fixture.call("t", nothing()).await.unwrap_err();
    let model_text = "The tool `t` of the MCP server `bad` did not finish within 200 ms and was cancelled. Whether it took effect is unknown.";
    assert_eq!(told(&error), (ToolErrorKind::Timeout, model_text, Some("no answer to tools/call within 200 ms")));
    fixture.logged("cancelled").await;
    assert_eq!(fixture.server.state(), SourceState::Ready);
    fixture.stop().await;
}

#[tokio::test]
async fn a_server_that_answers_nothing_three_times_is_started_again() {
    let mut config = misbehaving("silent_deaf", "");
    config.limits = CallLimits { idle: Duration::from_millis(100), total: Duration::from_millis(100) };
    let fixture = started(config).await;
    for _ in 0..3 {
        assert_eq!(fixture.call("t", nothing()).await.unwrap_err().kind, ToolErrorKind::Timeout);
    }
    fixture.logged("it was ended because it answered none of 3 calls in a row").await;
    fixture.until(|state| *state == SourceState::Ready).await;
    fixture.stop().await;
}

#[tokio::test]
async fn a_cancelled_call_ends_soon_and_the_server_is_told_once() {
    let fixture = started(misbehaving("silent", "")).await;
    let (context, _) = context();
    let cancel = context.cancel.clone();
    let ((), result) = tokio::join!(
        async {
            tokio::task::yield_now().await;
            cancel.cancel();
        },
        fixture.server.call(call("t", nothing()), context)
    );
    let error = result.unwrap_err();
    let model_text = "The call of `t` on the MCP server `bad` was cancelled. Whether it took effect is unknown.";
    assert_eq!(told(&error), (ToolErrorKind::Interrupted, model_text, None));
    fixture.logged("cancelled").await;
    fixture.stop().await;
    let told = fixture.server.logs().iter().filter(|line| line.text == "cancelled").count();
    assert_eq!(told, 1);
}

#[tokio::test]
async fn a_cancelled_call_brings_the_real_result_where_it_comes_in_time() {
    let fixture = started(misbehaving("late", "")).await;
    let (context, _) = context();
    let cancel = context.cancel.clone();
    let ((), result) = tokio::join!(
        async {
            tokio::task::yield_now().await;
            cancel.cancel();
        },
        fixture.server.call(call("t", nothing()), context)
    );
    assert_eq!(text(&result.unwrap()), "the real result");
    fixture.stop().await;
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_at_the_server() {
    let fixture = started(misbehaving("silent", "")).await;
    let (context, _) = context();
    let dropped = tokio::time::timeout(Duration::from_millis(50), fixture.server.call(call("t", nothing()), context)).await;
    assert!(dropped.is_err());
    fixture.logged("cancelled").await;
    fixture.stop().await;
}

#[tokio::test]
async fn a_server_that_stops_reading_is_ended_and_started_again() {
    let mut config = misbehaving("stops_reading", "");
    config.limits = CallLimits { idle: Duration::from_millis(300), total: Duration::from_millis(300) };
    let fixture = started(config).await;
    fixture.call("t", nothing()).await.unwrap();
    for _ in 0..3 {
        let error = fixture.call("t", json!({"a": "x".repeat(400_000)})).await.unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Timeout);
    }
    fixture.logged("it was ended because").await;
    fixture.until(|state| *state == SourceState::Ready).await;
    assert_eq!(text(&fixture.call("t", nothing()).await.unwrap()), "ok");
    fixture.stop().await;
}

#[tokio::test]
async fn a_server_that_is_deaf_to_end_of_input_and_sigterm_is_killed() {
    let fixture = started(misbehaving("deaf", "")).await;
    fixture.stop().await;
}

#[tokio::test]
async fn no_descendant_is_left_behind() {
    for mode in ["tree", "tree_deaf"] {
        let fixture = started(misbehaving(mode, "")).await;
        fixture.logged("child").await;
        let children = crate::support::children(&fixture);
        assert_eq!(children.len(), 2, "{mode}");
        assert!(children.iter().all(|child| crate::support::is_alive(*child)));
        fixture.stop().await;
        assert!(!children.iter().any(|child| crate::support::is_alive(*child)), "{mode}: one in a session of its own too");
    }
}

#[tokio::test]
async fn descendants_of_a_server_that_crashed_are_swept_before_it_starts_again() {
    let fixture = started(misbehaving("tree", "")).await;
    fixture.logged("child").await;
    let children = crate::support::children(&fixture);
    let leader = fixture.records()[0].pgid.unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(leader), nix::sys::signal::Signal::SIGKILL).unwrap();
    fixture.logged("it ended by itself (killed by SIGKILL)").await;
    fixture.until(|state| *state == SourceState::Ready).await;
    assert!(!children.iter().any(|child| crate::support::is_alive(*child)));
    fixture.stop().await;
}

#[tokio::test]
async fn a_call_whose_server_crashes_fails_is_not_repeated_and_the_next_one_works() {
    let folder = tempfile::tempdir().unwrap();
    let calls = folder.path().join("calls");
    let fixture = started(misbehaving("crash_first_call", &calls.display().to_string())).await;
    let error = fixture.call("t", nothing()).await.unwrap_err();
    let model_text = "The MCP server `bad` ended while `t` was running. Whether the call took effect is unknown: check before \
                      you call it again.";
    let diagnostic = "it ended by itself (exit code 139); its last lines:\nTraceback: the first call";
    assert_eq!(told(&error), (ToolErrorKind::Unavailable, model_text, Some(diagnostic)));
    assert_eq!(std::fs::read_to_string(&calls).unwrap(), "call\n");
    assert_eq!(fixture.tool_names(), ["t", "u"], "its tools are kept meanwhile");
    assert_eq!(text(&fixture.call("t", nothing()).await.unwrap()), "the second call");
    fixture.stop().await;
}

#[tokio::test]
async fn one_restart_serves_all_calls_that_wait() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = started(misbehaving("crash_first_call", &folder.path().join("calls").display().to_string())).await;
    fixture.call("t", nothing()).await.unwrap_err();
    let waiting = (0..5).map(|_| fixture.call("t", nothing()));
    for output in futures_util::future::join_all(waiting).await {
        assert_eq!(text(&output.unwrap()), "the second call");
    }
    assert_eq!(fixture.records().len(), 1);
    fixture.stop().await;
}

#[tokio::test]
async fn a_server_that_dies_idle_is_back_before_it_is_needed() {
    let fixture = started(misbehaving("dies_idle", "")).await;
    let first = fixture.records()[0].clone();
    fixture.logged("it ended by itself (exit code 139)").await;
    fixture.until(|state| *state == SourceState::Ready).await;
    assert_ne!(fixture.records()[0], first);
    fixture.stop().await;
}

#[tokio::test]
async fn bad_tools_are_set_aside_and_the_others_offered() {
    let schema =
        "its inputSchema is no JSON Schema: \"strng\" is not valid under any of the schemas listed in the 'anyOf' keyword";
    for (mode, tools, bad) in [
        ("duplicate", vec!["t", "u"], vec![quarantined("t", "the name is there twice: the first one is kept")]),
        ("no_schema", vec!["t", "u"], vec![]),
        ("bad_schema", vec!["t"], vec![quarantined("u", schema)]),
        ("tools_null", vec![], vec![quarantined("", "the answer to tools/list has no array `tools`")]),
    ] {
        let fixture = started(misbehaving(mode, "")).await;
        assert_eq!(fixture.tool_names(), tools, "{mode}");
        assert_eq!(*fixture.server.quarantined(), *bad, "{mode}");
        fixture.stop().await;
    }
}

#[tokio::test]
async fn a_list_without_end_ends() {
    let fixture = started(misbehaving("cursor_loop", "")).await;
    assert_eq!(fixture.tool_names(), ["t", "u"]);
    let last = fixture.server.quarantined().last().cloned();
    assert_eq!(last, Some(quarantined("", "the cursor of tools/list repeats: the rest of the list is left out")));
    fixture.stop().await;
}

#[tokio::test]
async fn a_storm_of_changes_is_listed_at_most_twice() {
    let fixture = started(misbehaving("storm", "")).await;
    fixture.call("t", nothing()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let lists = fixture.server.logs().iter().filter(|line| line.text == "listed").count();
    assert!((2..=3).contains(&lists), "{lists}");
    fixture.stop().await;
}

#[tokio::test]
async fn a_tool_that_comes_later_is_offered_then() {
    let fixture = started(misbehaving("grows", "")).await;
    assert_eq!(fixture.tool_names(), ["t", "u"]);
    let grown = async {
        while fixture.tool_names() != ["t", "u", "late"] {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LONG, grown).await.unwrap();
    fixture.stop().await;
}

#[tokio::test]
async fn errors_of_the_protocol_keep_their_meaning() {
    for (mode, kind, model_text, diagnostic) in [
        (
            "invalid_params",
            ToolErrorKind::InvalidArguments,
            "The call of `t` on the MCP server `bad` was refused: city must not be empty",
            r#"JSON-RPC error -32602: city must not be empty; data: {"field":"city"}"#,
        ),
        (
            "rpc_error",
            ToolErrorKind::ExecutionFailed,
            "The call of `t` on the MCP server `bad` failed: database locked",
            "JSON-RPC error -32000: database locked",
        ),
        (
            "null_id",
            ToolErrorKind::ExecutionFailed,
            "The call of `t` on the MCP server `bad` failed: Parse error",
            "JSON-RPC error -32700: Parse error",
        ),
    ] {
        let fixture = started(misbehaving(mode, "")).await;
        let error = fixture.call("t", nothing()).await.unwrap_err();
        assert_eq!(told(&error), (kind, model_text, Some(diagnostic)), "{mode}");
        fixture.stop().await;
    }
}

#[tokio::test]
async fn content_of_an_unknown_kind_is_named_beside_the_rest() {
    let fixture = started(misbehaving("unknown_content", "")).await;
    let output = fixture.call("t", nothing()).await.unwrap();
    let expected = ["fine", "[video: a kind of content that is not known here, not shown]"].map(ContentBlock::text);
    assert_eq!(output.content, expected);
    fixture.stop().await;
}

#[tokio::test]
async fn requests_of_the_server_are_always_answered() {
    for (method, expected) in [
        ("ping", "{}"),
        ("foo/bar", "-32601"),
        ("sampling/createMessage", "-32"),
        ("elicitation/create", "has a requestedSchema"),
    ] {
        let fixture = started(misbehaving("asks", method)).await;
        let output = fixture.call("t", nothing()).await.unwrap();
        assert!(text(&output).contains(expected), "{method}: {}", text(&output));
        fixture.stop().await;
    }
}

#[tokio::test]
async fn a_flood_of_progress_arrives_in_order() {
    let fixture = started(misbehaving("progress_flood", "20000")).await;
    let (context, reports) = context();
    let output = fixture.server.call(call("t", nothing()), context).await.unwrap();
    assert_eq!(text(&output), "flooded");
    let reports: Vec<f64> = reports.0.lock().unwrap().iter().map(|report| report.progress).collect();
    assert_eq!(reports, (0..20_000).map(f64::from).collect::<Vec<_>>());
    fixture.stop().await;
}

#[tokio::test]
async fn five_calls_of_one_server_run_at_once() {
    let fixture = started(misbehaving("parallel", "0.5")).await;
    let since = tokio::time::Instant::now();
    let outputs = futures_util::future::join_all((0..5).map(|_| fixture.call("t", nothing()))).await;
    assert!(outputs.iter().all(Result::is_ok));
    assert!(since.elapsed() < Duration::from_millis(1500), "{:?}", since.elapsed());
    fixture.stop().await;
}

#[tokio::test]
async fn a_server_gets_its_own_variables_and_the_small_inherited_set() {
    let mut config = misbehaving("environment", "");
    stdio(&mut config).env = vec![("API_KEY".into(), "secret".into())];
    assert!(!format!("{config:?}").contains("secret"));
    let fixture = started(config).await;
    let output = fixture.call("t", nothing()).await.unwrap();
    let variables: std::collections::BTreeMap<String, String> = serde_json::from_str(text(&output)).unwrap();
    assert_eq!(variables.get("API_KEY").map(String::as_str), Some("secret"));
    assert_eq!(variables.get("HOME"), std::env::var_os("HOME").and_then(|home| home.into_string().ok()).as_ref());
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert!(!variables.contains_key("CARGO_MANIFEST_DIR"), "the host's own variables are not passed on");
    fixture.stop().await;
}

#[tokio::test]
async fn a_stopped_server_answers_that_it_is_and_can_be_started_again() {
    let fixture = started(misbehaving("good", "")).await;
    fixture.stop().await;
    let error = fixture.call("t", nothing()).await.unwrap_err();
    let model_text = "The MCP server `bad` was stopped: `t` was not called. Go on without it, or tell the user.";
    assert_eq!((error.kind, error.model_text.as_str()), (ToolErrorKind::Unavailable, model_text));
    fixture.server.start();
    assert_eq!(text(&fixture.call("t", nothing()).await.unwrap()), "ok {}");
    fixture.server.restart().await;
    assert_eq!(text(&fixture.call("t", nothing()).await.unwrap()), "ok {}");
    fixture.stop().await;
}

#[tokio::test]
async fn a_server_that_is_switched_off_is_never_started() {
    let mut config = misbehaving("good", "");
    config.enabled = false;
    let fixture = fixture(config);
    fixture.server.start();
    fixture.server.settled().await;
    assert_eq!(fixture.server.state(), SourceState::Disabled);
    let error = fixture.call("t", nothing()).await.unwrap_err();
    assert!(error.model_text.starts_with("The MCP server `bad` is switched off"), "{}", error.model_text);
    assert_eq!(fixture.records(), []);
}

#[tokio::test]
async fn a_stop_during_the_start_leaves_nothing() {
    let fixture = fixture(misbehaving("slow", "30"));
    fixture.server.start();
    while fixture.records().iter().all(|record| record.pgid.is_none()) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(fixture.server.state(), SourceState::Starting);
    fixture.stop().await;
}

#[tokio::test]
async fn a_dropped_server_leaves_nothing() {
    let fixture = started(misbehaving("tree", "")).await;
    fixture.logged("child").await;
    let children = crate::support::children(&fixture);
    let crate::support::Fixture { server, folder } = fixture;
    drop(server);
    let gone = async {
        while children.iter().any(|child| crate::support::is_alive(*child)) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LONG, gone).await.unwrap();
    drop(folder);
}
