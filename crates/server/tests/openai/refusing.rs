//! What is wrong with a request is told by the name of its field and with what it holds.

use axum::body::Body;
use http::Method;
use serde_json::{Value, json};
use turnwright_testkit::{Answer, call, text};

use super::{Answered, picks, server, user};

/// The code and the field of a refusal whose words name this.
fn refused(answered: &Answered, names: &str) -> (String, String) {
    let error = &answered.json()["error"];
    assert_eq!(answered.status, 400, "{}", answered.body);
    assert!(error["message"].as_str().unwrap().contains(names), "{}", answered.body);
    let word = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
    (word("code"), word("param"))
}

fn about(code: &str, param: &str) -> (String, String) {
    (code.to_owned(), param.to_owned())
}

#[tokio::test]
async fn a_conversation_that_is_no_name_is_refused_where_it_stands() {
    let server = server([]);
    let param = "metadata.conversation_id";
    for (name, code, names) in [(json!("no name"), "invalid_id", "no name"), (json!(7), "invalid_request", "7")] {
        let metadata = json!({"conversation_id": name});
        let chat = server.chat(&json!({"messages": [user("Go")], "metadata": metadata})).await;
        assert_eq!(refused(&chat, names), about(code, param));
        let response = server.respond(&json!({"input": "Go", "metadata": metadata})).await;
        assert_eq!(refused(&response, names), about(code, param));
    }
    let headers = [("content-type", "application/json"), ("x-turnwright-conversation", "no name")];
    let body = Body::from(json!({"messages": [user("Go")]}).to_string());
    let chat = server.send(Method::POST, "/v1/chat/completions", body, &headers).await;
    assert_eq!(refused(&chat, "no name"), about("invalid_id", "x-turnwright-conversation"));
}

#[tokio::test]
async fn a_schema_that_is_no_object_is_refused_where_it_stands() {
    let server = server([]);
    let function = |parameters: Value| json!({"type": "function", "function": {"name": "f", "parameters": parameters}});
    let chat = |format: Value| json!({"messages": [user("Go")], "response_format": format});
    let schema = |schema: Value| json!({"name": "a", "schema": schema});
    let chats = [
        (chat(json!({"type": "json_schema", "json_schema": schema(json!([5]))})), "[5]", "response_format.json_schema.schema"),
        (chat(json!({"type": "json_schema", "json_schema": {"name": "a"}})), "missing", "response_format.json_schema.schema"),
        (
            chat(json!({"type": "json_schema", "json_schema": {"name": "a b", "schema": {}}})),
            "a b",
            "response_format.json_schema.name",
        ),
        (json!({"messages": [user("Go")], "tools": [function(json!("x"))]}), "\"x\"", "tools[0].function.parameters"),
    ];
    for (body, names, param) in chats {
        assert_eq!(refused(&server.chat(&body).await, names), about("invalid_request", param), "{body}");
    }
    let responses = [
        (
            json!({"input": "Go", "text": {"format": {"type": "json_schema", "name": "a", "schema": true}}}),
            "true",
            "text.format.schema",
        ),
        (json!({"input": "Go", "tools": [{"type": "function", "name": "f", "parameters": 7}]}), "7", "tools[0].parameters"),
    ];
    for (body, names, param) in responses {
        assert_eq!(refused(&server.respond(&body).await, names), about("invalid_request", param), "{body}");
    }
}

#[tokio::test]
async fn a_file_that_is_not_there_is_refused_where_it_stands() {
    let server = server([]);
    let image = |id: &str| json!({"role": "user", "content": [{"type": "input_text", "text": "What?"}, {"type": "input_image", "file_id": id}]});
    let response = server.respond(&json!({"input": [user("Go"), image("file-7")]})).await;
    assert_eq!(refused(&response, "file-7"), about("invalid_request", "input[1].content[1].file_id"));
    let file = json!({"role": "user", "content": [{"type": "file", "file": {"file_id": "file-7"}}]});
    let chat = server.chat(&json!({"messages": [file]})).await;
    assert_eq!(refused(&chat, "file-7"), about("invalid_request", "messages[0].content[0].file.file_id"));
    // This server keeps no files.
    let input = json!([user("Go"), image(&format!("art_{}", "0a".repeat(16)))]);
    let response = server.respond(&json!({"input": input, "metadata": {"conversation_id": "mine"}})).await;
    assert_eq!((response.status, &response.json()["error"]["param"]), (404, &json!("input[1].content[1]")));
}

#[tokio::test]
async fn one_place_to_go_on_from_is_enough() {
    let server = server([Answer::whole([text("One.")])]);
    let first = server.respond(&json!({"input": "1"})).await.json();
    let both = json!({"input": "2", "previous_response_id": first["id"], "conversation": first["conversation"]});
    let refusal = refused(&server.respond(&both).await, "`conversation`");
    assert_eq!(refusal, about("mutually_exclusive_parameters", "previous_response_id"));
}

#[tokio::test]
async fn what_is_not_known_to_be_included_is_refused() {
    let server = server([Answer::whole([text("One.")])]);
    let asked = |value: &str| json!({"input": "1", "include": ["reasoning.encrypted_content", value]});
    let refusal = refused(&server.respond(&asked("the.moon")).await, "the.moon");
    assert_eq!(refusal, about("unsupported_value", "include[1]"));
    assert_eq!(server.respond(&asked("message.output_text.logprobs")).await.status, 200);
}

