//! Answers to calls that stand beside their calls, before later items of the same answer, as the AI SDK and others send them.

use serde_json::{Value, json};
use turnwright_testkit::{Answer, call, text};

use super::{Server, server, user};

fn pick() -> Value {
    json!([{"type": "function", "name": "pick", "parameters": {"type": "object"}}])
}

fn output(called: &Value, said: &str) -> Value {
    json!({"type": "function_call_output", "call_id": called["call_id"], "output": said})
}

fn refers(item: &Value) -> Value {
    json!({"type": "item_reference", "id": item["id"]})
}

fn approves(item: &Value) -> Value {
    json!({"type": "mcp_approval_response", "approval_request_id": item["id"], "approve": true})
}

fn of_kind<'a>(response: &'a Value, kind: &str) -> Vec<&'a Value> {
    response["output"].as_array().unwrap().iter().filter(|item| item["type"] == kind).collect()
}

fn said(response: &Value) -> &str {
    of_kind(response, "message").last().unwrap()["content"][0]["text"].as_str().unwrap()
}

async fn responds(server: &Server, input: &[Value]) -> Value {
    let answer = server.respond(&json!({"input": input, "tools": pick()})).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.json()
}

#[tokio::test]
async fn results_of_calls_that_were_made_at_once_may_stand_beside_each() {
    let picks = Answer::whole([text("Pick!"), call(0, "pick", r#"{"a":1}"#), call(1, "pick", r#"{"a":2}"#)]);
    let server = server([picks, Answer::whole([text("Picked.")]), Answer::whole([text("Never.")])]);
    let first = responds(&server, &[user("Go")]).await;
    let (text, calls) = (of_kind(&first, "message")[0], of_kind(&first, "function_call"));
    for is_named in [false, true] {
        let item = |item: &Value| if is_named { refers(item) } else { item.clone() };
        let input =
            [user("Go"), item(text), calls[0].clone(), output(calls[0], "red"), calls[1].clone(), output(calls[1], "blue")];
        // Sent again it has the same answer.
        let second = responds(&server, &input).await;
        assert_eq!((said(&second), &second["conversation"]), ("Picked.", &first["conversation"]), "{is_named}");
    }
    let asked = server.provider.asked();
    assert_eq!(asked.len(), 2);
    assert!(asked[1].contains("red") && asked[1].contains("blue"), "{asked:?}");
}

#[tokio::test]
async fn each_round_of_a_client_that_runs_its_calls_brings_what_is_new() {
    let picks = |n: u8| Answer::whole([call(0, "pick", &format!(r#"{{"a":{n}}}"#))]);
    let server = server([picks(1), picks(2), Answer::whole([text("Both.")])]);
    let mut input = vec![user("Go")];
    for said in ["red", "blue"] {
        let response = responds(&server, &input).await;
        let called = of_kind(&response, "function_call")[0].clone();
        input.extend([called.clone(), output(&called, said)]);
    }
    let last = responds(&server, &input).await;
    assert_eq!(said(&last), "Both.");
    assert_eq!(server.provider.asked().len(), 3);
}

#[tokio::test]
async fn a_decision_is_taken_also_before_the_call_of_a_client_and_before_what_was_told_behind_it() {
    let asks = || Answer::whole([text("Let me."), call(0, "lab__touch", "{}"), call(1, "pick", "{}")]);
    for is_named in [false, true] {
        let item = |item: &Value| if is_named { refers(item) } else { item.clone() };
        // All at once.
        let server_of_one = server([asks(), Answer::whole([text("Done.")])]);
        let first = responds(&server_of_one, &[user("Go")]).await;
        let (request, called) = (of_kind(&first, "mcp_approval_request")[0], of_kind(&first, "function_call")[0]);
        let told = of_kind(&first, "message");
        let mut input =
            vec![user("Go"), item(told[0]), item(request), approves(request), called.clone(), output(called, "red")];
        let second = responds(&server_of_one, &input).await;
        assert_eq!((said(&second), &second["conversation"]), ("Done.", &first["conversation"]), "{is_named}");
        assert_eq!(server_of_one.source.effects().len(), 1, "{is_named}");

        // The result first, then the decision, with what was told behind the question.
        let server = server([asks(), Answer::whole([text("Done.")]), Answer::whole([text("Well.")])]);
        let first = responds(&server, &[user("Go")]).await;
        let (request, called) = (of_kind(&first, "mcp_approval_request")[0], of_kind(&first, "function_call")[0]);
        let told = of_kind(&first, "message");
        input = vec![user("Go"), item(told[0]), called.clone(), item(told[1]), output(called, "red")];
        let waits = responds(&server, &input).await;
        assert_eq!(of_kind(&waits, "mcp_approval_request")[0]["id"], request["id"], "{is_named}: {waits}");
        input.extend([item(request), approves(request), item(of_kind(&waits, "message")[0])]);
        let mut last = Value::Null;
        for _ in 0..2 {
            let second = responds(&server, &input).await;
            assert_eq!((said(&second), &second["conversation"]), ("Done.", &first["conversation"]), "{is_named}");
            last = second;
        }
        assert_eq!((server.source.effects().len(), server.provider.asked().len()), (1, 2), "{is_named}");
        // Once what came of it is shown, it is history.
        input.extend([item(of_kind(&last, "message")[0]), user("And?")]);
        let third = responds(&server, &input).await;
        assert_eq!((said(&third), &third["conversation"]), ("Well.", &first["conversation"]), "{is_named}");
    }
}
