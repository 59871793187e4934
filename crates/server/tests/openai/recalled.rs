//! Histories at a process that told nothing of them: after a restart, or beside another one on the same database.

use http::Method;
use serde_json::{Value, json};
use turnwright_testkit::{Answer, MemoryStore, call, text};

use super::killed::{conversation, conversations};
use super::{picks, server_on, user};

fn said(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

#[tokio::test]
async fn a_history_goes_on_in_its_conversation_after_a_restart() {
    let store = MemoryStore::default();
    let looks = [Answer::whole([text("Let me look."), call(0, "lab__look", "{}")]), Answer::whole([text("Seen.")])];
    let server = server_on(store.another_process(), looks);
    let first = server.chat(&json!({"messages": [user("Look!")]})).await;

    let next = server_on(store.another_process(), ["Again.", "And again."].map(|answer| Answer::whole([text(answer)])));
    let mut messages = vec![user("Look!"), said("Let me look.\n\nSeen."), user("Once more")];
    let again = next.chat(&json!({"messages": messages})).await;
    assert_eq!((conversation(&again), conversations(&next).await), (conversation(&first), 1));
    let shown = &next.provider.asked()[0];
    assert!(shown.contains("lab__look"), "the model sees what its tools gave: {shown}");

    messages.extend([said("Again."), user("And more")]);
    let known = next.chat(&json!({"messages": messages})).await;
    assert_eq!((conversation(&known), conversations(&next).await), (conversation(&first), 1));
}

#[tokio::test]
async fn so_does_one_that_was_taken_over_from_elsewhere_and_one_with_a_tool_of_the_clients() {
    let store = MemoryStore::default();
    let answers = [Answer::whole([text("Three.")]), picks(), Answer::whole([text("Picked.")])];
    let server = server_on(store.another_process(), answers);
    let counted = [user("One"), said("Two."), user("And then?")];
    let taken_over = server.chat(&json!({"messages": counted})).await;
    let picks = server.chat(&json!({"messages": [user("Pick!")], "tools": [super::pick()]})).await;
    let message = picks.json()["choices"][0]["message"].clone();
    let result = json!({"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "red"});
    let picked = [user("Pick!"), message, result];
    let given = server.chat(&json!({"messages": picked, "tools": [super::pick()]})).await;

    let next = server_on(store.another_process(), ["Four.", "More."].map(|answer| Answer::whole([text(answer)])));
    let counts = [&counted[..], &[said("Three."), user("And then?")]].concat();
    assert_eq!(conversation(&next.chat(&json!({"messages": counts})).await), conversation(&taken_over));
    let picks = [&picked[..], &[said("Picked."), user("More")]].concat();
    assert_eq!(conversation(&next.chat(&json!({"messages": picks})).await), conversation(&given));
    assert_eq!(conversations(&next).await, 2);
}

#[tokio::test]
async fn so_does_one_whose_answer_has_a_form() {
    let store = MemoryStore::default();
    let looks = [Answer::whole([text("Let me look."), call(0, "lab__look", "{}")]), Answer::whole([text("{}")])];
    let server = server_on(store.another_process(), looks);
    let format = json!({"type": "json_object"});
    let first = server.chat(&json!({"messages": [user("Look!")], "response_format": format})).await;
    let next = server_on(store.another_process(), [Answer::whole([text("{}")])]);
    let messages = [user("Look!"), said("{}"), user("Once more")];
    let again = next.chat(&json!({"messages": messages, "response_format": format})).await;
    assert_eq!(conversation(&again), conversation(&first));
}

#[tokio::test]
async fn so_does_one_whose_person_was_waited_for_and_decided_elsewhere_or_not_yet() {
    for decides in [true, false] {
        let store = MemoryStore::default();
        let touches =
            [Answer::whole([text("Let me touch it."), call(0, "lab__touch", "{}")]), Answer::whole([text("Touched.")])];
        let server = server_on(store.another_process(), touches);
        let first = server.chat(&json!({"messages": [user("Touch!")]})).await;
        let told = first.json()["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
        assert!(told.starts_with("Let me touch it.\n\nWaiting for a person's decision:\n"), "{told}");
        if decides {
            let path = format!("/api/v1/conversations/{}/calls/call_4_0/decision", conversation(&first));
            assert_eq!(server.post(&path, &json!({"decision": "allow"})).await.status, 200);
            let turn = server.engine.journal(&conversation(&first).parse().unwrap()).await.unwrap().turn().unwrap().id();
            server.engine.wait(&conversation(&first).parse().unwrap(), turn).await.unwrap();
        }

        server.engine.shutdown().await;
        let next = server_on(store.another_process(), [Answer::whole([text("Well.")])]);
        let other = [user("Touch!"), said(&told.replace("Let me", "Let us")), user("And then?")];
        let messages = [user("Touch!"), said(&told), user("And then?")];
        let again = next.chat(&json!({"messages": messages})).await;
        assert_eq!((again.status, conversation(&again)), (200, conversation(&first)), "{}", again.body);
        next.engine.shutdown().await;
        let next = server_on(store.another_process(), [Answer::whole([text("Well.")])]);
        assert_ne!(conversation(&next.chat(&json!({"messages": other})).await), conversation(&first));
    }
}

#[tokio::test]
async fn a_history_that_no_journal_says_to_the_letter_begins_a_conversation() {
    let store = MemoryStore::default();
    let server = server_on(
        store.another_process(),
        ["Two.", "Four.", "Hi.", "Hey yourself."].map(|answer| Answer::whole([text(answer)])),
    );
    let first = server.chat(&json!({"messages": [user("One")]})).await;
    server.chat(&json!({"messages": [user("One"), said("Two."), user("Three")]})).await;
    let hidden = server.chat(&json!({"messages": [user("Hello")]})).await;
    let path = format!("/api/v1/conversations/{}/messages/msg_1", conversation(&hidden));
    let hides = server.send(Method::DELETE, &path, axum::body::Body::empty(), &[]).await;
    assert_eq!(hides.status, 204, "{}", hides.body);

    let careful = json!({"id": "careful", "system_prompt": "Be careful."});
    assert_eq!(server.post("/api/v1/conversations", &careful).await.status, 201);
    let told = server.post("/api/v1/conversations/careful/chat", &json!({"content": "Hey"})).await;
    assert_eq!(told.json()["turn"]["text"], "Hey yourself.", "{}", told.body);

    let histories = [
        ("settings of its own", vec![user("Hey"), said("Hey yourself.")]),
        ("an older place", vec![user("One"), said("Two.")]),
        ("another answer", vec![user("One"), said("Two."), user("Three"), said("Five.")]),
        ("another question", vec![user("One!"), said("Two."), user("Three"), said("Four.")]),
        ("what is hidden", vec![user("Hello"), said("Hi.")]),
    ];
    for (what, history) in histories {
        let next = server_on(store.another_process(), [Answer::whole([text("New.")])]);
        let before = conversations(&next).await;
        let messages = [&history[..], &[user("And then?")]].concat();
        let answer = next.chat(&json!({"messages": messages})).await;
        assert_eq!((answer.status, conversations(&next).await), (200, before + 1), "{what}: {}", answer.body);
        assert_ne!(conversation(&answer), conversation(&first), "{what}");
    }
}
