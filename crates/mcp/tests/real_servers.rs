//! Servers that nobody here wrote, from `scripts/install-test-servers`.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::support::{Fixture, LONG, call, context, installed, nothing, quick, started, stdio, text};
use serde_json::json;
use turnwright_core::{ContentBlock, ToolErrorKind};
use turnwright_engine::{Progress, SourceState, ToolSource};
use turnwright_mcp::{ServerConfig, StdioConfig};

fn npm(folder: &Path, package: &str, args: &[&str]) -> ServerConfig {
    let script = folder.join("npm/node_modules/@modelcontextprotocol").join(package).join("dist/index.js");
    configured(package, Path::new("node"), [script.display().to_string().as_str()].into_iter().chain(args.iter().copied()))
}

fn python(folder: &Path, package: &str, args: &[&str]) -> ServerConfig {
    configured(package, &folder.join("python/bin").join(package), args.iter().copied())
}

fn configured<'a>(name: &str, command: &Path, args: impl Iterator<Item = &'a str>) -> ServerConfig {
    let mut program = StdioConfig::new(command.display().to_string());
    program.args = args.map(str::to_owned).collect();
    let mut config = ServerConfig::new(name, program);
    quick(&mut config);
    config.stop_grace = Duration::from_secs(2);
    config
}

async fn everything() -> Option<Fixture> {
    Some(started(npm(&installed()?, "server-everything", &[])).await)
}

#[tokio::test]
async fn everything_lists_its_tools_with_those_that_come_right_after_the_start() {
    let Some(fixture) = everything().await else { return };
    let names = fixture.tool_names();
    for name in ["echo", "get-sum", "get-tiny-image", "get-structured-content", "trigger-long-running-operation"] {
        assert!(names.iter().any(|known| known == name), "{name} in {names:?}");
    }
    assert_eq!((names.len(), &*fixture.server.quarantined()), (15, [].as_slice()));
    fixture.stop().await;
}

#[tokio::test]
async fn everything_echoes_adds_and_shows_an_image() {
    let Some(fixture) = everything().await else { return };
    let echo = fixture.call("echo", json!({"message": "hello \u{1f642}"})).await.unwrap();
    assert_eq!((text(&echo), echo.is_error), ("Echo: hello \u{1f642}", false));
    let sum = fixture.call("get-sum", json!({"a": 2, "b": 3})).await.unwrap();
    assert_eq!(text(&sum), "The sum of 2 and 3 is 5.");
    let image = fixture.call("get-tiny-image", nothing()).await.unwrap();
    let image = image.content.iter().find_map(|block| match block {
        ContentBlock::Image { data, mime_type } => Some((data.get(..5).unwrap(), mime_type.as_str())),
        _ => None,
    });
    assert_eq!(image, Some(("iVBOR", "image/png")));
    fixture.stop().await;
}

#[tokio::test]
async fn everything_gives_structured_content_resources_and_errors() {
    let Some(fixture) = everything().await else { return };
    let weather = fixture.call("get-structured-content", json!({"location": "New York"})).await.unwrap();
    assert!(weather.structured_content.unwrap().get("temperature").unwrap().is_number());
    let links = fixture.call("get-resource-links", json!({"count": 2})).await.unwrap();
    let links = links.content.iter().filter(|block| matches!(block, ContentBlock::ResourceLink { .. })).count();
    assert_eq!(links, 2);
    let resource = fixture.call("get-resource-reference", json!({"resourceType": "Text", "resourceId": 1})).await.unwrap();
    assert!(resource.content.iter().any(|block| matches!(block, ContentBlock::Resource { .. })));
    let wrong = fixture.call("get-sum", json!({"a": "two"})).await.unwrap();
    assert!(wrong.is_error, "{wrong:?}");
    fixture.stop().await;
}

#[tokio::test]
async fn everything_reports_progress() {
    let Some(fixture) = everything().await else { return };
    let (context, reports) = context();
    let arguments = json!({"duration": 0.4, "steps": 4});
    let output = fixture.server.call(call("trigger-long-running-operation", arguments), context).await.unwrap();
    assert!(text(&output).starts_with("Long running operation completed"), "{output:?}");
    let step = |progress| Progress { progress, total: Some(4.0), message: None };
    assert_eq!(*reports.0.lock().unwrap(), [1.0, 2.0, 3.0, 4.0].map(step));
    fixture.stop().await;
}

