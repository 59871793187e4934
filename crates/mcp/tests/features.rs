//! What servers have besides tools, in both eras: resources, prompts, completion, changes, log levels.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::support::{Fixture, LONG, call, context, fixture, nothing, quick, started, text};
use serde_json::{Map, Value, json};
use turnwright_core::{ContentBlock, EmbeddedResource, ToolErrorKind, UserId};
use turnwright_engine::{SourceState, ToolSource};
use turnwright_mcp::{
    CompletionOf, LogLevel, McpServer, ResourceSource, SaidMessage, ServerConfig, Shelf, StdioConfig, TransportConfig,
};

const ERAS: [&str; 2] = ["legacy", "modern"];

fn offers(era: &str, mode: &str) -> ServerConfig {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/offers.py");
    let mut stdio = StdioConfig::new("python3");
    stdio.args = vec![script.display().to_string(), era.to_owned(), mode.to_owned()];
    let mut config = ServerConfig::new("own", stdio);
    quick(&mut config);
    config
}
async fn shelf(server: &McpServer) -> Arc<Shelf> {
    tokio::time::timeout(LONG, server.shelf()).await.unwrap().unwrap()
}

/// What the server says that it was asked.
async fn seen(fixture: &Fixture) -> Value {
    serde_json::from_str(text(&fixture.call("seen", nothing()).await.unwrap())).unwrap()
}

/// Waits until the server says so.
async fn until_seen(fixture: &Fixture, wanted: impl Fn(&Value) -> bool) {
    let found = async {
        while !wanted(&seen(fixture).await) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, found).await.unwrap();
}
async fn until_shelf(server: &McpServer, wanted: impl Fn(&Shelf) -> bool) {
    let found = async {
        while !wanted(&*shelf(server).await) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, found).await.unwrap();
}

fn uris(shelf: &Shelf) -> Vec<&str> {
    shelf.resources.iter().map(|resource| resource.uri.as_str()).collect()
}
fn arguments(arguments: Value) -> Map<String, Value> {
    match arguments {
        Value::Object(arguments) => arguments,
        other => panic!("an object: {other}"),
    }
}

#[tokio::test]
async fn resources_and_prompts_are_listed_once_over_all_pages_and_kept() {
    for era in ERAS {
        let fixture = fixture(offers(era, ""));
        let first = shelf(&fixture.server).await;
        assert_eq!(uris(&first), ["note://0", "note://1", "note://2", "note://3", "note://4"], "{era}");
        assert_eq!(first.templates[0].uri_template, "note://{number}");
        assert_eq!((first.prompts[0].name.as_str(), first.prompts[0].arguments.len()), ("review", 2));
        assert_eq!(first.problems, Vec::<String>::new());
        shelf(&fixture.server).await;
        assert_eq!(seen(&fixture).await["seen"]["resources/list"], 3, "{era}: three pages, asked for once");
        fixture.server.stop().await;
        let again = crate::support::fixture_in(offers(era, ""), fixture.folder.path());
        assert_eq!(*shelf(&again).await, *first);
        assert_eq!(again.state(), SourceState::Stopped, "{era}: nothing was started to know it");
    }
}

#[tokio::test]
async fn a_secret_that_a_server_was_given_is_told_by_nothing_that_it_says() {
    const KEY: &str = "sesame-0pen-1234";
    for era in ERAS {
        let mut config = offers(era, "tells");
        let TransportConfig::Stdio(stdio) = &mut config.transport else { panic!("it is a program") };
        stdio.env = vec![("TOLD_KEY".to_owned(), KEY.to_owned())];
        let fixture = started(config).await;
        let server = &fixture.server;
        let nothing_else = Map::new();
        let of = CompletionOf::Prompt("review".to_owned());
        let told = [
            format!("{:?}", shelf(server).await),
            format!("{:?}", server.agreed()),
            format!("{:?}", server.read_resource("note://1").await.unwrap()),
            format!("{:?}", server.prompt("review", &arguments(json!({"code": "x"}))).await.unwrap()),
            format!("{:?}", server.complete(&of, "language", "p", &nothing_else).await.unwrap()),
        ];
        for told in told {
            let is_said = era == "legacy" || !told.contains("Agreed");
            assert!(!told.contains(KEY) && (!is_said || told.contains("[secret]")), "{era}: {told}");
        }
        fixture.stop().await;
    }
}

