//! What requests choose, and what of it is refused by its name.

use serde_json::{Value, json};
use turnwright_testkit::{Answer, call, text};

use super::{pick, server, user};

#[tokio::test]
async fn a_tool_runs_only_where_the_request_lets_the_model_choose_it() {
    let touch = json!({"type": "mcp", "server_label": "lab", "name": "touch"});
    let function = json!({"type": "function", "name": "lab__touch"});
    for (choice, runs) in [
        (json!("auto"), 1),
        (json!("none"), 0),
        (json!({"type": "allowed_tools", "mode": "auto", "tools": [touch]}), 0),
        (json!({"type": "allowed_tools", "mode": "auto", "tools": [function]}), 0),
        (json!({"type": "allowed_tools", "mode": "required", "tools": [{"type": "mcp", "server_label": "lab"}]}), 1),
        (json!({"type": "mcp", "server_label": "lab"}), 1),
    ] {
        let looks = || Answer::whole([call(0, "lab__look", "{}")]);
        let server = server([looks(), Answer::whole([text("Fine.")]), looks(), Answer::whole([text("Fine.")])]);
        let response = server.respond(&json!({"input": "Go", "tool_choice": choice})).await.json();
        assert_eq!(response["status"], "completed", "{choice}: {response}");
        assert_eq!(server.source.effects().len(), runs, "{choice}");
        let chat = server.chat(&json!({"messages": [user("Go")], "tool_choice": choice})).await.json();
        assert_eq!(chat["choices"][0]["message"]["content"], "Fine.", "{choice}");
        assert_eq!(server.source.effects().len(), 2 * runs, "{choice}");
    }
}

#[tokio::test]
async fn a_demand_is_not_met_by_a_call_of_another_tool() {
    let choices = [json!("required"), json!({"type": "function", "name": "pick"})];
    for choice in choices {
        let looks = Answer::whole([call(0, "lab__look", "{}")]);
        let server = server([looks, super::picks(), Answer::whole([text("Fine.")])]);
        let tool = json!({"type": "function", "name": "pick", "parameters": {"type": "object"}});
        let response = server.respond(&json!({"input": "Go", "tools": [tool], "tool_choice": choice})).await.json();
        assert_eq!(response["output"].as_array().unwrap().last().unwrap()["type"], "function_call", "{response}");
        let demanded = server.provider.demanded();
        assert_eq!((demanded.len(), &demanded[0]), (2, &demanded[1]), "{choice}");
        assert_ne!(demanded[1], turnwright_core::ToolChoice::Auto, "{choice}");
    }
}

#[tokio::test]
async fn json_mode_is_told_as_it_was_asked_for() {
    let server = server([Answer::whole([text("{}")])]);
    let format = json!({"format": {"type": "json_object"}});
    let response = server.respond(&json!({"input": "Go", "text": format})).await.json();
    assert_eq!(response["text"], format);
    let conversation = response["conversation"]["id"].as_str().unwrap().parse().unwrap();
    let output = server.engine.look(&conversation, |journal| journal.turn().unwrap().settings().output.clone()).await.unwrap();
    assert_eq!(output, Some(turnwright_core::OutputFormat::JsonObject));
}

#[tokio::test]
async fn calls_after_the_most_that_a_response_may_make_are_not_run() {
    let looks = |at: u32| call(at, "lab__look", "{}");
    let server =
        server([Answer::whole([looks(0)]), Answer::whole([looks(0), looks(1), looks(2)]), Answer::whole([text("Fine.")])]);
    let response = server.respond(&json!({"input": "Go", "max_tool_calls": 2})).await.json();
    let output = response["output"].as_array().unwrap();
    let calls = |status: &str| output.iter().filter(|item| item["type"] == "mcp_call" && item["status"] == status).collect();
    let (ran, failed): (Vec<&Value>, Vec<&Value>) = (calls("completed"), calls("failed"));
    assert_eq!((output.len(), ran.len(), failed.len()), (5, 2, 2), "{response}");
    assert!(failed[0]["error"].to_string().contains("as many tool calls as it may"), "{response}");
    assert_eq!(output[4]["content"][0]["text"], "Fine.");
    assert_eq!((&response["status"], &response["max_tool_calls"]), (&json!("completed"), &json!(2)));
    assert_eq!(server.source.effects().len(), 2);
}

#[tokio::test]
async fn a_tool_that_is_not_there_cannot_be_chosen() {
    let server = server([]);
    for choice in [
        json!({"type": "function", "name": "nope"}),
        json!({"type": "mcp", "server_label": "lab", "name": "nope"}),
        json!({"type": "mcp", "server_label": "nope"}),
        json!({"type": "allowed_tools", "tools": [{"type": "function", "name": "nope"}]}),
        json!({"type": "allowed_tools", "tools": []}),
    ] {
        for (path, said) in
            [("/v1/responses", ("input", json!("Go"))), ("/v1/chat/completions", ("messages", json!([user("Go")])))]
        {
            let refused = server.post(path, &json!({said.0: said.1, "tool_choice": choice})).await;
            assert_eq!((refused.status, &refused.json()["error"]["param"]), (400, &json!("tool_choice")), "{choice}");
        }
    }
}

