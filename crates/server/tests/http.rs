//! The routes over a real engine with scripted provider and tools.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use http::{HeaderMap, Method, Request, StatusCode};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tower::ServiceExt;
use turnwright_core::policy::Policy;
use turnwright_core::{Declared, ModelRef, QuestionReason, TurnSettings};
use turnwright_engine::{Documents, Engine, EngineParts, SourceState, ToolSource};
use turnwright_server::{ServerOptions, ServerState, router};
use turnwright_testkit::{
    Answer, ManualClock, MemoryDocuments, MemoryStore, ScriptedProvider, ScriptedProviders, ScriptedSource, ScriptedTool, call,
    text,
};

use crate::documented::documented;

mod ag_ui;
mod again;
mod by_hand;
mod chosen;
mod files;
mod going_on;
mod leaving;
mod limits;
mod long;
mod named;
mod older_pages;
mod operating;
mod page_tools;
mod pages;
mod resume;
mod stale;
mod use_chat;

struct Server {
    router: Router,
    engine: Engine,
    source: Arc<ScriptedSource>,
    store: Arc<MemoryStore>,
}

fn server(answers: impl IntoIterator<Item = Answer>) -> Server {
    server_on(Arc::default(), Arc::new(MemoryDocuments::default()), answers)
}

/// The same over data that others had before.
fn server_on(store: Arc<MemoryStore>, documents: Arc<dyn Documents>, answers: impl IntoIterator<Item = Answer>) -> Server {
    let read_only = Declared { read_only: true, ..Declared::default() };
    let source = Arc::new(ScriptedSource::new(
        "lab",
        [
            ScriptedTool::echo("look").declared(read_only),
            ScriptedTool::echo("touch"),
            ScriptedTool::echo("broken").schema(json!({"type": "object", "properties": 7})),
        ],
    ));
    let engine = Engine::new(EngineParts {
        providers: Arc::new(ScriptedProviders(ScriptedProvider::new(answers))),
        sources: vec![source.clone() as Arc<dyn ToolSource>],
        store: store.clone(),
        clock: Arc::new(ManualClock::at(1_736_622_000_000)),
        policy: Policy::default(),
        defaults: TurnSettings::new(ModelRef::new("test", "scripted")),
    });
    let state = ServerState::new(engine.clone(), ServerOptions { body_limit_bytes: 4096, ..ServerOptions::default() });
    let router = router(state.with_documents(documents));
    Server { router, engine, source, store }
}

struct Answered {
    status: StatusCode,
    headers: HeaderMap,
    body: String,
}

impl Answered {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("not JSON: {}", self.body))
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Status and code of a problem document.
    fn problem(&self) -> (u16, String) {
        assert_eq!(self.header("content-type"), "application/problem+json", "{}", self.body);
        let problem = self.json();
        assert_eq!(problem["status"], self.status.as_u16());
        assert!(problem["detail"].as_str().is_some_and(|detail| !detail.is_empty()));
        (self.status.as_u16(), problem["code"].as_str().unwrap().to_owned())
    }

    /// The chunks of an event stream.
    fn chunks(&self) -> Vec<String> {
        self.body.lines().filter_map(|line| line.strip_prefix("data: ")).map(str::to_owned).collect()
    }
}

impl Server {
    async fn ask(&self, request: Request<Body>) -> Answered {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = documented(&method, &path, response).into_parts();
        let body = String::from_utf8(to_bytes(body, usize::MAX).await.unwrap().to_vec()).unwrap();
        Answered { status: parts.status, headers: parts.headers, body }
    }

    async fn send(&self, method: Method, path: &str, body: &Value, headers: &[(&str, &str)]) -> Answered {
        let mut request = Request::builder().method(method).uri(path).header("host", "127.0.0.1:8700");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
        self.ask(request.body(body).unwrap()).await
    }

    async fn get(&self, path: &str) -> Answered {
        self.send(Method::GET, path, &Value::Null, &[]).await
    }

    async fn post(&self, path: &str, body: Value) -> Answered {
        self.send(Method::POST, path, &body, &[("content-type", "application/json")]).await
    }

    async fn stream(&self, path: &str, body: Value) -> Answered {
        self.send(Method::POST, path, &body, &[("accept", "text/event-stream")]).await
    }
}

