//! What whoever operates the server sees: metrics, and names of requests.

use std::sync::Arc;

use http::{Method, StatusCode};
use serde_json::{Value, json};
use turnwright_core::{ProviderFailure, ProviderFailureKind};
use turnwright_engine::Telemetry;
use turnwright_server::{Metrics, ServerOptions, ServerState, router};
use turnwright_testkit::{Answer, Disk, call, text};

use super::{Server, server};

#[tokio::test(start_paused = true)]
async fn metrics_count_what_happened_without_saying_what_was_said() {
    let server = server([Answer::whole([call(0, "lab__look", r#"{"secret":"word"}"#)]), Answer::whole([text("Done.")])]);
    let metrics = Metrics::new();
    server.engine.tell(Telemetry { observer: Some(Arc::new(metrics.clone())), ..Telemetry::default() });
    let state = ServerState::new(server.engine.clone(), ServerOptions::default()).with_metrics(metrics);
    let server = Server { router: router(state), ..server };
    let chat = server.post("/api/v1/conversations/c1/chat", json!({"content": "go", "settings": {"approve": "all"}})).await;
    assert_eq!(chat.status, StatusCode::OK, "{}", chat.body);
    let told = server.get("/metrics").await;
    assert_eq!(told.header("content-type"), "application/openmetrics-text; version=1.0.0; charset=utf-8");
    for line in [
        "turnwright_turns_started_total 1",
        "turnwright_turns_finished_total{status=\"completed\"} 1",
        "turnwright_model_calls_total{provider=\"test\",model=\"scripted\",outcome=\"complete\"} 2",
        "turnwright_tool_calls_total{source=\"lab\",tool=\"lab__look\",outcome=\"success\"} 1",
        "turnwright_tool_source_state{source=\"lab\",state=\"ready\"} 1",
        "turnwright_turns_driven 0",
        "turnwright_http_requests_total{method=\"POST\",route=\"/api/v1/conversations/{id}/chat\",status=\"200\"} 1",
    ] {
        assert!(told.body.lines().any(|found| found == line), "{line} is missing in\n{}", told.body);
    }
    assert!(told.body.ends_with("# EOF\n"));
    assert!(!told.body.contains("secret") && !told.body.contains("Done."));
}

#[tokio::test(start_paused = true)]
async fn a_model_that_only_a_client_has_named_is_no_name_of_the_metrics() {
    let failed = || Answer::of([]).failing(ProviderFailure::new(ProviderFailureKind::NotFound, "no such model"));
    let server = server([failed(), failed(), Answer::whole([text("Here.")])]);
    let metrics = Metrics::new();
    server.engine.tell(Telemetry { observer: Some(Arc::new(metrics.clone())), ..Telemetry::default() });
    let state = ServerState::new(server.engine.clone(), ServerOptions::default()).with_metrics(metrics);
    let server = Server { router: router(state), ..server };
    for model in ["test/made-up", "test/scripted", "test/another"] {
        let asked = json!({"model": model, "messages": [{"role": "user", "content": format!("hello {model}")}]});
        server.post("/v1/chat/completions", asked).await;
    }
    let told = server.get("/metrics").await.body;
    for (model, outcome) in [("other", "not_found"), ("scripted", "not_found"), ("another", "complete")] {
        let line = format!("turnwright_model_calls_total{{provider=\"test\",model=\"{model}\",outcome=\"{outcome}\"}} 1");
        assert!(told.lines().any(|found| found == line), "{line} is missing in\n{told}");
    }
    assert!(!told.contains("made-up"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn each_answer_names_its_request_by_the_clients_own_name_where_it_is_one() {
    let server = server([]);
    let own = server.send(Method::GET, "/healthz", &Value::Null, &[("x-request-id", "trace-7.a")]).await;
    assert_eq!(own.header("x-request-id"), "trace-7.a");
    for bad in ["", "two words", &"x".repeat(129), "a\"b"] {
        let given = server.send(Method::GET, "/nowhere", &Value::Null, &[("x-request-id", bad)]).await;
        let name = given.header("x-request-id");
        assert!(name.starts_with("req_") && name.len() == 28, "{bad:?} became {name:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_is_not_ready_and_begins_no_turn() {
    let server = server([]);
    assert_eq!(server.get("/readyz").await.status, StatusCode::OK);
    assert!(server.engine.drain(std::time::Duration::from_secs(1)).await);
    assert_eq!(server.get("/readyz").await.problem(), (503, "shutting_down".to_owned()));
    let chat = server.post("/api/v1/conversations/c1/chat", json!({"content": "go"})).await;
    assert_eq!(chat.problem(), (503, "shutting_down".to_owned()));
    assert_eq!(chat.header("retry-after"), "1");
    // Connections may be open yet when the store is closed.
    server.post("/api/v1/conversations", json!({"id": "c1"})).await;
    server.engine.shutdown().await;
    for (method, path, body) in [
        (Method::GET, "/api/v1/conversations", Value::Null),
        (Method::GET, "/api/v1/conversations/c1/messages", Value::Null),
        (Method::PATCH, "/api/v1/conversations/c1", json!({"title": "t"})),
        (Method::DELETE, "/api/v1/conversations/c1", Value::Null),
    ] {
        let told = server.send(method.clone(), path, &body, &[]).await;
        assert_eq!(told.problem(), (503, "shutting_down".to_owned()), "{method} {path}");
        assert_eq!(told.header("retry-after"), "1", "{method} {path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_whose_store_cannot_store_is_not_ready_until_it_can() {
    let server = server([]);
    server.store.set_full(Disk::Full);
    let full = server.get("/readyz").await;
    assert_eq!(full.problem(), (503, "not_ready".to_owned()));
    let general = "the server's database cannot be used at the moment; the server's log says why";
    assert_eq!(full.json()["detail"], format!("nothing can be stored: {general}"), "who asks without a token learns no more");
    let said = server.post("/api/v1/conversations/c1/chat", json!({"content": "hi"})).await;
    assert_eq!((said.problem(), said.json()["detail"].clone()), ((503, "store_unusable".to_owned()), json!(general)));
    let said = server.post("/v1/chat/completions", json!({"messages": [{"role": "user", "content": "hi"}]})).await;
    assert_eq!(said.json()["error"]["message"], general);
    assert_eq!(server.get("/healthz").await.status, StatusCode::OK, "it is not the process that ails");
    server.store.set_full(Disk::HasRoom);
    assert_eq!(server.get("/readyz").await.json(), json!({"status": "ready"}));
}

#[tokio::test(start_paused = true)]
async fn usage_is_told_by_day_and_model_and_providers_by_name() {
    let server = server([Answer::whole([text("Hello.")]), Answer::whole([text("Again.")])]);
    for _ in 0..2 {
        server.post("/api/v1/conversations/c1/chat", json!({"content": "hi"})).await;
    }
    let told = server.get("/api/v1/usage").await.json();
    assert_eq!(told["data"][0]["id"], "2025-01-11/test/scripted");
    assert_eq!(told["data"][0]["model_calls"], 2);
    assert_eq!((&told["from"], &told["until"]), (&json!("2024-12-13"), &json!("2025-01-11")));
    assert_eq!(told["model_calls"], 2);
    assert_eq!(told["turns"], json!([{"day": "2025-01-11", "turns": 2, "failures": 0}]));
    let users = server.get("/api/v1/usage/users").await.json();
    assert_eq!((&users["data"][0]["id"], &users["data"][0]["turns"]), (&json!("local"), &json!(2)));
    let before = server.get("/api/v1/usage?until=2025-01-10").await.json();
    assert_eq!((&before["data"], &before["model_calls"]), (&json!([]), &json!(0)));
    for until in ["9999-12-29", "9999-12-30", "9999-12-31"] {
        let told = server.get(&format!("/api/v1/usage?from=2025-01-01&until={until}")).await;
        assert_eq!(told.json()["model_calls"], 2, "{until}");
        let users = server.get(&format!("/api/v1/usage/users?from=2025-01-01&until={until}")).await;
        assert_eq!(users.json()["data"].as_array().map(Vec::len), Some(1), "{until}");
    }
    for none in ["from=9999-12-31&until=9999-12-31", "from=-009999-01-01&until=1969-12-31"] {
        let told = server.get(&format!("/api/v1/usage?{none}")).await;
        assert_eq!(told.json()["model_calls"], 0, "{none}");
    }
    for wrong in ["from=yesterday", "until=2025-13-01", "from=2025-01-12&until=2025-01-11"] {
        let refused = server.get(&format!("/api/v1/usage?{wrong}")).await;
        assert_eq!(refused.problem(), (400, "invalid_query".to_owned()), "{wrong}");
    }
    let providers = server.get("/api/v1/providers").await.json();
    assert_eq!(
        providers["data"],
        json!([{"id": "test", "dialect": "scripted", "is_default": true, "problem": null, "origin": null}])
    );
}
