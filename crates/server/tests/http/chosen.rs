//! The globs that choose a conversation's tools.

use super::*;

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

#[tokio::test]
async fn a_list_that_only_keeps_out_offers_all_others() {
    let server = server([]);
    let path = "/api/v1/conversations/c1";
    server.post("/api/v1/conversations", json!({"id": "c1"})).await;
    let changed = server.send(Method::PATCH, path, &json!({"tools": ["!lab__touch"]}), &JSON).await;
    assert_eq!(changed.json()["tools"], json!(["!lab__touch"]));
    let offered = |answer: Answered| {
        let tools = answer.json()["data"].as_array().unwrap().clone();
        tools.iter().map(|tool| tool["tool_name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let tools = format!("{path}/tools");
    assert_eq!(offered(server.get(&tools).await), ["look"]);
    // One more, and one less, of such a list.
    let touch = json!({"server_id": "lab", "tool_name": "touch"});
    assert_eq!(server.post(&tools, touch.clone()).await.status, StatusCode::CREATED);
    assert_eq!(server.get(path).await.json()["tools"], json!(["*"]));
    server.send(Method::PATCH, path, &json!({"tools": ["!lab__look"]}), &JSON).await;
    assert_eq!(server.send(Method::DELETE, &tools, &touch, &JSON).await.status, StatusCode::NO_CONTENT);
    assert_eq!(offered(server.get(&tools).await), [""; 0]);
}