#[tokio::test]
async fn changes_are_followed_in_both_eras_and_a_lost_subscription_is_taken_up_again() {
    for era in ERAS {
        let fixture = started(offers(era, "")).await;
        shelf(&fixture.server).await;
        if era == "modern" {
            until_seen(&fixture, |seen| seen["seen"]["subscriptions/listen"] == 1).await;
            fixture.call("drop", nothing()).await.unwrap();
            until_seen(&fixture, |seen| seen["seen"]["subscriptions/listen"] == 2).await;
        }
        fixture.call("grow", nothing()).await.unwrap();
        until_shelf(&fixture.server, |shelf| uris(shelf).contains(&"note://new")).await;
        assert_eq!(shelf(&fixture.server).await.prompts[1].name, "new", "{era}");
        fixture.stop().await;
    }
}

#[tokio::test]
async fn tools_that_changed_and_could_not_be_listed_are_listed_again() {
    let fixture = started(offers("legacy", "stumbles")).await;
    fixture.call("grow", nothing()).await.unwrap();
    fixture.logged("the database is locked").await;
    let found = async {
        while !fixture.tool_names().contains(&"late".to_owned()) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, found).await.unwrap();
    fixture.stop().await;
}

#[tokio::test]
async fn a_server_that_cannot_be_listened_to_is_used_all_the_same() {
    let fixture = started(offers("modern", "no_listen")).await;
    assert_eq!(shelf(&fixture.server).await.resources.len(), 5);
    let line = "it cannot be listened to, and is listed every 5 minutes: Method not found (-32601)";
    assert_eq!(fixture.logged("listened").await, line);
    fixture.stop().await;
}

#[tokio::test]
async fn a_watched_resource_tells_of_its_changes_also_after_a_restart() {
    for era in ERAS {
        let fixture = started(offers(era, "")).await;
        let mut watched = fixture.server.watch_resource("note://1").await.unwrap();
        until_seen(&fixture, |seen| seen["subscribed"] == json!(["note://1"])).await;
        fixture.call("touch", json!({"uri": "note://1"})).await.unwrap();
        tokio::time::timeout(LONG, watched.changed()).await.unwrap();
        fixture.server.restart().await;
        until_seen(&fixture, |seen| seen["subscribed"] == json!(["note://1"])).await;
        if era == "legacy" {
            tokio::time::timeout(LONG, watched.changed()).await.expect("it may have changed meanwhile");
        }
        drop(watched);
        until_seen(&fixture, |seen| seen["subscribed"] == json!([])).await;
        fixture.stop().await;
    }
    let plain = started(offers("legacy", "plain")).await;
    let error = plain.server.watch_resource("note://1").await.unwrap_err();
    assert_eq!(error.model_text, "The MCP server `own` does not tell when its resources change.");
    plain.stop().await;
}

#[tokio::test]
async fn resources_are_read_and_what_is_not_there_is_named() {
    for era in ERAS {
        let fixture = started(offers(era, "")).await;
        let resource = |mime_type: Option<&str>, text: &str| EmbeddedResource {
            uri: "note://7".into(),
            mime_type: mime_type.map(Into::into),
            text: Some(text.into()),
            blob: None,
        };
        let read = fixture.server.read_resource("note://7").await.unwrap();
        assert_eq!(read, [resource(Some("text/plain"), "the text of note://7"), resource(None, "more")], "{era}");
        let error = fixture.server.read_resource("file:///x").await.unwrap_err();
        let code = if era == "modern" { -32602 } else { -32002 };
        let told = format!("`resources/read` of the MCP server `own` was refused: Resource not found ({code}).");
        assert_eq!((error.kind, error.model_text), (ToolErrorKind::NotFound, told));
        let error = fixture.server.read_resource("note://broken").await.unwrap_err();
        let told = "The answer of the MCP server `own` to `resources/read` cannot be used: the answer has no array `contents`.";
        assert_eq!(error.model_text, told);
        fixture.stop().await;
    }
}

