//! Requests that come again without a key, and turns that failed after something had run.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::Method;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use turnwright_core::{ProviderFailure, ProviderFailureKind};
use turnwright_engine::Limits;
use turnwright_testkit::{Answer, call, text};

use super::{Answered, Server, pick, picks, server, user};

fn fails() -> Answer {
    Answer::of([]).failing(ProviderFailure::new(ProviderFailureKind::Server, "out of order"))
}

fn looks() -> Answer {
    Answer::whole([call(0, "lab__look", "{}")])
}

/// As OpenAI's libraries send a request that they sent so often before.
pub(crate) async fn sent_again(server: &Server, path: &str, body: &Value, times: &str) -> Answered {
    let headers = [("content-type", "application/json"), ("x-stainless-retry-count", times)];
    server.send(Method::POST, path, Body::from(body.to_string()), &headers).await
}

#[tokio::test]
async fn what_failed_after_a_clients_results_is_tried_again_with_them() {
    let server = server([picks(), fails(), fails(), Answer::whole([text("Picked.")])]);
    let waits = server.chat(&json!({"messages": [user("Pick!")], "tools": [pick()]})).await.json();
    let message = &waits["choices"][0]["message"];
    let result = json!({"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "red"});
    let given = json!({"messages": [user("Pick!"), message, result], "tools": [pick()]});
    assert_eq!(server.chat(&given).await.status, 502);
    assert_eq!(server.chat(&given).await.status, 502, "it is asked again, and fails again");
    let picked = server.chat(&given).await.json();
    assert_eq!(picked["choices"][0]["message"]["content"], "Picked.", "{picked}");
    assert_eq!(picked["turnwright"]["turn_id"], waits["turnwright"]["turn_id"]);
    assert_eq!(server.chat(&given).await.json()["choices"], picked["choices"], "what came of it comes again");
    assert_eq!(server.provider.asked().len(), 4);
}

#[tokio::test]
async fn what_failed_after_an_approval_is_tried_again_with_it() {
    let touches = Answer::whole([call(0, "lab__touch", "{}")]);
    let server = server([touches, fails(), Answer::whole([text("Done.")])]);
    let first = server.respond(&json!({"input": "Touch!"})).await.json();
    let answer = json!({"type": "mcp_approval_response", "approval_request_id": first["output"][0]["id"], "approve": true});
    let approves = json!({"previous_response_id": first["id"], "input": [answer]});
    assert_eq!(server.respond(&approves).await.status, 502);
    let done = server.respond(&approves).await.json();
    assert_eq!(done["output"][0]["content"][0]["text"], "Done.", "{done}");
    assert_eq!(server.source.effects().len(), 1);
}

#[tokio::test]
async fn a_request_that_its_library_sends_again_joins_the_turn_of_the_first() {
    let bodies = [("/v1/chat/completions", json!({"messages": [user("Look!")]})), ("/v1/responses", json!({"input": "Look!"}))];
    for (path, body) in bodies {
        let server = server([looks(), fails(), Answer::whole([text("Seen.")]), Answer::whole([text("Anew.")])]);
        assert_eq!(sent_again(&server, path, &body, "0").await.status, 502, "{path}");
        let seen = sent_again(&server, path, &body, "1").await;
        assert!(seen.status == 200 && seen.body.contains("Seen."), "{path}: {}", seen.body);
        let again = sent_again(&server, path, &body, "2").await;
        assert_eq!(again.json(), seen.json(), "{path}: one that is over gives its answer");
        assert_eq!((server.source.effects().len(), server.provider.asked().len()), (1, 3), "{path}");
        let anew = sent_again(&server, path, &body, "0").await;
        assert!(anew.body.contains("Anew."), "{path}: {}", anew.body);
        assert_ne!(anew.header("x-turnwright-conversation"), seen.header("x-turnwright-conversation"));
    }
}

#[tokio::test]
async fn a_request_that_was_refused_is_said_by_its_repetition_although_an_equal_one_was_answered_before() {
    let gate = Arc::new(Semaphore::new(0));
    let [one, held, two] = ["One.", "Held.", "Two."].map(|said| Answer::whole([text(said)]));
    let server = server([one, held.gated(&gate), two]);
    server.engine.limit(Limits { turns: 1, ..Limits::default() });
    let named = json!({"messages": [user("Next")], "metadata": {"conversation_id": "c1"}});
    let first = sent_again(&server, "/v1/chat/completions", &named, "0").await;
    assert!(first.body.contains("One."), "{}", first.body);
    let idle = async || {
        while server.engine.workload().driven_turns > 0 {
            tokio::task::yield_now().await;
        }
    };
    idle().await;
    server.clock.advance(60 * 1_000);
    server.post("/api/v1/conversations", &json!({"id": "c2"})).await;
    server.post("/api/v1/conversations/c2/messages", &json!({"content": "Hold"})).await;
    for times in ["0", "1"] {
        assert_eq!(sent_again(&server, "/v1/chat/completions", &named, times).await.status, 503);
    }
    gate.add_permits(9);
    idle().await;
    server.clock.advance(1_000);
    let said = sent_again(&server, "/v1/chat/completions", &named, "2").await;
    assert!(said.body.contains("Two."), "{}", said.body);
    assert_eq!(sent_again(&server, "/v1/chat/completions", &named, "2").await.json(), said.json());
    let users = server.messages("c1").await.into_iter().filter(|(role, _)| role == "user").count();
    assert_eq!(users, 2);
}

#[tokio::test(start_paused = true)]
async fn repetitions_that_take_a_failed_turn_up_at_once_get_its_answer() {
    let path = "/v1/chat/completions";
    let gate = Arc::new(Semaphore::new(0));
    let server = server([fails(), Answer::whole([text("Seen.")]).gated(&gate)]);
    let body = json!({"messages": [user("Look!")]});
    assert_eq!(sent_again(&server, path, &body, "0").await.status, 502);
    let again = futures_util::future::join_all(["1", "1", "2"].map(|times| sent_again(&server, path, &body, times)));
    // The clock stands still until nothing else happens: all wait for the model by then.
    let opens = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        gate.add_permits(9);
    };
    for seen in futures_util::join!(again, opens).0 {
        assert!(seen.status == 200 && seen.body.contains("Seen."), "{}", seen.body);
    }
    assert_eq!(server.provider.asked().len(), 2);
}

#[tokio::test]
async fn the_same_request_goes_on_with_a_turn_that_failed_for_a_few_minutes() {
    let answers = [looks(), fails(), Answer::whole([text("Seen.")]), looks(), fails(), Answer::whole([text("Later.")])];
    let server = server(answers);
    let body = json!({"messages": [user("Look!")]});
    let failed = server.chat(&body).await;
    let seen = server.chat(&body).await;
    assert_eq!(seen.json()["choices"][0]["message"]["content"], "Seen.");
    assert_eq!(seen.header("x-turnwright-conversation"), failed.header("x-turnwright-conversation"));
    assert_eq!(server.source.effects().len(), 1);

    let failed = server.chat(&body).await;
    assert_eq!(failed.status, 502);
    server.clock.advance(6 * 60 * 1_000);
    let later = server.chat(&body).await;
    assert_eq!(later.json()["choices"][0]["message"]["content"], "Later.");
    assert_ne!(later.header("x-turnwright-conversation"), failed.header("x-turnwright-conversation"));
}

#[tokio::test]
async fn an_approval_that_was_given_before_gets_the_answer_that_came_of_it() {
    let touches = Answer::whole([call(0, "lab__touch", "{}")]);
    let server = server([touches, Answer::whole([text("Done.")])]);
    let first = server.respond(&json!({"input": "Touch!"})).await.json();
    let conversation = first["conversation"]["id"].as_str().unwrap();
    let path = format!("/api/v1/conversations/{conversation}/calls/call_4_0/decision");
    assert_eq!(server.post(&path, &json!({"decision": "allow"})).await.status, 200);
    let answer = json!({"type": "mcp_approval_response", "approval_request_id": first["output"][0]["id"], "approve": true});
    let approves = json!({"previous_response_id": first["id"], "input": [answer]});
    let done = server.respond(&approves).await.json();
    assert_eq!(done["output"][1]["content"][0]["text"], "Done.", "{done}");
    assert_eq!(server.respond(&approves).await.json()["output"], done["output"]);
    assert_eq!(server.source.effects().len(), 1);
}

#[tokio::test]
async fn a_chat_goes_on_in_its_conversation_after_an_answer_that_broke_off() {
    let failure = ProviderFailure::new(ProviderFailureKind::CutOff, "the connection broke");
    let server = server([Answer::of([text("half")]).failing(failure), Answer::whole([text("Went on.")])]);
    let broken = server.chat(&json!({"messages": [user("Go")], "stream": true})).await;
    assert!(broken.chunks().last().unwrap()["error"].is_object(), "{}", broken.body);
    let history = json!([user("Go"), {"role": "assistant", "content": "half"}, user("Go on")]);
    let on = server.chat(&json!({"messages": history})).await;
    assert_eq!(on.json()["choices"][0]["message"]["content"], "Went on.");
    assert_eq!(on.header("x-turnwright-conversation"), broken.header("x-turnwright-conversation"));
}
