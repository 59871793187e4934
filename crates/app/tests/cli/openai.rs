//! The server as OpenAI's own clients see it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use turnwright_testkit::Port;
use turnwright_testkit::model_server::{ModelServer, Piece, call_chunk, finish_chunk, results_shown, text_chunk};

use crate::serve::Server;
use crate::support::{LIMIT, Place, Ran, wait_for};

/// Answers each prompt in its way: with calls to tools of this side, of the client's, or both; with what it was shown.
fn script(body: &Value) -> Vec<Piece> {
    let messages = body["messages"].as_array().unwrap();
    let last = messages.last().unwrap();
    let prompt = messages.iter().rev().find(|message| message["role"] == "user").unwrap()["content"].to_string();
    let ours = || call_chunk(0, "filesystem__read", "{\"path\":\"a.txt\"}");
    let theirs = |index| call_chunk(index, "pick", "{\"from\":\"x\"}");
    let mut pieces = match () {
        () if last["role"] == "tool" => {
            let results = messages.iter().rev().take_while(|message| message["role"] == "tool");
            let shown = results.last().unwrap()["content"].as_str().unwrap();
            vec![text_chunk(&format!("Got {shown}"))]
        }
        () if prompt.contains("prompt") => {
            let told =
                messages.iter().find(|message| message["role"] == "system").map(|message| message["content"].to_string());
            vec![text_chunk(&told.unwrap_or_default())]
        }
        () if prompt.contains("broken") => {
            let told = json!({"error": {"message": format!("cannot read {prompt}"), "type": "server_error"}}).to_string();
            let head = "HTTP/1.1 500 Internal Server Error\r\ncontent-type: application/json\r\nconnection: close";
            return vec![Piece::Raw(format!("{head}\r\ncontent-length: {}\r\n\r\n{told}", told.len()))];
        }
        () if prompt.contains("ours") => vec![text_chunk("Reading."), ours()],
        () if prompt.contains("both") => vec![theirs(0), call_chunk(1, "filesystem__read", "{\"path\":\"a.txt\"}")],
        () if prompt.contains("write") => vec![call_chunk(0, "filesystem__write", "{\"path\":\"b.txt\",\"content\":\"hi\"}")],
        () if prompt.contains("image") => {
            vec![text_chunk(if prompt.contains("data:image/png") { "One image." } else { "None." })]
        }
        () if prompt.contains("json") && body["response_format"]["type"] == "json_schema" => vec![text_chunk("{\"n\":1}")],
        () if prompt.contains("limit") => {
            let told = "{\"error\":{\"message\":\"slow down\",\"type\":\"rate_limit_error\",\"code\":\"rate_limit_exceeded\"}}";
            let head = "HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\nconnection: close";
            return vec![Piece::Raw(format!("{head}\r\ncontent-length: {}\r\n\r\n{told}", told.len()))];
        }
        () => vec![text_chunk("Hello "), text_chunk("there.")],
    };
    let has_calls = pieces.iter().any(|piece| matches!(piece, Piece::Chunk(chunk) if chunk.to_string().contains("tool_calls")));
    pieces.push(finish_chunk(if has_calls { "tool_calls" } else { "stop" }));
    let usage = json!({"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10});
    pieces.extend([Piece::Chunk(json!({"choices": [], "usage": usage})), Piece::Done]);
    pieces
}

pub(crate) fn place() -> (Place, ModelServer) {
    let model = ModelServer::start([], script).unwrap();
    let place = Place::with(&format!(
        "system_prompt = \"Be brief.\"\n[providers.p]\ndialect = \"openai-chat\"\nbase_url = \"{}\"\nmodels = [\"m\"]\nmax_retries = 0\n",
        model.base_url()
    ));
    (place, model)
}

/// The folder of installed clients; `None`, after saying so, where there is none.
pub(crate) fn clients() -> Option<PathBuf> {
    let folder = std::env::var_os("TURNWRIGHT_TEST_SERVERS").map(PathBuf::from).or_else(|| {
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
        Some(cache.join("turnwright/test-servers"))
    });
    let found = folder.map(|folder| folder.join("clients")).filter(|folder| folder.join("installed").is_file());
    if found.is_none() {
        assert!(
            std::env::var_os("TURNWRIGHT_REQUIRE_TEST_SERVERS").is_none_or(|value| value != "1"),
            "the clients of OpenAI's APIs are not installed: run scripts/install-test-servers"
        );
        println!("skipped: run scripts/install-test-servers");
    }
    found
}

pub(crate) fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/openai")
}

pub(crate) fn talk(mut command: impl std::borrow::BorrowMut<Command>) {
    let ran = Ran::of(command.borrow_mut().output().unwrap());
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "well\n"), "{}", ran.stderr);
}

#[test]
fn the_official_python_library_is_answered() {
    let Some(clients) = clients() else { return };
    let (place, _model) = place();
    let server = Server::start(&place);
    let mut command = Command::new(clients.join("python/bin/python"));
    command.arg(scripts().join("client.py")).arg(server.base_url());
    talk(command);
    server.stop();
}

