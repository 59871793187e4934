//! What people say before a result, a decision, or an item that says nothing here.

use serde_json::{Value, json};
use turnwright_testkit::{Answer, call, text};

use super::{Server, pick, server, user};

const SAID: &str = "In French, please.";

fn picks() -> Answer {
    Answer::whole([call(0, "pick", "{}")])
}

fn function() -> Value {
    json!({"type": "function", "name": "pick", "parameters": {"type": "object"}})
}

fn of_kind<'a>(response: &'a Value, kind: &str) -> &'a Value {
    response["output"].as_array().unwrap().iter().find(|item| item["type"] == kind).unwrap()
}

/// Of Responses, that say nothing to a model here.
fn silent() -> [Value; 4] {
    [
        json!({"type": "reasoning", "id": "rs_x", "summary": []}),
        json!({"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}}),
        json!({"type": "mcp_list_tools", "id": "m", "server_label": "s", "tools": []}),
        json!({"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA"}),
    ]
}

/// How often the model is shown a text in the newest request.
fn shown(server: &Server, text: &str) -> usize {
    server.provider.asked().last().unwrap().matches(text).count()
}

#[tokio::test]
async fn a_message_before_a_result_is_stored_with_it() {
    for is_kept in [true, false] {
        let server = server([picks(), Answer::whole([text("Rouge.")]), Answer::whole([text("Oui.")])]);
        let first = server.respond(&json!({"input": [user("Go")], "tools": [function()]})).await.json();
        let called = of_kind(&first, "function_call");
        let output = json!({"type": "function_call_output", "call_id": called["call_id"], "output": "red"});
        let more = [user(SAID), output, user("And loud.")];
        let whole = [&[user("Go"), called.clone()], &more[..]].concat();
        let given = if is_kept {
            json!({"previous_response_id": first["id"], "input": more, "tools": [function()]})
        } else {
            json!({"input": whole, "tools": [function()]})
        };
        let second = server.respond(&given).await;
        assert_eq!(second.json()["conversation"], first["conversation"], "{is_kept}: {}", second.body);
        assert_eq!([SAID, "And loud.", "red"].map(|text| shown(&server, text)), [1, 1, 1], "{is_kept}");
    }
}

#[tokio::test]
async fn a_message_before_a_result_of_chat_completions_stays_in_its_conversation() {
    let server = server([picks(), Answer::whole([text("Rouge.")]), Answer::whole([text("Oui.")])]);
    let ask = |said: &[Value]| json!({"messages": said, "tools": [pick()]});
    let first = server.chat(&ask(&[user("Go")])).await;
    let told = first.json()["choices"][0]["message"].clone();
    let result = json!({"role": "tool", "tool_call_id": told["tool_calls"][0]["id"], "content": "red"});
    let mut history = vec![user("Go"), told, user(SAID), result];
    let second = server.chat(&ask(&history)).await;
    assert_eq!((shown(&server, SAID), shown(&server, "red")), (1, 1));
    history.extend([second.json()["choices"][0]["message"].clone(), user("Well?")]);
    let third = server.chat(&ask(&history)).await;
    let conversation = |answer: &super::Answered| answer.header("x-turnwright-conversation").to_owned();
    assert_eq!([conversation(&second), conversation(&third)], [conversation(&first), conversation(&first)]);
    assert_eq!(shown(&server, SAID), 1);
}

#[tokio::test]
async fn a_message_before_a_decision_is_said_and_what_stands_before_the_question_is_not_said_again() {
    for is_kept in [true, false] {
        let server = server([Answer::whole([call(0, "lab__touch", "{}")]), Answer::whole([text("Fait.")])]);
        let tools = json!([{"type": "mcp", "server_label": "lab"}]);
        let first = server.respond(&json!({"input": [user("Touch!")], "tools": tools})).await.json();
        let request = of_kind(&first, "mcp_approval_request");
        let answer = json!({"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": true});
        let given = if is_kept {
            json!({"previous_response_id": first["id"], "input": [user(SAID), answer], "tools": tools})
        } else {
            json!({"input": [user("Touch!"), request, user(SAID), answer], "tools": tools})
        };
        let second = server.respond(&given).await;
        assert_eq!(second.status, 200, "{}", second.body);
        assert_eq!(server.source.effects().len(), 1, "{is_kept}");
        assert_eq!([SAID, "Touch!"].map(|text| shown(&server, text)), [1, 1], "{is_kept}");
    }
}

#[tokio::test]
async fn items_that_say_nothing_take_no_message_with_them() {
    for item in silent() {
        for way in 0..4 {
            let server = server(["Hi.", "Well."].map(|said| Answer::whole([text(said)])));
            let first = server.respond(&json!({"input": "Hello"})).await.json();
            let more = [user("ONE"), item.clone(), user("TWO"), item.clone()];
            let whole = [&[user("Hello"), of_kind(&first, "message").clone()], &more[..]].concat();
            let given = match way {
                0 => json!({"input": whole}),
                1 => json!({"previous_response_id": first["id"], "input": more}),
                2 => json!({"conversation": first["conversation"], "input": more}),
                _ => json!({"input": more}),
            };
            let answer = server.respond(&given).await;
            assert_eq!(answer.status, 200, "{given}: {}", answer.body);
            assert_eq!(answer.json()["conversation"] == first["conversation"], way < 3, "{given}");
            assert_eq!(["ONE", "TWO"].map(|text| shown(&server, text)), [1, 1], "{given}");
        }
    }
}
