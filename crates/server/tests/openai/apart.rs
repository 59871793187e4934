//! What is said in a turn that is open: each request is told the answer to what it said.

use std::sync::Arc;

use axum::body::Body;
use http::Method;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use turnwright_core::{Entry, Finish, FinishReason, ProviderFailure, ProviderFailureKind, StreamDelta, Usage};
use turnwright_testkit::{Answer, call, text};

use super::{Answered, Server, server, user};

const COUNT: &str = "x-stainless-retry-count";
const HEADERS: [(&str, &str); 2] = [("content-type", "application/json"), ("x-turnwright-conversation", "c1")];

/// A request that says this, as OpenAI's libraries send it that sent it so often before.
async fn ask_again(server: &Server, path: &str, (said, besides): (&str, &Value), times: &str) -> Answered {
    let said = [user(said)];
    let mut body = json!({"messages": said, "input": said});
    body.as_object_mut().unwrap().extend(besides.as_object().unwrap().clone());
    let [content, conversation] = HEADERS;
    server.send(Method::POST, path, Body::from(body.to_string()), &[content, conversation, (COUNT, times)]).await
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
    let streams = json!({"stream": is_streamed});
    let answers = both_with(server, path, [&streams, &streams], (gate, pieces)).await;
    for answer in &answers {
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    answers
}

/// The same with what each request says besides.
async fn both_with(server: &Server, path: &str, besides: [&Value; 2], (gate, pieces): (&Semaphore, usize)) -> [Answered; 2] {
    let first = ask_again(server, path, ("One", besides[0]), "0");
    let (first, second) = joining(server, first, ask_again(server, path, ("Two", besides[1]), "0"), (gate, pieces)).await;
    [first, second]
}

/// What comes of two requests, the second of which comes while the model answers the first.
async fn joining<T>(
    server: &Server,
    first: impl Future<Output = T>,
    second: impl Future<Output = Answered>,
    (gate, pieces): (&Semaphore, usize),
) -> (T, Answered) {
    gate.add_permits(pieces);
    let two = async {
        while server.provider.asked().is_empty() || gate.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        second.await
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
    let (one, two, ()) = tokio::join!(first, two, opens);
    (one, two)
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
    for (answer, said) in answers.iter().zip(["One", "Two"]) {
        let body = answer.json();
        let path = format!("/v1/responses/{}", body["id"].as_str().unwrap());
        assert_eq!(server.get(&path).await.json()["output"], body["output"]);
        let streamed = server.get(&format!("{path}?stream=true")).await;
        assert_eq!(streamed.chunks().last().unwrap()["response"]["output"], body["output"]);
        let items = server.get(&format!("{path}/input_items?order=asc")).await.json()["data"].clone();
        let texts: Vec<&Value> = items.as_array().unwrap().iter().map(|item| &item["content"][0]["text"]).collect();
        assert_eq!(texts, [said], "what another said is no part of it");
    }
    let first = format!("/v1/responses/{}", answers[0].json()["id"].as_str().unwrap());
    assert_eq!(server.send(Method::DELETE, &first, Body::empty(), &[]).await.status, 200);
    let said: Vec<String> = server.messages("c1").await.into_iter().map(|(_, text)| text).collect();
    assert_eq!(said, ["Two", "Second."]);
}

#[tokio::test]
async fn a_request_that_joins_a_turn_says_which_tools_its_answer_may_call() {
    let touch = json!({"type": "function", "name": "lab__touch"});
    for (choice, runs) in
        [(json!("auto"), 1), (json!("none"), 0), (json!({"type": "allowed_tools", "mode": "auto", "tools": [touch]}), 0)]
    {
        for path in ["/v1/chat/completions", "/v1/responses"] {
            let gate = Arc::new(Semaphore::new(0));
            let looks = Answer::whole([call(0, "lab__look", "{}")]);
            let server = server([in_pieces("Fir", "st.").gated(&gate), looks, Answer::whole([text("Second.")])]);
            let besides = [&json!({}), &json!({"tool_choice": choice})];
            let [_, second] = both_with(&server, path, besides, (&gate, 1)).await;
            assert!(told(&second, false).0.ends_with("Second."), "{path} {choice}: {}", second.body);
            assert_eq!(server.source.effects().len(), runs, "{path} {choice}");
        }
    }
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

/// A function of each API.
fn tools() -> Value {
    json!({"tools": [{"type": "function", "name": "pick", "parameters": {"type": "object"}, "function": {"name": "pick"}}]})
}

/// The call that an answer hands over, where it does.
fn handed(answer: &Answered) -> Option<Value> {
    let body = answer.json();
    let items = body["output"].as_array().into_iter().flatten();
    let item = items.filter(|item| item["type"] == "function_call").map(|item| item["call_id"].clone()).next();
    let call = body["choices"][0]["message"]["tool_calls"][0]["id"].clone();
    item.or(Some(call).filter(|call| !call.is_null()))
}

#[tokio::test]
async fn a_clients_call_is_handed_to_the_request_alone_whose_answer_makes_it() {
    let picks = || Answer::whole([call(0, "pick", "{}")]);
    for path in ["/v1/chat/completions", "/v1/responses"] {
        // Whatever tools the second request brings.
        for besides in [tools(), json!({})] {
            let gate = Arc::new(Semaphore::new(0));
            let server = server([picks().gated(&gate), Answer::whole([text("Both.")])]);
            let first = async {
                let first = ask_again(&server, path, ("One", &tools()), "0").await;
                let call = handed(&first).unwrap_or_else(|| panic!("{path}: {}", first.body));
                let mut given = tools();
                given["messages"] = json!([user("One"), first.json()["choices"][0]["message"],
                                           {"role": "tool", "tool_call_id": call, "content": "red"}]);
                given["input"] = json!([{"type": "function_call_output", "call_id": call, "output": "red"}]);
                server.post(path, &given).await
            };
            let second = ask_again(&server, path, ("Two", &besides), "0");
            let (first, second) = joining(&server, first, second, (&gate, 0)).await;
            for answer in [&first, &second] {
                assert_eq!((handed(answer), told(answer, false).0), (None, "Both.".to_owned()), "{path}: {}", answer.body);
            }
            let asked = server.provider.asked();
            assert!(asked.len() == 2 && asked[1].contains("red"), "{path}: {asked:?}");
            if path == "/v1/responses" {
                let body = second.json();
                let later = server.get(&format!("{path}/{}", body["id"].as_str().unwrap())).await.json();
                assert_eq!((&later["status"], &later["output"]), (&json!("completed"), &body["output"]));
            }
        }
    }
}

#[tokio::test]
async fn a_clients_call_in_the_answer_to_two_requests_is_the_seconds() {
    let gate = Arc::new(Semaphore::new(0));
    let looks = Answer::whole([call(0, "lab__look", "{}")]).gated(&gate);
    let server = server([looks, Answer::whole([call(0, "pick", "{}")]), Answer::whole([text("Both.")])]);
    let second = async {
        let second = ask_again(&server, "/v1/responses", ("Two", &tools()), "0").await;
        let call = handed(&second).unwrap_or_else(|| panic!("{}", second.body));
        server.respond(&json!({"input": [{"type": "function_call_output", "call_id": call, "output": "red"}]})).await
    };
    let tools = tools();
    let first = ask_again(&server, "/v1/responses", ("One", &tools), "0");
    let (first, second) = joining(&server, first, second, (&gate, 0)).await;
    for answer in [&first, &second] {
        assert_eq!((handed(answer), told(answer, false).0), (None, "Both.".to_owned()), "{}", answer.body);
    }
    let kinds = |answer: &Answered| -> Vec<Value> {
        answer.json()["output"].as_array().unwrap().iter().map(|item| item["type"].clone()).collect()
    };
    assert_eq!(kinds(&first), ["mcp_call", "message"], "the call of the other's client is none of ours: {}", first.body);
}

#[tokio::test]
async fn a_request_that_is_sent_again_gets_its_own_answer_where_the_next_one_failed() {
    for path in ["/v1/chat/completions", "/v1/responses"] {
        let gate = Arc::new(Semaphore::new(0));
        let fails = Answer::of([]).failing(ProviderFailure::new(ProviderFailureKind::Server, "out of order"));
        let server = server([in_pieces("Fir", "st.").gated(&gate), fails, Answer::whole([text("Second.")])]);
        let answers = both_with(&server, path, [&json!({}), &json!({})], (&gate, 0)).await;
        assert_eq!((answers[0].status, answers[1].status), (200, 502), "{path}: {}", answers[1].body);
        let again = ask_again(&server, path, ("One", &json!({})), "1").await;
        assert_eq!((told(&again, false).0, server.provider.asked().len()), ("First.".to_owned(), 2), "{path}");
        let again = ask_again(&server, path, ("Two", &json!({})), "1").await;
        assert_eq!(told(&again, false).0, "Second.", "{path}");
    }
}

#[tokio::test]
async fn the_first_of_two_responses_goes_on_in_a_copy_without_the_second() {
    for more in [false, true] {
        let gate = Arc::new(Semaphore::new(0));
        let after = ["Second.", "Third.", "Fourth."].map(|said| Answer::whole([text(said)]));
        let server = server([in_pieces("Fir", "st.").gated(&gate)].into_iter().chain(after));
        let [first, second] = both(&server, "/v1/responses", false, (&gate, 0)).await;
        if more {
            let next = json!({"previous_response_id": second.json()["id"], "input": "Next"});
            assert_eq!(server.respond(&next).await.header("x-turnwright-conversation"), "c1");
        }
        let other = server.respond(&json!({"previous_response_id": first.json()["id"], "input": "Other"})).await;
        assert_ne!(other.header("x-turnwright-conversation"), "c1", "{}", other.body);
        let shown = server.provider.asked().last().unwrap().clone();
        let has = ["One", "First.", "Two", "Second.", "Next", "Other"].map(|said| shown.contains(said));
        assert_eq!(has, [true, true, false, false, false, true], "{shown}");
    }
}

#[tokio::test]
async fn a_response_that_asked_about_a_call_goes_on_with_what_came_of_it() {
    let gate = Arc::new(Semaphore::new(0));
    let after = ["Touched.", "Next.", "Other."].map(|said| Answer::whole([text(said)]));
    let server = server([Answer::whole([call(0, "lab__touch", "{}")]).gated(&gate)].into_iter().chain(after));
    let [_, second] = both(&server, "/v1/responses", false, (&gate, 0)).await;
    let body = second.json();
    let asked = body["output"].as_array().unwrap().iter().find(|item| item["type"] == "mcp_approval_request");
    let asked = asked.unwrap_or_else(|| panic!("{body}"))["id"].clone();
    let yes = json!({"type": "mcp_approval_response", "approval_request_id": asked, "approve": true});
    let touched = server.respond(&json!({"previous_response_id": body["id"], "input": [yes]})).await.json();
    let next = json!({"previous_response_id": touched["id"], "input": "Next"});
    assert_eq!(server.respond(&next).await.header("x-turnwright-conversation"), "c1");
    let other = server.respond(&json!({"previous_response_id": body["id"], "input": "Other"})).await;
    assert_ne!(other.header("x-turnwright-conversation"), "c1");
    let shown = server.provider.asked().last().unwrap().clone();
    assert!(shown.contains("lab__touch") && shown.contains("result: ") && !shown.contains("Next"), "{shown}");
}