#[test]
fn the_official_javascript_library_and_the_ai_sdk_are_answered() {
    let Some(clients) = clients() else { return };
    let (place, _model) = place();
    let server = Server::start(&place);
    let mut command = Command::new(clients.join("npm/node_modules/.bin/node"));
    command.arg(scripts().join("client.mjs")).arg(clients.join("npm")).arg(server.base_url());
    talk(command);
    server.stop();
}

#[test]
fn what_a_provider_repeats_of_a_prompt_is_told_to_the_client_and_not_to_the_log() {
    let (place, _model) = place();
    let server = Server::start(&place);
    let body = json!({"model": "p/m", "messages": [{"role": "user", "content": "broken secret-of-ada"}]});
    let answer = server.request("POST /v1/chat/completions", &body.to_string());
    assert!(answer.starts_with("HTTP/1.1 502") && answer.contains("secret-of-ada"), "{answer}");
    wait_for("the line of the log", || server.said().contains("request failed").then_some(()));
    assert!(!server.said().contains("secret-of-ada"), "{}", server.said());
    server.stop();
}

#[test]
fn a_clients_result_goes_on_with_a_turn_of_a_server_that_was_killed() {
    let (place, _model) = place();
    let server = Server::start(&place);
    let ask = |server: &Server, body: &Value| -> Value {
        let answer = server.request("POST /v1/chat/completions", &body.to_string());
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
        serde_json::from_str(body).unwrap()
    };
    let tools = json!([{"type": "function", "function": {"name": "pick", "parameters": {"type": "object"}}}]);
    let prompt = json!({"role": "user", "content": "both"});
    let first = ask(&server, &json!({"model": "p/m", "messages": [prompt], "tools": tools}));
    let message = &first["choices"][0]["message"];
    server.kill();

    let next = Server::start(&place);
    let result = json!({"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "red"});
    let second = ask(&next, &json!({"model": "p/m", "messages": [prompt, message, result], "tools": tools}));
    assert_eq!(second["choices"][0]["message"]["content"], "Got red");
    assert_eq!(
        second["turnwright"],
        json!({
            "conversation_id": first["turnwright"]["conversation_id"], "turn_id": first["turnwright"]["turn_id"]
        })
    );
    next.stop();
}

/// Runs a command that says that it ran, and answers once its result was shown.
fn running_once() -> ModelServer {
    ModelServer::start(["answering"], |request| match results_shown(request) {
        0 => {
            let line = json!({"command": "echo ran >> ran.txt"}).to_string();
            vec![call_chunk(0, "command__run", &line), finish_chunk("tool_calls"), Piece::Done]
        }
        _ => vec![text_chunk("It "), Piece::Point("answering"), text_chunk("ran."), finish_chunk("stop"), Piece::Done],
    })
    .unwrap()
}

#[test]
fn what_an_official_library_sends_again_since_its_server_was_killed_runs_no_tool_again() {
    let Some(clients) = clients() else { return };
    let javascript = || {
        let mut command = Command::new(clients.join("npm/node_modules/.bin/node"));
        command.arg(scripts().join("killed.mjs")).arg(clients.join("npm"));
        command
    };
    let python = || {
        let mut command = Command::new(clients.join("python/bin/python"));
        command.arg(scripts().join("killed.py"));
        command
    };
    let libraries: [(&str, &dyn Fn() -> Command); 2] = [("JavaScript", &javascript), ("Python", &python)];
    for (library, command) in libraries {
        for door in ["completions", "responses"] {
            let model = running_once();
            let place = Place::new();
            let config = format!(
                "model = \"p/m\"\n[providers.p]\ndialect = \"openai-chat\"\nbase_url = \"{}\"\nmodels = [\"m\"]\nmax_retries = 0\n\
                 [[approval.rules]]\ntool = \"command__*\"\naction = \"allow\"\n[tools.command]\nsandbox = \"off\"\n",
                model.base_url()
            );
            place.write("turnwright.toml", config);
            let port = Port::reserve().unwrap();
            let address = port.address();
            let server = Server::start_at(&place, &address);
            let mut client = command();
            client.arg(server.root()).arg(door).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let client = client.spawn().unwrap();
            assert!(model.wait_for("answering", LIMIT), "{library}, {door}: the model was never shown the result");
            server.kill();
            model.run_free();
            let next = Server::start_at(&place, &address);
            let ran = Ran::of(client.wait_with_output().unwrap());
            assert_eq!(ran.code, Some(0), "{library}, {door}: {}\n{}", ran.stdout, ran.stderr);
            let read: Value = serde_json::from_str(&ran.stdout).unwrap();
            assert_eq!(read["text"], "It ran.", "{library}, {door}");
            assert_eq!(std::fs::read_to_string(place.path("ran.txt")).unwrap(), "ran\n", "{library}, {door}");
            let all = next.ask("GET /api/v1/conversations", &Value::Null);
            let names: Vec<&Value> = all["data"].as_array().unwrap().iter().map(|conversation| &conversation["id"]).collect();
            assert_eq!(names, [&read["conversation"]], "{library}, {door}");
            next.stop();
        }
    }
}
