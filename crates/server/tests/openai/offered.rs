//! Tools that came and went while a conversation went on.

use serde_json::{Value, json};
use turnwright_testkit::{Answer, ScriptedTool, call, text};

use crate::server;

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
