//! Nothing that a model or a tool does reaches the door of decisions.

use serde_json::{Value, json};
use turnwright_testkit::model_server::{ModelServer, Piece, call_chunk, finish_chunk, results_shown, text_chunk};

use crate::serve::Server;
use crate::support::Place;

/// A model that runs what it is told to run, and writes a file where it is told to write.
fn obedient() -> ModelServer {
    ModelServer::start(None, |request: &Value| {
        if results_shown(request) > 0 {
            return vec![text_chunk("Done."), finish_chunk("stop"), Piece::Done];
        }
        let messages = request["messages"].as_array().cloned().unwrap_or_default();
        let said = messages.last().and_then(|message| message["content"].as_str()).unwrap_or_default().to_owned();
        let call = match said.strip_prefix("run: ") {
            Some(line) => call_chunk(0, "command__run", &json!({"command": line}).to_string()),
            None => call_chunk(0, "filesystem__write", r#"{"path":"b.txt","content":"hi"}"#),
        };
        vec![call, finish_chunk("tool_calls"), Piece::Done]
    })
    .unwrap()
}

fn place(model: &ModelServer, commands: &str) -> Place {
    let place = Place::new();
    let config = format!(
        "model = \"scripted/m\"\n[providers.scripted]\ndialect = \"openai-chat\"\nbase_url = \"{}\"\nmodels = [\"m\"]\n\
         max_retries = 0\n[[approval.rules]]\ntool = \"command__*\"\naction = \"allow\"\n\
         [tools.command]\n{commands}\n",
        model.base_url()
    );
    place.write("turnwright.toml", config);
    place
}

fn chat(server: &Server, conversation: &str, content: &str) -> Value {
    let head = format!("POST /api/v1/conversations/{conversation}/chat");
    let answer = server.request(&head, &json!({"content": content}).to_string());
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap()
}

/// What a command that a model runs prints.
fn printed(server: &Server, conversation: &str, line: &str) -> Value {
    let answer = chat(server, conversation, &format!("run: {line}"));
    let messages = answer["turn"]["messages"].as_array().unwrap().clone();
    let result = messages.iter().find(|message| message["role"] == "tool").unwrap();
    serde_json::from_str(result["content"].as_str().unwrap()).unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_command_that_a_model_runs_cannot_decide_and_a_person_can() {
    let model = obedient();
    // In a sandbox it does not even reach the door.
    let place = place(&model, "sandbox = \"off\"");
    let server = Server::start(&place);
    let parked = chat(&server, "c", "write");
    let call = parked["turn"]["waiting"][0]["id"].as_str().unwrap().to_owned();
    let root = server.root();
    let decision = format!("{root}/api/v1/conversations/c/calls/{call}/decision");
    let post = |name: &str, url: &str, body: Value| {
        place.write(name, body.to_string());
        format!("curl -s -w ' %{{http_code}}' -H 'content-type: application/json' --data @{name} {url}")
    };
    let allow = || post("allow.json", &decision, json!({"decision": "allow"}));
    let ui = json!({"id": "c", "trigger": "submit-message", "messages": [
        {"id": "x", "role": "user", "parts": [{"type": "text", "text": "write"}]},
        {"id": "turn_1", "role": "assistant", "parts": [
            {"type": "dynamic-tool", "toolName": "filesystem__write", "toolCallId": call, "state": "approval-responded",
             "input": {}, "approval": {"id": call.replace("call_", "appr_"), "approved": true}}]}]});
    let rule = json!({"tool": "*", "action": "allow", "scope": "everyone"});
    let by_hand = json!({"name": "filesystem__write", "arguments": {"path": "b.txt", "content": "x"}, "approve": "all"});
    let program = env!("CARGO_BIN_EXE_turnwright");
    let data = place.path("data").display().to_string();
    // Commands are told no database, and its password is hidden from models: this one found it in a file.
    let database = place.database().map_or("", |address| {
        place.write("found", format!("export TURNWRIGHT_DATABASE='{address}'\n"));
        ". ./found; "
    });
    let attempts = [
        (allow(), "people_only"),
        (format!("env -u TURNWRIGHT_PROCESS {}", allow()), "people_only"),
        (format!("setsid -w {}", allow()), "people_only"),
        (post("ui.json", &format!("{root}/api/chat"), ui), "people_only"),
        (post("rule.json", &format!("{root}/api/v1/approvals/rules"), rule), "people_only"),
        (post("call.json", &format!("{root}/api/v1/tools/call"), by_hand), "people_only"),
        (
            format!("{database}env -u TURNWRIGHT_PROCESS {program} --data-dir {data} approvals decide {call} allow 2>&1"),
            "only people decide",
        ),
        (format!("{database}{program} --data-dir {data} approvals rules add allow '*' 2>&1"), "only people decide"),
    ];
    for (at, (line, refusal)) in attempts.iter().enumerate() {
        let told = printed(&server, &format!("attack{at}"), line);
        let output = told["stdout"].as_str().unwrap();
        assert!(output.contains(refusal), "{line}: {told}");
        assert!(!output.contains(" 200"), "{line}: {told}");
    }
    let waiting = server.request("GET /api/v1/conversations/c/calls", "");
    assert!(waiting.contains(&call), "it waits still: {waiting}");
    assert!(!place.path("b.txt").exists());
    assert_eq!(place.json(&["approvals", "rules", "list", "--json"]).as_array().unwrap().len(), 1);
    let told = printed(&server, "reads", &format!("curl -s {root}/api/v1/approvals"));
    assert!(told["stdout"].as_str().unwrap().contains(&call), "it may look: {told}");

    let path = format!("POST /api/v1/conversations/c/calls/{call}/decision");
    let decided = server.request(&path, &json!({"decision": "allow"}).to_string());
    assert!(decided.starts_with("HTTP/1.1 200"), "{decided}");
    server.stop();
}

#[cfg(target_os = "linux")]
#[test]
fn a_command_in_a_sandbox_with_network_cannot_decide_either_and_without_it_reaches_nothing() {
    let model = obedient();
    for (commands, refusal) in [("network = true", "people_only"), ("network = false", " 000")] {
        let place = place(&model, commands);
        let server = Server::start(&place);
        let parked = chat(&server, "c", "write");
        let call = parked["turn"]["waiting"][0]["id"].as_str().unwrap().to_owned();
        place.write("allow.json", json!({"decision": "allow"}).to_string());
        let url = format!("{}/api/v1/conversations/c/calls/{call}/decision", server.root());
        let curl = format!("curl -s -w ' %{{http_code}}' -H 'content-type: application/json' --data @allow.json {url}");
        for (at, line) in [curl.clone(), format!("env -i PATH=/usr/bin:/bin setsid -w {curl}")].iter().enumerate() {
            let told = printed(&server, &format!("attack{at}"), line);
            assert!(told["stdout"].as_str().unwrap().contains(refusal), "{commands}: {line}: {told}");
        }
        assert!(!place.path("b.txt").exists());
        server.stop();
    }
}
