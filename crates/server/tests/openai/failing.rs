//! Requests while the store fails.

use serde_json::{Value, json};
use turnwright_core::{ProviderFailure, ProviderFailureKind};
use turnwright_testkit::{Answer, MemoryStore, call, text};

use super::killed::{conversation, conversations};
use super::{server, server_on, user};

#[tokio::test]
async fn what_cannot_be_looked_up_is_worth_repeating_and_begins_nothing() {
    let store = MemoryStore::default();
    let first =
        server_on(store.another_process(), [Answer::whole([text("One.")]), Answer::whole([call(0, "lab__touch", "{}")])]);
    let said = first.chat(&json!({"messages": [user("Go")]})).await;
    let asked = first.respond(&json!({"input": "Touch!"})).await.json();
    let request = &asked["output"][0]["id"];
    let approves = json!({"type": "mcp_approval_response", "approval_request_id": request, "approve": true});
    let result = json!({"role": "tool", "tool_call_id": "call_elsewhere", "content": "red"});
    let answer = json!({"role": "assistant", "content": "One."});

    let second = server_on(store.another_process().hiding_journals(), [Answer::whole([text("Never.")])]);
    let named = json!({"conversation_id": conversation(&said)});
    let goes_on = json!([user("Go"), answer, user("On")]);
    let requests = [
        ("/v1/chat/completions", json!({"messages": goes_on, "metadata": named})),
        ("/v1/chat/completions", json!({"messages": [user("Go"), answer, result], "metadata": named})),
        ("/v1/chat/completions", json!({"messages": goes_on})),
        ("/v1/responses", json!({"input": [approves]})),
        ("/v1/responses", json!({"input": [user("Touch!"), {"type": "item_reference", "id": request}, user("And?")]})),
    ];
    for (path, body) in requests {
        let answered = second.post(path, &body).await;
        assert_eq!(answered.error(), (503, "server_error".to_owned(), "store_unusable".to_owned()), "{body}");
        assert_eq!(answered.header("retry-after"), "1");
    }
    assert_eq!(conversations(&first).await, 2);
}

#[tokio::test]
async fn a_message_that_says_nothing_is_refused() {
    let server = server_on(MemoryStore::default(), [Answer::whole([text("Never.")])]);
    let blank = json!([{"role": "user", "content": [{"type": "text", "text": " "}]}]);
    for (path, body) in [
        ("/v1/responses", json!({"input": ""})),
        ("/v1/responses", json!({"input": [{"role": "user", "content": [{"type": "input_text", "text": ""}]}]})),
        ("/v1/chat/completions", json!({"messages": blank})),
    ] {
        let answered = server.post(path, &body).await;
        assert_eq!(answered.error(), (400, "invalid_request_error".to_owned(), "invalid_request".to_owned()), "{body}");
        assert!(answered.body.contains("is empty; say something"), "{}", answered.body);
    }
    assert_eq!(conversations(&server).await, 0);
}

#[tokio::test]
async fn a_thought_alone_is_no_history() {
    let server = server_on(MemoryStore::default(), [Answer::whole([text("Hi.")])]);
    let thought = json!({"type": "reasoning", "id": "rs_1", "summary": []});
    let answered = server.post("/v1/responses", &json!({"input": [thought, user("Hello")]})).await;
    assert!(answered.body.contains("Hi."), "{}", answered.body);
    let refused = server.post("/v1/responses", &json!({"input": [thought]})).await;
    assert_eq!(refused.error(), (400, "invalid_request_error".to_owned(), "invalid_request".to_owned()));
    assert!(!refused.body.contains("file"), "{}", refused.body);
    assert_eq!(conversations(&server).await, 1);
}

#[tokio::test]
async fn what_failed_in_a_named_conversation_is_not_said_again_with_what_comes_next() {
    let fails = || Answer::of([]).failing(ProviderFailure::new(ProviderFailureKind::InvalidRequest, "no"));
    // At once, and after a call that its client was not told of.
    for answers in [vec![fails()], vec![Answer::whole([call(0, "lab__look", r#"{"at":1}"#)]), fails()]] {
        let server = server(answers.into_iter().chain([Answer::whole([text("Two.")])]));
        let ask =
            async |messages: Value| server.chat(&json!({"messages": messages, "metadata": {"conversation_id": "c1"}})).await;
        let said = async || -> Vec<String> {
            let messages = server.messages("c1").await.into_iter().filter(|(role, _)| role == "user");
            messages.map(|(_, said)| said).collect()
        };
        assert_eq!(ask(json!([user("one")])).await.status, 400);
        let second = ask(json!([user("one"), user("two")])).await.json();
        assert_eq!(second["choices"][0]["message"]["content"], "Two.");
        assert_eq!(said().await, ["one", "two"]);
        // Also where it was answered, of which its client may not have heard; what was stored as one message is known in two.
        assert_eq!(ask(json!([user("two"), user("three"), user("four")])).await.status, 502);
        assert_eq!(said().await, ["one", "two", "three\nfour"]);
        assert_eq!(ask(json!([user("three"), user("four"), user("five")])).await.status, 502);
        assert_eq!(said().await, ["one", "two", "three\nfour", "five"]);
    }
}

#[tokio::test]
async fn a_stream_that_is_refused_before_a_word_has_the_status_of_the_refusal() {
    let limited = || ProviderFailure {
        retry_after_ms: Some(200_500),
        ..ProviderFailure::new(ProviderFailureKind::RateLimit, "slow down")
    };
    let fails = |said: Option<&str>| Answer::of(said.map(text)).failing(limited());
    // At once; after a call of a tool on this side, which the stream tells; after a word.
    let called = Answer::whole([call(0, "lab__look", r#"{"at":1}"#)]);
    let server = server([fails(None), called, fails(None), fails(Some("half"))]);
    let refused = server.chat(&json!({"messages": [user("one")], "stream": true})).await;
    assert_eq!(refused.error(), (429, "rate_limit_error".to_owned(), "rate_limit_exceeded".to_owned()));
    assert_eq!((refused.header("content-type"), refused.header("x-should-retry")), ("application/json", "false"));
    assert_eq!(refused.header("retry-after"), "201");
    assert_eq!(server.messages(conversation(&refused)).await[0].1, "one");
    for goes in ["two", "three"] {
        let broken = server.chat(&json!({"messages": [user(goes)], "stream": true})).await;
        assert_eq!(broken.status, 200, "{goes}");
        let chunks = broken.chunks();
        assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
        assert_eq!(chunks.last().unwrap()["error"]["code"], "rate_limit_exceeded");
    }
}
