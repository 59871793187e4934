//! Calls that a person makes by hand.

use axum::body::Body;
use http::Request;
use serde_json::json;

use super::server;

#[tokio::test]
async fn a_call_by_hand_reads_and_acts_where_that_is_said() {
    let server = server([]);
    let read = server.post("/api/v1/tools/call", json!({"name": "lab__look", "arguments": {"at": "it"}})).await.json();
    assert_eq!(read["outcome"], "success");
    assert_eq!(read["is_error"], false);
    assert_eq!(read["content"], json!([{"type": "text", "text": r#"{"at":"it"}"#}]));

    let acts = json!({"name": "lab__touch", "arguments": "{\"x\":1}"});
    let refused = server.post("/api/v1/tools/call", acts.clone()).await.json();
    assert_eq!((&refused["outcome"], &refused["is_error"]), (&json!("denied"), &json!(true)));
    let mut allowed = acts;
    allowed["approve"] = json!("all");
    assert_eq!(server.post("/api/v1/tools/call", allowed).await.json()["outcome"], "success");
    assert_eq!(server.source.effects().len(), 2);

    let unknown = server.post("/api/v1/tools/call", json!({"name": "lab__nowhere"})).await;
    assert_eq!(unknown.problem(), (404, "not_found".to_owned()));
}

#[tokio::test]
async fn a_number_that_would_become_another_is_refused_in_an_object_too() {
    let server = server([]);
    let body = r#"{"name": "lab__look", "arguments": {"at": 123456789012345678901}}"#;
    let request =
        Request::post("/api/v1/tools/call").header("host", "127.0.0.1:8700").header("content-type", "application/json");
    let told = server.ask(request.body(Body::from(body)).unwrap()).await.json();
    assert_eq!((&told["outcome"], server.source.effects().len()), (&json!("invalid_arguments"), 0), "{told}");
}
