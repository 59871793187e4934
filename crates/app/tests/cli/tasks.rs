//! Calls that MCP servers take as tasks, through the real binary: the task outlives a kill, and is never made again.

use std::path::Path;

use serde_json::{Value, json};
use turnwright_testkit::model_server::{ModelServer, Piece, call_chunk, finish_chunk, results_shown, text_chunk};

use crate::questions::{ANSWER, body, said, status, waiting};
use crate::serve::Server;
use crate::support::{Place, wait_for};

/// A place whose model calls this tool of a server that takes calls as tasks, and says what it gave.
fn place(era: &str, tool: &'static str, polls: u32) -> (Place, ModelServer) {
    let model = ModelServer::start(None, move |request| {
        if results_shown(request) == 0 {
            return vec![call_chunk(0, tool, "{}"), finish_chunk("tool_calls"), Piece::Done];
        }
        let messages = request["messages"].as_array().cloned().unwrap_or_default();
        let said = messages.last().and_then(|message| message["content"].as_str()).unwrap_or_default().to_owned();
        vec![text_chunk(&format!("It said: {said}")), finish_chunk("stop"), Piece::Done]
    })
    .unwrap();
    let place = Place::new();
    std::fs::create_dir_all(place.path("shop")).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mcp/tests/servers/tasks.py");
    place.write(
        "turnwright.toml",
        format!(
            "model = \"scripted/m\"\napprove = \"all\"\n[providers.scripted]\ndialect = \"openai-chat\"\nbase_url = \"{}\"\n\
             models = [\"m\"]\n[mcp.servers.shop]\ncommand = \"python3\"\nargs = [\"{}\", \"{era}\", \"{}\", \"{polls}\"]\n",
            model.base_url(),
            script.display(),
            place.path("shop").display(),
        ),
    );
    (place, model)
}

fn made(place: &Place) -> String {
    std::fs::read_to_string(place.path("shop/made")).unwrap_or_default()
}

fn begin(server: &Server) {
    server.request("POST /api/v1/conversations", r#"{"id":"c"}"#);
    server.request("POST /api/v1/conversations/c/messages", r#"{"content":"build"}"#);
}

#[test]
fn a_task_goes_on_over_the_end_of_the_host_and_of_its_server_however_they_end() {
    for (era, is_killed) in [("legacy", true), ("legacy", false), ("modern", true), ("modern", false)] {
        let (place, _model) = place(era, "shop__build", 1_000_000);
        let polls = || {
            let state: Value = serde_json::from_str(&std::fs::read_to_string(place.path("shop/task-t0")).ok()?).ok()?;
            state["polls"].as_u64()
        };
        let mut server = Server::start(&place);
        begin(&server);
        // More often than a turn is taken up that gets nowhere.
        for _ in 0..4 {
            let before = polls().unwrap_or(0);
            wait_for("two more questions for it", || (polls()? >= before + 2).then_some(()));
            // SIGKILL, and the server dies with its host; or in order.
            if is_killed {
                drop(server);
            } else {
                server.stop();
            }
            server = Server::start(&place);
        }
        place.write("shop/polls", "2");
        assert_eq!(said(&server), "It said: build is done, colour none", "{era}");
        assert_eq!(made(&place), "build\n", "{era}");
        assert!(!place.path("shop/cancelled").exists(), "{era}: it was cancelled by the end of its host");
        server.stop();
    }
}

#[test]
fn what_a_task_of_2026_07_28_asks_on_the_way_waits_over_a_kill() {
    let (place, _model) = place("modern", "shop__paint", 1);
    let server = Server::start(&place);
    begin(&server);
    let asked = waiting(&server);
    assert_eq!(
        (&asked["question"]["message"], &asked["question"]["holds_connection"]),
        (&json!("Which colour?"), &json!(false))
    );
    drop(server);
    let server = Server::start(&place);
    assert_eq!(waiting(&server), asked);
    let answered = server.request(ANSWER, r#"{"action":"accept","content":{"colour":"red"}}"#);
    assert_eq!(status(&answered), "200", "{answered}");
    assert_eq!(said(&server), "It said: paint is done, colour red");
    assert_eq!(made(&place), "paint\n");
    server.stop();
}

#[test]
fn a_stop_reaches_the_task() {
    for era in ["legacy", "modern"] {
        let (place, _model) = place(era, "shop__build", 1_000_000);
        let server = Server::start(&place);
        begin(&server);
        wait_for("the task", || place.path("shop/task-t0").exists().then_some(()));
        assert_eq!(status(&server.request("POST /api/v1/conversations/c/cancel", "{}")), "202");
        wait_for("the end of the task", || {
            let cancelled = std::fs::read_to_string(place.path("shop/cancelled")).unwrap_or_default();
            (cancelled == "t0\n").then_some(())
        });
        let ended = wait_for("the end of the turn", || {
            let turn = body(&server.request("GET /api/v1/conversations/c", ""))["turn"]["status"].clone();
            (turn != "running").then_some(turn)
        });
        assert_eq!(ended, "cancelled");
        server.stop();
    }
}
