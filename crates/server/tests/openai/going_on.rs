//! What a request that brings results, and so goes on with its turn, says of tools; and what becomes of the response before it.

use std::sync::Arc;

use axum::body::Body;
use http::Method;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use turnwright_testkit::{Answer, call, text};

use super::{Answered, Server, pick, picks, server, user};

/// A function of Responses.
fn function(name: &str) -> Value {
    json!({"type": "function", "name": name, "parameters": {"type": "object"}})
}

/// The names of what the model is offered.
async fn offered(server: &Server, answered: &Answered) -> Vec<String> {
    let conversation = answered.header("x-turnwright-conversation").parse().unwrap();
    let names = |journal: &turnwright_core::Journal| journal.offered().iter().map(|tool| tool.name.clone()).collect();
    server.engine.look(&conversation, names).await.unwrap()
}

/// A request of Responses that gives what the call before it asked for, with what it says besides.
fn gives(first: &Value, besides: &Value) -> Value {
    let call = first["output"].as_array().unwrap().iter().find(|item| item["type"] == "function_call").unwrap();
    let output = json!([{"type": "function_call_output", "call_id": call["call_id"], "output": "red"}]);
    let mut request = json!({"previous_response_id": first["id"], "input": output});
    request.as_object_mut().unwrap().extend(besides.as_object().unwrap().clone());
    request
}

