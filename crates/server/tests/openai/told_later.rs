//! A response that is asked for later, also of another process, tells what its request said.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use turnwright_core::{ProviderFailure, ProviderFailureKind};
use turnwright_engine::Limits;
use turnwright_testkit::{Answer, MemoryStore, call, text};

use super::{Server, picks, server, server_on, user};

/// The response as a server tells it later: whole, and at the end of its stream.
async fn told_by(server: &Server, response: &Value) -> [Value; 2] {
    let path = format!("/v1/responses/{}", response["id"].as_str().unwrap());
    let streamed = server.get(&format!("{path}?stream=true")).await.chunks();
    [server.get(&path).await.json(), streamed.last().unwrap()["response"].clone()]
}

fn pick() -> Value {
    json!({"type": "function", "name": "pick", "description": null, "parameters": {"type": "object"}, "strict": true})
}

#[tokio::test]
async fn a_response_tells_what_its_request_said_also_after_a_restart() {
    let store = MemoryStore::default();
    let answers = [Answer::whole([text("One.")]), picks(), Answer::whole([text("Picked.")])];
    let server = server_on(store.another_process(), answers);
    let first = server.respond(&json!({"input": "1", "metadata": {"a": "b"}})).await.json();
    let asked = json!({
        "input": "Pick!", "previous_response_id": first["id"], "metadata": {"job": "7"}, "instructions": "Be brief.",
        "tools": [pick(), {"type": "mcp", "server_label": "lab", "authorization": "hush", "headers": {"x-key": "hush"}}],
        "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "pick"}]},
        "reasoning": {"effort": "low", "summary": "auto"}, "truncation": "auto", "temperature": 0.5,
        "text": {"format": {"type": "json_object"}, "verbosity": "low"}, "parallel_tool_calls": false,
        "max_output_tokens": 900, "max_tool_calls": 3,
    });
    let second = server.respond(&asked).await.json();
    for name in
        ["metadata", "previous_response_id", "instructions", "tool_choice", "reasoning", "truncation", "temperature", "text"]
    {
        assert_eq!(second[name], asked[name], "{name}");
    }
    assert_eq!(second["tools"], json!([pick(), {"type": "mcp", "server_label": "lab"}]), "and no secret");
    let call = second["output"].as_array().unwrap().iter().find(|item| item["type"] == "function_call").unwrap();
    let output = json!({"type": "function_call_output", "call_id": call["call_id"], "output": "red"});
    let gives = json!({"input": [output], "previous_response_id": second["id"], "metadata": {"job": "8"}});
    let third = server.respond(&gives).await.json();
    assert_eq!((&third["metadata"], &third["tools"]), (&gives["metadata"], &json!([])));

    let other = server_on(store.another_process(), []);
    for response in [first, second, third] {
        assert_eq!(told_by(&other, &response).await, [response.clone(), response.clone()]);
        let cancelled = other.post(&format!("/v1/responses/{}/cancel", response["id"].as_str().unwrap()), &json!({})).await;
        assert_eq!(cancelled.json(), response);
    }
}

#[tokio::test]
async fn instructions_hold_for_their_response_and_developers_for_all_that_follow() {
    let server = server((1..=5).map(|number| Answer::whole([text(&format!("{number}."))])));
    let developer = |said: &str| json!({"role": "developer", "content": said});
    let prompt = async |asked: Value| {
        let told = server.respond(&asked).await.json();
        let conversation = told["turnwright"]["conversation_id"].as_str().unwrap().parse().unwrap();
        let of_turn = |journal: &turnwright_core::Journal| journal.turn().unwrap().settings().system_prompt.clone();
        let prompt = server.engine.look(&conversation, of_turn).await.unwrap();
        (told["id"].clone(), prompt, told["instructions"].clone())
    };
    let some = |said: &str| Some(said.to_owned());
    let first = prompt(json!({"instructions": "One.", "input": [developer("Kept."), user("1")]})).await;
    assert_eq!((first.1, first.2), (some("One.\n\nKept."), json!("One.")));
    let second = prompt(json!({"input": "2", "previous_response_id": first.0})).await;
    assert_eq!((second.1, second.2), (some("Kept."), json!(null)));
    let asked = json!({"instructions": "Three.", "input": [developer("More."), user("3")], "previous_response_id": second.0});
    let third = prompt(asked.clone()).await;
    assert_eq!((third.1, third.2), (some("Three.\n\nKept.\n\nMore."), json!("Three.")));
    let fourth = prompt(json!({"input": "4", "previous_response_id": third.0})).await;
    assert_eq!((fourth.1, fourth.2), (some("Kept.\n\nMore."), json!(null)));
}

