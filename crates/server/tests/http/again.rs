//! Requests that come again with their key, at the same process and at the next one over the same data.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::timeout;
use turnwright_core::{Control, Entry, ProviderFailure, ProviderFailureKind};
use turnwright_engine::{CONVERSATION_DOCUMENTS, Documents, REPEATABLE_REQUESTS};
use turnwright_testkit::{Answer, Disk, Fuse, MemoryDocuments, MemoryStore, call, text};

use super::{Answered, Server, server_on};

const KEY: [(&str, &str); 2] = [("content-type", "application/json"), ("idempotency-key", "k1")];

/// What is kept while processes come and go.
#[derive(Default)]
struct Kept {
    store: MemoryStore,
    documents: Arc<MemoryDocuments>,
}

impl Kept {
    fn server(&self, answers: impl IntoIterator<Item = Answer>) -> Server {
        server_on(Arc::new(self.store.another_process()), self.documents.clone(), answers)
    }
}

async fn keyed(server: &Server, path: &str, body: &Value) -> Answered {
    server.send(Method::POST, path, body, &KEY).await
}

/// The entries of the conversation.
async fn entries(server: &Server) -> u64 {
    let look = |journal: &turnwright_core::Journal| journal.last_seq().map_or(0, turnwright_core::Seq::get);
    server.engine.look(&"c1".parse().unwrap(), look).await.unwrap()
}

/// The same request again changes nothing and has the same answer, before and after a restart; another one with its key is
/// refused.
async fn is_carried_out_once(server: &Server, kept: &Kept, path: &str, (body, other): (Value, Value), first: &Answered) {
    assert!(first.status.is_success(), "{path}: {}", first.body);
    let before = entries(server).await;
    for server in [server, &kept.server([])] {
        let again = keyed(server, path, &body).await;
        assert_eq!((again.status, again.json()), (first.status, first.json()), "{path}");
        assert_eq!(keyed(server, path, &other).await.problem(), (422, "idempotency_key_reused".to_owned()), "{path}");
        assert_eq!(entries(server).await, before, "{path}");
    }
}

async fn settled(server: &Server, turn: &str) {
    server.engine.wait(&"c1".parse().unwrap(), turn.parse().unwrap()).await.unwrap();
}

#[tokio::test]
async fn a_turn_is_tried_again_once_for_each_key() {
    let kept = Kept::default();
    let failure = ProviderFailure::new(ProviderFailureKind::InvalidRequest, "no");
    let server = kept.server([Answer::of([]).failing(failure.clone()), Answer::of([]).failing(failure)]);
    server.post("/api/v1/conversations/c1/chat", json!({"content": "Hi"})).await;
    let path = "/api/v1/conversations/c1/retry";
    let first = keyed(&server, path, &json!({})).await;
    assert_eq!((first.status, first.json()["turn_id"].as_str()), (StatusCode::ACCEPTED, Some("turn_1")));
    settled(&server, "turn_1").await;
    // It failed again, so that it could be tried a third time.
    is_carried_out_once(&server, &kept, path, (json!({}), json!({"model": "test/other"})), &first).await;
}

