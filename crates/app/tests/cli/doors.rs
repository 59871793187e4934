//! One turn through every door: two steps with two calls each, of which one fails and one waits for a person, then the
//! answer. Whichever door it comes in by, the journal is the same, and the client that belongs to the door reads it whole.

use std::process::Command;

use agent_client_protocol::v1::schema::{PermissionOptionKind, StopReason};
use serde_json::{Value, json};
use turnwright_testkit::model_server::{ModelServer, Piece, call_chunk, finish_chunk, results_shown, text_chunk};

use crate::editor;
use crate::interactive::Terminal;
use crate::openai::clients;
use crate::serve::Server;
use crate::support::{Place, Ran};
use crate::watching::Watcher;

const PROMPT: &str = "Copy a.txt.";

/// What a door's client read of the turn.
#[derive(Debug, PartialEq)]
struct Read {
    conversation: String,
    /// All that was said, in order, without what stands between.
    text: String,
}

/// What the model says in the turn.
const SAID: &str = "I look. There is one. I copy it. All done.";

fn script(request: &Value) -> Vec<Piece> {
    match results_shown(request) {
        0 => vec![
            text_chunk("I "),
            text_chunk("look. "),
            call_chunk(0, "filesystem__read", "{\"path\":\"a.txt\"}"),
            call_chunk(1, "filesystem__read", "{\"path\":\"none.txt\"}"),
            finish_chunk("tool_calls"),
            Piece::Done,
        ],
        2 => vec![
            text_chunk("There is one. I copy it. "),
            call_chunk(0, "filesystem__read", "{\"path\":\"a.txt\",\"offset\":6}"),
            call_chunk(1, "filesystem__write", "{\"path\":\"b.txt\",\"content\":\"hello file\\n\"}"),
            finish_chunk("tool_calls"),
            Piece::Done,
        ],
        _ => vec![text_chunk("All "), text_chunk("done."), finish_chunk("stop"), Piece::Done],
    }
}

/// By the JSON API alone: ask, decide, read.
fn rest(place: &Place) -> Read {
    let server = Server::start(place);
    let asked = server.ask("POST /api/v1/conversations/c/chat", &json!({"content": PROMPT}));
    assert_eq!(asked["turn"]["status"], "suspended", "{asked}");
    server.allow("c");
    let mut watcher = Watcher::open(server.address(), "/api/v1/conversations/c/events", None).unwrap();
    watcher.until("turn.finished");
    let page = server.ask("GET /api/v1/conversations/c/messages", &Value::Null);
    let said = page["data"].as_array().unwrap().iter().filter(|message| message["role"] == "assistant");
    let text = said.filter_map(|message| message["content"].as_str()).collect();
    server.stop();
    Read { conversation: "c".to_owned(), text }
}

/// By a message that is stored, and the engine's own events.
fn events(place: &Place) -> Read {
    let server = Server::start(place);
    server.ask("POST /api/v1/conversations", &json!({"id": "c"}));
    let mut watcher = Watcher::open(server.address(), "/api/v1/conversations/c/events", None).unwrap();
    server.ask("POST /api/v1/conversations/c/messages", &json!({"content": PROMPT}));
    let mut told = watcher.until("turn.suspended");
    server.allow("c");
    told.extend(watcher.until("turn.finished"));
    let text = told.iter().filter(|event| event["type"] == "text.delta").filter_map(|event| event["text"].as_str()).collect();
    server.stop();
    Read { conversation: "c".to_owned(), text }
}

/// By a door's own client in JavaScript.
fn javascript(place: &Place, door: &str) -> Option<Read> {
    let clients = clients()?;
    let mut command = Command::new(clients.join("npm/node_modules/.bin/node"));
    command.arg(here("client.mjs")).arg(clients.join("npm"));
    Some(talk(place, command, door))
}

/// By the official Python library.
fn python(place: &Place, door: &str) -> Option<Read> {
    let mut command = Command::new(clients()?.join("python/bin/python"));
    command.arg(here("client.py"));
    Some(talk(place, command, door))
}

/// By the editors' protocol.
fn editors(place: &Place) -> Read {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (conversation, told) = runtime
        .block_on(editor::with_agent(place, PermissionOptionKind::AllowOnce, async |agent, told| {
            let session = editor::session(&agent, place).await?;
            assert_eq!(editor::prompt(&agent, &session, PROMPT).await?, StopReason::EndTurn);
            Ok((session.to_string(), told))
        }))
        .unwrap();
    Read { conversation, text: editor::text(&told) }
}

/// By a person at a terminal.
fn terminal(place: &Place) -> Read {
    let mut terminal = Terminal::start(place, &["chat", "--conversation", "c"]);
    terminal.type_line("> ", PROMPT);
    let mut text = String::new();
    for said in ["I look. ", "There is one. I copy it. "] {
        terminal.see(said.trim_end());
        text.push_str(said);
    }
    terminal.type_line("your choice: ", "y");
    terminal.see("✓ filesystem__write {");
    terminal.see("All done.");
    text.push_str("All done.");
    terminal.type_line("> ", "/quit");
    assert_eq!(terminal.end(), Some(0));
    Read { conversation: "c".to_owned(), text }
}

