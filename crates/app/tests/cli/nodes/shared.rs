//! What counts over all nodes: a message that is sent again, and what may be spent.

use serde_json::{Value, json};
use turnwright_testkit::model_server::{Piece, finish_chunk, text_chunk};
use turnwright_testkit::nats_server::{Keeps, NatsServer, program};

use super::{MIDDLE, until_end, world, world_in};
use crate::serve::Server;
use crate::support::{Place, wait_for};

fn short() -> Vec<Piece> {
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 900, "completion_tokens": 100, "total_tokens": 1000}});
    vec![text_chunk("Short."), finish_chunk("stop"), Piece::Chunk(usage), Piece::Done]
}

#[test]
fn a_message_that_is_sent_again_to_another_node_is_the_same_message() {
    let Some(world) = world(2, &[], |_| short()) else { return };
    world.create();
    let body = json!({"content": "Once."}).to_string();
    let send = |at: usize| {
        let head = "POST /api/v1/conversations/c/messages HTTP/1.1\r\nIdempotency-Key: once\r\nX-Ignored: ";
        let answer = world.servers[at].request(head, &body);
        let (status, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(status.starts_with("HTTP/1.1 2"), "{answer}");
        serde_json::from_str::<Value>(body).unwrap()
    };
    let first = send(0);
    let events = until_end(&mut world.watch(1, None));
    assert_eq!((send(1), send(0)), (first.clone(), first));
    assert_eq!(events.iter().filter(|told| told.event["entry"]["user"].is_object()).count(), 1);
    let messages = world.servers[1].ask("GET /api/v1/conversations/c/messages", &Value::Null);
    assert_eq!(messages["data"].as_array().unwrap().len(), 2, "{messages}");
    for server in world.servers {
        server.stop();
    }
}

#[test]
fn what_is_spent_at_one_node_counts_at_the_other() {
    let more = "[budgets]\nuser_day = { tokens = 6000 }\n[models.\"p/m\"]\nmax_output_tokens = 500\n";
    let Some(world) = world_in(Place::new(), more, 2, &[], |_| short()) else { return };
    let mut stopped_at = None;
    for turn in 0..8 {
        let id = format!("c{turn}");
        let server = &world.servers[turn % 2];
        server.ask("POST /api/v1/conversations", &json!({"id": id}));
        let told = server.ask(&format!("POST /api/v1/conversations/{id}/chat"), &json!({"content": "Go."}));
        if told["turn"]["status"] == "stopped" {
            stopped_at = Some(turn);
            break;
        }
    }
    let asked = world.model.requests().len();
    // With 1,000 tokens each no more than six fit, wherever they ran.
    assert!(stopped_at.is_some_and(|turn| turn <= 6 && asked == turn), "{stopped_at:?}, {asked}");
    let usage = |at: usize| world.servers[at].ask("GET /api/v1/usage", &Value::Null)["budgets"].clone();
    assert_eq!(usage(0)[0]["spent"]["tokens"], json!(asked * 1_000));
    assert_eq!(usage(0), usage(1));
    for server in world.servers {
        server.stop();
    }
}

#[test]
fn a_user_has_as_many_turns_over_all_nodes_as_one_may_have() {
    let script = |_request: &Value| vec![text_chunk("One "), Piece::Point(MIDDLE), finish_chunk("stop"), Piece::Done];
    let more = "[server.limits]\nturns_per_user = 2\n";
    let Some(world) = world_in(Place::new(), more, 2, &[MIDDLE], script) else { return };
    let send = |at: usize, conversation: &str| {
        let path = format!("POST /api/v1/conversations/{conversation}/messages");
        world.servers[at].request(&path, &json!({"content": "Go."}).to_string())
    };
    for conversation in ["a", "b", "c"] {
        world.servers[0].ask("POST /api/v1/conversations", &json!({"id": conversation}));
    }
    for (at, conversation) in [(0, "a"), (1, "b")] {
        assert!(send(at, conversation).starts_with("HTTP/1.1 202"));
    }
    wait_for("both turns to run", || (world.model.requests().len() == 2).then_some(()));
    for at in 0..2 {
        let refused = send(at, "c");
        assert!(refused.starts_with("HTTP/1.1 429") && refused.contains("too_many_user_turns"), "{at}: {refused}");
        assert!(send(at, "a").starts_with("HTTP/1.1 202"), "what is added to a turn that runs begins none");
    }
    world.model.run_free();
    wait_for("room for another", || send(1, "c").starts_with("HTTP/1.1 202").then_some(()));
    for server in world.servers {
        server.stop();
    }
}

#[test]
fn nodes_of_two_nats_clusters_on_one_database_are_told_and_lose_nothing() {
    let Some(world) = world(1, &[], |_| short()) else { return };
    let apart = NatsServer::start(&program().unwrap().unwrap(), &world.place.path("apart"), Keeps::Messages, &[]).unwrap();
    let config = std::fs::read_to_string(world.place.path("turnwright.toml")).unwrap();
    world.place.write("turnwright.toml", config.replace(&world.nats.url(), &apart.url()));
    let stray = Server::start(&world.place);
    let warning = "this database was last used by nodes that share turns over another NATS cluster or prefix";
    assert!(stray.said().contains(warning), "{}", stray.said());
    assert!(!world.servers[0].said().contains(warning), "{}", world.servers[0].said());
    world.create();
    for server in [&stray, &world.servers[0]] {
        let told = server.ask("POST /api/v1/conversations/c/chat", &json!({"content": "Go."}));
        assert_eq!(told["turn"]["status"], "completed", "{told}");
    }
    let messages = world.servers[0].ask("GET /api/v1/conversations/c/messages", &Value::Null);
    assert_eq!(messages["data"].as_array().unwrap().len(), 4, "{messages}");
    stray.stop();
    for server in world.servers {
        server.stop();
    }
}
