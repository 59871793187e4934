//! Clients that run a loop of tools say in each round all since it began, and name the place where it began, or leave their calls out.

use serde_json::{Value, json};
use turnwright_testkit::{Answer, call, text};

use super::{Answered, Server, server, user};

fn function() -> Value {
    json!([{"type": "function", "name": "pick", "parameters": {"type": "object"}}])
}

fn picks() -> Answer {
    Answer::whole([call(0, "pick", "{}")])
}

fn called(answer: &Answered) -> Value {
    let output = answer.json()["output"].clone();
    output.as_array().unwrap().iter().find(|item| item["type"] == "function_call").unwrap_or_else(|| panic!("{output}")).clone()
}

fn output(called: &Value, said: &str) -> Value {
    json!({"type": "function_call_output", "call_id": called["call_id"], "output": said})
}

fn text_of(answer: &Answered) -> String {
    answer.json()["output"][0]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{}", answer.body)).to_owned()
}

async fn conversations(server: &Server) -> usize {
    server.get("/api/v1/conversations").await.json()["data"].as_array().unwrap().len()
}

/// What people said there.
async fn said(server: &Server, conversation: &Value) -> Vec<String> {
    let messages = server.messages(conversation["id"].as_str().unwrap()).await;
    messages.into_iter().filter(|(role, _)| role == "user").map(|(_, text)| text).collect()
}

/// Where a loop began.
#[derive(Debug, Clone, Copy)]
enum Begins {
    InConversation,
    AfterResponse,
    Anew,
}

/// How the calls of earlier rounds are said.
#[derive(Debug, Clone, Copy)]
enum Calls {
    Whole,
    Referred,
    LeftOut,
}

#[tokio::test]
async fn a_loop_that_says_all_since_it_began_is_one_turn_with_one_message() {
    for begins in [Begins::InConversation, Begins::AfterResponse, Begins::Anew] {
        for calls in [Calls::Whole, Calls::Referred, Calls::LeftOut] {
            let server = server([Answer::whole([text("Hi.")]), picks(), picks(), Answer::whole([text("Both.")])]);
            let first = server.respond(&json!({"input": "Hello"})).await.json();
            let ask = async |input: &[Value]| {
                let mut asked = json!({"input": input, "tools": function()});
                match begins {
                    Begins::InConversation => asked["conversation"] = first["conversation"].clone(),
                    Begins::AfterResponse => asked["previous_response_id"] = first["id"].clone(),
                    Begins::Anew => {}
                }
                server.respond(&asked).await
            };
            let mut input = vec![user("Pick!")];
            for round in ["red", "blue"] {
                let asks = called(&ask(&input).await);
                match calls {
                    Calls::Whole => input.push(asks.clone()),
                    Calls::Referred => input.push(json!({"type": "item_reference", "id": asks["id"]})),
                    Calls::LeftOut => {}
                }
                input.push(output(&asks, round));
            }
            // The same again gets the same.
            for _ in 0..2 {
                let last = ask(&input).await;
                assert_eq!(text_of(&last), "Both.", "{begins:?} {calls:?}");
                let conversation = &last.json()["conversation"];
                let (expected, count) = match begins {
                    Begins::Anew => (vec!["Pick!"], 2),
                    Begins::InConversation | Begins::AfterResponse => (vec!["Hello", "Pick!"], 1),
                };
                assert_eq!(said(&server, conversation).await, expected, "{begins:?} {calls:?}");
                assert_eq!((conversations(&server).await, server.provider.asked().len()), (count, 4), "{begins:?} {calls:?}");
            }
        }
    }
}

#[tokio::test]
async fn what_is_said_behind_a_result_is_new_also_where_it_says_the_same() {
    let server = server([picks(), Answer::whole([text("Red.")])]);
    let first = server.respond(&json!({"input": [user("Pick!")], "tools": function()})).await;
    let input = [user("Pick!"), output(&called(&first), "red"), user("Pick!")];
    let second = server.respond(&json!({"input": input, "tools": function()})).await;
    assert_eq!(text_of(&second), "Red.");
    assert_eq!(said(&server, &first.json()["conversation"]).await, ["Pick!", "Pick!"]);
}

#[tokio::test]
async fn a_decision_about_a_call_of_a_loop_is_taken_after_the_response_where_it_began() {
    for is_named in [false, true] {
        let touches = Answer::whole([call(0, "lab__touch", "{}")]);
        let server = server([Answer::whole([text("Hi.")]), touches, Answer::whole([text("Done.")])]);
        let first = server.respond(&json!({"input": "Hello"})).await.json();
        let ask = async |input: &[Value]| server.respond(&json!({"previous_response_id": first["id"], "input": input})).await;
        let asked = ask(&[user("Touch!")]).await.json();
        let request = &asked["output"][0];
        let answer = json!({"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": true});
        let refers = json!({"type": "item_reference", "id": request["id"]});
        let input: Vec<Value> = [user("Touch!")].into_iter().chain(is_named.then_some(refers)).chain([answer]).collect();
        for _ in 0..2 {
            let done = ask(&input).await.json();
            assert_eq!(done["output"][1]["content"][0]["text"], "Done.", "{is_named}: {done}");
            assert_eq!(said(&server, &first["conversation"]).await, ["Hello", "Touch!"], "{is_named}");
            assert_eq!((conversations(&server).await, server.source.effects().len()), (1, 1), "{is_named}");
        }
    }
}

#[tokio::test]
async fn results_of_calls_that_wait_elsewhere_are_refused_and_nothing_is_left() {
    let server = server([Answer::whole([text("Hi.")]), Answer::whole([text("More.")]), picks()]);
    let first = server.respond(&json!({"input": "Hello"})).await.json();
    server.respond(&json!({"previous_response_id": first["id"], "input": "More"})).await;
    let elsewhere = server.respond(&json!({"input": [user("Pick!")], "tools": function()})).await;
    let asks = called(&elsewhere);
    let input = [user("Pick!"), asks.clone(), output(&asks, "red")];
    let refused = server.respond(&json!({"previous_response_id": first["id"], "input": input, "tools": function()})).await;
    assert_eq!((refused.status, conversations(&server).await), (400, 2), "{}", refused.body);
}
