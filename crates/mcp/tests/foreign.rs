//! More servers that nobody here wrote, from `scripts/install-test-servers`, each for what it alone exercises. What all of
//! them exercise is listed in `docs/mcp-servers.md`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::support::http_server::{Answer, HttpServer};
use crate::support::{Fixture, LONG, fixture, installed, quick, started, text};
use serde_json::{Map, Value, json};
use turnwright_core::ContentBlock;
use turnwright_engine::ToolSource;
use turnwright_mcp::{CompletionOf, LogOrigin, ResourceSource, ServerConfig, StdioConfig};

fn configured(name: &str, command: &Path, args: &[&str]) -> ServerConfig {
    let mut program = StdioConfig::new(command.display().to_string());
    program.args = args.iter().map(ToString::to_string).collect();
    let mut config = ServerConfig::new(name, program);
    quick(&mut config);
    (config.start_limit, config.stop_grace) = (Duration::from_mins(1), Duration::from_secs(2));
    config
}

/// A server from npm, by the name of its program.
fn npm(folder: &Path, program: &str, args: &[&str]) -> ServerConfig {
    configured(program, &folder.join("npm/node_modules/.bin").join(program), args)
}

/// A server from `PyPI` over the second version of the protocol's library, or the first.
fn python(folder: &Path, environment: &str, program: &str, args: &[&str]) -> ServerConfig {
    configured(program, &folder.join(environment).join("bin").join(program), args)
}
fn version(fixture: &Fixture) -> String {
    assert_eq!(*fixture.server.quarantined(), []);
    fixture.server.agreed().unwrap().version
}
fn arguments(arguments: Value) -> Map<String, Value> {
    match arguments {
        Value::Object(arguments) => arguments,
        other => panic!("an object: {other}"),
    }
}

#[tokio::test]
async fn everything_has_resources_prompts_completion_and_updates() {
    let Some(folder) = installed() else { return };
    let fixture = started(npm(&folder, "mcp-server-everything", &[])).await;
    let shelf = tokio::time::timeout(LONG, fixture.server.shelf()).await.unwrap().unwrap();
    assert_eq!((shelf.resources.len(), shelf.templates.len(), shelf.problems.len()), (7, 2, 0), "{shelf:?}");
    let names: Vec<&str> = shelf.prompts.iter().map(|prompt| prompt.name.as_str()).collect();
    assert_eq!(names, ["simple-prompt", "args-prompt", "completable-prompt", "resource-prompt"]);
    let prompt = fixture.server.prompt("args-prompt", &arguments(json!({"city": "Oslo", "state": "NO"}))).await.unwrap();
    assert_eq!(prompt.messages[0].content, ContentBlock::text("What's weather in Oslo, NO?"));
    let read = fixture.server.read_resource(&shelf.resources[0].uri).await.unwrap();
    assert!(read[0].text.as_ref().is_some_and(|text| !text.is_empty()), "{read:?}");
    let of = CompletionOf::Prompt("completable-prompt".into());
    let completion = fixture.server.complete(&of, "department", "E", &Map::new()).await.unwrap();
    assert_eq!(completion.values, ["Engineering"]);
    let uri = "demo://resource/dynamic/text/1";
    let mut watched = fixture.server.watch_resource(uri).await.unwrap();
    fixture.call("toggle-subscriber-updates", json!({})).await.unwrap();
    tokio::time::timeout(LONG, watched.changed()).await.expect("it changes every five seconds");
    fixture.stop().await;
}

#[tokio::test]
async fn sequential_thinking_keeps_its_schema_of_results() {
    let Some(folder) = installed() else { return };
    let fixture = started(npm(&folder, "mcp-server-sequential-thinking", &[])).await;
    assert_eq!(version(&fixture), "2025-11-25");
    let tool = fixture.server.tools()[0].clone();
    assert_eq!((tool.name.as_str(), tool.title.as_deref()), ("sequentialthinking", Some("Sequential Thinking")));
    assert!(tool.face.output_schema.is_some());
    let thought = json!({"thought": "first", "nextThoughtNeeded": true, "thoughtNumber": 1, "totalThoughts": 2});
    let output = fixture.call("sequentialthinking", thought).await.unwrap();
    let structured = output.structured_content.unwrap();
    assert_eq!((&structured["thoughtNumber"], output.diagnostic), (&json!(1), None));
    let wrong = fixture.call("sequentialthinking", json!({"thought": 7})).await.unwrap();
    assert!(wrong.is_error, "{wrong:?}");
    fixture.stop().await;
}

#[tokio::test]
async fn context7_fails_its_call_without_a_network_and_stays() {
    let Some(folder) = installed() else { return };
    let fixture = started(npm(&folder, "context7-mcp", &[])).await;
    assert_eq!(version(&fixture), "2026-07-28");
    assert_eq!(fixture.tool_names(), ["resolve-library-id", "query-docs"]);
    let shelf = tokio::time::timeout(LONG, fixture.server.shelf()).await.unwrap().unwrap();
    assert!(!shelf.has_resources() && shelf.prompts.is_empty() && shelf.problems.is_empty(), "{shelf:?}");
    for _ in 0..2 {
        let asked = json!({"libraryName": "tokio", "query": "spawn"});
        let output = tokio::time::timeout(LONG, fixture.call("resolve-library-id", asked)).await.unwrap().unwrap();
        assert!(text(&output).to_lowercase().contains("error"), "{output:?}");
    }
    fixture.stop().await;
}