#[tokio::test]
async fn the_text_ends_before_what_stops_it_and_the_turn_is_kept_whole() {
    for is_streamed in [false, true] {
        let said = || Answer::whole([text("One. E"), text("ND Two.")]);
        let server = server([said(), Answer::whole([text("More.")])]);
        let body = json!({"messages": [user("Go")], "stop": ["END"], "stream": is_streamed});
        let answer = server.chat(&body).await;
        let content: String = if is_streamed {
            let deltas =
                answer.chunks().into_iter().filter_map(|chunk| Some(chunk["choices"].get(0)?["delta"]["content"].clone()));
            deltas.filter_map(|content| content.as_str().map(str::to_owned)).collect()
        } else {
            answer.json()["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
        };
        assert_eq!(content, "One. ");
        let conversation = answer.header("x-turnwright-conversation");
        assert_eq!(server.messages(conversation).await[1].1, "One. END Two.");
        let history = json!([user("Go"), {"role": "assistant", "content": content}, user("And?")]);
        let next = server.chat(&json!({"messages": history})).await;
        assert_eq!(next.header("x-turnwright-conversation"), conversation, "what the client was told is known again");
    }
}

#[tokio::test]
async fn what_is_wrong_is_named_as_the_request_has_it() {
    let server = server([]);
    let chat =
        |field: &str, value: Value| ("/v1/chat/completions", json!({"messages": [user("Go")], field: value}), field.to_owned());
    let response = |field: &str, value: Value| ("/v1/responses", json!({"input": "Go", field: value}), field.to_owned());
    for (path, body, param) in [
        chat("temperature", json!("hot")),
        chat("temperature", json!(3)),
        chat("max_tokens", json!(0)),
        chat("max_tokens", json!(-1)),
        chat("max_completion_tokens", json!(0)),
        chat("stream", json!("yes")),
        chat("messages", json!("Go")),
        chat("messages", json!([])),
        chat("stop", json!(7)),
        chat("tools", json!([{"type": "function"}, pick(), 1])),
        response("temperature", json!(3)),
        response("max_output_tokens", json!(0)),
        response("stream", json!("yes")),
        response("input", json!([])),
        response("prompt", json!({"id": "p"})),
        response("truncation", json!("bogus")),
    ] {
        let refused = server.post(path, &body).await;
        assert_eq!((refused.status, &refused.json()["error"]["param"]), (400, &json!(param)), "{body}");
    }
}

#[tokio::test]
async fn a_model_is_shown_by_every_name_that_a_request_may_have() {
    let server = server([]);
    let model = json!({"id": "test/scripted", "object": "model", "created": 0, "owned_by": "test"});
    for name in ["test/scripted", "scripted", "default"] {
        assert_eq!(server.get(&format!("/v1/models/{name}")).await.json(), model, "{name}");
    }
    for name in ["test/none", "none"] {
        assert_eq!(server.get(&format!("/v1/models/{name}")).await.status, 404, "{name}");
    }
}

#[tokio::test]
async fn two_tools_of_one_name_are_refused_by_the_place_of_the_second() {
    let server = server([]);
    let (pick, function) = (pick(), json!({"type": "function", "name": "pick"}));
    let chat = server.chat(&json!({"messages": [user("Go")], "tools": [pick, pick]})).await;
    let response = server.respond(&json!({"input": "Go", "tools": [function, function]})).await;
    for refused in [chat, response] {
        assert_eq!((refused.status, &refused.json()["error"]["param"]), (400, &json!("tools[1]")), "{}", refused.body);
    }
}

#[tokio::test]
async fn a_result_without_its_output_is_refused() {
    let output = json!({"type": "function_call_output", "call_id": "z1"});
    let refused = server([]).respond(&json!({"input": [user("Go"), output]})).await;
    assert_eq!((refused.status, &refused.json()["error"]["param"]), (400, &json!("input[1]")), "{}", refused.body);
}

#[tokio::test]
async fn a_result_whose_call_nobody_knows_is_refused() {
    let server = server([]);
    for id in ["z1", "call_4_0_conv_gone"] {
        let message = json!({"role": "tool", "tool_call_id": id, "content": "red"});
        let chat = server.chat(&json!({"messages": [user("Go"), message]})).await;
        assert_eq!((chat.status, &chat.json()["error"]["param"]), (400, &json!("messages[1].tool_call_id")), "{}", chat.body);
        let output = json!({"type": "function_call_output", "call_id": id, "output": "red"});
        let response = server.respond(&json!({"input": [output]})).await;
        let param = &response.json()["error"]["param"];
        assert_eq!((response.status, param), (400, &json!("input[0].call_id")), "{}", response.body);
    }
    assert!(server.provider.asked().is_empty());
}

#[tokio::test]
async fn an_answer_that_is_to_have_a_form_has_nothing_beside_it_in_its_text() {
    let answers =
        || [Answer::whole([text("Let me look."), call(0, "lab__look", "{}")]), Answer::whole([text("{\"a\":"), text("5}")])];
    let format = json!({"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}});
    let asked = |stream: bool| json!({"messages": [user("Look!")], "response_format": format, "stream": stream});
    let whole = server(answers()).chat(&asked(false)).await.json();
    let message = &whole["choices"][0]["message"];
    assert_eq!((&message["content"], &message["reasoning_content"]), (&json!("{\"a\":5}"), &json!("Let me look.")));

    let streamed = server(answers()).chat(&asked(true)).await;
    let told = |field: &str| -> String {
        let deltas = streamed.chunks().into_iter().filter_map(|chunk| Some(chunk["choices"].get(0)?["delta"].clone()));
        deltas.filter_map(|delta| delta[field].as_str().map(str::to_owned)).collect()
    };
    assert_eq!((told("content"), told("reasoning_content")), ("{\"a\":5}".to_owned(), "Let me look.".to_owned()));
}
