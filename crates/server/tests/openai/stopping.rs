//! A stop while a response comes.

use std::sync::Arc;

use axum::body::Body;
use http::Method;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use turnwright_engine::{Event, WatchFrom};
use turnwright_testkit::{Answer, text};

use super::server;

#[tokio::test]
async fn a_stop_is_told_while_the_model_speaks_and_takes_no_number() {
    let gate = Arc::new(Semaphore::new(1));
    let server = server([Answer::of([text("One"), text("Two")]).gated(&gate)]);
    server.post("/api/v1/conversations", &json!({"id": "c1"})).await;
    let body = json!({"input": "Go", "stream": true, "metadata": {"conversation_id": "c1"}});
    let stop = async {
        let mut watch = server.engine.watch(&"c1".parse().unwrap(), WatchFrom::Now).await.unwrap();
        let speaks = |event: &Event| matches!(event, Event::TextDelta { .. });
        while !watch.next().await.unwrap().events.iter().any(speaks) {}
        server.post("/api/v1/conversations/c1/cancel", &json!({})).await
    };
    let (told, stopped) = tokio::join!(server.respond(&body), stop);
    assert_eq!(stopped.status, 202, "{}", stopped.body);
    let told = told.chunks();
    let is_stop = |event: &Value| event["response"]["turnwright"]["is_stopping"] == true;
    let at = told.iter().position(is_stop).unwrap_or_else(|| panic!("{told:#?}"));
    assert_eq!(
        (&told[at - 1]["type"], &told[at]["type"]),
        (&json!("response.output_text.delta"), &json!("response.in_progress"))
    );
    assert_eq!(told[at - 1]["sequence_number"], told[at]["sequence_number"]);
    let last = told.last().unwrap();
    assert_eq!((&last["type"], &last["response"]["status"]), (&json!("response.incomplete"), &json!("cancelled")));

    let id = last["response"]["id"].as_str().unwrap();
    let again = server.send(Method::GET, &format!("/v1/responses/{id}?stream=true"), Body::empty(), &[]).await;
    let again: Vec<Value> = again.chunks().into_iter().filter(|event| !is_stop(event)).collect();
    let number = |event: &Value| (event["type"].clone(), event["sequence_number"].clone());
    let numbered = |told: &[Value]| told[..at].iter().map(number).collect::<Vec<_>>();
    assert_eq!(numbered(&again), numbered(&told));
}
