//! What servers with an address say beyond what `rmcp` has types for.

use crate::support::far::at;
use crate::support::http_server::{Answer, Asked, HttpServer, usual};
use crate::support::{call, context, nothing, started, text};
use serde_json::{Value, json};
use turnwright_core::Wants;
use turnwright_engine::{ToolReply, ToolSource};

/// The same as one event of a stream.
fn streamed(answer: &Answer) -> Answer {
    Answer::of_type("200 OK", "text/event-stream", format!("data: {}\n\n", answer.body))
}

/// A server of 2025-11-25 whose tool takes calls as tasks too.
fn tasks(asked: &Asked) -> Answer {
    let task = |status: &str| {
        json!({"taskId": "x", "status": status, "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z",
            "ttl": 60_000, "pollInterval": 20})
    };
    let said = |said: &str| json!({"content": [{"type": "text", "text": said}]});
    let result = match asked.method() {
        "initialize" => json!({"protocolVersion": "2025-11-25", "serverInfo": {"name": "small", "version": "1"},
            "capabilities": {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}}),
        "tools/list" => {
            json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "optional"}}]})
        }
        "tools/call" if asked.body.pointer("/params/task").is_some() => json!({"task": task("working")}),
        "tools/call" => said("plain"),
        "tasks/get" => task("completed"),
        "tasks/result" => said("as a task"),
        _ => return usual(asked),
    };
    Answer::result(asked, &result)
}

#[tokio::test]
async fn a_tool_that_takes_both_forms_is_called_as_a_task() {
    let forms: [fn(&Answer) -> Answer; 2] = [Answer::clone, streamed];
    for form in forms {
        let server = HttpServer::start(move |asked| match tasks(asked) {
            answer if asked.body["id"].is_null() => answer,
            answer => form(&answer),
        })
        .await;
        let fixture = started(at(&server.url, &[])).await;
        assert_eq!(text(&fixture.call("t", nothing()).await.unwrap()), "as a task");
        fixture.stop().await;
    }
}

fn form() -> Value {
    json!({"type": "object", "required": ["zeta"], "properties": {
        "zeta": {"type": "string", "pattern": "^a", "x-hint": "h"},
        "alpha": {"type": "integer", "minimum": 1},
    }})
}

/// A server of 2026-07-28 whose tool wants a form to be filled in first.
fn asks(asked: &Asked) -> Answer {
    let result = match asked.method() {
        "server/discover" => {
            json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
            "serverInfo": {"name": "small", "version": "1"}, "ttlMs": 0, "cacheScope": "private"})
        }
        "tools/list" => json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private",
            "tools": [{"name": "t", "inputSchema": {"type": "object"}}]}),
        "tools/call" => json!({"resultType": "input_required", "inputRequests": {"who": {"method": "elicitation/create",
            "params": {"mode": "form", "message": "Who?", "requestedSchema": form()}}}}),
        _ => return usual(asked),
    };
    Answer::result(asked, &result)
}

#[tokio::test]
async fn a_form_within_a_result_is_asked_as_it_was_written() {
    let forms: [fn(&Asked) -> Answer; 2] = [asks, |asked| match asked.method() {
        "tools/call" => streamed(&asks(asked)),
        _ => asks(asked),
    }];
    for form_of in forms {
        let server = HttpServer::start(form_of).await;
        let fixture = started(at(&server.url, &[])).await;
        let reply = fixture.server.advance(call("t", nothing()), context().0).await.unwrap();
        let ToolReply::Asks { asks, .. } = reply else { panic!("{reply:?}") };
        let Wants::Form { schema } = &asks[0].wants else { panic!("{asks:?}") };
        assert_eq!(schema.to_string(), form().to_string());
        fixture.stop().await;
    }
}
