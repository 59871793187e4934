//! How answers tell that they are not whole.

use std::sync::Arc;

use axum::body::Body;
use http::Method;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use turnwright_core::{Finish, FinishReason, ProviderFailure, ProviderFailureKind, StreamDelta};
use turnwright_engine::{Event, WatchFrom};
use turnwright_testkit::{Answer, MemoryStore, call, text};

use super::{Server, pick, picks, server, server_on, user};

async fn stop(server: &Server) {
    let stopped = server.post("/api/v1/conversations/c1/cancel", &json!({})).await;
    assert_eq!(stopped.status, 202, "{}", stopped.body);
}

#[tokio::test]
async fn a_stop_is_told_beside_what_was_said() {
    for is_streamed in [false, true] {
        let server = server([picks()]);
        let named = json!({"conversation_id": "c1"});
        let waits = server.chat(&json!({"messages": [user("Pick!")], "tools": [pick()], "metadata": named})).await.json();
        let message = &waits["choices"][0]["message"];
        assert_eq!(waits["turnwright"]["status"], Value::Null);
        stop(&server).await;
        server.engine.wait(&"c1".parse().unwrap(), "turn_1".parse().unwrap()).await.unwrap();
        let result = json!({"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "red"});
        let given = json!({"messages": [user("Pick!"), message, result], "stream": is_streamed, "metadata": named});
        let stopped = server.chat(&given).await;
        let last = if is_streamed { stopped.chunks().last().unwrap().clone() } else { stopped.json() };
        assert_eq!(
            (&last["choices"][0]["finish_reason"], &last["turnwright"]["status"]),
            (&json!("stop"), &json!("cancelled"))
        );
        assert_eq!(last["usage"], Value::Null, "no model was asked");
    }
}

#[tokio::test]
async fn an_answer_that_waits_for_a_person_says_so() {
    let touches = || Answer::whole([call(0, "lab__touch", "{}")]);
    let server = server([touches(), touches()]);
    let chat = server.chat(&json!({"messages": [user("Touch!")]})).await.json();
    assert_eq!(chat["turnwright"]["status"], "waiting");
    let response = server.respond(&json!({"input": "Touch!"})).await.json();
    assert_eq!((&response["status"], &response["turnwright"]["status"]), (&json!("completed"), &json!("waiting")));
}

#[tokio::test]
async fn the_limit_of_steps_is_told_in_words() {
    let looks = || Answer::whole([call(0, "lab__look", "{}")]);
    let server = server([looks(), looks(), looks(), looks()]);
    for id in ["c1", "c2"] {
        server.post("/api/v1/conversations", &json!({"id": id, "settings": {"max_steps": 1}})).await;
    }
    let chat = server.chat(&json!({"messages": [user("Look!")], "metadata": {"conversation_id": "c1"}})).await.json();
    let choice = &chat["choices"][0];
    assert_eq!((&choice["finish_reason"], &chat["turnwright"]["status"]), (&json!("stop"), &json!("step_limit")), "{chat}");
    assert!(choice["message"]["content"].as_str().unwrap().contains("`max_steps`"), "{chat}");
    let response = server.respond(&json!({"input": "Look!", "conversation": "c2"})).await.json();
    assert_eq!(
        (&response["status"], &response["turnwright"]["status"]),
        (&json!("incomplete"), &json!("step_limit")),
        "{response}"
    );
    let said = response["output"].as_array().unwrap().last().unwrap();
    assert!(said["content"][0]["text"].as_str().unwrap().contains("`max_steps`"), "{response}");
}

#[tokio::test]
async fn an_item_that_was_cut_off_is_incomplete() {
    let failure = ProviderFailure::new(ProviderFailureKind::CutOff, "the connection broke");
    let length =
        vec![StreamDelta::Text("abc".to_owned()), StreamDelta::Finished(Finish { reason: FinishReason::Length, raw: None })];
    for (answer, status) in [(Answer::of([text("half")]).failing(failure), "failed"), (Answer::of([length]), "incomplete")] {
        let server = server([answer]);
        let told = server.respond(&json!({"input": "Go", "stream": true})).await.chunks();
        let response = &told.last().unwrap()["response"];
        assert_eq!((&response["status"], &response["output"][0]["status"]), (&json!(status), &json!("incomplete")));
        let done = told.iter().find(|event| event["type"] == "response.output_item.done").unwrap();
        assert_eq!(done["item"], response["output"][0]);
        assert_eq!(response["usage"], Value::Null);
    }
}

#[tokio::test]
async fn a_client_that_has_what_was_lost_is_told_to_begin_anew() {
    let store = MemoryStore::default();
    let gate = Arc::new(Semaphore::new(1));
    let first = server_on(store.another_process(), [Answer::of([text("Old words"), text("never")]).gated(&gate)]);
    first.post("/api/v1/conversations", &json!({"id": "c1"})).await;
    let body = json!({"input": "Go", "stream": true, "conversation": "c1"});
    let ends = async {
        let mut watch = first.engine.watch(&"c1".parse().unwrap(), WatchFrom::Now).await.unwrap();
        let speaks = |event: &Event| matches!(event, Event::TextDelta { .. });
        while !watch.next().await.unwrap().events.iter().any(speaks) {}
        first.engine.shutdown().await;
    };
    let (told, ()) = tokio::join!(first.respond(&body), ends);
    let told = told.chunks();
    let id = told[0]["response"]["id"].as_str().unwrap();
    let spoken = told.iter().find(|event| event["type"] == "response.output_text.delta").unwrap();

    let second = server_on(store.another_process(), [Answer::whole([text("New words, and more of them.")])]);
    second.engine.resume(&"c1".parse().unwrap()).await.unwrap();
    let after = |number: &Value| {
        let (second, path) = (&second, format!("/v1/responses/{id}?stream=true&starting_after={number}"));
        async move { second.get(&path).await }
    };
    let refused = after(&spoken["sequence_number"]).await.chunks();
    assert_eq!(refused.last().unwrap()["code"], "told_anew", "{refused:#?}");
    assert!(!refused.iter().any(|event| event["type"] == "response.output_text.delta"), "{refused:#?}");

    let anew = second.get(&format!("/v1/responses/{id}?stream=true")).await.chunks();
    let words = anew.iter().find(|event| event["type"] == "response.output_text.delta").unwrap();
    assert_eq!(words["delta"], "New words, and more of them.");
    assert!(words["sequence_number"].as_u64() > Some(1 << 32), "{words}");
    // What was told before that goes on.
    let rest = after(&told[1]["sequence_number"]).await.chunks();
    assert_eq!(rest.last(), anew.last());
}

#[tokio::test]
async fn a_client_that_comes_back_to_an_answer_of_which_something_is_hidden_is_told_to_begin_anew() {
    let server =
        server([Answer::whole([text("Let me look."), call(0, "lab__look", r#"{"at":1}"#)]), Answer::whole([text("Seen.")])]);
    server.post("/api/v1/conversations", &json!({"id": "c1"})).await;
    let first = server.respond(&json!({"input": "Go", "conversation": "c1"})).await.json();
    let path = format!("/v1/responses/{}?stream=true", first["id"].as_str().unwrap());
    let whole = server.get(&path).await.chunks();
    let rest = server.get(&format!("{path}&starting_after=2")).await.chunks();
    assert_eq!(rest.last(), whole.last());
    let hides = server.send(Method::DELETE, "/api/v1/conversations/c1/messages/msg_4", Body::empty(), &[]).await;
    assert_eq!(hides.status, 204, "{}", hides.body);
    for seen in [2, whole.len() - 1, 10_000] {
        let refused = server.get(&format!("{path}&starting_after={seen}")).await.chunks();
        assert_eq!(refused.last().unwrap()["code"], "told_anew", "{refused:#?}");
    }
    let anew = server.get(&path).await.body;
    assert!(anew.contains("Seen.") && !anew.contains("Let me look."), "{anew}");
}

#[tokio::test]
async fn of_two_results_at_once_one_is_taken_and_the_other_told_so() {
    let server = server([picks(), Answer::whole([text("It is.")])]);
    let waits = server.chat(&json!({"messages": [user("Pick!")], "tools": [pick()]})).await.json();
    let message = &waits["choices"][0]["message"];
    let [red, blue] = ["red", "blue"].map(|content| {
        let result = json!({"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": content});
        json!({"messages": [user("Pick!"), message, result], "tools": [pick()]})
    });
    let (red, blue) = tokio::join!(server.chat(&red), server.chat(&blue));
    let mut told = [red.status, blue.status];
    told.sort_unstable();
    assert_eq!(told, [200, 400], "{} {}", red.body, blue.body);
}

#[tokio::test]
async fn a_message_of_a_history_is_no_larger_than_one_that_is_said() {
    let server = server([]);
    server.engine.limit(turnwright_engine::Limits { message_bytes: 10, ..turnwright_engine::Limits::default() });
    let large = json!([user("longer than ten"), {"role": "assistant", "content": "One."}, user("2")]);
    let refused = server.chat(&json!({"messages": large})).await;
    assert_eq!(refused.status, 413, "{}", refused.body);
}

#[tokio::test]
async fn another_result_than_was_given_is_refused_and_the_same_is_answered_again() {
    let server = server([picks(), Answer::whole([text("Red it is.")])]);
    let waits = server.chat(&json!({"messages": [user("Pick!")], "tools": [pick()]})).await.json();
    let message = &waits["choices"][0]["message"];
    for (content, status) in [("red", 200), ("blue", 400), ("red", 200)] {
        let result = json!({"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": content});
        let told = server.chat(&json!({"messages": [user("Pick!"), message, result], "tools": [pick()]})).await;
        assert_eq!(told.status, status, "{content}: {}", told.body);
    }
}