#[tokio::test(start_paused = true)]
async fn wherever_a_process_dies_a_turn_is_tried_again_once_for_a_key() {
    for fuse in (1..=2).flat_map(|append| [Fuse::Before(append), Fuse::After(append)]) {
        let store = Arc::new(MemoryStore::default());
        let failure = ProviderFailure::new(ProviderFailureKind::InvalidRequest, "no");
        let failed = server_on(store.clone(), store.clone(), [Answer::of([]).failing(failure)]);
        failed.post("/api/v1/conversations/c1/chat", json!({"content": "Hi"})).await;
        failed.engine.shutdown().await;

        let path = "/api/v1/conversations/c1/retry";
        let doomed = Arc::new(store.doomed_process(fuse));
        let doomed = server_on(doomed.clone(), doomed, [Answer::whole([text("Hello.")])]);
        doomed.engine.keep_resuming();
        let _died = timeout(Duration::from_mins(5), keyed(&doomed, path, &json!({}))).await;
        doomed.engine.shutdown().await;
        let next = Arc::new(store.another_process());
        let next = server_on(next.clone(), next, [Answer::whole([text("Hello.")])]);
        next.engine.resume_open_turns().await.unwrap();
        let again = keyed(&next, path, &json!({})).await;
        assert_eq!(again.status, StatusCode::ACCEPTED, "{fuse:?}: {}", again.body);
        settled(&next, "turn_1").await;
        let retries = |journal: &turnwright_core::Journal| {
            let retried = |entry: &Entry| matches!(entry, Entry::Control(Control::Retried { .. }));
            journal.entries().iter().filter(|stored| retried(&stored.entry)).count()
        };
        assert_eq!(next.engine.look(&"c1".parse().unwrap(), retries).await.unwrap(), 1, "{fuse:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn wherever_a_process_dies_another_answer_is_made_once_for_a_key() {
    let page = json!({"id": "c1", "trigger": "regenerate-message", "messageId": "turn_1", "messages": [
        {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Hi"}]},
    ]});
    for fuse in (1..=3).flat_map(|append| [Fuse::Before(append), Fuse::After(append)]) {
        let store = Arc::new(MemoryStore::default());
        let first = server_on(store.clone(), store.clone(), [Answer::whole([text("Hello.")])]);
        first.post("/api/v1/conversations/c1/chat", json!({"content": "Hi"})).await;
        first.engine.shutdown().await;

        let doomed = Arc::new(store.doomed_process(fuse));
        let doomed = server_on(doomed.clone(), doomed, [Answer::whole([text("Hello again.")])]);
        doomed.engine.keep_resuming();
        let _died = timeout(Duration::from_mins(5), keyed(&doomed, "/api/chat", &page)).await;
        doomed.engine.shutdown().await;
        let next = Arc::new(store.another_process());
        let next = server_on(next.clone(), next, [Answer::whole([text("Hello again.")]), Answer::whole([text("And again.")])]);
        next.engine.resume_open_turns().await.unwrap();
        let again = keyed(&next, "/api/chat", &page).await;
        assert_eq!(again.status, StatusCode::OK, "{fuse:?}: {}", again.body);
        let said = |journal: &turnwright_core::Journal| {
            journal.entries().iter().filter(|stored| matches!(&*stored.entry, Entry::User(_))).count()
        };
        assert_eq!(next.engine.look(&"c1".parse().unwrap(), said).await.unwrap(), 2, "{fuse:?}");
    }
}

#[tokio::test]
async fn what_failed_since_nothing_could_be_stored_is_carried_out_when_it_comes_again_with_its_key() {
    let kept = Kept::default();
    let server = kept.server([Answer::whole([call(0, "lab__touch", "{}")]), Answer::whole([text("Touched.")])]);
    server.post("/api/v1/conversations/c1/chat", json!({"content": "Touch!"})).await;
    let waits = server.get("/api/v1/conversations/c1/calls").await.json();
    let path = format!("/api/v1/conversations/c1/calls/{}/decision", waits["data"][0]["id"].as_str().unwrap());
    let allow = json!({"decision": "allow"});
    server.store.set_full(Disk::Full);
    for _ in 0..2 {
        assert_eq!(keyed(&server, &path, &allow).await.problem(), (503, "store_unusable".to_owned()));
    }
    server.store.set_full(Disk::HasRoom);
    let first = keyed(&server, &path, &allow).await;
    assert_eq!(first.status, StatusCode::OK, "{}", first.body);
    settled(&server, "turn_1").await;
    is_carried_out_once(&server, &kept, &path, (allow, json!({"decision": "deny"})), &first).await;
    assert_eq!(server.source.effects().len(), 1);
}

#[tokio::test]
async fn a_summary_is_made_once_for_each_key() {
    let kept = Kept::default();
    let server = kept.server(["One", "Two", "Three", "They counted.", "Not this one."].map(|word| Answer::whole([text(word)])));
    for word in ["1", "2", "3"] {
        server.post("/api/v1/conversations/c1/chat", json!({"content": word})).await;
    }
    let path = "/api/v1/conversations/c1/compact";
    let first = keyed(&server, path, &json!({})).await;
    is_carried_out_once(&server, &kept, path, (json!({}), json!({"model": "test/other"})), &first).await;
}

#[tokio::test]
async fn a_summary_is_taken_back_once_for_each_key() {
    let kept = Kept::default();
    let words = ["One", "Two", "Three", "Counted.", "Four", "Five", "Six", "Counted on."];
    let server = kept.server(words.map(|word| Answer::whole([text(word)])));
    let path = "/api/v1/conversations/c1/compact";
    for words in [["1", "2", "3"], ["4", "5", "6"]] {
        for word in words {
            server.post("/api/v1/conversations/c1/chat", json!({"content": word})).await;
        }
        let made = server.post(path, json!({})).await;
        assert_eq!(made.status, StatusCode::OK, "{}", made.body);
    }
    let undo = format!("{path}/undo");
    let first = keyed(&server, &undo, &json!({})).await;
    assert_eq!(first.json()["summary"]["text"], "Counted.", "{}", first.body);
    is_carried_out_once(&server, &kept, &undo, (json!({}), json!({"other": true})), &first).await;
    assert_eq!(server.get(path).await.json()["summary"]["text"], "Counted.");
}

#[tokio::test]
async fn a_key_of_a_summary_is_another_in_another_conversation() {
    let kept = Kept::default();
    let answers = ["One", "Two", "Three", "Counted.", "One", "Two", "Three", "Counted again.", "Not this one."];
    let server = kept.server(answers.map(|word| Answer::whole([text(word)])));
    for (conversation, summary) in [("c1", "Counted."), ("c2", "Counted again.")] {
        for word in ["1", "2", "3"] {
            server.post(&format!("/api/v1/conversations/{conversation}/chat"), json!({"content": word})).await;
        }
        let path = format!("/api/v1/conversations/{conversation}/compact");
        for _ in 0..2 {
            let made = keyed(&server, &path, &json!({})).await;
            assert_eq!((made.status, &made.json()["summary"]["text"]), (StatusCode::OK, &json!(summary)), "{}", made.body);
        }
    }
}

#[tokio::test]
async fn a_copy_is_made_and_a_tool_is_named_once_for_each_key() {
    let kept = Kept::default();
    let server = kept.server([Answer::whole([text("One")])]);
    server.post("/api/v1/conversations/c1/chat", json!({"content": "1"})).await;
    let path = "/api/v1/conversations/c1/fork";
    let first = keyed(&server, path, &json!({"title": "Copy"})).await;
    is_carried_out_once(&server, &kept, path, (json!({"title": "Copy"}), json!({"title": "Other"})), &first).await;
    let all = server.get("/api/v1/conversations").await.json();
    assert_eq!(all["data"].as_array().unwrap().len(), 2, "{all}");
    let deleted = server.send(Method::DELETE, "/api/v1/conversations/c1", &Value::Null, &[]).await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    assert_eq!(keyed(&server, path, &json!({"title": "Copy"})).await.json(), first.json(), "its source is gone");
    server.post("/api/v1/conversations", json!({"id": "c1"})).await;
    let path = "/api/v1/conversations/c1/tools";
    let tool = |name: &str| json!({"server_id": "lab", "tool_name": name});
    let first = keyed(&server, path, &tool("touch")).await;
    is_carried_out_once(&server, &kept, path, (tool("touch"), tool("look")), &first).await;
}

#[tokio::test]
async fn what_is_said_and_created_is_there_once_for_each_key() {
    let kept = Kept::default();
    let server = kept.server([Answer::whole([text("One")])]);
    let path = "/api/v1/conversations";
    let first = keyed(&server, path, &json!({"id": "c1"})).await;
    is_carried_out_once(&server, &kept, path, (json!({"id": "c1"}), json!({"id": "c2"})), &first).await;
    let path = "/api/v1/conversations/c1/messages";
    let first = keyed(&server, path, &json!({"content": "Hi"})).await;
    settled(&server, "turn_1").await;
    is_carried_out_once(&server, &kept, path, (json!({"content": "Hi"}), json!({"content": "Ho"})), &first).await;
}

#[tokio::test]
async fn answers_of_use_chat_are_stored_once_for_each_key_and_others_are_refused() {
    let kept = Kept::default();
    let server = kept.server([Answer::whole([call(0, "lab__touch", "{}")]), Answer::whole([text("Touched.")])]);
    let said = json!({"id": "u1", "role": "user", "parts": [{"type": "text", "text": "Touch!"}]});
    server.post("/api/chat", json!({"id": "c1", "messages": [said]})).await;
    let waits = server.get("/api/v1/conversations/c1/calls").await.json();
    let approval = waits["data"][0]["id"].as_str().unwrap().replacen("call_", "appr_", 1);
    let answer = |approved: bool| {
        let approval = json!({"id": approval, "approved": approved});
        let part = json!({"type": "dynamic-tool", "state": "approval-responded", "approval": approval});
        json!({"id": "c1", "messages": [{"id": "a1", "role": "assistant", "parts": [part]}]})
    };
    let first = keyed(&server, "/api/chat", &answer(true)).await;
    assert!(first.body.contains("Touched."), "{}", first.body);
    for server in [&server, &kept.server([])] {
        assert_eq!(keyed(server, "/api/chat", &answer(true)).await.chunks(), first.chunks());
        assert_eq!(keyed(server, "/api/chat", &answer(false)).await.problem(), (422, "idempotency_key_reused".to_owned()));
    }
    assert_eq!(server.source.effects().len(), 1);
}

#[tokio::test]
async fn what_was_answered_in_a_conversation_goes_with_it() {
    let store = Arc::new(MemoryStore::default());
    let answers = ["One", "Two", "Three", "Counted.", "One", "Two", "Three", "Counted again."];
    let server = server_on(store.clone(), store.clone(), answers.map(|word| Answer::whole([text(word)])));
    server.engine.keep_rules(store.clone()).await;
    let (path, tools) = ("/api/v1/conversations/c1/compact", "/api/v1/conversations/c1/tools");
    for summary in ["Counted.", "Counted again."] {
        for word in ["1", "2", "3"] {
            server.post("/api/v1/conversations/c1/chat", json!({"content": word})).await;
        }
        let tool = json!({"server_id": "lab", "tool_name": "touch"});
        assert_eq!(keyed(&server, tools, &tool).await.status, StatusCode::CREATED);
        for _ in 0..2 {
            assert_eq!(keyed(&server, path, &json!({})).await.json()["summary"]["text"], summary);
        }
        let rule = json!({"tool": "lab__touch", "action": "deny", "scope": "conversation", "conversation_id": "c1"});
        for _ in 0..2 {
            let made = keyed(&server, "/api/v1/approvals/rules", &rule).await;
            assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
            let listed = server.get("/api/v1/approvals/rules").await.json();
            assert_eq!(listed["data"].as_array().unwrap().len(), 1, "it holds: {listed}");
        }
        let deleted = server.send(Method::DELETE, "/api/v1/conversations/c1", &Value::Null, &[]).await;
        assert_eq!(deleted.status, StatusCode::NO_CONTENT, "{}", deleted.body);
        for kind in [CONVERSATION_DOCUMENTS, REPEATABLE_REQUESTS] {
            assert_eq!(store.documents(kind).await.unwrap(), [], "{kind}");
        }
    }
}
