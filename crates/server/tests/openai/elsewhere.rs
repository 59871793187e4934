//! Histories with calls that ran elsewhere, in forms that name no call of the client's.

use serde_json::{Value, json};
use turnwright_testkit::{Answer, MemoryStore, text};

use super::killed::conversation;
use super::{server, server_on, user};

fn said(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

/// What a function of the older form gave.
fn function(gave: &str) -> [Value; 2] {
    let called = json!({"role": "assistant", "content": null, "function_call": {"name": "get", "arguments": "{}"}});
    [called, json!({"role": "function", "name": "get", "content": gave})]
}

fn found(gave: &str) -> Value {
    json!({"type": "file_search_call", "id": "fs_1", "status": "completed", "queries": ["q"], "results": [{"text": gave}]})
}

/// One call of each kind that gave this.
fn ran(gave: &str) -> [(&'static str, Vec<Value>); 3] {
    let of_server =
        json!({"type": "mcp_call", "id": "mcp_67ccd2", "server_label": "s", "name": "get", "arguments": "{}", "output": gave});
    [
        ("/v1/chat/completions", function(gave).to_vec()),
        ("/v1/responses", vec![of_server]),
        ("/v1/responses", vec![found(gave)]),
    ]
}

fn body(path: &str, history: &[Value]) -> Value {
    json!({if path.ends_with("responses") { "input" } else { "messages" }: history})
}

#[tokio::test]
async fn histories_that_differ_in_what_a_call_elsewhere_gave_are_two() {
    for (at, (path, sunny)) in ran("sunny").into_iter().enumerate() {
        for is_another_process in [false, true] {
            let store = MemoryStore::default();
            let answers = || ["So.", "Take one.", "Leave it."].map(|said| Answer::whole([text(said)]));
            let first = server_on(store.another_process(), answers());
            let asks = |gave: &[Value]| [&[user("How is it?")], gave, &[user("So?")]].concat();
            let began = first.post(path, &body(path, &asks(&sunny))).await;
            assert_eq!(began.status, 200, "{}", began.body);
            let next = if is_another_process { server_on(store.another_process(), answers()) } else { first };
            let more = |gave: &[Value]| [&asks(gave)[..], &[said("So."), user("An umbrella?")]].concat();

            let rainy = next.post(path, &body(path, &more(&ran("rainy")[at].1))).await;
            assert_ne!(conversation(&rainy), conversation(&began), "{path} {at} {is_another_process}");
            let shown = next.provider.asked().pop().unwrap();
            assert!(shown.contains("rainy") && !shown.contains("sunny"), "{shown}");
            let same = next.post(path, &body(path, &more(&sunny))).await;
            assert_eq!(conversation(&same), conversation(&began), "{path} {at} {is_another_process}");
        }
    }
}

#[tokio::test]
async fn a_result_of_the_older_form_at_the_end_is_gone_on_with() {
    let server = server([Answer::whole([text("Sunny.")])]);
    let history = [&[user("How is it?")], &function("sunny")[..]].concat();
    let answer = server.chat(&json!({"messages": history})).await;
    assert_eq!(answer.json()["choices"][0]["message"]["content"], "Sunny.", "{}", answer.body);
    let said: Vec<(String, String)> = server.messages(conversation(&answer)).await;
    let of_people: Vec<&str> = said.iter().filter(|(role, _)| role == "user").map(|(_, said)| said.as_str()).collect();
    assert_eq!(of_people, ["How is it?"]);
}

#[tokio::test]
async fn what_ran_elsewhere_since_the_newest_answer_is_shown() {
    let server = server(["Well.", "Found."].map(|said| Answer::whole([text(said)])));
    server.respond(&json!({"input": "Look!"})).await;
    let history = [user("Look!"), said("Well."), user("ONE"), found("Tuesday."), user("TWO")];
    let answer = server.respond(&json!({"input": history})).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let shown = server.provider.asked().pop().unwrap();
    assert_eq!(["ONE", "Tuesday.", "TWO"].map(|text| shown.matches(text).count()), [1, 1, 1], "{shown}");
}

#[tokio::test]
async fn a_second_result_of_a_call_is_refused() {
    let server = server([Answer::whole([text("Both.")])]);
    let called = |count: usize| {
        let call = json!({"id": "a1", "type": "function", "function": {"name": "f", "arguments": "{}"}});
        json!({"role": "assistant", "content": null, "tool_calls": vec![call; count]})
    };
    let gave = |said: &str| json!({"role": "tool", "tool_call_id": "a1", "content": said});
    let history = |count| json!({"messages": [user("Go"), called(count), gave("1"), gave("2"), user("So?")]});
    let refused = server.chat(&history(1)).await;
    assert_eq!(
        (refused.status, &refused.json()["error"]["param"]),
        (400, &json!("messages[3].tool_call_id")),
        "{}",
        refused.body
    );
    assert_eq!(server.chat(&history(2)).await.status, 200);
}