/// By a command that prints what came of it, and another that decides.
fn command_line(place: &Place) -> Read {
    let asked = place.run(&["chat", PROMPT, "--conversation", "c", "--output", "json"]);
    assert_eq!(asked.code, Some(3), "{asked:?}");
    let report: Value = serde_json::from_str(&asked.stdout).unwrap();
    let call = report["waiting"][0]["id"].as_str().unwrap();
    let said = report["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "assistant");
    let text: String = said.filter_map(|message| message["content"].as_str()).collect();
    let decided = place.run(&["approvals", "decide", call, "allow"]);
    assert_eq!(decided.code, Some(0), "{decided:?}");
    Read { conversation: "c".to_owned(), text: text + decided.stdout.trim_end() }
}

/// Takes the turn through; `None` where the door's client is not installed.
type Door = fn(&Place) -> Option<Read>;

const DOORS: [(&str, Door); 13] = [
    ("the JSON API", |place| Some(rest(place))),
    ("messages and events", |place| Some(events(place))),
    ("messages and the stream of the AI SDK", |place| javascript(place, "stream")),
    ("useChat", |place| javascript(place, "use_chat")),
    ("/v1/chat/completions, JavaScript", |place| javascript(place, "completions")),
    ("/v1/chat/completions, Python", |place| python(place, "completions")),
    ("/v1/chat/completions, the AI SDK", |place| javascript(place, "ai_sdk")),
    ("/v1/responses, JavaScript", |place| javascript(place, "responses")),
    ("/v1/responses, Python", |place| python(place, "responses")),
    ("AG-UI", |place| javascript(place, "ag_ui")),
    ("ACP", |place| Some(editors(place))),
    ("the command line", |place| Some(command_line(place))),
    ("the terminal", |place| Some(terminal(place))),
];

#[test]
fn a_turn_is_the_same_by_every_door() {
    for (name, door) in DOORS {
        let model = ModelServer::start([], script).unwrap();
        let place = Place::new();
        let config = format!(
            "model = \"p/m\"\n[providers.p]\ndialect = \"openai-chat\"\nbase_url = \"{}\"\nmodels = [\"m\"]\n",
            model.base_url()
        );
        place.write("turnwright.toml", config);
        let Some(read) = door(&place) else { continue };
        assert_eq!(read.text, SAID, "{name}");
        assert_eq!(std::fs::read_to_string(place.path("b.txt")).unwrap(), "hello file\n", "{name}");
        let journal = journal(&place, &read.conversation);
        assert_eq!(journal, include_str!("doors/journal.jsonl"), "{name}:\n{journal}");
        assert_eq!(model.requests().len(), 3, "{name}: three steps, three requests");
    }
}

/// The stored entries of a conversation as lines, without times and what names a process. Calls that run at once end in any
/// order, so what lies between two messages is put in one.
fn journal(place: &Place, conversation: &str) -> String {
    let server = Server::start(place);
    let path = format!("/api/v1/conversations/{conversation}/events");
    let told = Watcher::open(server.address(), &path, None).unwrap().until("turn.finished");
    server.stop();
    let entries = told.into_iter().filter(|event| event["type"] == "entry").map(|mut event| {
        let mut entry = event["entry"].take();
        forget(&mut entry);
        entry
    });
    let mut entries: Vec<Value> = entries.collect();
    let is_message = |entry: &Value| entry.get("user").or(entry.get("assistant")).is_some();
    for part in entries.chunk_by_mut(|before, after| !is_message(before) && !is_message(after)) {
        part.sort_by_key(Value::to_string);
    }
    entries.iter().map(Value::to_string).flat_map(|line| [line, "\n".to_owned()]).collect()
}

/// Takes away what no two turns have in common, and of tools all but their names.
fn forget(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !["driver", "folder", "duration_ms", "definition_hash"].contains(&name.as_str()));
            if let Some(Value::Array(tools)) = fields.get_mut("definitions") {
                for tool in tools {
                    *tool = tool["name"].take();
                }
            }
            fields.values_mut().for_each(forget);
        }
        Value::Array(items) => items.iter_mut().for_each(forget),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn here(name: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/doors").join(name)
}

/// Runs a client against a server; it prints what it read.
fn talk(place: &Place, mut command: Command, door: &str) -> Read {
    let server = Server::start(place);
    let ran = Ran::of(command.arg(server.root()).arg(door).arg(PROMPT).output().unwrap());
    server.stop();
    assert_eq!(ran.code, Some(0), "{door}: {}\n{}", ran.stdout, ran.stderr);
    let read: Value = serde_json::from_str(&ran.stdout).unwrap();
    let word = |name: &str| read[name].as_str().unwrap().to_owned();
    Read { conversation: word("conversation"), text: word("text") }
}