#[tokio::test]
async fn a_chat_creates_its_conversation_and_answers_in_the_form_of_mcp_open_client() {
    let server =
        server([Answer::whole([text("Let me look."), call(0, "lab__look", r#"{"at":1}"#)]), Answer::whole([text("Seen.")])]);
    let answer = server.post("/api/v1/conversations/c1/chat", json!({"content": "Look!"})).await;
    assert_eq!(answer.status, StatusCode::OK);
    let at = "2025-01-11T19:00:00.000Z";
    let body = answer.json();
    let messages = body["turn"]["messages"].clone();
    let ids: Vec<&str> = messages.as_array().unwrap().iter().map(|message| message["id"].as_str().unwrap()).collect();
    let call_id = messages[1]["tool_calls"][0]["id"].clone();
    assert_eq!(
        messages,
        json!([
            {"id": ids[0], "role": "user", "content": "Look!", "timestamp": at},
            {"id": ids[1], "role": "assistant", "content": "Let me look.", "finish_reason": "tool_calls", "timestamp": at,
             "tool_calls": [{"id": call_id, "type": "function", "function": {"name": "lab__look", "arguments": "{\"at\":1}"}}]},
            {"id": ids[2], "role": "tool", "content": "{\"at\":1}", "timestamp": at, "tool_call_id": call_id, "name": "lab__look", "is_error": false},
            {"id": ids[3], "role": "assistant", "content": "Seen.", "finish_reason": "stop", "timestamp": at},
        ])
    );
    let expected = json!({
        "success": true,
        "user_message": messages[0],
        "assistant_message": messages[3],
        "message": "Chat completed successfully",
        "turn": {
            "conversation_id": "c1",
            "turn_id": body["turn"]["turn_id"],
            "status": "completed",
            "finish_reason": "stop",
            "text": "Seen.",
            "messages": messages,
            "usage": {"input_tokens": 20, "output_tokens": 10, "cached_input_tokens": null, "cache_write_tokens": null, "reasoning_tokens": null, "cost_usd": null},
            "steps": 2,
            "waiting": [],
        },
    });
    assert_eq!(body, expected);
    let history = server.get("/api/v1/conversations/c1/messages").await.json();
    assert_eq!(history, json!({"data": messages, "next_cursor": null, "has_more": false}));
}

#[tokio::test]
async fn a_streamed_chat_is_an_ai_sdk_message_that_ends() {
    let server = server([Answer::whole([text("Hello")])]);
    let answer = server.stream("/api/v1/conversations/c1/chat", json!({"content": "Hi"})).await;
    assert_eq!((answer.status, answer.header("content-type")), (StatusCode::OK, "text/event-stream"));
    assert_eq!(answer.header("x-vercel-ai-ui-message-stream"), "v1");
    assert_eq!(answer.header("cache-control"), "no-cache, no-transform");
    let chunks = answer.chunks();
    assert!(chunks[0].starts_with(r#"{"type":"start","messageId":"turn_1","#), "{chunks:?}");
    let expected = [
        r#"{"type":"start-step"}"#,
        r#"{"type":"text-start","id":"t1"}"#,
        r#"{"type":"text-delta","id":"t1","delta":"Hello"}"#,
        r#"{"type":"text-end","id":"t1"}"#,
        r#"{"type":"data-usage","id":"usage","data":{"inputTokens":10,"outputTokens":5,"model":"test/scripted"}}"#,
        r#"{"type":"finish-step"}"#,
        r#"{"type":"finish","finishReason":"stop"}"#,
        "[DONE]",
    ];
    assert_eq!(chunks[1..], expected);
    assert_eq!(server.get("/api/v1/conversations/c1/stream").await.status, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn a_call_waits_for_its_decision_which_counts_once() {
    let server = server([Answer::whole([call(0, "lab__touch", r#"{"at":1}"#)]), Answer::whole([text("Touched.")])]);
    let parked = server.post("/api/v1/conversations/c1/chat", json!({"content": "Touch!"})).await;
    assert_eq!(parked.json()["turn"]["status"], "suspended");
    let waiting = server.get("/api/v1/conversations/c1/calls").await.json();
    assert_eq!(waiting["data"], parked.json()["turn"]["waiting"]);
    let call = waiting["data"][0].clone();
    let id = call["id"].as_str().unwrap();
    let expected = json!({"id": id, "approval_id": "appr_4_0", "name": "lab__touch", "arguments": "{\"at\":1}", "reason": "approval", "rule": call["rule"],
               "always": {"tool": "lab__touch", "when": {}, "action": "allow", "text": "allow lab__touch"}});
    assert_eq!(call, expected);
    let everywhere = server.get("/api/v1/approvals").await.json();
    assert_eq!(everywhere["data"][0]["conversation_id"], "c1");

    let other = json!({"content": "Go on!", "settings": {"approve": "none"}});
    for path in ["/api/v1/conversations/c1/chat", "/api/v1/conversations/c1/messages"] {
        assert_eq!(server.post(path, other.clone()).await.problem(), (409, "turn_open".to_owned()));
    }

    let resumed = server.get("/api/v1/conversations/c1/stream").await;
    assert!(resumed.chunks().iter().any(|chunk| chunk.contains("tool-approval-request")), "{}", resumed.body);

    let path = format!("/api/v1/conversations/c1/calls/{id}/decision");
    let of_another = json!({"decision": "allow", "approval_id": "appr_4_0-2"});
    assert_eq!(server.post(&path, of_another).await.problem(), (409, "not_waiting".to_owned()));
    assert_eq!(server.post(&path, json!({"decision": "allow", "approval_id": "appr_5_0"})).await.problem().0, 422);
    let allows = json!({"decision": "allow", "approval_id": "appr_4_0", "arguments": {"at": 2}, "reason": "fine"});
    let decided = server.post(&path, allows).await;
    assert_eq!((decided.status, decided.json()), (StatusCode::OK, json!({"id": id, "decision": "allow"})));
    assert_eq!(server.post(&path, json!({"decision": "allow"})).await.problem().0, 409);
    let turn = parked.json()["turn"]["turn_id"].as_str().unwrap().parse().unwrap();
    server.engine.wait(&"c1".parse().unwrap(), turn).await.unwrap();
    let effects = server.source.effects();
    assert_eq!(effects.len(), 1);
    assert_eq!(Value::Object(effects[0].arguments.clone()), json!({"at": 2}));
    assert_eq!(server.get("/api/v1/conversations/c1/calls").await.json()["data"], json!([]));

    // Wherever the call is shown from here on stands what ran (law 4).
    let messages = server.get("/api/v1/conversations/c1/messages").await.json();
    let calls = &messages["data"][1]["tool_calls"][0]["function"]["arguments"];
    assert_eq!((calls, &messages["data"][2]["changed_arguments"]), (&json!("{\"at\":1}"), &json!("{\"at\":2}")));
    let others: Vec<&Value> = messages["data"].as_array().unwrap().iter().filter(|one| one["role"] != "tool").collect();
    assert!(others.iter().all(|other| other.get("changed_arguments").is_none()), "{messages}");
    let turns = server.get("/api/v1/conversations/c1/turns").await.json();
    let chunks = turns["data"][0]["chunks"].as_array().unwrap();
    let told: Vec<&Value> = chunks.iter().filter(|chunk| chunk["toolMetadata"].get("changedArguments").is_some()).collect();
    let told: Vec<_> = told.iter().map(|chunk| (&chunk["type"], &chunk["toolMetadata"]["changedArguments"])).collect();
    let ran = json!({"at": 2});
    assert_eq!(told, [(&json!("tool-approval-response"), &ran), (&json!("tool-output-available"), &ran)]);
    let kept = server.get("/api/v1/conversations/c1/messages?format=ai-sdk-ui").await.json();
    let part = kept["data"][1]["parts"].as_array().unwrap().iter().find(|part| part["type"] == "dynamic-tool").unwrap().clone();
    assert_eq!((&part["input"], &part["toolMetadata"]["changedArguments"]), (&json!({"at": 1}), &json!({"at": 2})));
}

#[tokio::test]
async fn a_remembered_decision_says_its_rule_and_decides_about_the_like() {
    let calls = [call(0, "lab__touch", r#"{"at":1}"#), call(1, "lab__touch", r#"{"at":2}"#)];
    let server = server([Answer::whole(calls), Answer::whole([text("Touched.")])]);
    server.engine.keep_rules(server.store.clone()).await;
    let parked = server.post("/api/v1/conversations/c1/chat", json!({"content": "Touch!"})).await;
    let path = "/api/v1/conversations/c1/calls/call_4_0/decision";
    for (wrong, expected) in [
        (json!("configuration"), 422),
        (json!("nobody"), 422),
        (json!({"scope": "user", "when": {"at": {"max": 0}}}), 422),
        (json!({"scope": "user", "when": {"at": {"belw": 0}}}), 422),
        (json!({"scope": "user", "what": 1}), 422),
    ] {
        let refused = server.post(path, json!({"decision": "allow", "remember": wrong})).await;
        assert_eq!(refused.problem().0, expected, "{wrong}");
    }
    let remember = json!({"scope": "conversation", "when": {"at": {"max": 5}}});
    let decided = server.post(path, json!({"decision": "allow", "remember": remember})).await.json();
    let rule = &decided["remembered"];
    let expected = json!({"id": "call_4_0", "decision": "allow", "also": [{"id": "call_4_1", "decision": "allow"}],
        "remembered": {"id": rule["id"], "scope": "conversation", "conversation_id": "c1", "tool": "lab__touch",
            "when": {"at": {"max": 5}}, "action": "allow", "text": "allow lab__touch when at up to 5",
            "created_at": "2025-01-11T19:00:00.000Z"}});
    assert_eq!(decided, expected);
    let turn = parked.json()["turn"]["turn_id"].as_str().unwrap().parse().unwrap();
    server.engine.wait(&"c1".parse().unwrap(), turn).await.unwrap();
    assert_eq!(server.source.effects().len(), 2);

    let listed = server.get("/api/v1/approvals/rules").await.json();
    assert_eq!(listed["data"], json!([rule]));
    let explained = |at: i64| json!({"tool": "lab__touch", "arguments": {"at": at}, "conversation_id": "c1"});
    let told = server.post("/api/v1/approvals/explain", explained(5)).await.json();
    let text = format!("{}, remembered for this conversation (allow lab__touch when at up to 5)", rule["id"].as_str().unwrap());
    assert_eq!((&told["action"], &told["rule"]), (&json!("allow"), &json!(text)));
    assert_eq!(server.post("/api/v1/approvals/explain", explained(6)).await.json()["action"], "ask");
    assert_eq!(server.post("/api/v1/approvals/explain", json!({"tool": "no__tool"})).await.problem().0, 404);

    let path = format!("/api/v1/approvals/rules/{}", rule["id"].as_str().unwrap());
    let removed = server.send(Method::DELETE, &path, &json!({}), &[]).await;
    assert_eq!(removed.status, StatusCode::NO_CONTENT);
    assert_eq!(server.send(Method::DELETE, &path, &json!({}), &[]).await.problem().0, 404);
    let added = json!({"tool": "lab__*", "action": "deny", "scope": "everyone"});
    assert_eq!(server.post("/api/v1/approvals/rules", added).await.status, StatusCode::CREATED);
    let unplaced = json!({"tool": "lab__*", "action": "deny", "scope": "turn"});
    assert_eq!(server.post("/api/v1/approvals/rules", unplaced).await.problem().0, 422);
}

#[tokio::test]
async fn stock_use_chat_answers_a_question_and_goes_on_in_the_same_message() {
    let server = server([Answer::whole([call(0, "lab__touch", "{}")]), Answer::whole([text("Touched.")])]);
    let said = json!({"id": "c1", "messages": [{"id": "x", "role": "user", "parts": [{"type": "text", "text": "Touch!"}]}], "trigger": "submit-message"});
    let first = server.post("/api/chat", said).await;
    assert_eq!((first.status, first.header("content-type")), (StatusCode::OK, "text/event-stream"));
    let chunks = first.chunks();
    let asked: Value =
        serde_json::from_str(chunks.iter().find(|chunk| chunk.contains("tool-approval-request")).unwrap()).unwrap();
    assert_eq!(chunks.last().unwrap(), "[DONE]");
    assert!(server.source.effects().is_empty());
    let answer = json!({"id": "c1", "trigger": "submit-message", "messages": [
        {"id": "x", "role": "user", "parts": [{"type": "text", "text": "Touch!"}]},
        {"id": "turn_1", "role": "assistant", "parts": [
            {"type": "dynamic-tool", "toolName": "lab__touch", "toolCallId": asked["toolCallId"], "state": "approval-responded",
             "input": {"forged": true}, "approval": {"id": asked["approvalId"], "approved": true}}]}]});
    let second = server.post("/api/chat", answer).await;
    let chunks = second.chunks();
    assert!(chunks[0].starts_with(r#"{"type":"start","messageId":"turn_1","#), "{chunks:?}");
    assert!(chunks.iter().any(|chunk| chunk.contains("tool-output-available")), "{chunks:?}");
    assert!(chunks.iter().any(|chunk| chunk.contains("Touched.")), "{chunks:?}");
    assert_eq!(chunks.last().unwrap(), "[DONE]");
    assert!(server.source.effects()[0].arguments.is_empty(), "what the body claims of a call is ignored");
    assert_eq!(server.get("/api/chat/c1/stream").await.status, StatusCode::NO_CONTENT);
    assert_eq!(server.get("/api/chat/never-seen/stream").await.status, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn another_answer_that_is_asked_for_twice_with_its_key_is_given_once() {
    let server = server(["One", "Two", "Three"].map(|word| Answer::whole([text(word)])));
    let ask = |trigger: &str| json!({"id": "c1", "trigger": trigger, "messages": [{"id": "x", "role": "user", "parts": [{"type": "text", "text": "Hello"}]}]});
    server.post("/api/chat", ask("submit-message")).await;
    let key = [("content-type", "application/json"), ("idempotency-key", "k1")];
    let has = |told: &Answered, word: &str| told.chunks().iter().any(|chunk| chunk.contains(word));
    for _ in 0..2 {
        let told = server.send(Method::POST, "/api/chat", &ask("regenerate-message"), &key).await;
        assert!(told.status == StatusCode::OK && has(&told, "Two"), "{}", told.body);
    }
    let told = server.post("/api/chat", ask("regenerate-message")).await;
    assert!(has(&told, "Three"), "{}", told.body);
}

#[tokio::test]
async fn what_is_said_otherwise_is_found_by_its_name_where_that_is_ours_and_counted_else() {
    // Who loads the end of a conversation alone has names of ours, and cannot be counted from its beginning.
    let said = |id: &str, text: &str| json!({"id": id, "role": "user", "parts": [{"type": "text", "text": text}]});
    let answered = |id: &str| json!({"id": id, "role": "assistant", "parts": []});
    let submit = |message: &str, list: Vec<Value>| json!({"id": "c1", "trigger": "submit-message", "messageId": message, "messages": list});
    let again = |message: &str, list: Vec<Value>| json!({"id": "c1", "trigger": "regenerate-message", "messageId": message, "messages": list});
    let foreign = |text: &str| said("xyz", text);
    for (body, shown) in [
        (submit("{2}", vec![said("{2}", "two, otherwise")]), ["one", "two, otherwise"].as_slice()),
        (
            submit("xyz", vec![said("{2}", "two"), answered("a"), foreign("three, otherwise")]),
            &["one", "two", "three, otherwise"],
        ),
        (submit("xyz", vec![said("u", "one"), answered("a"), foreign("two, otherwise")]), &["one", "two, otherwise"]),
        (again("{2}", vec![said("{2}", "two")]), &["one", "two"]),
        (again("{a2}", vec![said("u", "two")]), &["one", "two"]),
        (again("unknown", vec![said("{2}", "two")]), &["one", "two"]),
    ] {
        let server = server(["1", "2", "3", "4"].map(|word| Answer::whole([text(word)])));
        server.post("/api/v1/conversations", json!({"id": "c1"})).await;
        for word in ["one", "two", "three"] {
            server.post("/api/v1/conversations/c1/chat", json!({"content": word})).await;
        }
        let messages =
            async || server.get("/api/v1/conversations/c1/messages").await.json()["data"].as_array().unwrap().clone();
        let before = messages().await;
        let id = |at: usize| before[at]["id"].as_str().unwrap();
        let body = body.to_string().replace("{2}", id(2)).replace("{a2}", id(3));
        let told = server.post("/api/chat", serde_json::from_str(&body).unwrap()).await;
        assert_eq!(told.status, StatusCode::OK, "{}", told.body);
        let after = messages().await;
        let people = after.iter().filter(|message| message["role"] == "user");
        let left: Vec<&str> = people.map(|message| message["content"].as_str().unwrap()).collect();
        assert_eq!(left, shown, "{body}");
    }
}

#[tokio::test]
async fn a_repeated_request_with_its_key_is_stored_once() {
    let server = server([Answer::whole([text("One")]), Answer::whole([text("Two")])]);
    server.post("/api/v1/conversations", json!({"id": "c1"})).await;
    let path = "/api/v1/conversations/c1/messages";
    let key = [("idempotency-key", "k1")];
    let first = server.send(Method::POST, path, &json!({"content": "Hi"}), &key).await;
    let again = server.send(Method::POST, path, &json!({"content": "Hi"}), &key).await;
    assert_eq!((first.status, first.json()), (StatusCode::ACCEPTED, again.json()));
    assert_eq!(first.json(), json!({"message_id": "msg_1", "turn_id": "turn_1", "turn_status": "running"}));
    let other = server.send(Method::POST, path, &json!({"content": "Ho"}), &key).await;
    assert_eq!(other.problem(), (422, "idempotency_key_reused".to_owned()));
    assert!(other.json()["detail"].as_str().unwrap().contains("`k1`"));
    server.engine.wait(&"c1".parse().unwrap(), "turn_1".parse().unwrap()).await.unwrap();
    let history = server.get(path).await.json();
    let texts: Vec<&Value> = history["data"].as_array().unwrap().iter().map(|message| &message["content"]).collect();
    assert_eq!(texts, ["Hi", "One"]);
}

#[tokio::test]
async fn a_dropped_response_stops_no_turn() {
    let gate = Arc::new(Semaphore::new(0));
    let server = server([Answer::whole([text("Still here")]).gated(&gate)]);
    let request = Request::post("/api/v1/conversations/c1/chat")
        .header("host", "localhost")
        .header("accept", "text/event-stream")
        .body(Body::from(r#"{"content":"Hi"}"#))
        .unwrap();
    let response = server.router.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    drop(response);
    gate.add_permits(2);
    server.engine.wait(&"c1".parse().unwrap(), "turn_1".parse().unwrap()).await.unwrap();
    let history = server.get("/api/v1/conversations/c1/messages").await.json();
    assert_eq!(history["data"][1]["content"], "Still here");
}

#[tokio::test]
async fn events_go_on_after_the_position_that_is_named() {
    let server = server([Answer::whole([text("Hello")])]);
    server.post("/api/v1/conversations/c1/chat", json!({"content": "Hi"})).await;
    let last = server.get("/api/v1/conversations/c1").await.json()["last_seq"].as_u64().unwrap();
    let beyond = server.get(&format!("/api/v1/conversations/c1/events?after={}", last + 1)).await;
    assert_eq!(beyond.problem(), (400, "unknown_position".to_owned()));
    let senseless = server.get("/api/v1/conversations/c1/events?after=soon").await;
    assert_eq!(senseless.problem(), (400, "invalid_position".to_owned()));

    let first_chunk = |headers: Vec<(&'static str, String)>| {
        let mut request = Request::get("/api/v1/conversations/c1/events").header("host", "localhost");
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let router = server.router.clone();
        async move {
            let response = router.oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
            let mut stream = response.into_body().into_data_stream();
            let chunk = futures_util::StreamExt::next(&mut stream).await.unwrap().unwrap();
            String::from_utf8(chunk.to_vec()).unwrap()
        }
    };
    let seqs = |chunk: &str| -> Vec<u64> {
        let events = chunk.lines().filter_map(|line| line.strip_prefix("data: "));
        let events = events.map(|event| serde_json::from_str::<Value>(event).unwrap());
        events.filter(|event| event["type"] == "entry").map(|event| event["seq"].as_u64().unwrap()).collect()
    };
    let all = first_chunk(vec![]).await;
    assert_eq!(seqs(&all), (1..=last).collect::<Vec<_>>());
    let rest = first_chunk(vec![("last-event-id", "2".to_owned())]).await;
    assert_eq!(seqs(&rest), (3..=last).collect::<Vec<_>>());
    assert!(rest.contains(r#""type":"turn.finished""#));
    // Whoever loses the connection again goes on from there, wherever that is.
    for after in 1..last {
        let rest = first_chunk(vec![("last-event-id", after.to_string())]).await;
        let ids = rest.split_terminator("\n\n").map(|event| event.strip_prefix("id: ")?.lines().next()?.parse::<u64>().ok());
        let ids: Option<Vec<u64>> = ids.collect();
        assert!(ids.is_some_and(|ids| ids.is_sorted() && ids.iter().all(|id| (after..=last).contains(id))), "{rest}");
    }
}

#[tokio::test]
async fn conversations_are_created_changed_listed_and_deleted() {
    let server = server([]);
    let created = server
        .post(
            "/api/v1/conversations",
            json!({"id": "a.b:c-1", "title": "First", "model": "test/x", "settings": {"max_steps": 3}}),
        )
        .await;
    assert_eq!((created.status, created.header("location")), (StatusCode::CREATED, "/api/v1/conversations/a.b:c-1"));
    let at = "2025-01-11T19:00:00.000Z";
    let expected = json!({
        "id": "a.b:c-1", "title": "First", "model": "test/x", "system_prompt": null, "settings": {"max_steps": 3},
        "tools": null, "pinned": false, "created_at": at, "updated_at": at,
    });
    assert_eq!(created.json(), expected);
    assert_eq!(server.post("/api/v1/conversations", json!({"id": "a.b:c-1"})).await.problem(), (409, "exists".to_owned()));
    let unnamed = server.post("/api/v1/conversations", Value::Null).await.json()["id"].as_str().unwrap().to_owned();
    let patch = json!({"title": null, "system_prompt": "Be kind", "settings": {"max_steps": null, "temperature": 1.0}});
    let changed = server.send(Method::PATCH, "/api/v1/conversations/a.b:c-1", &patch, &[]).await;
    let expected = json!({
        "id": "a.b:c-1", "title": null, "model": "test/x", "system_prompt": "Be kind", "settings": {"temperature": 1.0},
        "tools": null, "pinned": false, "created_at": at, "updated_at": at,
    });
    assert_eq!((changed.status, changed.json()), (StatusCode::OK, expected.clone()));
    assert_eq!(server.get("/api/v1/conversations/a.b:c-1").await.json(), expected);
    let page = server.get("/api/v1/conversations?limit=1").await.json();
    assert_eq!((&page["has_more"], page["data"].as_array().unwrap().len()), (&json!(true), 1));
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = server.get(&format!("/api/v1/conversations?limit=1&cursor={cursor}")).await.json();
    assert_eq!((&rest["has_more"], &rest["next_cursor"]), (&json!(false), &Value::Null));
    let mut ids = [page["data"][0]["id"].as_str().unwrap(), rest["data"][0]["id"].as_str().unwrap()];
    ids.sort_unstable();
    assert_eq!(ids, ["a.b:c-1", &unnamed]);
    let found = server.get("/api/v1/conversations?q=B:C").await.json();
    assert_eq!(found["data"].as_array().unwrap().len(), 1);
    let deleted = server.send(Method::DELETE, "/api/v1/conversations/a.b:c-1", &Value::Null, &[]).await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    assert_eq!(server.get("/api/v1/conversations/a.b:c-1").await.problem(), (404, "not_found".to_owned()));
}

#[tokio::test]
async fn the_first_tool_that_is_named_makes_the_list_of_a_conversation() {
    let server = server([]);
    server.post("/api/v1/conversations", json!({"id": "c1"})).await;
    let names = |answer: Answered| -> Vec<(String, bool)> {
        let tools = answer.json()["data"].as_array().unwrap().clone();
        tools.iter().map(|tool| (tool["tool_name"].as_str().unwrap().to_owned(), tool["enabled"] == true)).collect()
    };
    let path = "/api/v1/conversations/c1/tools";
    let all = vec![("look".to_owned(), true), ("touch".to_owned(), true)];
    assert_eq!(names(server.get(path).await), all);
    let enabled = server.post(path, json!({"server_id": "lab", "tool_name": "look"})).await;
    assert_eq!((enabled.status, &enabled.json()["id"]), (StatusCode::CREATED, &json!("lab__look")));
    assert_eq!(names(server.get(path).await), [("look".to_owned(), true)]);
    let available = names(server.get("/api/v1/conversations/c1/tools/available").await);
    assert_eq!(available, [("look".to_owned(), true), ("touch".to_owned(), false)]);
    let set_aside = server.get("/api/v1/conversations/c1/tools/available").await.json()["set_aside"].clone();
    let reason = "its input schema is not valid: 7 is not of type \"object\"";
    assert_eq!(set_aside, json!([{"server_id": "lab", "tool_name": "broken", "reason": reason}]));
    assert_eq!(server.get("/api/v1/tools").await.json()["set_aside"], set_aside);
    server.post(path, json!({"server_id": "lab", "tool_name": "touch"})).await;
    assert_eq!(names(server.get(path).await), all);
    let choice = json!({"server_id": "lab", "tool_name": "look"});
    assert_eq!(server.send(Method::DELETE, path, &choice, &[]).await.status, StatusCode::NO_CONTENT);
    assert_eq!(names(server.get(path).await), [("touch".to_owned(), true)]);
    assert_eq!(
        server.post(path, json!({"server_id": "lab", "tool_name": "no"})).await.problem(),
        (404, "not_found".to_owned())
    );
}

#[tokio::test]
async fn a_tool_can_be_chosen_before_its_server_is_started_and_given_up_after_it_is_gone() {
    let server = server([]);
    server.post("/api/v1/conversations", json!({"id": "c1"})).await;
    let names = |answer: Answered| -> Vec<String> {
        answer.json()["data"].as_array().unwrap().iter().map(|tool| tool["id"].as_str().unwrap().to_owned()).collect()
    };
    let path = "/api/v1/conversations/c1/tools";
    for state in [SourceState::Stopped, SourceState::Failing { reason: "it ended".to_owned() }] {
        server.source.set_state(state);
        let available = server.get(&format!("{path}/available")).await;
        assert_eq!(names(available), names(server.get(path).await), "what is offered can be chosen");
    }
    let choice = json!({"server_id": "lab", "tool_name": "touch"});
    server.post(path, choice.clone()).await;
    server.source.set_tools([ScriptedTool::echo("look")]);
    let gone = server.send(Method::DELETE, path, &choice, &[]).await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT, "{}", gone.body);
    assert_eq!(server.get("/api/v1/conversations/c1").await.json()["tools"], json!([]));
    assert_eq!(server.send(Method::DELETE, path, &choice, &[]).await.problem(), (404, "not_found".to_owned()));
}

#[tokio::test]
async fn a_message_that_nobody_answered_yet_has_no_answer_and_an_empty_answer_is_said_to_be_one() {
    let server = server([Answer::whole([text("Let me see."), call(0, "lab__touch", "{}")])]);
    let first = server.post("/api/v1/conversations/c1/chat", json!({"content": "one"})).await.json();
    assert_eq!(first["assistant_message"]["content"], "Let me see.");
    let second = server.post("/api/v1/conversations/c1/chat", json!({"content": "two"})).await.json();
    assert_eq!((&second["user_message"]["content"], &second["assistant_message"]), (&json!("two"), &Value::Null));
    let server = self::server([Answer::whole([text(" ")])]);
    let empty = server.post("/api/v1/conversations/c1/chat", json!({"content": "one"})).await.json();
    assert_eq!((&empty["success"], &empty["message"]), (&json!(true), &json!("The model ended with an empty answer")));
}

#[tokio::test]
async fn giving_up_one_tool_takes_none_away_of_those_that_are_not_there_at_the_moment() {
    let server = server([]);
    server.post("/api/v1/conversations", json!({"id": "c1"})).await;
    let path = "/api/v1/conversations/c1/tools";
    server.source.set_tools([ScriptedTool::echo("touch")]);
    let choice = json!({"server_id": "lab", "tool_name": "touch"});
    assert_eq!(server.send(Method::DELETE, path, &choice, &[]).await.status, StatusCode::NO_CONTENT);
    assert_eq!(server.get("/api/v1/conversations/c1").await.json()["tools"], json!(["*", "!lab__touch"]));
    server.source.set_tools([ScriptedTool::echo("look"), ScriptedTool::echo("touch")]);
    let offered = server.get(path).await.json();
    assert_eq!((&offered["data"][0]["id"], &offered["data"][1]), (&json!("lab__look"), &Value::Null));
    server.post(path, choice).await;
    assert_eq!(server.get("/api/v1/conversations/c1").await.json()["tools"], json!(["*"]));
}

#[tokio::test]
async fn a_result_is_hidden_with_the_message_that_asked_for_it_and_not_alone() {
    let server = server([Answer::whole([call(0, "lab__look", "{}")]), Answer::whole([text("Done.")])]);
    let chat = server.post("/api/v1/conversations/c1/chat", json!({"content": "A"})).await.json();
    let result = chat["turn"]["messages"][2]["id"].as_str().unwrap();
    let path = format!("/api/v1/conversations/c1/messages/{result}");
    assert_eq!(server.send(Method::DELETE, &path, &Value::Null, &[]).await.problem(), (422, "invalid_request".to_owned()));
}

#[tokio::test]
async fn a_hidden_message_is_shown_no_more_and_pages_go_on_after_their_cursor() {
    let server = server([Answer::whole([text("One")]), Answer::whole([text("Two")])]);
    server.post("/api/v1/conversations/c1/chat", json!({"content": "A"})).await;
    server.post("/api/v1/conversations/c1/chat", json!({"content": "B"})).await;
    let contents = |page: &Value| -> Vec<String> {
        page["data"].as_array().unwrap().iter().map(|message| message["content"].as_str().unwrap().to_owned()).collect()
    };
    let first = server.get("/api/v1/conversations/c1/messages?limit=3").await.json();
    assert_eq!((contents(&first), &first["has_more"]), (vec!["A".to_owned(), "One".to_owned(), "B".to_owned()], &json!(true)));
    let next = format!("/api/v1/conversations/c1/messages?limit=3&cursor={}", first["next_cursor"].as_str().unwrap());
    assert_eq!(contents(&server.get(&next).await.json()), ["Two"]);
    let hidden = server.send(Method::DELETE, "/api/v1/conversations/c1/messages/msg_1", &Value::Null, &[]).await;
    assert_eq!(hidden.status, StatusCode::NO_CONTENT);
    assert_eq!(contents(&server.get("/api/v1/conversations/c1/messages").await.json()), ["One", "B", "Two"]);
}

#[tokio::test]
async fn a_history_in_the_form_of_another_is_cut_between_steps_alone() {
    let calls = Answer::whole([text("Looking"), call(0, "lab__look", "{}"), call(1, "lab__look", "{}")]);
    let server = server([calls, Answer::whole([text("Seen")])]);
    let prompt = json!({"content": "A", "settings": {"system_prompt": "Be brief."}});
    server.post("/api/v1/conversations/c1/chat", prompt).await;
    let roles = |page: &Value| -> Vec<String> {
        page["data"].as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap().to_owned()).collect()
    };
    let path = "/api/v1/conversations/c1/messages?format=";
    let whole = server.get(&format!("{path}openai")).await.json();
    assert_eq!(roles(&whole), ["system", "user", "assistant", "tool", "tool", "assistant"]);
    let first = server.get(&format!("{path}openai&limit=2")).await.json();
    assert_eq!((roles(&first), &first["has_more"]), (vec!["system".to_owned(), "user".to_owned()], &json!(true)));
    let next = format!("{path}openai&limit=2&cursor={}", first["next_cursor"].as_str().unwrap());
    assert_eq!(roles(&server.get(&next).await.json()), ["assistant", "tool", "tool"]);
    let beside = server.get(&format!("{path}anthropic")).await.json();
    assert_eq!((roles(&beside).len(), &beside["system"], &beside["has_more"]), (4, &json!("Be brief."), &json!(false)));
    let wrong = server.get(&format!("{path}opnai")).await;
    assert_eq!(wrong.problem(), (400, "invalid_query".to_owned()));
    assert_eq!(wrong.json()["detail"], "`opnai` is no form; there are openai, anthropic, gemini, ai-sdk, ai-sdk-ui");
}

#[tokio::test]
async fn a_failed_turn_is_told_and_can_be_retried() {
    let failure = turnwright_core::ProviderFailure {
        status: Some(400),
        request_id: Some("r1".to_owned()),
        ..turnwright_core::ProviderFailure::new(turnwright_core::ProviderFailureKind::InvalidRequest, "no such thing")
    };
    let server = server([Answer::of([]).failing(failure), Answer::whole([text("Better")])]);
    let failed = server.post("/api/v1/conversations/c1/chat", json!({"content": "Hi"})).await;
    let body = failed.json();
    assert_eq!((failed.status, &body["success"], &body["assistant_message"]), (StatusCode::OK, &json!(false), &Value::Null));
    let error = json!({"kind": "invalid_request", "status": 400, "message": "no such thing", "request_id": "r1"});
    assert_eq!((&body["turn"]["status"], &body["turn"]["error"]), (&json!("failed"), &error));
    assert_eq!((&body["turn"]["text"], &body["turn"]["finish_reason"]), (&json!(""), &json!("error")));
    let retried = server.post("/api/v1/conversations/c1/retry", Value::Null).await;
    assert_eq!(retried.json(), json!({"turn_id": "turn_1", "turn_status": "running"}));
    assert_eq!(retried.status, StatusCode::ACCEPTED);
    server.engine.wait(&"c1".parse().unwrap(), "turn_1".parse().unwrap()).await.unwrap();
    assert_eq!(server.get("/api/v1/conversations/c1").await.json()["turn"], json!({"id": "turn_1", "status": "completed"}));
    assert_eq!(server.post("/api/v1/conversations/c1/retry", Value::Null).await.problem(), (409, "no_open_turn".to_owned()));
    assert_eq!(server.post("/api/v1/conversations/c1/cancel", Value::Null).await.problem(), (409, "no_open_turn".to_owned()));
}

#[tokio::test]
async fn what_does_not_fit_is_refused_with_a_problem_document_that_helps() {
    let server = server([]);
    server.post("/api/v1/conversations", json!({"id": "c1"})).await;
    let chat = "/api/v1/conversations/c1/chat";
    let unknown = server.post(chat, json!({"content": "Hi", "modle": "x"})).await;
    assert_eq!(unknown.problem(), (422, "invalid_request".to_owned()));
    let detail = unknown.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("`modle`") && detail.contains("`model`"), "{detail}");
    let broken = Request::post(chat).header("host", "localhost").body(Body::from("{\"content\": ")).unwrap();
    let broken = server.ask(broken).await;
    assert_eq!(broken.problem(), (400, "invalid_json".to_owned()));
    assert!(broken.json()["detail"].as_str().unwrap().contains("line 1 column"));
    for (body, kind) in
        [(json!([]), "an array"), (json!(["c2"]), "an array"), (json!("Hi"), "a string"), (json!(7), "a number")]
    {
        let list = server.post("/api/v1/conversations", body).await;
        assert_eq!(list.problem(), (422, "invalid_request".to_owned()), "{}", list.body);
        assert_eq!(list.json()["detail"], format!("the request body is {kind}; it must be an object"));
    }
    let many = server.get("/api/v1/conversations?limit=many").await;
    assert_eq!(many.json()["detail"], "limit is \"many\", it must be between 1 and 100");
    let pinned = server.get("/api/v1/conversations?pinned=yes").await;
    assert_eq!(pinned.json()["detail"], "pinned is `yes`, it must be `true` or `false`");
    let large = server.post(chat, json!({"content": "x".repeat(5000)})).await;
    assert_eq!(large.problem(), (413, "body_too_large".to_owned()));
    assert_eq!(large.json()["detail"], "the request body is 5014 bytes, the limit is 4096 bytes");
    let form = server.send(Method::POST, chat, &json!({}), &[("content-type", "text/plain")]).await;
    assert_eq!(form.problem(), (415, "unsupported_media_type".to_owned()));
    let table = [
        (Method::GET, "/api/v1/nothing", 404, "no_such_route"),
        (Method::GET, "/nothing", 404, "no_such_route"),
        (Method::PUT, "/api/v1/conversations", 405, "method_not_allowed"),
        (Method::GET, "/api/v1/conversations/a%20b", 400, "invalid_id"),
        (Method::GET, "/api/v1/conversations/%2E%2E", 400, "invalid_id"),
        (Method::GET, "/api/v1/conversations/none", 404, "not_found"),
        (Method::GET, "/api/v1/conversations/none/messages", 404, "not_found"),
        (Method::GET, "/api/v1/conversations?limit=0", 400, "invalid_query"),
        (Method::GET, "/api/v1/conversations?limit=many", 400, "invalid_query"),
        (Method::GET, "/api/v1/conversations/c1/messages?cursor=x", 400, "invalid_cursor"),
        (Method::GET, "/api/v1/conversations/c1/stream?ui=8", 400, "invalid_query"),
        (Method::DELETE, "/api/v1/conversations/c1/messages/7", 400, "invalid_id"),
        (Method::POST, "/api/v1/conversations/c1/calls/call_1/decision", 400, "invalid_id"),
        (Method::POST, "/api/v1/conversations/c1/chat", 422, "invalid_request"),
        (Method::POST, "/api/chat", 422, "invalid_request"),
    ];
    for (method, path, status, code) in table {
        let answer = server.send(method, path, &Value::Null, &[]).await;
        assert_eq!(answer.problem(), (status, code.to_owned()), "{path}");
    }
    let nobody = server.post(chat, json!({"content": "Hi", "settings": {"model": "nosuch/x"}})).await;
    assert_eq!(nobody.problem(), (422, "invalid_request".to_owned()));
    assert!(nobody.json()["detail"].as_str().unwrap().contains("`nosuch`"), "{}", nobody.body);
    let stored = server.get("/api/v1/conversations/c1/messages").await;
    assert_eq!(stored.json()["data"], json!([]), "nothing of it is stored");
    let empty = server.post(chat, json!({"content": " "})).await;
    assert_eq!(empty.problem(), (422, "invalid_request".to_owned()));
    let new = server.post("/api/v1/conversations/new/messages", json!({"content": "Hi"})).await;
    assert_eq!(new.problem(), (404, "not_found".to_owned()));
    let ways = "there is no conversation `new`; POST /api/v1/conversations makes one, and a message to \
                /api/v1/conversations/new/chat makes this one";
    assert_eq!(new.json()["detail"], ways);
    let wrong = server.send(Method::PUT, "/api/v1/conversations", &Value::Null, &[]).await;
    assert!(wrong.header("allow").contains("POST"), "{}", wrong.header("allow"));
}

#[tokio::test]
async fn a_foreign_origin_or_host_is_refused_and_an_authorization_header_ignored() {
    let server = server([]);
    let with = |headers: &'static [(&'static str, &'static str)]| {
        let mut request = Request::get("/api/v1/conversations");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        server.ask(request.body(Body::empty()).unwrap())
    };
    assert_eq!(with(&[("host", "evil.example")]).await.problem(), (403, "host_not_allowed".to_owned()));
    assert_eq!(with(&[]).await.problem(), (403, "host_not_allowed".to_owned()));
    let foreign = with(&[("host", "localhost:8700"), ("origin", "http://evil.example")]).await;
    assert_eq!(foreign.problem(), (403, "origin_not_allowed".to_owned()));
    assert_eq!(with(&[("host", "localhost:8700"), ("authorization", "Bearer x")]).await.status, StatusCode::OK);
    assert_eq!(with(&[("host", "[::1]:8700"), ("origin", "http://[::1]:8700")]).await.status, StatusCode::OK);
}

#[tokio::test]
async fn the_turns_are_told_in_the_chunks_of_their_streams_newest_page_first() {
    let answers = ["One.", "Two.", "Three."].map(|said| Answer::whole([text(said)]));
    let server = server(answers);
    let mut told = Vec::new();
    for question in ["1?", "2?", "3?"] {
        let chunks = server.stream("/api/v1/conversations/c1/chat", json!({"content": question})).await.chunks();
        let chunks =
            chunks.iter().filter(|chunk| *chunk != "[DONE]").map(|chunk| serde_json::from_str::<Value>(chunk).unwrap());
        told.push((question, chunks.collect::<Value>()));
    }
    let turns = |page: &Value| -> Vec<Value> { page["data"].as_array().unwrap().clone() };
    let newest = server.get("/api/v1/conversations/c1/turns?limit=2").await.json();
    let cursor = newest["next_cursor"].as_str().unwrap();
    let oldest = server.get(&format!("/api/v1/conversations/c1/turns?limit=2&cursor={cursor}")).await.json();
    assert_eq!((&newest["has_more"], &oldest["has_more"], &oldest["next_cursor"]), (&json!(true), &json!(false), &Value::Null));
    let all = [turns(&oldest), turns(&newest)].concat();
    let expected: Vec<Value> = all
        .iter()
        .zip(&told)
        .map(|(turn, (question, chunks))| {
            json!({
                "id": chunks[0]["messageId"], "status": "completed", "created_at": "2025-01-11T19:00:00.000Z",
                "message_id": turn["message_id"], "content": [{"type": "text", "text": question}], "chunks": chunks,
            })
        })
        .collect();
    assert_eq!((all.len(), all), (3, expected));
    let unknown = server.get("/api/v1/conversations/c1/turns?cursor=turn_999").await;
    assert_eq!(unknown.problem(), (400, "invalid_cursor".to_owned()));
}

#[tokio::test]
async fn tools_models_health_and_the_page_or_its_stand_in_are_there() {
    let server = server([]);
    let tools = server.get("/api/v1/tools").await.json();
    assert_eq!(tools["data"][0]["id"], "lab__look");
    let models = server.get("/api/v1/models").await.json();
    let model = json!({"id": "test/scripted", "provider": "test", "model": "scripted", "description": null, "is_default": true,
               "context_window": null, "max_output_tokens": null, "images": null, "documents": null, "tools": null, "reasoning": null,
               "prices": null});
    assert_eq!(models, json!({"data": [model], "next_cursor": null, "has_more": false, "unavailable": []}));
    assert_eq!(server.get("/healthz").await.json(), json!({"status": "ok"}));
    assert_eq!(server.get("/readyz").await.json(), json!({"status": "ready"}));
    let page = server.get("/").await;
    let what = if page.header("etag").is_empty() { "cargo xtask page" } else { "src=\"page/main.js\"" };
    assert!(page.header("content-type").starts_with("text/html") && page.body.contains(what), "{}", page.body);
    let policy = page.header("content-security-policy");
    assert!(
        policy.starts_with("default-src 'none'; script-src 'self'") && policy.ends_with("frame-ancestors 'none'"),
        "{policy}"
    );
    assert_eq!(page.header("x-content-type-options"), "nosniff");
    for path in ["/page/../Cargo.toml", "/page/.gitignore", "/page/main.js.gz", "/page/main.js.br", "/page/none.js"] {
        assert_eq!(server.get(path).await.problem(), (404, "not_found".to_owned()), "{path}");
    }
}

#[tokio::test]
async fn a_fork_holds_what_came_before_a_message_and_leaves_the_other_as_it_is() {
    let server = server([
        Answer::whole([call(0, "lab__look", "{}")]),
        Answer::whole([text("First.")]),
        Answer::whole([text("Second.")]),
        Answer::whole([text("Another second.")]),
    ]);
    server.post("/api/v1/conversations/c/chat", json!({"content": "one"})).await;
    server.post("/api/v1/conversations/c/chat", json!({"content": "two"})).await;
    let contents = async |id: &str| {
        let messages = server.get(&format!("/api/v1/conversations/{id}/messages")).await.json();
        let messages = messages["data"].as_array().unwrap().clone();
        messages.into_iter().map(|message| (message["id"].clone(), message["content"].clone())).collect::<Vec<_>>()
    };
    let before = contents("c").await;
    let (second, _) = before.iter().find(|(_, content)| content == "two").unwrap();

    let fork = json!({"at": second, "title": "Other"});
    let keyed = [("content-type", "application/json"), ("idempotency-key", "k")];
    let forked = server.send(Method::POST, "/api/v1/conversations/c/fork", &fork, &keyed).await;
    let id = forked.json()["id"].as_str().unwrap().to_owned();
    assert_eq!((forked.status, &forked.json()["title"]), (StatusCode::CREATED, &json!("Other")));
    assert_eq!(forked.header("location"), format!("/api/v1/conversations/{id}"));
    let again = server.send(Method::POST, "/api/v1/conversations/c/fork", &fork, &keyed).await;
    assert_eq!(again.json()["id"], id.as_str(), "the same request twice makes one copy");
    let other = server.send(Method::POST, "/api/v1/conversations/c/fork", &json!({}), &keyed).await;
    assert_eq!(other.problem(), (422, "idempotency_key_reused".to_owned()));

    let said = server.post(&format!("/api/v1/conversations/{id}/chat"), json!({"content": "two, edited"})).await;
    assert_eq!(said.json()["turn"]["text"], "Another second.");
    let texts: Vec<_> = contents(&id).await.into_iter().map(|(_, content)| content).collect();
    assert_eq!(texts[0], "one");
    assert_eq!(texts[3..], ["First.", "two, edited", "Another second."]);
    assert_eq!(contents("c").await, before);

    let problem = async |body| server.post("/api/v1/conversations/c/fork", body).await.problem();
    assert_eq!(problem(json!({"at": "msg_999"})).await, (422, "invalid_request".to_owned()));
    assert_eq!(problem(json!({"at": "here"})).await, (400, "invalid_id".to_owned()));
    assert_eq!(problem(json!({"id": "c"})).await, (409, "exists".to_owned()));
    assert_eq!(server.post("/api/v1/conversations/none/fork", json!({})).await.problem(), (404, "not_found".to_owned()));
}

#[tokio::test]
async fn creating_a_conversation_twice_with_one_key_creates_one() {
    let server = server([]);
    let keyed = [("content-type", "application/json"), ("idempotency-key", "k")];
    let create = async |body: Value| server.send(Method::POST, "/api/v1/conversations", &body, &keyed).await;
    let first = create(json!({"title": "One"})).await;
    assert_eq!(first.status, StatusCode::CREATED, "{}", first.body);
    assert_eq!(create(json!({"title": "One"})).await.json(), first.json());
    assert_eq!(create(json!({"title": "Two"})).await.problem(), (422, "idempotency_key_reused".to_owned()));
    let listed = server.get("/api/v1/conversations").await.json();
    assert_eq!(listed["data"].as_array().unwrap().len(), 1);
}
