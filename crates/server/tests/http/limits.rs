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

use crate::{Server, server};

#[tokio::test]
async fn each_limit_is_told_by_a_code_of_its_own_and_nothing_is_stored() {
    let gate = Arc::new(Semaphore::new(0));
    let server = server([Answer::whole([text("Done.")]).gated(&gate)]);
    server.engine.limit(Limits { turns: 1, turns_per_user: 1, message_bytes: 10, attachments: 1, attachment_bytes: 3 });
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
