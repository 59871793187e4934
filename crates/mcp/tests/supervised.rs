//! What becomes of a server over time: its states, when it is left alone, when it is not needed, what is repeated.

use std::pin::pin;
use std::time::Duration;

use crate::support::{Fixture, LONG, call, context, fixture, members, misbehaving, nothing, started, text};
use turnwright_core::ToolErrorKind;
use turnwright_engine::{SourceState, ToolSource};
use turnwright_mcp::{Ground, LogOrigin, Protocol, ServerConfig, StartPolicy, ToolDeclaration};

fn ends(fixture: &Fixture) -> usize {
    fixture.server.logs().iter().filter(|line| line.origin == LogOrigin::Host).count()
}

fn replayable(mut config: ServerConfig) -> ServerConfig {
    config.tools.insert("t".to_owned(), ToolDeclaration { replayable: Some(true), ..ToolDeclaration::default() });
    config
}

#[tokio::test]
async fn a_server_that_fails_again_and_again_is_left_alone_and_its_calls_fail_at_once() {
    let mut config = misbehaving("dies_at_once", "");
    (config.restart.attempts, config.restart.open) = (2, LONG);
    let fixture = fixture(config);
    fixture.server.settled().await;
    while ends(&fixture) < 2 {
        tokio::task::yield_now().await;
    }
    // The second failure is told before the rest begins.
    let error = loop {
        let error = fixture.call("t", nothing()).await.unwrap_err();
        if error.model_text.contains("is not tried again") {
            break error;
        }
    };
    let words = "The MCP server `bad` failed several times in a row and is not tried again for ";
    assert!(error.kind == ToolErrorKind::Unavailable && error.model_text.starts_with(words), "{error:?}");
    let before = ends(&fixture);
    for _ in 0..50 {
        fixture.call("t", nothing()).await.unwrap_err();
    }
    assert_eq!(ends(&fixture), before);
    // Whoever restarts it does not wait.
    fixture.server.restart().await;
    fixture.server.outcome().await;
    assert!(ends(&fixture) > before);
    fixture.stop().await;
}

#[tokio::test]
async fn a_server_that_was_not_up_at_first_is_offered_once_it_is_without_any_call() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = misbehaving("dies_first", &folder.path().join("starts").display().to_string());
    (config.restart.attempts, config.restart.open) = (1, Duration::from_millis(1));
    let fixture = fixture(config);
    fixture.server.start_unless_known();
    fixture.until(|state| *state == SourceState::Ready).await;
    assert_eq!((fixture.server.tools().is_empty(), ends(&fixture)), (false, 2));
    fixture.stop().await;
}

#[tokio::test]
async fn after_the_rest_one_call_tries_and_all_that_wait_share_its_outcome() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = misbehaving("dies_first", &folder.path().join("starts").display().to_string());
    (config.restart.attempts, config.restart.open, config.restart.max_open) =
        (1, Duration::from_millis(1), Duration::from_millis(1));
    let fixture = fixture(config);
    fixture.server.settled().await;
    let served = async {
        loop {
            let calls = (0..20).map(|_| fixture.call("t", nothing()));
            let done = futures_util::future::join_all(calls).await;
            if done.iter().all(Result::is_ok) {
                return;
            }
            // Calls that fail at once give nobody else a turn.
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, served).await.unwrap();
    assert_eq!(ends(&fixture), 2);
    fixture.stop().await;
}

#[tokio::test]
async fn a_server_that_nobody_needs_is_ended_and_the_next_call_starts_it() {
    let mut config = misbehaving("plain", "");
    (config.idle_stop, config.start) = (Some(Duration::from_millis(1)), StartPolicy::Eager);
    let fixture = fixture(config);
    fixture.server.start_unless_known();
    for _ in 0..3 {
        fixture.until(|state| *state == SourceState::Stopped).await;
        while !fixture.records().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(text(&fixture.call("t", nothing()).await.unwrap()), "ok {}");
        let group = fixture.records().first().and_then(|record| record.pgid);
        assert!(group.is_none_or(|group| members(group).len() <= 1));
    }
    assert_eq!(ends(&fixture), 0);
    fixture.stop().await;
}

