//! What is more than the server takes.

use std::sync::Arc;

use axum::body::Body;
use http::{Method, Request};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tower::ServiceExt;
use turnwright_engine::Limits;
use turnwright_server::{ServerOptions, ServerState, StreamLimits, router};
use turnwright_testkit::{Answer, text};

use super::{Server, server};

#[tokio::test]
async fn each_limit_is_told_by_a_code_of_its_own_and_nothing_is_stored() {
    let gate = Arc::new(Semaphore::new(0));
    let server = server([Answer::whole([text("Done.")]).gated(&gate)]);
    server.engine.limit(Limits {
        turns: 1,
        turns_per_user: 1,
        message_bytes: 10,
        attachments: 1,
        attachment_bytes: 3,
        ..Limits::default()
    });
    let held = server.stream("/api/v1/conversations/c1/chat", json!({"content": "one"}));
    let image = |data: &str| json!({"type": "image", "data": data, "mimeType": "image/png"});
    let table = [
        (json!("longer than ten"), 413, "message_too_large"),
        (json!([image("AAAAAAAA")]), 413, "attachment_too_large"),
        (json!([image("AAAA"), image("AAAA")]), 422, "too_many_attachments"),
    ];
    for (content, status, code) in table {
        let refused = server.post("/api/v1/conversations/c2/chat", json!({"content": content})).await;
        assert_eq!(refused.problem(), (status, code.to_owned()));
    }
    let others = async {
        while server.engine.workload().driven_turns == 0 {
            tokio::task::yield_now().await;
        }
        let refused = server.post("/api/v1/conversations/c2/chat", json!({"content": "two"})).await;
        assert_eq!((refused.problem(), refused.header("retry-after")), ((503, "too_many_turns".to_owned()), "5"));
        let openai = json!({"model": "test/scripted", "messages": [
            {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "two"}]});
        let refused = server.post("/v1/chat/completions", openai).await;
        assert_eq!((refused.status.as_u16(), refused.json()["error"]["code"].as_str()), (503, Some("too_many_turns")));
        assert_eq!(server.get("/api/v1/conversations").await.json()["data"].as_array().unwrap().len(), 1);
        gate.add_permits(10);
    };
    let (held, ()) = tokio::join!(held, others);
    assert!(held.body.contains("Done."));
}

#[tokio::test]
async fn a_rule_too_many_is_refused() {
    let server = server([]);
    server.engine.limit(Limits { rules_per_user: 1, ..Limits::default() });
    server.engine.keep_rules(server.store.clone()).await;
    let rule = json!({"scope": "user", "tool": "tools__*", "action": "deny"});
    assert_eq!(server.post("/api/v1/approvals/rules", rule.clone()).await.status.as_u16(), 201);
    assert_eq!(server.post("/api/v1/approvals/rules", rule).await.problem(), (422, "too_many_rules".to_owned()));
}

#[tokio::test]
async fn a_stream_too_many_is_refused_before_its_message_is_stored_and_a_closed_one_makes_room() {
    let server = server([Answer::whole([text("Done.")])]);
    let options = ServerOptions { streams: StreamLimits { all: 9, per_user: 1 }, ..ServerOptions::default() };
    let server = Server { router: router(ServerState::new(server.engine.clone(), options)), ..server };
    server.post("/api/v1/conversations", json!({"id": "c1"})).await;
    let watch = Request::builder().uri("/api/v1/conversations/c1/events").header("host", "localhost");
    let open = server.router.clone().oneshot(watch.body(Body::empty()).unwrap()).await.unwrap();
    let refused = server.send(Method::GET, "/api/v1/conversations/c1/events", &Value::Null, &[]).await;
    assert_eq!((refused.problem(), refused.header("retry-after")), ((429, "too_many_user_streams".to_owned()), "5"));
    let refused = server.stream("/api/v1/conversations/c1/chat", json!({"content": "hello"})).await;
    assert_eq!(refused.problem().0, 429);
    assert!(server.engine.journal(&"c1".parse().unwrap()).await.unwrap().entries().is_empty());
    drop(open);
    let answered = server.stream("/api/v1/conversations/c1/chat", json!({"content": "hello"})).await;
    assert!(answered.body.contains("Done."), "{}", answered.body);
}