#[tokio::test]
async fn what_developers_say_later_is_not_said_in_a_branch_of_an_earlier_response() {
    let server = server((1..=10).map(|number| Answer::whole([text(&format!("{number}."))])));
    let developer = |said: &str| json!({"role": "developer", "content": said});
    let respond = async |said: Option<&str>, previous: &Value| {
        let input: Vec<Value> = said.map(developer).into_iter().chain([user("Go")]).collect();
        let told = server.respond(&json!({"input": input, "previous_response_id": previous})).await.json();
        let conversation = told["turnwright"]["conversation_id"].as_str().unwrap().parse().unwrap();
        let of_turn = |journal: &turnwright_core::Journal| journal.turn().unwrap().settings().system_prompt.clone();
        (told["id"].clone(), server.engine.look(&conversation, of_turn).await.unwrap().unwrap_or_default())
    };
    for first in [None, Some("First.")] {
        let begin = first.map_or(String::new(), |first| format!("{first}\n\n"));
        let (one, _) = respond(first, &Value::Null).await;
        let (two, told) = respond(Some("Second."), &one).await;
        assert_eq!(told, format!("{begin}Second."));
        let (_, told) = respond(Some("Third."), &two).await;
        assert_eq!(told, format!("{begin}Second.\n\nThird."));
        assert_eq!(respond(None, &two).await.1, format!("{begin}Second."));
        assert_eq!(respond(None, &one).await.1, first.unwrap_or_default());
    }
}

#[tokio::test]
async fn what_is_too_large_is_not_kept_and_not_told() {
    let server = server_on(MemoryStore::default(), [Answer::whole([text("One.")])]);
    let large = "x".repeat(300_000);
    let asked = json!({"input": "1", "metadata": {"large": large}, "truncation": "auto"});
    let response = server.respond(&asked).await.json();
    assert_eq!((&response["metadata"], &response["truncation"]), (&json!({}), &json!("auto")));
    assert_eq!(told_by(&server, &response).await, [response.clone(), response]);
}

#[tokio::test]
async fn what_was_said_goes_with_its_conversation() {
    let server = server_on(MemoryStore::default(), [Answer::whole([text("One.")]), Answer::whole([text("Two.")])]);
    let headers = [("content-type", "application/json"), ("x-turnwright-conversation", "mine")];
    let said = async |body: &Value| {
        server.send(http::Method::POST, "/v1/responses", axum::body::Body::from(body.to_string()), &headers).await.json()
    };
    said(&json!({"input": "1", "metadata": {"a": "b"}})).await;
    server.send(http::Method::DELETE, "/api/v1/conversations/mine", axum::body::Body::empty(), &[]).await;
    let second = said(&json!({"input": "1"})).await;
    assert_eq!(told_by(&server, &second).await[0]["metadata"], json!({}));
}

#[tokio::test]
async fn what_developers_say_is_added_where_it_was_not_said_last() {
    let server = server((1..=3).map(|number| Answer::whole([text(&format!("{number}."))])));
    let mut previous = Value::Null;
    for (said, expected) in [
        ("Do not answer in English.", "Do not answer in English."),
        ("in English.", "Do not answer in English.\n\nin English."),
        ("in English.", "Do not answer in English.\n\nin English."),
    ] {
        let input = json!([{"role": "developer", "content": said}, user("Go")]);
        let told = server.respond(&json!({"input": input, "previous_response_id": previous})).await.json();
        let path = format!("/api/v1/conversations/{}", told["turnwright"]["conversation_id"].as_str().unwrap());
        assert_eq!(server.get(&path).await.json()["system_prompt"], expected);
        previous = told["id"].clone();
    }
}

