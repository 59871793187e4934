//! Pages that leave a run and say more while it goes on, and pages that send their last message alone.

use turnwright_core::{Finish, FinishReason, StreamDelta};

use super::ag_ui::{body, kinds};
use super::*;

#[tokio::test]
async fn a_page_of_ag_ui_that_left_its_run_and_says_more_has_each_word_once() {
    let gate = Arc::new(Semaphore::new(1));
    let ends = StreamDelta::Finished(Finish { reason: FinishReason::Stop, raw: None });
    let half = Answer::of([text("Hal"), vec![StreamDelta::Text("f.".to_owned()), ends]]).gated(&gate);
    let server = server([half, Answer::whole([text("More.")])]);
    server.post("/api/v1/conversations", json!({"id": "c1"})).await;
    server.post("/api/v1/conversations/c1/messages", json!({"content": "Look!"})).await;
    while gate.available_permits() > 0 {
        tokio::task::yield_now().await;
    }
    let page = json!([
        {"id": "u1", "role": "user", "content": "Look!"},
        {"id": "msg_2", "role": "assistant", "content": "Hal"},
        {"id": "u2", "role": "user", "content": "More!"},
    ]);
    let opens = async {
        while server.said().await.len() < 2 {
            tokio::task::yield_now().await;
        }
        gate.add_permits(9);
    };
    let (events, ()) = tokio::join!(server.run(body("r2", &page)), opens);
    assert_eq!(kinds(&events)[..2], ["RUN_STARTED", "MESSAGES_SNAPSHOT"]);
    let expected = json!([{"id": "u1", "role": "user", "content": "Look!"}, {"id": "u2", "role": "user", "content": "More!"}]);
    assert_eq!(events[1]["messages"], expected);
    let told: String = events.iter().filter_map(|event| event["delta"].as_str()).collect();
    assert_eq!(told, "Half.More.");
}

#[tokio::test]
async fn use_chat_may_send_its_last_message_alone() {
    let server = server([Answer::whole([text("Hi.")]), Answer::whole([text("Well.")])]);
    let says = |text: &str| {
        json!({"id": "c1", "trigger": "submit-message",
               "message": {"id": text, "role": "user", "parts": [{"type": "text", "text": text}]}})
    };
    for (said, answer) in [("Hello", "Hi."), ("And?", "Well."), ("And?", "Well.")] {
        let told = server.post("/api/chat", says(said)).await;
        assert!(told.status == StatusCode::OK && told.body.contains(answer), "{said}: {}", told.body);
    }
    assert_eq!(server.said().await, ["Hello", "And?"]);
    let refused = server.post("/api/chat", json!({"id": "c1"})).await;
    assert_eq!(refused.problem(), (422, "invalid_request".to_owned()));
}