#[tokio::test]
async fn prompts_are_got_with_their_arguments_and_completed() {
    for era in ERAS {
        let fixture = started(offers(era, "")).await;
        let prompt = fixture.server.prompt("review", &arguments(json!({"code": "x = 1"}))).await.unwrap();
        let unknown = "[video: a kind of content that is not known here, not shown]";
        let said = |role: &str, text: &str| SaidMessage { role: role.into(), content: ContentBlock::text(text) };
        assert_eq!(prompt.messages, [said("user", "Review: x = 1"), said("assistant", unknown)], "{era}");
        assert_eq!(prompt.description.as_deref(), Some("Reviews code."));
        let error = fixture.server.prompt("review", &Map::new()).await.unwrap_err();
        let told = "`prompts/get` of the MCP server `own` was refused: code is missing (-32602).";
        assert_eq!((error.kind, error.model_text.as_str()), (ToolErrorKind::InvalidArguments, told));
        let of = CompletionOf::Prompt("review".into());
        let completion = fixture.server.complete(&of, "style", "p", &arguments(json!({"code": "c"}))).await.unwrap();
        assert_eq!(
            (completion.values, completion.has_more),
            (["perl", "php", "prolog", "python", "c"].map(Into::into).into(), true)
        );
        let of = CompletionOf::Template("note://{number}".into());
        let completion = fixture.server.complete(&of, "number", "py", &Map::new()).await.unwrap();
        assert_eq!((completion.values, completion.has_more), (vec!["python".to_owned()], false));
        fixture.stop().await;
    }
}

#[tokio::test]
async fn a_server_without_them_has_none_and_is_not_asked() {
    let fixture = started(offers("legacy", "plain")).await;
    assert_eq!(*shelf(&fixture.server).await, Shelf::default());
    let error = fixture.server.read_resource("note://1").await.unwrap_err();
    assert_eq!(error.model_text, "The MCP server `own` has no resources: `resources/read` was not asked.");
    let of = CompletionOf::Prompt("review".into());
    assert_eq!(fixture.server.complete(&of, "code", "", &Map::new()).await.unwrap().values, Vec::<String>::new());
    let seen = seen(&fixture).await;
    assert_eq!(seen["seen"]["resources/list"], json!(null));
    fixture.stop().await;
}

#[tokio::test]
async fn lists_that_are_wrong_are_used_as_far_as_they_go() {
    for (mode, resources, problem) in [
        ("loops", 2, "resources/list: its cursor repeats: the rest is left out"),
        ("bad", 1, "resources/list: a resource without an address is left out"),
        ("null", 0, "resources/list: the answer has no array `resources`"),
        ("silent", 0, "resources/list: no answer to resources/list within 1500 ms"),
    ] {
        let mut config = offers("legacy", mode);
        if mode == "silent" {
            config.start_limit = Duration::from_millis(1500);
        }
        let fixture = started(config).await;
        let found = async {
            loop {
                if let Ok(shelf) = fixture.server.shelf().await {
                    return shelf;
                }
            }
        };
        let shelf = tokio::time::timeout(LONG, found).await.unwrap();
        assert_eq!(shelf.resources.len(), resources, "{mode}");
        assert!(shelf.problems.iter().any(|told| told == problem), "{mode}: {:?}", shelf.problems);
        fixture.logged(problem).await;
        fixture.call("seen", nothing()).await.unwrap();
        fixture.stop().await;
    }
    let without = started(offers("legacy", "no_templates")).await;
    let shelf = shelf(&without.server).await;
    assert_eq!((shelf.resources.len(), shelf.templates.len(), shelf.problems.len()), (5, 0, 0));
    without.stop().await;
}