#[tokio::test]
async fn what_is_chosen_for_a_conversation_has_limits_of_its_own() {
    let server = server([]);
    server.engine.limit(Limits { message_bytes: 100, ..Limits::default() });
    server.post("/api/v1/conversations", json!({"id": "c1"})).await;
    let (title, prompt) = (json!({"title": "t".repeat(1_001)}), json!({"system_prompt": "p".repeat(101)}));
    for (body, expected) in [(title, (422, "title_too_long")), (prompt, (413, "settings_too_large"))] {
        let expected = (expected.0, expected.1.to_owned());
        assert_eq!(server.post("/api/v1/conversations", body.clone()).await.problem(), expected);
        let changed = server.send(Method::PATCH, "/api/v1/conversations/c1", &body, &[]).await;
        assert_eq!(changed.problem(), expected);
    }
    let tool = json!({"type": "function", "function": {"name": "a", "description": "d".repeat(101), "parameters": {"type": "object"}}});
    let messages = json!([{"role": "user", "content": "one"}]);
    let prompt = json!([{"role": "system", "content": "p".repeat(101)}, {"role": "user", "content": "one"}]);
    for body in [
        json!({"model": "test/scripted", "messages": messages, "tools": [tool]}),
        json!({"model": "test/scripted", "messages": prompt}),
    ] {
        let refused = server.post("/v1/chat/completions", body).await;
        assert_eq!((refused.status.as_u16(), refused.json()["error"]["code"].as_str()), (413, Some("settings_too_large")));
    }
    assert_eq!(server.get("/api/v1/conversations").await.json()["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_header_that_can_be_there_once_is_refused_where_it_is_there_twice() {
    let server = server([]);
    server.post("/api/v1/conversations", json!({"id": "c1"})).await;
    let twice = async |name: &str, values: [&str; 2], code: &str| {
        let mut request = Request::builder().method(Method::POST).uri("/api/v1/conversations");
        if name != "host" {
            request = request.header("host", "localhost");
        }
        let request = values.iter().fold(request, |request, value| request.header(name, *value));
        let request = request.header("content-type", "application/json").body(Body::from("{}")).unwrap();
        let response = server.router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status().as_u16(), 400, "{name}");
        let body = axum::body::to_bytes(response.into_body(), 1 << 16).await.unwrap();
        let problem: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(problem["code"], json!(code), "{problem}");
    };
    twice("host", ["localhost", "localhost"], "invalid_header").await;
    twice("origin", ["http://localhost", "http://localhost"], "invalid_header").await;
    twice("idempotency-key", ["a", "b"], "invalid_idempotency_key").await;
    let conditions = [("if-match", "W/\"x\", *")];
    let changed = server.send(Method::PATCH, "/api/v1/conversations/c1", &json!({"title": "T"}), &conditions).await;
    assert_eq!(changed.problem(), (400, "invalid_header".to_owned()));
}

#[tokio::test]
async fn an_idempotency_key_is_refused_with_what_is_wrong_with_it() {
    let server = server([]);
    for (key, wrong) in [
        ("k".repeat(256), "has 256 characters, it must have 1 to 255"),
        (String::new(), "has 0 characters, it must have 1 to 255"),
        ("a\tb".to_owned(), "holds other characters than the visible ones of ASCII"),
    ] {
        let refused = server.send(Method::POST, "/api/v1/conversations", &json!({}), &[("idempotency-key", &key)]).await;
        assert_eq!(refused.problem(), (400, "invalid_idempotency_key".to_owned()));
        assert_eq!(refused.json()["detail"], format!("the header `Idempotency-Key` {wrong}"));
    }
}

#[tokio::test]
async fn what_asks_for_a_turn_that_is_over_is_told_that_it_is_open_and_who_waits_that_it_goes_on_after_the_end() {
    let gate = Arc::new(Semaphore::new(0));
    let server = server([Answer::whole([text("Done.")]).gated(&gate)]);
    let held = server.post("/api/v1/conversations/c1/chat", json!({"content": "one"}));
    let others = async {
        while server.engine.workload().driven_turns == 0 {
            tokio::task::yield_now().await;
        }
        let refused = server.post("/api/v1/conversations/c1/retry", Value::Null).await;
        assert_eq!(refused.problem(), (409, "turn_open".to_owned()));
        server.engine.shutdown().await;
    };
    let (held, ()) = tokio::join!(held, others);
    assert_eq!(held.problem(), (503, "shutting_down".to_owned()));
    assert_eq!(held.json()["detail"], "the server ends; the turn goes on and is kept in its conversation");
}
