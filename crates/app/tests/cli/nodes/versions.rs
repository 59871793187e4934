//! An older version beside this one, on one database and one NATS. `TURNWRIGHT_OLD_BINARY` names the older
//! binary, one that was built of an earlier commit.

use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use turnwright_testkit::model_server::{Piece, call_chunk, finish_chunk, results_shown, text_chunk};

use super::{drives, ready, world_in};
use crate::serve::Server;
use crate::support::{Place, wait_for};

/// Each turn waits in its first step for a file, and says in its second what it is called.
fn script(request: &Value) -> Vec<Piece> {
    let messages = request["messages"].as_array().unwrap();
    let asked = messages.iter().filter(|message| message["role"] == "user").count();
    if results_shown(request) == 0 {
        let command =
            format!("touch began-{asked}; while [ ! -e go-{asked} ]; do sleep 0.02; done; echo once >> effects-{asked}");
        let arguments = json!({"command": command}).to_string();
        return vec![call_chunk(0, "command__run", &arguments), finish_chunk("tool_calls"), Piece::Done];
    }
    vec![text_chunk(&format!("Turn {asked} is over.")), finish_chunk("stop"), Piece::Done]
}

/// A turn begins at the one that is alone; the other comes, and the first ends in the middle of the turn's first step.
fn hand_over(turn: usize, place: &Place, from: Server, start: impl Fn() -> Server, say: impl Fn(&Server) -> Value) -> Server {
    say(&from);
    wait_for("the command", || place.path(&format!("began-{turn}")).exists().then_some(()));
    let to = start();
    wait_for("the nodes to know one another", || (ready(&to)["nodes"] == 2).then_some(()));
    assert!(drives(&from) && !drives(&to));
    from.signal(Signal::SIGTERM);
    wait_for("the end to begin", || from.request("GET /readyz", "").starts_with("HTTP/1.1 503 ").then_some(()));
    place.write(&format!("go-{turn}"), "");
    from.end();
    wait_for("the end of the turn", || {
        let told = to.ask("GET /api/v1/conversations/c", &Value::Null);
        (told["turn"]["status"] == "completed").then_some(())
    });
    to
}

#[test]
fn nodes_of_two_versions_hand_their_turns_to_one_another_on_one_database() {
    // Where no other is named, this version hands over to itself.
    let old = std::env::var_os("TURNWRIGHT_OLD_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_turnwright").into());
    let Some(place) = Place::on_postgres() else { return };
    let Some(world) = world_in(place, "[server]\ngrace_ms = 60000\n", 0, &[], script) else { return };
    let place = &world.place;
    let config = std::fs::read_to_string(place.path("turnwright.toml")).unwrap();
    place.write("turnwright.toml", format!("approve = \"all\"\n{config}"));
    let start_old = || Server::of(place.clean(Command::new(&old), &["serve", "--listen", "127.0.0.1:0"]), "http");
    let start_new = || Server::start(place);
    let say = |server: &Server| server.ask("POST /api/v1/conversations/c/messages", &json!({"content": "Go."}));
    let texts = |server: &Server| -> Vec<String> {
        let told = server.ask("GET /api/v1/conversations/c/messages", &Value::Null);
        let said = told["data"].as_array().unwrap().iter();
        said.filter_map(|message| Some(message["content"].as_str()?.to_owned()))
            .filter(|said| said.starts_with("Turn "))
            .collect()
    };
    let first = start_old();
    first.ask("POST /api/v1/conversations", &json!({"id": "c"}));
    let newer = hand_over(1, place, first, start_new, say);
    assert_eq!(texts(&newer), ["Turn 1 is over."]);
    let older = hand_over(2, place, newer, start_old, say);
    assert_eq!(texts(&older), ["Turn 1 is over.", "Turn 2 is over."]);
    let newer = hand_over(3, place, older, start_new, say);
    assert_eq!(texts(&newer), ["Turn 1 is over.", "Turn 2 is over.", "Turn 3 is over."]);
    for turn in 1..=3 {
        assert_eq!(std::fs::read_to_string(place.path(&format!("effects-{turn}"))).unwrap(), "once\n");
    }
    assert_eq!(world.model.requests().len(), 6, "no step was made twice");
    newer.stop();
}