#[tokio::test]
async fn a_log_level_is_asked_for_in_the_form_of_each_era() {
    for era in ERAS {
        let mut config = offers(era, "");
        config.log_level = Some(LogLevel::Warning);
        let fixture = started(config).await;
        until_seen(&fixture, |seen| seen["level"] == "warning").await;
        fixture.stop().await;
        let quiet = started(offers(era, "")).await;
        shelf(&quiet.server).await;
        assert_eq!(seen(&quiet).await["level"], json!(null), "{era}");
        quiet.stop().await;
    }
}

#[tokio::test]
async fn models_list_and_read_the_resources_of_all_servers() {
    let source = ResourceSource::default();
    assert_eq!(source.tools().len(), 0, "nothing to read, no tools");
    let folder = tempfile::tempdir().unwrap();
    let added = |config: ServerConfig| {
        let server = Arc::new(crate::support::fixture_in(config, folder.path()));
        source.add(&server);
        server.start();
        server
    };
    let own = added(offers("modern", ""));
    let plain = added(ServerConfig { name: "plain".into(), ..offers("legacy", "plain") });
    tokio::time::timeout(LONG, source.settled()).await.unwrap();
    let names: Vec<String> = source.tools().iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(names, ["list", "read"]);
    assert!(Arc::ptr_eq(&source.tools(), &source.tools()), "the same until something changes");
    assert!(source.tools().iter().all(|tool| tool.declared.read_only));
    let used = |tool: &'static str, arguments: Value| source.call(call(tool, arguments), context().0);
    let listed = used("list", nothing()).await.unwrap();
    let last = "own note://{number} \"notes\" [template: fill in what is in braces]\n";
    assert!(text(&listed).starts_with("own note://0 \"note 0\" (text/plain)\n") && text(&listed).ends_with(last), "{listed:?}");
    assert_eq!(text(&used("list", json!({"server": "plain"})).await.unwrap()), "[there are none]");
    assert_eq!(text(&used("list", json!({"skip": 5})).await.unwrap()), last);
    assert_eq!(text(&used("list", json!({"skip": u64::MAX})).await.unwrap()), "[there are none]");
    let read = used("read", json!({"server": "own", "uri": "note://picture"})).await.unwrap();
    assert_eq!(read.content, [ContentBlock::Image { data: "AA==".into(), mime_type: "image/png".into() }]);
    let error = used("read", json!({"server": "none", "uri": "note://1"})).await.unwrap_err();
    assert_eq!(error.model_text, "There is no server `none`. Those with resources are `own`.");
    let error = used("read", json!({"server": "own", "uri": "note://asks"})).await.unwrap_err();
    assert!(error.model_text.ends_with("it asks for more input, which cannot be given here."), "{}", error.model_text);
    own.stop().await;
    plain.stop().await;
}

#[tokio::test]
async fn a_users_turns_wait_for_no_resources_of_another() {
    let (ann, ben): (UserId, UserId) = ("ann".parse().unwrap(), "ben".parse().unwrap());
    let source = ResourceSource::default();
    let folder = tempfile::tempdir().unwrap();
    let mut stdio = StdioConfig::new("sleep");
    stdio.args = vec!["600".to_owned()];
    let mut config = ServerConfig { owner: Some(ann.clone()), ..ServerConfig::new("silent", stdio) };
    quick(&mut config);
    let server = Arc::new(crate::support::fixture_in(config, folder.path()));
    source.add(&server);
    server.start();
    assert_eq!((source.is_awaited_by(&ann), source.is_awaited_by(&ben)), (true, false));
    tokio::time::timeout(LONG, source.settled_for(&ben)).await.unwrap();
    assert!(source.is_awaited_by(&ann), "it is starting all the while");
    server.stop().await;
}

#[tokio::test]
async fn a_server_is_told_that_nobody_waits_for_a_resource_any_more() {
    for era in ERAS {
        let fixture = started(offers(era, "")).await;
        shelf(&fixture.server).await;
        let reading = fixture.server.read_resource("note://silent");
        tokio::select! {
            read = reading => panic!("{read:?}"),
            () = until_seen(&fixture, |seen| seen["seen"]["resources/read"] == 1) => {}
        }
        until_seen(&fixture, |seen| seen["seen"]["notifications/cancelled"] == 1).await;
        fixture.stop().await;
    }
}