#[tokio::test]
async fn a_number_after_the_last_event_is_refused() {
    let server = server([Answer::whole([text("One.")])]);
    let streamed = server.respond(&json!({"input": "1", "stream": true})).await.chunks();
    let last = streamed.last().unwrap();
    let number = last["sequence_number"].as_u64().unwrap();
    let path = format!("/v1/responses/{}?stream=true&starting_after=", last["response"]["id"].as_str().unwrap());
    let refusal = refused(&server.get(&format!("{path}{}", number + 1)).await, &number.to_string());
    assert_eq!(refusal, about("invalid_request", "starting_after"));
    assert_eq!(refused(&server.get(&format!("{path}x")).await, "`x`"), about("invalid_request", "starting_after"));
    assert_eq!(server.get(&format!("{path}{number}")).await.body, "data: [DONE]\n\n");
}

#[tokio::test]
async fn a_response_that_waits_is_whole_and_to_cancel_it_ends_its_turn() {
    let touches = || Answer::whole([call(0, "lab__touch", "{}")]);
    for answer in [picks(), touches()] {
        let server = server([answer]);
        let tool = json!({"type": "function", "name": "pick", "parameters": {"type": "object"}});
        let waits = server.respond(&json!({"input": "Go", "tools": [tool]})).await.json();
        let path = format!("/v1/responses/{}", waits["id"].as_str().unwrap());
        let cancelled = server.post(&format!("{path}/cancel"), &json!({})).await;
        let again = server.post(&format!("{path}/cancel"), &json!({})).await;
        assert_eq!((cancelled.status, again.status), (200, 200), "{}", cancelled.body);
        assert_eq!([cancelled.json(), again.json(), server.get(&path).await.json()], [(); 3].map(|()| waits.clone()));
        let conversation = waits["conversation"]["id"].as_str().unwrap();
        let turns = server.get(&format!("/api/v1/conversations/{conversation}/turns")).await.json();
        assert_eq!(turns["data"][0]["status"], "cancelled");
    }
}

#[tokio::test]
async fn a_message_that_says_nothing_is_refused_as_that() {
    let server = server([]);
    for content in [json!(""), json!([]), json!([{"type": "text", "text": ""}]), Value::Null] {
        let chat = server.chat(&json!({"messages": [{"role": "user", "content": content}]})).await;
        assert_eq!(refused(&chat, "is empty"), about("invalid_request", "messages"), "{content}");
    }
    for input in [json!(""), json!([user("")]), json!([{"role": "user", "content": [{"type": "input_text", "text": ""}]}])] {
        let response = server.respond(&json!({"input": input})).await;
        assert_eq!(refused(&response, "is empty"), about("invalid_request", "input"), "{input}");
    }
}

#[tokio::test]
async fn decisions_about_two_conversations_decide_nothing() {
    let asks = || Answer::whole([call(0, "lab__touch", "{}"), call(1, "lab__touch", "{}")]);
    let server = server([asks(), asks()]);
    let [one, other] =
        [server.respond(&json!({"input": "1"})).await.json(), server.respond(&json!({"input": "2"})).await.json()];
    let answer = |of: &Value, at: usize, approve: bool| json!({"type": "mcp_approval_response", "approval_request_id": of["output"][at]["id"], "approve": approve});
    let mixed = json!({"input": [answer(&one, 0, true), answer(&other, 1, false)]});
    let beside = json!({"previous_response_id": other["id"], "input": [answer(&one, 0, true), user("and more")]});
    let named = json!({"conversation": other["conversation"], "input": [answer(&one, 0, true)]});
    for (body, param) in [(mixed, 1), (beside, 0), (named, 0)] {
        let refused = server.respond(&body).await;
        assert_eq!(refused.status, 400, "{}", refused.body);
        let error = refused.json()["error"].clone();
        assert!(error["message"].as_str().unwrap().contains("waits in another conversation"), "{error}");
        assert_eq!(error["param"], format!("input[{param}].approval_request_id"));
    }
    assert_eq!(server.source.effects().len(), 0);
}

#[tokio::test]
async fn what_is_missing_or_leads_nowhere_is_named() {
    let server = server([Answer::whole([text("Hello.")])]);
    let refusal = async |body: Value| server.respond(&body).await;
    for tool in [json!({"type": "mcp"}), json!({"type": "mcp", "server_label": ""})] {
        let none = refusal(json!({"input": "Go", "tools": [tool]})).await;
        let names = "`tools[0].server_label` is missing; GET /api/v1/tools names the servers as `server_id`";
        assert_eq!(refused(&none, names), about("invalid_request", "tools[0].server_label"));
    }
    let silent = refusal(json!({"input": []})).await;
    let names = "nothing is said; there must be a user's message, or the result of a tool";
    assert_eq!(refused(&silent, names), about("invalid_request", "input"));

    let said = server.respond(&json!({"input": "Go"})).await.json();
    let items = format!("/v1/responses/{}/input_items", said["id"].as_str().unwrap());
    for (query, names, param) in [
        ("limit=0", "`limit` is `0`, it must be 1 to 100", "limit"),
        ("order=up", "`order` is `up`, it must be asc or desc", "order"),
    ] {
        let page = server.send(Method::GET, &format!("{items}?{query}"), Body::empty(), &[]).await;
        assert_eq!(refused(&page, names), about("invalid_request", param));
    }
    let several = server.chat(&json!({"messages": [user("Go")], "n": 2})).await;
    assert_eq!(refused(&several, "`n` is 2, it must be 1"), about("unsupported_parameter", "n"));
    let result = json!({"type": "function_call_output", "call_id": "call_zz", "output": "A."});
    let stray = refusal(json!({"input": [result], "previous_response_id": said["id"]})).await;
    let conversation = said["turnwright"]["conversation_id"].as_str().unwrap();
    let names = format!("there are results for `call_zz`, of which none waits in conversation `{conversation}`");
    assert_eq!(refused(&stray, &names), about("invalid_request", "input"));
}
