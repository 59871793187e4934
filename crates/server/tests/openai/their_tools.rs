//! Tools of Responses that are neither plain functions nor ours: groups of functions, free texts, and what OpenAI would run itself.

use serde_json::{Value, json};
use turnwright_testkit::{Answer, MemoryStore, call, text};

use super::{server, server_on, user};

const LEFT_OUT: &str = "x-turnwright-left-out";

/// The tools of a coding agent: a group of functions, a free text, and some that OpenAI runs.
fn tools() -> Value {
    let read = json!({"type": "function", "name": "read", "description": "Reads.", "strict": false,
                      "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}});
    json!([
        {"type": "namespace", "name": "mcp__files", "description": "Files.", "tools": [read]},
        {"type": "custom", "name": "apply_patch", "description": "Edits files.",
         "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"}},
        {"type": "web_search", "external_web_access": false},
        {"type": "image_generation"},
        {"type": "tool_search", "execution": "client", "description": "d", "parameters": {}},
    ])
}

#[tokio::test]
async fn a_function_of_a_group_is_called_by_the_names_that_its_client_has() {
    let store = MemoryStore::default();
    let reads = Answer::whole([call(0, "mcp__files__read", r#"{"path":"a"}"#)]);
    let server = server_on(store.another_process(), [reads]);
    let asked = server.respond(&json!({"input": "Read!", "tools": tools()})).await;
    assert_eq!((asked.status, asked.header(LEFT_OUT)), (200, "web_search, image_generation, tool_search"), "{}", asked.body);
    let first = asked.json();
    let item = first["output"][0].clone();
    let expected = json!({"id": item["id"], "type": "function_call", "call_id": item["call_id"], "name": "read",
                          "namespace": "mcp__files", "arguments": "{\"path\":\"a\"}", "status": "completed"});
    assert_eq!(item, expected);

    // Whoever keeps the history itself sends all of it back; also to another process.
    server.engine.shutdown().await;
    let next = server_on(store.another_process(), [Answer::whole([text("Read.")])]);
    let output = json!({"type": "function_call_output", "call_id": item["call_id"], "output": "A."});
    let second = next.respond(&json!({"input": [user("Read!"), item, output], "tools": tools()})).await.json();
    assert_eq!(
        (&second["output"][0]["content"][0]["text"], &second["conversation"]),
        (&json!("Read."), &first["conversation"])
    );
    assert!(next.provider.asked()[0].contains("A."));
}

#[tokio::test]
async fn a_call_with_a_free_text_is_an_item_of_its_kind_streamed_and_whole() {
    let edits = || Answer::whole([call(0, "apply_patch", r#"{"input":"*** Begin\n+x"}"#)]);
    let server = server([edits(), Answer::whole([text("Edited.")]), edits()]);
    let first = server.respond(&json!({"input": "Edit!", "tools": tools()})).await.json();
    let item = &first["output"][0];
    let expected = json!({"id": item["id"], "type": "custom_tool_call", "call_id": item["call_id"], "name": "apply_patch",
                          "input": "*** Begin\n+x", "status": "completed"});
    assert_eq!(*item, expected);
    assert!(item["id"].as_str().unwrap().starts_with("ctc_"));
    let output = json!({"type": "custom_tool_call_output", "call_id": item["call_id"], "output": "Done."});
    let given = json!({"previous_response_id": first["id"], "input": [output], "tools": tools()});
    let second = server.respond(&given).await.json();
    assert_eq!(
        (&second["output"][0]["content"][0]["text"], &second["conversation"]),
        (&json!("Edited."), &first["conversation"])
    );

    let events = server.respond(&json!({"input": "Edit again!", "tools": tools(), "stream": true})).await.chunks();
    let of = |kind: &str| events.iter().find(|event| event["type"] == kind).unwrap_or_else(|| panic!("no {kind}"));
    assert_eq!(of("response.custom_tool_call_input.delta")["delta"], "*** Begin\n+x");
    assert_eq!(of("response.custom_tool_call_input.done")["input"], "*** Begin\n+x");
    assert_eq!(of("response.output_item.done")["item"]["type"], "custom_tool_call");
}

#[tokio::test]
async fn what_openai_would_run_cannot_be_demanded_and_a_kind_that_is_none_is_refused() {
    let server = server([]);
    let file = json!({"type": "file_search"});
    for (tool, choice, param) in [
        (file.clone(), json!({"type": "file_search"}), "tool_choice"),
        (file.clone(), json!({"type": "allowed_tools", "mode": "auto", "tools": [file]}), "tool_choice"),
        (json!({"type": "functoin", "name": "f"}), json!("auto"), "tools[0]"),
        (json!({"type": "namespace", "name": "n"}), json!("auto"), "tools[0].tools"),
        (json!({"type": "namespace", "tools": []}), json!("auto"), "tools[0].name"),
    ] {
        let refused = server.respond(&json!({"input": "Go", "tools": [tool], "tool_choice": choice})).await;
        assert_eq!((refused.status, &refused.json()["error"]["param"]), (400, &json!(param)), "{tool} {}", refused.body);
    }
}

#[tokio::test]
async fn a_function_of_a_group_can_be_demanded() {
    let server = server([Answer::whole([call(0, "mcp__files__read", "{}")])]);
    let choice = json!({"type": "function", "name": "read", "namespace": "mcp__files"});
    let answered = server.respond(&json!({"input": "Go", "tools": tools(), "tool_choice": choice})).await;
    assert_eq!((answered.status, &answered.json()["output"][0]["name"]), (200, &json!("read")), "{}", answered.body);
}

#[tokio::test]
async fn a_history_with_items_of_openais_tools_is_taken_with_what_they_say() {
    let server = server([Answer::whole([text("So.")])]);
    let said = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Found."}]});
    let items = json!([
        user("Look!"),
        {"type": "reasoning", "id": "rs_x", "summary": [], "encrypted_content": "gAAA"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
        {"type": "file_search_call", "id": "fs_1", "status": "completed", "queries": ["plans"],
         "results": [{"file_id": "f", "filename": "plan.md", "score": 0.5, "text": "Tuesday."}]},
        {"type": "code_interpreter_call", "id": "ci_1", "container_id": "c", "status": "completed", "code": "print(6*7)",
         "outputs": [{"type": "logs", "logs": "42"}]},
        {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "AAAA"},
        {"type": "local_shell_call", "id": "ls_1", "call_id": "ls_call", "status": "completed",
         "action": {"type": "exec", "command": ["ls"], "env": {}}},
        {"type": "local_shell_call_output", "id": "lso_1", "call_id": "ls_call", "output": "README.md"},
        {"type": "computer_call", "id": "cu_1", "call_id": "cu_call", "status": "completed", "action": {"type": "screenshot"}},
        {"type": "computer_call_output", "call_id": "cu_call", "output": {"type": "computer_screenshot", "image_url": "https://x"}},
        {"type": "compaction", "encrypted_content": "gAAA"},
        said,
        user("So?"),
    ]);
    let answered = server.respond(&json!({"input": items})).await;
    assert_eq!(
        (answered.status, &answered.json()["output"][0]["content"][0]["text"]),
        (200, &json!("So.")),
        "{}",
        answered.body
    );
    let shown = &server.provider.asked()[0];
    for word in ["plan.md", "Tuesday.", "42", "README.md", "Found."] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
    assert!(!shown.contains("AAAA") && !shown.contains("ws_1"), "{shown}");
    let unknown = json!([user("Go"), {"type": "mesage", "role": "user", "content": "x"}]);
    assert_eq!(server.respond(&json!({"input": unknown})).await.json()["error"]["param"], "input[1]");
}

#[tokio::test]
async fn a_result_of_a_shell_at_the_end_of_a_history_is_gone_on_with() {
    let server = server([Answer::whole([text("One file.")])]);
    let items = json!([
        user("List!"),
        {"type": "local_shell_call", "id": "ls_1", "call_id": "ls_call", "status": "completed",
         "action": {"type": "exec", "command": ["ls"], "env": {}}},
        {"type": "local_shell_call_output", "id": "lso_1", "call_id": "ls_call", "output": "README.md"},
    ]);
    let answered = server.respond(&json!({"input": items, "tools": [{"type": "local_shell"}]})).await;
    assert_eq!(answered.json()["output"][0]["content"][0]["text"], "One file.", "{}", answered.body);
    assert!(server.provider.asked()[0].contains("README.md"));
}

#[tokio::test]
async fn what_openai_has_and_is_not_here_is_said_to_be_no_route() {
    let server = server([]);
    for path in ["/v1/responses/compact", "/v1/responses/input_tokens", "/v1/conversations", "/v1/embeddings", "/v1/files"] {
        let answered = server.post(path, &json!({})).await;
        let expected = (404, "invalid_request_error".to_owned(), "no_such_route".to_owned());
        assert_eq!(answered.error(), expected, "{path}");
        let what = format!("there is no route `{path}`; of OpenAI's API /v1 has chat/completions, responses and models alone");
        assert_eq!(answered.json()["error"]["message"], what);
    }
    // Where a base URL lacks its end, or has too much of it.
    for path in ["/chat/completions", "/api/v1/chat/completions", "/api/v1/responses/", "/responses"] {
        let answered = server.post(path, &json!({})).await;
        assert_eq!(answered.error(), (404, "invalid_request_error".to_owned(), "no_such_route".to_owned()), "{path}");
        let what = format!("there is no route `{path}`; the base URL of OpenAI's API is /v1");
        assert_eq!(answered.json()["error"]["message"], what);
    }
    let slash = server.post("/v1/chat/completions/", &json!({})).await.json();
    assert_eq!(slash["error"]["message"], "there is no route `/v1/chat/completions/`; it is one without the slash at its end");
    let root = server.get("/v1/").await;
    assert_eq!(root.error(), (404, "invalid_request_error".to_owned(), "no_such_route".to_owned()));
}