#[tokio::test]
async fn what_developers_say_in_a_request_that_is_refused_is_not_kept() {
    let gate = Arc::new(Semaphore::new(0));
    let server = server([Answer::whole([text("1.")]), Answer::whole([text("Slow.")]).gated(&gate)]);
    let developer = |said: &str| json!({"role": "developer", "content": said});
    let first = server.respond(&json!({"input": [developer("Be brief."), user("1")]})).await.json();
    server.engine.limit(Limits {
        turns: 9,
        turns_per_user: 1,
        message_bytes: 1_000,
        attachments: 1,
        attachment_bytes: 1_000,
        ..Limits::default()
    });
    let slow = json!({"input": "Slow"});
    let refused = async {
        while server.provider.asked().len() < 2 {
            tokio::task::yield_now().await;
        }
        let input = json!([developer("Swear a lot."), user("2")]);
        let refused = server.respond(&json!({"input": input, "previous_response_id": first["id"]})).await;
        gate.add_permits(9);
        refused
    };
    let (_, refused) = tokio::join!(server.respond(&slow), refused);
    assert_eq!(refused.status, 429, "{}", refused.body);
    let path = format!("/api/v1/conversations/{}", first["turnwright"]["conversation_id"].as_str().unwrap());
    assert_eq!(server.get(&path).await.json()["system_prompt"], "Be brief.");
}

/// What a response answers, in its order.
async fn items(server: &Server, response: &Value) -> Vec<Value> {
    let path = format!("/v1/responses/{}/input_items?order=asc", response["id"].as_str().unwrap());
    let items = server.get(&path).await.json()["data"].clone();
    items.as_array().unwrap().iter().map(|item| item["type"].clone()).collect()
}

#[tokio::test]
async fn what_a_response_answers_has_all_that_came_with_its_request() {
    let both = Answer::whole([call(0, "pick", "{}"), call(1, "lab__touch", "{}")]);
    for words in [None, Some("Quick!")] {
        let server = server([both.clone(), Answer::whole([text("Done.")])]);
        let first = server.respond(&json!({"input": "Go", "tools": [pick()]})).await.json();
        let item = |kind: &str| {
            let items = first["output"].as_array().unwrap();
            items.iter().find(|item| item["type"] == kind).unwrap_or_else(|| panic!("{first}")).clone()
        };
        let yes = json!({"type": "mcp_approval_response", "approval_request_id": item("mcp_approval_request")["id"], "approve": true});
        let red = json!({"type": "function_call_output", "call_id": item("function_call")["call_id"], "output": "red"});
        let input: Vec<Value> = [yes, red].into_iter().chain(words.map(user)).collect();
        let done = server.respond(&json!({"previous_response_id": first["id"], "input": input})).await.json();
        assert_eq!(done["output"].as_array().unwrap().last().unwrap()["content"][0]["text"], "Done.", "{done}");
        let mut expected = vec!["function_call_output", "mcp_approval_response"];
        expected.splice(1..1, words.map(|_| "message"));
        assert_eq!(items(&server, &done).await, expected);
    }
}

#[tokio::test]
async fn what_a_response_answers_has_the_results_with_which_its_turn_was_taken_up() {
    let fails = Answer::of([]).failing(ProviderFailure::new(ProviderFailureKind::Server, "out of order"));
    let server = server([picks(), fails, Answer::whole([text("Picked.")])]);
    let first = server.respond(&json!({"input": "Pick!", "tools": [pick()]})).await.json();
    let call = first["output"].as_array().unwrap().iter().find(|item| item["type"] == "function_call").unwrap();
    let red = json!({"type": "function_call_output", "call_id": call["call_id"], "output": "red"});
    let given = json!({"previous_response_id": first["id"], "input": [red]});
    assert_eq!(server.respond(&given).await.status, 502);
    let picked = server.respond(&given).await.json();
    assert_eq!(picked["output"][0]["content"][0]["text"], "Picked.", "{picked}");
    assert_eq!(items(&server, &picked).await, ["function_call_output"]);
}
