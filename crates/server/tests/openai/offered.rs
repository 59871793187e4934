//! Tools that came and went while a conversation went on.

use serde_json::{Value, json};
use turnwright_testkit::{Answer, ScriptedTool, call, text};

use super::{pick, picks, server, user};

#[tokio::test]
async fn an_older_turn_is_told_with_the_tools_that_were_offered_to_it() {
    let looks = [Answer::whole([text("Let me look."), call(0, "lab__look", "{}")]), Answer::whole([text("Seen.")])];
    let server = server([Answer::whole([text("One.")])].into_iter().chain(looks).chain([Answer::whole([text("Three.")])]));
    let first = server.respond(&json!({"input": "One"})).await.json();
    let second = server.respond(&json!({"input": "Two", "previous_response_id": first["id"]})).await.json();
    let called = second["output"].as_array().unwrap().iter().find(|item| item["type"] == "mcp_call").unwrap();
    assert_eq!((&called["server_label"], &called["name"]), (&json!("lab"), &json!("look")));

    let conversation = second["conversation"]["id"].as_str().unwrap();
    let response = format!("/v1/responses/{}", second["id"].as_str().unwrap());
    let after = second["turnwright"]["turn_id"].as_str().unwrap().strip_prefix("turn_").unwrap();
    let paths = [
        response.clone(),
        format!("{response}?stream=true"),
        format!("/api/v1/conversations/{conversation}/stream?after={after}"),
    ];
    let turn = async || server.get(&format!("/api/v1/conversations/{conversation}/turns")).await.json()["data"][1].clone();
    let mut told: Vec<String> = Vec::new();
    for path in &paths {
        told.push(server.get(path).await.body);
    }
    let told_turn: Value = turn().await;

    server.source.set_tools([ScriptedTool::echo("touch")]);
    let third = server.respond(&json!({"input": "Three", "previous_response_id": second["id"]})).await.json();
    assert_eq!(third["conversation"], second["conversation"]);
    for (path, told) in paths.iter().zip(told) {
        assert_eq!(server.get(path).await.body, told, "{path}");
    }
    assert_eq!(turn().await, told_turn);
    let cancelled = server.post(&format!("{response}/cancel"), &json!({})).await.json();
    assert_eq!(cancelled["output"], second["output"]);
}

#[tokio::test]
async fn a_request_without_tools_has_none_of_the_clients_and_ours() {
    let both = || Answer::whole([call(0, "pick", "{}"), call(1, "lab__look", "{}")]);
    let answers = || [picks(), both(), Answer::whole([text("Done.")])];
    let of_chat = server(answers());
    let first = of_chat.chat(&json!({"messages": [user("Pick!")], "tools": [pick()]})).await.json();
    let message = first["choices"][0]["message"].clone();
    let result = json!({"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "red"});
    let last = of_chat.chat(&json!({"messages": [user("Pick!"), message, result]})).await.json();
    assert_eq!(last["turnwright"]["turn_id"], first["turnwright"]["turn_id"], "{last}");
    assert_eq!(last["choices"][0]["message"]["content"], "Done.", "{last}");

    let of_responses = server(answers());
    let tool = json!({"type": "function", "name": "pick", "parameters": {"type": "object"}});
    let first = of_responses.respond(&json!({"input": "Pick!", "tools": [tool]})).await.json();
    let output = json!({"type": "function_call_output", "call_id": first["output"][1]["call_id"], "output": "red"});
    let last = of_responses.respond(&json!({"previous_response_id": first["id"], "input": [output]})).await.json();
    let text = last["output"].as_array().unwrap().iter().find(|item| item["type"] == "message").unwrap_or(&last);
    assert_eq!((&text["content"][0]["text"], &last["tools"]), (&json!("Done."), &json!([])), "{last}");
    for server in [of_chat, of_responses] {
        assert_eq!((server.source.effects().len(), server.provider.asked().len()), (1, 3));
    }
}
