//! What is at one node alone: the processes of MCP servers with what they remember.

use serde_json::{Value, json};
use turnwright_testkit::model_server::{Piece, call_chunk, finish_chunk, results_shown, text_chunk};

use super::{World, ready, world_in};
use crate::support::{Place, wait_for};

/// Says for which process it counts, and how often it was called.
const COUNTER: &str = concat!(
    include_str!("../../servers/small.py"),
    r#"
calls = 0


def count(params):
    global calls
    calls += 1
    return "%d counts %d" % (os.getppid(), calls)


serve(lambda: [tool("add", "Adds one.")], count)
"#
);

/// One call of a tool in each turn, then a word.
pub(super) fn once(tool: &'static str, arguments: &'static str) -> impl Fn(&Value) -> Vec<Piece> + Send + Sync + 'static {
    move |request| {
        if results_shown(request) == 0 {
            return vec![call_chunk(0, tool, arguments), finish_chunk("tool_calls"), Piece::Done];
        }
        vec![text_chunk("It is done."), finish_chunk("stop"), Piece::Done]
    }
}

/// Three nodes with a counter, which is told of in `more` besides.
fn counting(more: &str) -> Option<World> {
    let place = Place::new();
    place.write("counter.py", COUNTER);
    let counter =
        format!("[mcp.servers.counter]\ncommand = \"python3\"\nargs = [\"{}\"]\n{more}", place.path("counter.py").display());
    let world = world_in(place, &counter, 3, &[], once("counter__add", "{}"))?;
    world.servers[0].ask("POST /api/v1/conversations", &json!({"id": "c", "settings": {"approve": "all"}}));
    Some(world)
}

/// What the counter said in a turn that is asked for through one of the nodes.
fn counted(world: &World, at: usize) -> String {
    let told = world.servers[at].ask("POST /api/v1/conversations/c/chat", &json!({"content": "Count."}));
    assert_eq!(told["turn"]["status"], "completed", "{told}");
    let messages = world.servers[at].ask("GET /api/v1/conversations/c/messages", &Value::Null);
    let newest = messages["data"].as_array().unwrap().iter().rfind(|message| message["role"] == "tool");
    newest.unwrap()["content"].as_str().unwrap().to_owned()
}

/// At which of the nodes the counter runs that said this.
fn node_of(world: &World, said: &str) -> usize {
    let words: Vec<&str> = said.rsplit('\n').next().unwrap().split(' ').collect();
    world.servers.iter().position(|server| server.pid().to_string() == words[0]).unwrap()
}

#[test]
fn the_turns_of_a_conversation_count_on_in_one_server_whichever_node_is_asked() {
    let Some(world) = counting("") else { return };
    let first = counted(&world, 0);
    let process = first.strip_suffix(" counts 1").unwrap().to_owned();
    for turn in 2..=9 {
        assert_eq!(counted(&world, turn % 3), format!("{process} counts {turn}"));
    }
    // Another conversation may be anywhere, and this one stays where it was.
    world.servers[1].ask("POST /api/v1/conversations", &json!({"id": "d", "settings": {"approve": "all"}}));
    let told = world.servers[1].ask("POST /api/v1/conversations/d/chat", &json!({"content": "Count."}));
    assert_eq!(told["turn"]["status"], "completed", "{told}");
    assert!(counted(&world, 2).starts_with(&format!("{process} counts ")));
    for server in world.servers {
        server.stop();
    }
}

#[test]
fn what_a_server_remembered_is_said_to_be_lost_with_its_node_and_only_then() {
    let Some(mut world) = counting("") else { return };
    let first = counted(&world, 0);
    let home = node_of(&world, &first);
    world.servers.remove(home).kill();
    // Until then PostgreSQL's lease of the dead counts as that of somebody who is only slow.
    wait_for("the others to miss it", || world.servers.iter().all(|at| ready(at)["nodes"] == 2).then_some(()));
    let lost = counted(&world, 0);
    let node = node_of(&world, &lost);
    let process = world.servers[node].pid();
    let warning = "Note: the server process in which `counter` ran for this conversation before has ended. `counter` runs anew: what \
                it held in memory for this conversation is lost.";
    assert_eq!(lost, format!("{warning}\n{process} counts 1"));
    assert_eq!(counted(&world, 1), format!("{process} counts 2"));
    // The model was told, and is told the same again.
    let requests = world.model.requests();
    let is_told =
        |request: &&Value| request["messages"].to_string().contains("what it held in memory for this conversation is lost");
    assert_eq!(requests.iter().filter(is_told).count(), 3, "with its result, and twice in the turn after it");
    for server in world.servers {
        server.stop();
    }
}

#[test]
fn a_node_that_ends_gives_up_its_conversations_to_others() {
    let Some(mut world) = counting("") else { return };
    let home = node_of(&world, &counted(&world, 0));
    world.servers.remove(home).stop();
    let lost = counted(&world, 1);
    assert!(lost.starts_with("Note: ") && lost.ends_with(" counts 1"), "{lost}");
    for server in world.servers {
        server.stop();
    }
}

#[test]
fn a_server_that_is_declared_to_remember_nothing_is_called_wherever_there_is_room() {
    let Some(mut world) = counting("keeps_state = false\n") else { return };
    let home = node_of(&world, &counted(&world, 0));
    world.servers.remove(home).kill();
    let after = counted(&world, 0);
    let node = node_of(&world, &after);
    assert_eq!(after, format!("{} counts 1", world.servers[node].pid()), "nothing is said to be lost");
    for server in world.servers {
        server.stop();
    }
}