#[tokio::test]
async fn everything_is_cancelled_in_the_middle() {
    let Some(fixture) = everything().await else { return };
    let (context, reports) = context();
    let cancel = context.cancel.clone();
    let arguments = json!({"duration": 60, "steps": 600});
    let running = fixture.server.call(call("trigger-long-running-operation", arguments), context);
    let cancelling = async {
        while reports.0.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cancel.cancel();
    };
    let (result, ()) = tokio::time::timeout(LONG, async { tokio::join!(running, cancelling) }).await.unwrap();
    assert_eq!(result.unwrap_err().kind, ToolErrorKind::Interrupted);
    assert_eq!(fixture.server.state(), SourceState::Ready);
    fixture.stop().await;
}

#[tokio::test]
async fn filesystem_writes_and_reads_and_stays_in_its_folder() {
    let Some(folder) = installed() else { return };
    let root = tempfile::tempdir().unwrap();
    let root_path = root.path().canonicalize().unwrap();
    let fixture = started(npm(&folder, "server-filesystem", &[root_path.to_str().unwrap()])).await;
    assert_eq!(fixture.tool_names().len(), 14);
    let file = root_path.join("a.txt").display().to_string();
    fixture.call("write_file", json!({"path": file, "content": "written"})).await.unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "written");
    let read = fixture.call("read_text_file", json!({"path": file})).await.unwrap();
    assert_eq!(text(&read), "written");
    let outside = fixture.call("read_text_file", json!({"path": "/etc/hostname"})).await.unwrap();
    assert!(outside.is_error && text(&outside).contains("Access denied"), "{outside:?}");
    fixture.stop().await;
}

#[tokio::test]
async fn memory_keeps_what_it_is_told_over_a_restart() {
    let Some(folder) = installed() else { return };
    let root = tempfile::tempdir().unwrap();
    let mut config = npm(&folder, "server-memory", &[]);
    stdio(&mut config).env = vec![("MEMORY_FILE_PATH".into(), root.path().join("memory.jsonl").display().to_string())];
    let fixture = started(config).await;
    let entities = json!({"entities": [{"name": "Ada", "entityType": "person", "observations": ["likes engines"]}]});
    fixture.call("create_entities", entities).await.unwrap();
    fixture.server.restart().await;
    let graph = fixture.call("read_graph", nothing()).await.unwrap();
    assert!(text(&graph).contains("likes engines"), "{graph:?}");
    fixture.stop().await;
}

#[tokio::test]
async fn time_converts_between_zones() {
    let Some(folder) = installed() else { return };
    let fixture = started(python(&folder, "mcp-server-time", &["--local-timezone", "UTC"])).await;
    assert_eq!(fixture.tool_names(), ["get_current_time", "convert_time"]);
    let arguments = json!({"source_timezone": "UTC", "target_timezone": "Asia/Tokyo", "time": "12:00"});
    let converted = fixture.call("convert_time", arguments).await.unwrap();
    assert!(text(&converted).contains("T21:00:00+09:00"), "{converted:?}");
    let unknown = fixture.call("no_such_tool", nothing()).await;
    let is_failed = match &unknown {
        Ok(output) => output.is_error,
        Err(error) => error.kind == ToolErrorKind::InvalidArguments,
    };
    assert!(is_failed, "{unknown:?}");
    fixture.stop().await;
}

#[tokio::test]
async fn git_shows_the_status_of_a_repository() {
    let Some(folder) = installed() else { return };
    let root = tempfile::tempdir().unwrap();
    assert!(Command::new("git").arg("init").arg("--quiet").arg(root.path()).status().unwrap().success());
    std::fs::write(root.path().join("new.txt"), "new").unwrap();
    let path = root.path().display().to_string();
    let fixture = started(python(&folder, "mcp-server-git", &["--repository", &path])).await;
    assert!(fixture.tool_names().contains(&"git_status".to_owned()));
    let status = fixture.call("git_status", json!({"repo_path": path})).await.unwrap();
    assert!(text(&status).contains("new.txt"), "{status:?}");
    fixture.stop().await;
}

#[tokio::test]
async fn a_server_behind_wrappers_leaves_no_process() {
    let Some(folder) = installed() else { return };
    let script = folder.join("npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let shell = format!("node '{}'; true", script.display());
    let config = configured("wrapped", Path::new("sh"), ["-c", &shell].into_iter());
    let fixture = started(config).await;
    let group = fixture.records()[0].pgid.unwrap();
    assert!(crate::support::members(group).len() >= 2);
    fixture.stop().await;
}