/// The same of Chat Completions.
fn chats(first: &Value, besides: &Value) -> Value {
    let message = &first["choices"][0]["message"];
    let given = json!({"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "red"});
    let mut request = json!({"messages": [user("Pick!"), message, given]});
    request.as_object_mut().unwrap().extend(besides.as_object().unwrap().clone());
    request
}

#[tokio::test]
async fn the_tools_of_a_request_are_all_that_its_client_has() {
    let lab = json!({"type": "mcp", "server_label": "lab"});
    for (besides, expected) in [
        (json!({}), &["lab__look", "lab__touch"][..]),
        (json!({"tools": [function("sort")]}), &["lab__look", "lab__touch", "sort"]),
        (json!({"tools": [lab]}), &["lab__look", "lab__touch"]),
        (json!({"tools": []}), &["lab__look", "lab__touch"]),
    ] {
        let server = server([picks(), Answer::whole([text("Picked.")])]);
        let tools = json!([function("pick"), function("sort")]);
        let first = server.respond(&json!({"input": "Pick!", "tools": tools})).await.json();
        let second = server.respond(&gives(&first, &besides)).await;
        assert_eq!(second.json()["output"][0]["content"][0]["text"], "Picked.", "{}", second.body);
        assert_eq!(offered(&server, &second).await, expected, "{besides}");
    }
}

#[tokio::test]
async fn what_tool_choice_allows_is_for_one_request() {
    let pick_alone = json!({"type": "function", "name": "pick"});
    for mode in ["auto", "required"] {
        let choice = json!({"type": "allowed_tools", "mode": mode, "tools": [pick_alone]});
        for (own, expected) in
            [(json!({}), &["lab__look", "lab__touch", "pick"][..]), (json!({"tools": ["lab__t*"]}), &["lab__touch", "pick"])]
        {
            let answers = || [picks(), Answer::whole([text("Picked.")])];
            let server = server(answers().into_iter().chain(answers()));
            for id in ["c1", "c2"] {
                server.post("/api/v1/conversations", &json!({"id": id, "settings": own})).await;
            }
            let asked = json!({"messages": [user("Pick!")], "tools": [pick()], "tool_choice": choice,
                               "metadata": {"conversation_id": "c1"}});
            let first = server.chat(&asked).await;
            assert_eq!(offered(&server, &first).await, ["pick"], "{}", first.body);
            let second = server.chat(&chats(&first.json(), &json!({"tools": [pick()]}))).await;
            assert_eq!(second.json()["choices"][0]["message"]["content"], "Picked.", "{}", second.body);
            assert_eq!(offered(&server, &second).await, expected, "chat, {mode}, {own}");

            let asked = json!({"input": "Pick!", "tools": [function("pick")], "tool_choice": choice, "conversation": "c2"});
            let first = server.respond(&asked).await;
            assert_eq!(offered(&server, &first).await, ["pick"], "{}", first.body);
            let second = server.respond(&gives(&first.json(), &json!({"tools": [function("pick")]}))).await;
            assert_eq!(offered(&server, &second).await, expected, "responses, {mode}, {own}");
        }
    }
}

#[tokio::test]
async fn servers_that_a_request_named_stay_where_the_next_says_nothing_of_tools() {
    let look = json!({"type": "mcp", "server_label": "lab", "allowed_tools": ["look"]});
    for (besides, expected) in
        [(json!({}), &["lab__look"][..]), (json!({"tools": [function("pick")]}), &["lab__look", "lab__touch", "pick"])]
    {
        let server = server([picks(), Answer::whole([text("Picked.")])]);
        let first = server.respond(&json!({"input": "Pick!", "tools": [function("pick"), look]})).await.json();
        let second = server.respond(&gives(&first, &besides)).await;
        assert_eq!(offered(&server, &second).await, expected, "{besides}");
    }
}

#[tokio::test]
async fn a_call_of_the_clients_is_no_call_of_ours_where_it_has_other_tools_by_then() {
    for tools in [json!([]), json!([{"type": "function", "function": {"name": "sort"}}])] {
        let server = server([picks(), Answer::whole([text("Picked.")])]);
        let first = server.chat(&json!({"messages": [user("Pick!")], "tools": [pick()]})).await.json();
        let request = chats(&first, &json!({"tools": tools})).to_string();
        let headers = [("content-type", "application/json"), ("x-turnwright-tool-activity", "details")];
        let second = server.send(Method::POST, "/v1/chat/completions", Body::from(request), &headers).await.json();
        assert_eq!(second["choices"][0]["message"]["content"], "Picked.", "{second}");
        assert_eq!(second["turnwright"]["tool_events"], Value::Null);
    }
    let server = server([picks(), Answer::whole([text("Picked.")])]);
    let first = server.respond(&json!({"input": "Pick!", "tools": [function("pick")]})).await.json();
    let second = server.respond(&gives(&first, &json!({"tools": [function("sort")]}))).await.json();
    assert_eq!(second["output"].as_array().unwrap().len(), 1, "{second}");
}

#[tokio::test]
async fn a_call_without_arguments_has_an_empty_object_of_them() {
    let calls = || [Answer::whole([call(0, "lab__look", "")]), Answer::whole([call(0, "pick", "")])];
    let whole = server(calls()).chat(&json!({"messages": [user("Go")], "tools": [pick()]})).await.json();
    assert_eq!(whole["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"], "{}", "{whole}");
    let streamed = server(calls()).chat(&json!({"messages": [user("Go")], "tools": [pick()], "stream": true})).await.chunks();
    let told =
        streamed.iter().find_map(|chunk| chunk["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"].as_str());
    assert_eq!(told, Some("{}"), "{streamed:?}");

    let body = json!({"input": "Go", "tools": [function("pick")], "stream": true});
    let answers = calls().into_iter().chain([Answer::whole([call(0, "lab__touch", "")])]);
    let server = server(answers);
    let events = server.respond(&body).await.chunks();
    let of = |kind: &str, field: &str| events.iter().find(|event| event["type"] == kind).unwrap()[field].clone();
    for prefix in ["response.mcp_call_arguments", "response.function_call_arguments"] {
        assert_eq!(of(&format!("{prefix}.delta"), "delta"), "{}", "{prefix}");
        assert_eq!(of(&format!("{prefix}.done"), "arguments"), "{}", "{prefix}");
    }
    let response = events.last().unwrap()["response"].clone();
    let given = |response: &Value| -> Vec<Value> {
        response["output"].as_array().unwrap().iter().map(|item| item["arguments"].clone()).collect()
    };
    assert_eq!(given(&response), ["{}", "{}"]);
    // What is told of a journal says the same.
    let asked = server.respond(&gives(&response, &json!({"tools": [{"type": "mcp", "server_label": "lab"}]}))).await.json();
    assert_eq!(given(&asked), ["{}"]);
    let later = server.get(&format!("/v1/responses/{}", asked["id"].as_str().unwrap())).await.json();
    assert_eq!(given(&later), ["{}"]);
    let conversation = asked["conversation"]["id"].as_str().unwrap();
    let path = format!("/api/v1/conversations/{conversation}");
    assert_eq!(server.get(&format!("{path}/calls")).await.json()["data"][0]["arguments"], "{}");
    let messages = server.get(&format!("{path}/messages")).await.json();
    assert_eq!(messages["data"][1]["tool_calls"][0]["function"]["arguments"], "{}", "{messages}");
}

#[tokio::test]
async fn to_cancel_a_response_that_is_over_leaves_the_next_of_its_turn() {
    let gate = Arc::new(Semaphore::new(0));
    let server = server([picks(), Answer::whole([text("Picked.")]).gated(&gate)]);
    let first = server.respond(&json!({"input": "Pick!", "tools": [function("pick")]})).await.json();
    let second = server.respond(&gives(&first, &json!({"background": true}))).await.json();
    assert_eq!((&second["status"], &second["conversation"]), (&json!("in_progress"), &first["conversation"]));
    let path = |response: &Value| format!("/v1/responses/{}", response["id"].as_str().unwrap());
    let cancelled = server.post(&format!("{}/cancel", path(&first)), &json!({})).await;
    assert_eq!((cancelled.status, &cancelled.json()["output"]), (200, &first["output"]), "{}", cancelled.body);
    let removed = server.send(Method::DELETE, &path(&first), Body::empty(), &[]).await;
    assert_eq!((removed.status, &removed.json()["error"]["code"]), (409, &json!("turn_open")), "{}", removed.body);
    assert_eq!(server.get(&path(&second)).await.json()["status"], "in_progress");

    gate.add_permits(9);
    let turn = second["turnwright"]["turn_id"].as_str().unwrap().parse().unwrap();
    server.engine.wait(&second["conversation"]["id"].as_str().unwrap().parse().unwrap(), turn).await.unwrap();
    let over = server.get(&path(&second)).await.json();
    assert_eq!((&over["status"], &over["output"][0]["content"][0]["text"]), (&json!("completed"), &json!("Picked.")));
    assert_eq!(server.send(Method::DELETE, &path(&first), Body::empty(), &[]).await.status, 200);
}

#[tokio::test]
async fn to_cancel_the_newest_response_of_a_turn_stops_it() {
    let gate = Arc::new(Semaphore::new(0));
    let server = server([picks(), Answer::whole([text("Picked.")]).gated(&gate)]);
    let first = server.respond(&json!({"input": "Pick!", "tools": [function("pick")]})).await.json();
    let second = server.respond(&gives(&first, &json!({"background": true}))).await.json();
    let path = format!("/v1/responses/{}/cancel", second["id"].as_str().unwrap());
    let cancelled = server.post(&path, &json!({})).await.json();
    assert_eq!(cancelled["status"], "cancelled", "{cancelled}");
}
