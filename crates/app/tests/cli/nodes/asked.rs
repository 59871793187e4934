//! Forms that calls ask people to fill in, answered through another node than the one that has the call.

use std::path::Path;

use serde_json::{Value, json};

use super::kept::once;
use super::{World, until_end, world_in};
use crate::questions::{body, installed, said, status, waiting};
use crate::support::Place;

/// Two nodes with a server that asks people.
fn asking(server: &str, tool: &'static str, arguments: &'static str) -> Option<World> {
    let world = world_in(Place::new(), server, 2, &[], once(tool, arguments))?;
    world.servers[0].ask("POST /api/v1/conversations", &json!({"id": "c", "settings": {"approve": "all"}}));
    Some(world)
}

/// Begins a turn that asks, and answers what it asks through the node that does not drive it, where one does.
fn answer_elsewhere(world: &World, holds_connection: bool) {
    let mut watcher = world.watch(0, None);
    world.say(0, "Ask.");
    let asked = waiting(&world.servers[0]);
    assert_eq!((&asked["reason"], &asked["question"]["holds_connection"]), (&json!("question"), &json!(holds_connection)));
    let other = if holds_connection { 1 - world.driver() } else { 1 };
    assert_eq!(waiting(&world.servers[other]), asked, "it is seen at every node");
    let path = format!("POST /api/v1/conversations/c/questions/{}/answer", asked["id"].as_str().unwrap());
    let wrong = world.servers[other].request(&path, r#"{"action":"accept","content":{"name":5}}"#);
    assert_eq!(status(&wrong), "422", "{wrong}");
    let accepted = world.servers[other].request(&path, r#"{"action":"accept","content":{"name":"Ann"}}"#);
    assert_eq!((status(&accepted), &body(&accepted)["content"]["name"]), ("200", &json!("Ann")), "{accepted}");
    assert_eq!(said(&world.servers[1 - other]), "It is done.");
    let again = world.servers[1 - other].request(&path, r#"{"action":"cancel"}"#);
    assert_eq!(status(&again), "409", "it is answered once: {again}");
    let told = until_end(&mut watcher);
    let answers = told.iter().filter(|told| told.event["entry"]["answered"].is_object()).count();
    assert_eq!(answers, 1, "{told:?}");
    assert!(result(world).contains("Ann"), "{}", result(world));
}

fn result(world: &World) -> String {
    let messages = world.servers[0].ask("GET /api/v1/conversations/c/messages", &Value::Null);
    messages["data"].as_array().unwrap().iter().find(|message| message["role"] == "tool").unwrap()["content"].to_string()
}

#[test]
fn a_form_that_a_call_holds_its_connection_for_is_answered_through_another_node() {
    let Some(installed) = installed() else { return };
    let everything = installed.join("npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let server = format!("[mcp.servers.everything]\ncommand = \"node\"\nargs = [\"{}\"]\n", everything.display());
    let Some(world) = asking(&server, "everything__trigger-elicitation-request", "{}") else { return };
    answer_elsewhere(&world, true);
    for server in world.servers {
        server.stop();
    }
}

#[test]
fn a_form_that_nothing_is_held_for_is_answered_through_another_node() {
    let Some(installed) = installed() else { return };
    let asks = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mcp/tests/servers/asks.py");
    let python = installed.join("python/bin/python");
    let server = format!("[mcp.servers.asks]\ncommand = \"{}\"\nargs = [\"{}\"]\n", python.display(), asks.display());
    let Some(world) = asking(&server, "asks__book", r#"{"town":"Oslo"}"#) else { return };
    answer_elsewhere(&world, false);
    for server in world.servers {
        server.stop();
    }
}
