//! What a server offered is known without starting it again.

use std::time::Duration;

use crate::support::{call, context, fixture_in, misbehaving, nothing, stdio, text};
use serde_json::json;
use turnwright_core::ToolErrorKind;
use turnwright_engine::{SourceState, ToolReply, ToolSource};
use turnwright_mcp::{Definitions, FileDefinitions, McpServer, ResourceSource, ServerConfig};

fn names(server: &McpServer) -> Vec<String> {
    server.tools().iter().map(|tool| tool.name.clone()).collect()
}

/// A folder in which this server was started once.
async fn learned(config: &ServerConfig) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let server = fixture_in(config.clone(), folder.path());
    assert_eq!(names(&server), Vec::<String>::new(), "nothing is known before the first start");
    server.start_unless_known();
    server.settled().await;
    assert_eq!(server.state(), SourceState::Ready, "{:?}", server.logs());
    server.stop().await;
    folder
}

#[tokio::test]
async fn a_known_server_is_offered_at_once_and_started_by_its_first_call() {
    let config = misbehaving("behaves", "");
    let folder = learned(&config).await;
    let server = fixture_in(config, folder.path());
    server.start_unless_known();
    assert_eq!((server.state(), names(&server)), (SourceState::Stopped, vec!["t".to_owned(), "u".to_owned()]));
    let output = server.call(call("t", json!({"a": 1})), context().0).await.unwrap();
    assert_eq!((text(&output), server.state()), ("ok {\"a\": 1}", SourceState::Ready));
    server.stop().await;
}

#[tokio::test]
async fn what_was_kept_is_read_by_what_the_operator_says_now() {
    let mut config = misbehaving("no_schema", "");
    let folder = learned(&config).await;
    config.serial = true;
    let server = fixture_in(config, folder.path());
    assert!(server.tools().iter().all(|tool| tool.declared.serial) && server.tools().len() == 2);
}

#[tokio::test]
async fn another_command_is_another_server() {
    let mut config = misbehaving("behaves", "");
    let folder = learned(&config).await;
    stdio(&mut config).args.push("more".into());
    let server = fixture_in(config, folder.path());
    assert_eq!(names(&server), Vec::<String>::new());
    server.start_unless_known();
    assert_eq!(server.state(), SourceState::Starting);
    server.stop().await;
}

#[tokio::test]
async fn a_tool_that_is_not_what_was_offered_is_not_called_and_offered_anew() {
    let config = misbehaving("behaves", "");
    let old = |name: &str| json!({"name": name, "description": "as it was", "inputSchema": {"type": "object"}});
    for tool in ["t", "gone"] {
        let folder = tempfile::tempdir().unwrap();
        FileDefinitions::new(folder.path().join("definitions")).keep(&config, &[old("t"), old("gone")]);
        let server = fixture_in(config.clone(), folder.path());
        assert_eq!(names(&server), ["t", "gone"]);
        let error = server.call(call(tool, nothing()), context().0).await.unwrap_err();
        let told = format!("`{tool}` of the MCP server `bad` is not what it was when it was offered: it was not called.");
        assert_eq!((error.kind, error.model_text), (ToolErrorKind::Unavailable, told));
        assert_eq!(names(&server), ["t", "u"]);
        server.call(call("t", nothing()), context().0).await.unwrap();
        server.stop().await;
    }
}

#[tokio::test]
async fn whoever_can_ask_again_is_told_that_a_tool_changed_and_was_not_called() {
    let config = misbehaving("behaves", "");
    let folder = tempfile::tempdir().unwrap();
    let old = json!({"name": "t", "description": "as it was", "inputSchema": {"type": "object"}});
    FileDefinitions::new(folder.path().join("definitions")).keep(&config, &[old]);
    let server = fixture_in(config, folder.path());
    assert_eq!(server.advance(call("t", nothing()), context().0).await.unwrap(), ToolReply::Changed);
    assert!(matches!(server.advance(call("t", nothing()), context().0).await.unwrap(), ToolReply::Done(_)));
    server.stop().await;
}

#[tokio::test]
async fn turns_wait_for_a_server_that_was_never_seen_and_for_no_other() {
    let config = misbehaving("behaves", "");
    let known = fixture_in(config.clone(), learned(&config).await.path());
    let unknown = fixture_in(config, tempfile::tempdir().unwrap().path());
    for (server, is_awaited) in [(&known, false), (&unknown, true)] {
        server.start();
        assert_eq!((server.state(), server.is_awaited()), (SourceState::Starting, is_awaited));
        server.settled().await;
        server.stop().await;
    }
    let mut config = misbehaving("behaves", "");
    stdio(&mut config).command = "/nowhere/a-server".into();
    let never = fixture_in(config, tempfile::tempdir().unwrap().path());
    never.settled().await;
    assert!(!never.is_awaited() && matches!(never.state(), SourceState::Failing { .. }), "{:?}", never.state());
    never.stop().await;
}

#[tokio::test]
async fn whoever_waits_is_told_of_servers_and_up_to_when_and_not_of_what_waits_for_them_too() {
    let mut config = misbehaving("behaves", "");
    config.start_limit = Duration::from_millis(1_500);
    let server = fixture_in(config, tempfile::tempdir().unwrap().path());
    assert_eq!(server.wait_in_words().as_deref(), Some("bad (at most 1.5 s)"));
    assert_eq!(ResourceSource::default().wait_in_words(), None);
}

#[tokio::test]
async fn a_broken_memory_means_a_start() {
    let config = misbehaving("behaves", "");
    let folder = learned(&config).await;
    for file in folder.path().join("definitions").read_dir().unwrap() {
        std::fs::write(file.unwrap().path(), "{half").unwrap();
    }
    let server = fixture_in(config, folder.path());
    server.start_unless_known();
    server.settled().await;
    assert_eq!(server.state(), SourceState::Ready);
    server.stop().await;
}

#[tokio::test]
async fn what_one_users_server_offered_is_not_known_of_anothers_and_can_be_forgotten() {
    let mut config = misbehaving("behaves", "");
    config.owner = Some("u_1".parse().unwrap());
    let folder = learned(&config).await;
    for owner in [None, Some("u_2")] {
        let config = ServerConfig { owner: owner.map(|owner| owner.parse().unwrap()), ..config.clone() };
        assert_eq!(names(&fixture_in(config, folder.path())), Vec::<String>::new(), "{owner:?}");
    }
    let server = fixture_in(config.clone(), folder.path());
    assert_eq!(names(&server), ["t", "u"]);
    let elsewhere = ServerConfig { transport: misbehaving("behaves", "elsewhere").transport, ..config.clone() };
    let _ = fixture_in(elsewhere, folder.path()).forget().await.unwrap();
    assert_eq!(names(&fixture_in(config.clone(), folder.path())), ["t", "u"], "what the one elsewhere offered goes alone");
    let _ = server.forget().await.unwrap();
    assert_eq!(names(&fixture_in(config, folder.path())), Vec::<String>::new());
}