#[tokio::test]
async fn code_runner_prints_to_stdout_and_is_used_all_the_same() {
    let Some(folder) = installed() else { return };
    let fixture = started(npm(&folder, "mcp-server-code-runner", &[])).await;
    let noise: Vec<String> =
        fixture.server.logs().into_iter().filter(|line| line.origin == LogOrigin::Stdout).map(|line| line.text).collect();
    assert_eq!(noise, ["Code Runner MCP Server running on stdio"]);
    let output = fixture.call("run-code", json!({"code": "print(6 * 7)", "languageId": "python"})).await.unwrap();
    assert!(text(&output).contains("42") || text(&output).contains("Error"), "{output:?}");
    let output = fixture.call("run-code", json!({"code": "echo $((6 * 7))", "languageId": "shellscript"})).await.unwrap();
    assert_eq!(text(&output).trim(), "42");
    fixture.stop().await;
}

#[tokio::test]
async fn fetch_reads_a_page_and_its_prompt_asks_for_an_address() {
    let Some(folder) = installed() else { return };
    let pages = HttpServer::start(|_| {
        Answer::of_type("200 OK", "text/html", "<html><body><h1>Hello</h1><p>from here</p></body></html>")
    })
    .await;
    let fixture = started(python(&folder, "python", "mcp-server-fetch", &["--ignore-robots-txt", "--allow-private-ips"])).await;
    assert_eq!(version(&fixture), "2026-07-28");
    let output = fixture.call("fetch", json!({"url": pages.url, "raw": true})).await.unwrap();
    assert!(text(&output).contains("from here"), "{output:?}");
    let shelf = tokio::time::timeout(LONG, fixture.server.shelf()).await.unwrap().unwrap();
    let prompt = &shelf.prompts[0];
    assert_eq!(
        (prompt.name.as_str(), prompt.arguments[0].name.as_str(), prompt.arguments[0].is_required),
        ("fetch", "url", true)
    );
    let prompt = fixture.server.prompt("fetch", &arguments(json!({"url": pages.url}))).await.unwrap();
    assert_eq!(prompt.messages.len(), 1, "{prompt:?}");
    fixture.stop().await;
}

#[tokio::test]
async fn sqlite_writes_reads_and_has_a_memo_and_a_prompt() {
    let Some(folder) = installed() else { return };
    let data = tempfile::tempdir().unwrap();
    let database = data.path().join("t.db").display().to_string();
    let config = python(&folder, "old-python", "mcp-server-sqlite", &["--db-path", &database]);
    let held = fixture(config);
    let server = Arc::new(crate::support::fixture_in(held.server.config().clone(), held.folder.path()));
    let source = ResourceSource::default();
    source.add(&server);
    server.start();
    tokio::time::timeout(LONG, source.settled()).await.unwrap();
    let call =
        |tool: &'static str, arguments: Value| server.call(crate::support::call(tool, arguments), crate::support::context().0);
    call("create_table", json!({"query": "CREATE TABLE t (a INTEGER)"})).await.unwrap();
    call("write_query", json!({"query": "INSERT INTO t VALUES (7)"})).await.unwrap();
    let read = call("read_query", json!({"query": "SELECT a FROM t"})).await.unwrap();
    assert_eq!(text(&read), "[{'a': 7}]");
    call("append_insight", json!({"insight": "seven is enough"})).await.unwrap();
    let wanted = crate::support::call("read", json!({"server": "mcp-server-sqlite", "uri": "memo://insights"}));
    let memo = source.call(wanted, crate::support::context().0).await.unwrap();
    assert!(turnwright_core::text_of(&memo.content).contains("seven is enough"), "{memo:?}");
    let prompt = server.prompt("mcp-demo", &arguments(json!({"topic": "cheese"}))).await.unwrap();
    assert!(format!("{prompt:?}").contains("cheese"));
    server.stop().await;
}

#[tokio::test]
async fn calculator_promises_its_results_and_keeps_the_promise() {
    let Some(folder) = installed() else { return };
    let fixture = started(python(&folder, "old-python", "mcp-server-calculator", &[])).await;
    assert_eq!(version(&fixture), "2025-11-25");
    let output = fixture.call("calculate", json!({"expression": "6 * 7"})).await.unwrap();
    assert_eq!(
        (text(&output), &output.structured_content, output.diagnostic.as_ref()),
        ("42", &Some(json!({"result": "42"})), None)
    );
    let wrong = fixture.call("calculate", json!({"expression": "6 *"})).await.unwrap();
    assert!(wrong.is_error, "{wrong:?}");
    fixture.stop().await;
}
