//! A stop is told by every stream at once, also where a tool takes its time to end and the stop came by another process.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::Command;

use agent_client_protocol::v1::schema::{
    ContentBlock, PermissionOptionKind, SessionUpdate, StopReason, ToolCallContent, ToolCallStatus,
};
use serde_json::{Value, json};
use turnwright_testkit::model_server::{Piece, call_chunk};

use crate::editor;
use crate::openai::{clients, scripts, talk};
use crate::serve::Server;
use crate::support::{LIMIT, Place, wait_for};
use crate::two_servers::two;

/// Does not end where it is told to, only where it is let go.
const DEAF: &str = "trap '' TERM; echo $$ > running; while [ ! -e go ]; do sleep 0.05; done";

fn deaf() -> Vec<Piece> {
    vec![call_chunk(0, "command__run", &json!({"command": DEAF}).to_string())]
}

/// Waits until the command runs; the one conversation.
fn conversation(place: &Place, server: &Server) -> String {
    wait_for("the command", || place.path("running").exists().then_some(()));
    let all = server.ask("GET /api/v1/conversations", &Value::Null);
    all["data"][0]["id"].as_str().unwrap().to_owned()
}

/// An event stream that is asked for with a body.
fn open(server: &Server, head: &str, body: &Value) -> impl Iterator<Item = String> + use<> {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let (address, length) = (server.address(), body.len());
    let rest = format!("Host: {address}\r\nContent-Type: application/json\r\nContent-Length: {length}");
    stream.write_all(format!("{head} HTTP/1.0\r\n{rest}\r\n\r\n{body}").as_bytes()).unwrap();
    BufReader::new(stream).lines().map(Result::unwrap).filter(|line| line.starts_with("data: "))
}

/// Each protocol: how a turn is begun, what says that it is stopped, and what that it is over.
fn doors() -> [(&'static str, &'static str, Value, &'static str, &'static str); 4] {
    let user = json!([{"role": "user", "content": "Go."}]);
    let said = json!([{"id": "u1", "role": "user", "parts": [{"type": "text", "text": "Go."}]}]);
    let run = json!({
        "threadId": "c", "runId": "r1", "messages": [{"id": "u1", "role": "user", "content": "Go."}], "tools": [],
        "context": [], "state": {}, "forwardedProps": {},
    });
    [
        ("the AI SDK", "POST /api/chat", json!({"id": "c", "messages": said}), "The turn was stopped", r#""type":"abort""#),
        ("AG-UI", "POST /ag-ui", run, "The turn was stopped", "RUN_FINISHED"),
        (
            "Chat Completions",
            "POST /v1/chat/completions",
            json!({"model": "p/m", "stream": true, "messages": user}),
            r#""is_stopping":true"#,
            "[DONE]",
        ),
        (
            "Responses",
            "POST /v1/responses",
            json!({"model": "p/m", "stream": true, "input": "Go."}),
            r#""is_stopping":true"#,
            "response.incomplete",
        ),
    ]
}

#[test]
fn a_stop_by_another_process_is_told_by_every_stream_while_a_deaf_tool_still_runs() {
    for (name, head, body, stop, end) in doors() {
        let (place, _model, first, second) = two(deaf);
        let mut lines = open(&first, head, &body);
        let conversation = conversation(&place, &second);
        let mut elsewhere = open(&second, &format!("GET /api/v1/conversations/{conversation}/stream"), &Value::Null);
        assert!(elsewhere.any(|line| line.contains("tool-input-available")), "{name}");
        second.ask(&format!("POST /api/v1/conversations/{conversation}/cancel"), &json!({}));
        for lines in [&mut lines as &mut dyn Iterator<Item = String>, &mut elsewhere] {
            let mut told = Vec::new();
            while told.last().is_none_or(|line: &String| !line.contains(stop) && !line.contains("The turn was stopped")) {
                let line = lines.next().unwrap_or_else(|| panic!("{name}: {told:#?}"));
                assert!(!line.contains(end), "{name}: {told:#?}");
                told.push(line);
            }
        }
        place.write("go", "");
        assert!(lines.any(|line| line.contains(end)), "{name}");
        assert!(elsewhere.any(|line| line.contains(r#""type":"abort""#)), "{name}");
        first.stop();
        second.stop();
    }
}

#[test]
fn an_editor_is_told_at_each_call_that_runs_that_the_turn_was_stopped_elsewhere() {
    let (place, _model, first, second) = two(deaf);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let stopped = runtime.block_on(editor::with_agent(&place, PermissionOptionKind::AllowOnce, async |agent, told| {
        let session = editor::session(&agent, &place).await?;
        let prompted = editor::prompt(&agent, &session, "Go.");
        let stop = async {
            until(|| place.path("running").exists()).await;
            let conversation = conversation(&place, &second);
            second.ask(&format!("POST /api/v1/conversations/{conversation}/cancel"), &json!({}));
            until(|| told.lock().unwrap().iter().any(is_told)).await;
            let is_over = told.lock().unwrap().iter().any(is_over);
            place.write("go", "");
            is_over
        };
        let (reason, was_over) = tokio::join!(prompted, stop);
        assert!(!was_over, "it was told before the call's end");
        reason
    }));
    assert_eq!(stopped.unwrap(), StopReason::Cancelled);
    first.stop();
    second.stop();
}

async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

fn is_told(update: &SessionUpdate) -> bool {
    let SessionUpdate::ToolCallUpdate(update) = update else { return false };
    update.fields.content.iter().flatten().any(|content| match content {
        ToolCallContent::Content(content) => {
            matches!(&content.content, ContentBlock::Text(text) if text.text.contains("The turn was stopped"))
        }
        _ => false,
    })
}

fn is_over(update: &SessionUpdate) -> bool {
    matches!(update, SessionUpdate::ToolCallUpdate(update)
        if matches!(update.fields.status, Some(ToolCallStatus::Completed | ToolCallStatus::Failed)))
}

#[test]
fn the_official_clients_take_the_sign_of_a_stop() {
    let Some(clients) = clients() else { return };
    for door in ["completions", "responses"] {
        let (place, _model, first, second) = two(deaf);
        let mut command = Command::new(clients.join("npm/node_modules/.bin/node"));
        command.arg(scripts().join("stopped.mjs")).arg(clients.join("npm"));
        talk(command.arg(first.root()).arg(second.root()).arg(place.path("")).arg(door));
        first.stop();
        second.stop();
    }
}
