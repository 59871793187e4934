//! The globs that choose a conversation's tools.

use turnwright_core::UserId;
use turnwright_engine::{ConversationRecord, Store};

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

#[tokio::test]
async fn an_empty_glob_that_is_stored_stands_in_the_way_of_nothing_and_a_new_one_is_told_by_its_place() {
    let server = server([]);
    let stored = ConversationRecord {
        id: "c1".parse().unwrap(),
        owner: UserId::local(),
        title: None,
        settings: json!({"tools": ["lab__look", ""]}).to_string(),
        created_at_ms: 1,
        updated_at_ms: 1,
    };
    server.store.create(stored).await.unwrap();
    let path = "/api/v1/conversations/c1";
    for change in [json!({"title": "Named"}), json!({"settings": {"max_steps": 3}}), json!({"pinned": true})] {
        let changed = server.send(Method::PATCH, path, &change, &JSON).await;
        assert_eq!(changed.status, StatusCode::OK, "{change}: {}", changed.body);
    }
    let refused = server.send(Method::PATCH, path, &json!({"tools": ["lab__touch", "lab__look", ""]}), &JSON).await;
    let detail = "`tools[2]` is empty, which is no tool's name; `*` stands for all";
    assert_eq!((refused.status.as_u16(), refused.json()["detail"].clone()), (422, json!(detail)));
    let touch = json!({"server_id": "lab", "tool_name": "touch"});
    assert_eq!(server.post(&format!("{path}/tools"), touch).await.status, StatusCode::CREATED);
    assert_eq!(server.get(path).await.json()["tools"], json!(["lab__look", "lab__touch"]));
}
