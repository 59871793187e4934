//! The server as a page sees it that is made with `useChat` of the AI SDK: what it says with the library's own code.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use turnwright_testkit::model_server::{ModelServer, Piece, call_chunk, finish_chunk, results_shown, text_chunk};

use crate::openai::{clients, scripts, talk};
use crate::questions::installed;
use crate::serve::Server;
use crate::support::Place;

/// Runs until it is let go.
const HOLD: &str = "touch running; while [ ! -e go ]; do sleep 0.05; done";

/// Does what the newest message says; else tells which model was asked and what it was shown.
fn script(request: &Value) -> Vec<Piece> {
    let messages = request["messages"].as_array().unwrap();
    let said_by = |role: &'static str| messages.iter().filter(move |message| message["role"] == role);
    let said: Vec<&str> = said_by("user").filter_map(|message| message["content"].as_str()).collect();
    let thinks = |text: &str| Piece::Chunk(json!({"choices": [{"index": 0, "delta": {"reasoning_content": text}}]}));
    let (mut pieces, finish) = match (said.last().copied(), results_shown(request)) {
        (Some("think"), _) => (vec![thinks("Let me see. "), thinks("It is clear."), text_chunk("Clear.")], "stop"),
        (Some("hold"), 0) => {
            let call = call_chunk(0, "command__run", &json!({"command": HOLD}).to_string());
            (vec![text_chunk("I hold."), call], "tool_calls")
        }
        (Some("hold"), _) => (vec![text_chunk("Held.")], "stop"),
        (Some("look"), 0) => {
            (vec![text_chunk("I look."), call_chunk(0, "filesystem__read", r#"{"path":"a.txt"}"#)], "tool_calls")
        }
        (Some("write"), 0) => (vec![call_chunk(0, "filesystem__write", r#"{"path":"b.txt","content":"hi"}"#)], "tool_calls"),
        (Some("book"), 0) => (vec![call_chunk(0, "asks__book", r#"{"town":"Oslo"}"#)], "tool_calls"),
        (Some("pay"), 0) => (vec![call_chunk(0, "bad__t", "{}")], "tool_calls"),
        (Some("both"), 0) => {
            let write = call_chunk(1, "filesystem__write", r#"{"path":"b.txt","content":"hi"}"#);
            (vec![text_chunk("I ask."), call_chunk(0, "asks__book", r#"{"town":"Oslo"}"#), write], "tool_calls")
        }
        (Some("all"), 0) => {
            let write = call_chunk(1, "filesystem__write", r#"{"path":"b.txt","content":"hi"}"#);
            let pick = call_chunk(2, "pick", r#"{"from":"x"}"#);
            (vec![call_chunk(0, "asks__book", r#"{"town":"Oslo"}"#), write, pick], "tool_calls")
        }
        (Some("look" | "write" | "book" | "pay" | "both" | "all"), _) => {
            let result = said_by("tool").next_back().unwrap()["content"].to_string();
            (vec![text_chunk(&format!("It said: {result}"))], "stop")
        }
        _ => {
            let (model, answers) = (request["model"].as_str().unwrap(), said_by("assistant").count());
            (vec![text_chunk(&format!("{model}: {} ({answers})", said.join("|")))], "stop")
        }
    };
    pieces.extend([finish_chunk(finish), Piece::Done]);
    pieces
}

fn shows(what: &str, servers: &str) {
    run("use_chat.mjs", what, "approve = \"all\"\n", servers);
}

fn run(file: &str, what: &str, approve: &str, servers: &str) {
    let Some(clients) = clients() else { return };
    let model = ModelServer::start([], script).unwrap();
    let place = Place::new();
    let config = format!(
        "model = \"p/m\"\n{approve}[providers.p]\ndialect = \"openai-chat\"\nbase_url = \"{}\"\n\
         models = [\"m\", \"n\"]\n[tools.command]\nsandbox = \"off\"\n{servers}",
        model.base_url()
    );
    place.write("turnwright.toml", config);
    let server = Server::start(&place);
    let mut command = Command::new(clients.join("npm/node_modules/.bin/node"));
    command.arg(scripts().join(file)).arg(clients.join("npm"));
    command.arg(server.root()).arg(place.path("")).arg(what);
    talk(command);
    server.stop();
}

#[test]
fn use_chat_shows_what_the_model_thinks_as_a_part() {
    shows("reasoning", "");
}

#[test]
fn use_chat_resumes_a_message_whose_stream_broke() {
    shows("resume", "");
}

#[test]
fn a_reader_that_comes_back_with_the_last_id_puts_the_same_message_together() {
    shows("position", "");
}

/// A server that asks for a form.
fn asking() -> Option<String> {
    let asks = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mcp/tests/servers/asks.py");
    let python = installed()?.join("python/bin/python");
    Some(format!("[mcp.servers.asks]\ncommand = \"{}\"\nargs = [\"{}\"]\n", python.display(), asks.display()))
}

#[test]
fn use_chat_shows_a_form_and_goes_on_once_it_is_answered() {
    if let Some(asking) = asking() {
        shows("form", &asking);
    }
}

#[test]
fn use_chat_sends_an_answer_once_though_what_was_allowed_asks_for_something_else() {
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mcp/tests/servers/misbehave.py");
    let config =
        format!("[mcp.servers.bad]\ncommand = \"python3\"\nargs = [\"{}\", \"completes_later\", \"\"]\n", server.display());
    run("use_chat.mjs", "answered", "approve = \"ask\"\n", &config);
}

#[test]
fn a_history_has_what_the_stream_left_in_each_version_while_people_and_clients_are_waited_for_and_after() {
    let Some(asking) = asking() else { return };
    for version in ["5", "6", "7"] {
        run("ui_history.mjs", version, "", &asking);
    }
}

#[test]
fn use_chat_is_given_another_answer_and_a_message_that_is_said_otherwise_replaces_what_was_there() {
    shows("again", "");
}

#[test]
fn the_stream_is_read_whole_by_each_version_of_the_library_that_is_named() {
    for version in ["5", "6", "7"] {
        run("ui_versions.mjs", version, "", "");
    }
}

#[test]
fn each_version_of_the_library_that_begins_with_a_history_and_resumes_there_has_what_was_said_once() {
    for version in ["5", "6", "7"] {
        run("ui_resumed.mjs", version, "approve = \"all\"\n", "");
    }
}