#[tokio::test]
async fn a_call_whose_connection_broke_is_repeated_once_where_its_tool_is_replayable() {
    let folder = tempfile::tempdir().unwrap();
    let note = |name: &str| folder.path().join(name).display().to_string();
    let fixture = started(replayable(misbehaving("crash_first_call", &note("a")))).await;
    assert_eq!(text(&fixture.call("t", nothing()).await.unwrap()), "the second call");
    fixture.stop().await;
    let plain = started(misbehaving("crash_first_call", &note("b"))).await;
    assert_eq!(plain.call("t", nothing()).await.unwrap_err().kind, ToolErrorKind::Unavailable);
    plain.stop().await;
    let always = started(replayable(misbehaving("crash_call", ""))).await;
    assert_eq!(always.call("t", nothing()).await.unwrap_err().kind, ToolErrorKind::Unavailable);
    assert_eq!(
        always
            .server
            .logs()
            .iter()
            .filter(|line| line.text.contains("it went wrong") && line.origin == LogOrigin::Stderr)
            .count(),
        2
    );
    always.stop().await;
}

#[tokio::test]
async fn a_call_that_its_server_died_of_was_called_also_where_it_cannot_be_repeated() {
    let mut config = replayable(misbehaving("crash_call", ""));
    (config.restart.attempts, config.restart.open) = (1, LONG);
    let fixture = started(config).await;
    let error = fixture.call("t", nothing()).await.unwrap_err();
    let words = "The MCP server `bad` ended while `t` was running. Whether the call took effect is unknown: check before you \
                 call it again.";
    assert_eq!(error.model_text, words);
    fixture.stop().await;
}

#[tokio::test]
async fn its_states_are_told_in_the_order_in_which_they_are_true() {
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("calls").display().to_string();
    let fixture = fixture(misbehaving("crash_first_call", &note));
    let mut seen = vec![fixture.server.state().as_str()];
    let watching = async {
        loop {
            let state = fixture.server.state().as_str();
            if seen.last() != Some(&state) {
                seen.push(state);
            }
            tokio::task::yield_now().await;
        }
    };
    let living = async {
        fixture.server.settled().await;
        fixture.call("t", nothing()).await.unwrap_err();
        assert_eq!(text(&fixture.call("t", nothing()).await.unwrap()), "the second call");
        fixture.stop().await;
        fixture.server.restart().await;
        fixture.server.outcome().await;
        assert_eq!(text(&fixture.call("t", nothing()).await.unwrap()), "the second call");
        fixture.stop().await;
    };
    tokio::select! {
        () = living => {}
        () = watching => {}
    }
    seen.extend(Some(fixture.server.state().as_str()).filter(|state| seen.last() != Some(state)));
    let expected = ["stopped", "starting", "ready", "failing", "starting", "ready", "stopped", "starting", "ready", "stopped"];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_call_that_is_told_to_end_while_its_server_starts_is_not_sent_once_it_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let calls = folder.path().join("calls");
    let fixture = fixture(misbehaving("crash_first_call", &calls.display().to_string()));
    let (context, _) = context();
    let cancel = context.cancel.clone();
    let mut waiting = pin!(fixture.server.call(call("t", nothing()), context));
    assert!(futures_util::poll!(&mut waiting).is_pending());
    fixture.until(|state| *state == SourceState::Ready).await;
    // Both have come before it looks: its server, and the word to end.
    cancel.cancel();
    let error = waiting.await.unwrap_err();
    assert_eq!((error.kind, &*error.model_text), (ToolErrorKind::Cancelled, "`t` was cancelled before it was called."));
    assert_eq!(text(&fixture.call("u", nothing()).await.unwrap()), "well");
    assert!(!calls.exists(), "the server was called");
    fixture.stop().await;
}

#[tokio::test]
async fn a_server_is_spoken_to_in_the_version_that_its_operator_chose() {
    let mut config = misbehaving("behaves", "");
    config.protocol = Some(Protocol::V20250618);
    let fixture = started(config).await;
    let agreed = fixture.server.agreed().unwrap();
    assert_eq!((agreed.version.as_str(), agreed.ground), ("2025-06-18", Ground::Chosen));
    fixture.stop().await;
}
