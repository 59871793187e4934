//! Approvals over Responses for clients that name no server of tools: they are told in a message too, which is known again.

use axum::body::Body;
use http::Method;
use serde_json::{Value, json};
use turnwright_testkit::{Answer, MemoryStore, call, text};

use super::killed::conversation;
use super::{server, server_on, user};

fn touches() -> Answer {
    Answer::whole([text("Let me touch it."), call(0, "lab__touch", "{}")])
}

#[tokio::test]
async fn a_call_that_waits_is_told_in_a_last_message_as_chat_completions_tells_it() {
    let server = server([touches(), touches(), touches()]);
    let chat = server.chat(&json!({"messages": [user("Touch!")]})).await;
    let told = chat.json()["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
    let told = told.strip_prefix("Let me touch it.\n\n").unwrap().replace(conversation(&chat), "CONVERSATION");
    let whole = server.respond(&json!({"input": "Touch!"})).await;
    let output = whole.json()["output"].clone();
    let kinds: Vec<&Value> = output.as_array().unwrap().iter().map(|item| &item["type"]).collect();
    assert_eq!(kinds, ["message", "mcp_approval_request", "message"]);
    let text = output[2]["content"][0]["text"].as_str().unwrap();
    assert_eq!(text.replace(conversation(&whole), "CONVERSATION"), told);

    let streamed = server.respond(&json!({"input": "Touch!", "stream": true})).await;
    let events = streamed.chunks();
    let deltas = events.iter().filter(|event| event["type"] == "response.output_text.delta" && event["output_index"] == 2);
    let text: String = deltas.map(|event| event["delta"].as_str().unwrap()).collect();
    assert_eq!(text.replace(conversation(&streamed), "CONVERSATION"), told);
    let later = server.get(&format!("/v1/responses/{}", whole.json()["id"].as_str().unwrap())).await;
    assert_eq!(later.json()["output"], output);
}

#[tokio::test]
async fn a_client_that_names_a_server_is_told_in_an_item_alone() {
    let server = server([touches()]);
    let tools = json!([{"type": "mcp", "server_label": "lab"}]);
    let answer = server.respond(&json!({"input": "Touch!", "tools": tools})).await.json();
    let kinds: Vec<&Value> = answer["output"].as_array().unwrap().iter().map(|item| &item["type"]).collect();
    assert_eq!(kinds, ["message", "mcp_approval_request"]);
}

#[tokio::test]
async fn the_agents_sdk_which_ends_at_an_item_of_a_server_that_it_does_not_know_is_told_in_words() {
    let server = server([touches(), touches(), Answer::whole([text("Well.")])]);
    let headers = [("content-type", "application/json"), ("user-agent", "Agents/Python 0.9.0")];
    let kinds = |answer: &Value| -> Vec<String> {
        let output = answer["output"].as_array().unwrap();
        output.iter().map(|item| item["type"].as_str().unwrap().to_owned()).collect()
    };
    let ask = async |asked: Value| {
        let answer = server.send(Method::POST, "/v1/responses", Body::from(asked.to_string()), &headers).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json()
    };
    let mut asked = ask(json!({"input": [user("Touch!")]})).await;
    assert_eq!(kinds(&asked), ["message", "message"]);
    assert!(asked["output"][1]["content"][0]["text"].as_str().unwrap().contains("Waiting for a person"), "{asked}");
    let named = ask(json!({"input": "Touch!", "tools": [{"type": "mcp", "server_label": "lab"}]})).await;
    assert_eq!(kinds(&named), ["message", "mcp_approval_request"]);
    // What was told comes back, and goes on in its conversation.
    let mut input = vec![user("Touch!")];
    input.append(asked["output"].as_array_mut().unwrap());
    input.push(user("Rather not."));
    let again = ask(json!({"input": input})).await;
    assert_eq!(again["conversation"], asked["conversation"]);
}

#[tokio::test]
async fn what_was_told_so_comes_back_in_its_conversation_and_is_not_the_models() {
    for is_restarted in [false, true] {
        let store = MemoryStore::default();
        let first = server_on(store.another_process(), [touches(), Answer::whole([text("Well.")])]);
        let asked = first.respond(&json!({"input": [user("Touch!")]})).await;
        let mut history = vec![user("Touch!")];
        history.extend(asked.json()["output"].as_array().unwrap().iter().cloned());
        history.push(user("Rather not."));
        let next = if is_restarted {
            first.engine.shutdown().await;
            server_on(store.another_process(), [Answer::whole([text("Well.")])])
        } else {
            first
        };
        let again = next.respond(&json!({"input": history})).await;
        assert_eq!((again.status, conversation(&again)), (200, conversation(&asked)), "{is_restarted}: {}", again.body);
        let shown = next.provider.asked().last().unwrap().clone();
        assert!(!shown.contains("Waiting for a person"), "{shown}");
        assert_eq!(next.source.effects().len(), 0);
    }
}
