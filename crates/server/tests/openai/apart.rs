//! What is said in a turn that is open: each request is told the answer to what it said.

use std::sync::Arc;

use axum::body::Body;
use http::Method;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use turnwright_core::{Entry, Finish, FinishReason, StreamDelta, Usage};
use turnwright_testkit::{Answer, call, text};

use crate::{Answered, Server, server, user};

const HEADERS: [(&str, &str); 2] = [("content-type", "application/json"), ("x-turnwright-conversation", "c1")];

async fn ask(server: &Server, path: &str, said: &str, is_streamed: bool) -> Answered {
    let said = [user(said)];
    let body = json!({"messages": said, "input": said, "stream": is_streamed});
    let answer = server.send(Method::POST, path, Body::from(body.to_string()), &HEADERS).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer
}

/// An answer of two pieces.
fn in_pieces(first: &str, last: &str) -> Answer {
    let usage = Usage { input_tokens: Some(10), output_tokens: Some(5), ..Usage::default() };
    let ends = StreamDelta::Finished(Finish { reason: FinishReason::Stop, raw: None });
    Answer::of([text(first), vec![StreamDelta::Text(last.to_owned()), StreamDelta::Usage(usage), ends]])
}

/// The text of an answer, and its tokens where it is whole.
fn told(answer: &Answered, is_streamed: bool) -> (String, Value) {
    if is_streamed {
        let chunks = answer.chunks();
        let delta = |chunk: &Value| match chunk["choices"][0]["delta"]["content"].as_str() {
            Some(text) => Some(text.to_owned()),
            None => chunk["delta"].as_str().map(str::to_owned),
        };
        return (chunks.iter().filter_map(delta).collect(), json!(15));
    }
    let body = answer.json();
    let items = body["output"].as_array().into_iter().flatten().filter(|item| item["type"] == "message");
    let texts: Vec<&str> = items.filter_map(|item| item["content"][0]["text"].as_str()).collect();
    let text = body["choices"][0]["message"]["content"].as_str().map_or_else(|| texts.join("\n\n"), str::to_owned);
    (text, body["usage"]["total_tokens"].clone())
}

/// Two requests, the second of which comes while the model answers the first, of which this many pieces are told by then.
async fn both(server: &Server, path: &str, is_streamed: bool, (gate, pieces): (&Semaphore, usize)) -> [Answered; 2] {
    gate.add_permits(pieces);
    let two = async {
        while server.provider.asked().is_empty() || gate.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        ask(server, path, "Two", is_streamed).await
    };
    let opens = async {
        let look = |journal: &turnwright_core::Journal| {
            journal.entries().iter().filter(|stored| matches!(&*stored.entry, Entry::User(_))).count()
        };
        while server.engine.look(&"c1".parse().unwrap(), look).await.unwrap_or_default() < 2 {
            tokio::task::yield_now().await;
        }
        gate.add_permits(9);
    };
    let (one, two, ()) = tokio::join!(ask(server, path, "One", is_streamed), two, opens);
    [one, two]
}

#[tokio::test]
async fn each_of_two_requests_in_an_open_turn_is_told_its_own_answer() {
    for path in ["/v1/chat/completions", "/v1/responses"] {
        for is_streamed in [false, true] {
            for pieces in [0, 1] {
                let gate = Arc::new(Semaphore::new(0));
                let server = server([in_pieces("Fir", "st.").gated(&gate), Answer::whole([text("Second.")])]);
                let answers = both(&server, path, is_streamed, (&gate, pieces)).await;
                let found = answers.each_ref().map(|answer| told(answer, is_streamed));
                let expected = [("First.".to_owned(), json!(15)), ("Second.".to_owned(), json!(15))];
                assert_eq!(found, expected, "{path} {is_streamed} {pieces}");
                if path == "/v1/responses" && !is_streamed {
                    later(&server, &answers).await;
                }
            }
        }
    }
}

/// The same whenever it is asked for; to delete one leaves the other.
async fn later(server: &Server, answers: &[Answered; 2]) {
    for answer in answers {
        let body = answer.json();
        let path = format!("/v1/responses/{}", body["id"].as_str().unwrap());
        assert_eq!(server.get(&path).await.json()["output"], body["output"]);
        let streamed = server.get(&format!("{path}?stream=true")).await;
        assert_eq!(streamed.chunks().last().unwrap()["response"]["output"], body["output"]);
    }
    let first = format!("/v1/responses/{}", answers[0].json()["id"].as_str().unwrap());
    assert_eq!(server.send(Method::DELETE, &first, Body::empty(), &[]).await.status, 200);
    let said: Vec<String> = server.messages("c1").await.into_iter().map(|(_, text)| text).collect();
    assert_eq!(said, ["Two", "Second."]);
}

#[tokio::test]
async fn what_is_said_while_tools_run_is_answered_with_what_was_said_before() {
    for path in ["/v1/chat/completions", "/v1/responses"] {
        for is_streamed in [false, true] {
            let gate = Arc::new(Semaphore::new(0));
            let looks = Answer::whole([call(0, "lab__look", "{}")]).gated(&gate);
            let server = server([looks, Answer::whole([text("Both.")])]);
            let answers = both(&server, path, is_streamed, (&gate, 0)).await;
            let found = answers.each_ref().map(|answer| told(answer, true).0 + &told_whole(answer, is_streamed));
            assert!(found.iter().all(|text| text.ends_with("Both.")), "{path} {is_streamed}: {found:?}");
        }
    }
}

fn told_whole(answer: &Answered, is_streamed: bool) -> String {
    if is_streamed { String::new() } else { told(answer, false).0 }
}

#[tokio::test]
async fn a_history_that_ends_with_the_first_answer_does_not_go_on_behind_the_second() {
    let gate = Arc::new(Semaphore::new(0));
    let answers = [in_pieces("Fir", "st.").gated(&gate), Answer::whole([text("Second.")]), Answer::whole([text("Third.")])];
    let server = server(answers);
    both(&server, "/v1/chat/completions", false, (&gate, 0)).await;
    let history = json!([user("One"), {"role": "assistant", "content": "First."}, user("Three")]);
    let third = server.chat(&json!({"messages": history})).await;
    assert_ne!(third.header("x-turnwright-conversation"), "c1");
    assert!(!server.provider.asked()[2].contains("Second."), "{:?}", server.provider.asked());
}
