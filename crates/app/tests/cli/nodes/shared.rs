//! What counts over all nodes: a message that is sent again, and what may be spent.

use serde_json::{Value, json};
use turnwright_testkit::model_server::{Piece, finish_chunk, text_chunk};
use turnwright_testkit::nats_server::{Keeps, NatsServer, program};

use super::{MIDDLE, ready, until_end, world, world_in};
use crate::serve::Server;
use crate::support::{Place, wait_for};
use crate::watching::Watcher;

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
fn a_user_has_as_many_streams_over_all_nodes_as_one_may_have_and_those_of_a_node_that_died_count_no_more() {
    let more = "[server.limits]\nstreams_per_user = 2\n";
    let Some(mut world) = world_in(Place::new(), more, 3, &[], |_| short()) else { return };
    world.create();
    let path = "/api/v1/conversations/c/events";
    let open = |server: &Server| Watcher::open(server.address(), path, None);
    // A stream that is opened before it is known is closed again.
    let is_refused = |server: &Server| open(server).is_none().then_some(());
    let first = world.servers.remove(0);
    let (_one, other) = (open(&first).unwrap(), open(&world.servers[0]).unwrap());
    for server in world.servers.iter().chain([&first]) {
        wait_for("the streams of the others to be known", || is_refused(server));
    }
    // Nor is a message taken whose answer would be streamed.
    let head = "POST /api/v1/conversations/c/chat HTTP/1.1\r\nAccept: text/event-stream\r\nX-Ignored: ";
    let told = world.servers[1].request(head, &json!({"content": "Go."}).to_string());
    assert!(told.starts_with("HTTP/1.1 429") && told.contains("too_many_user_streams"), "{told}");
    first.kill();
    let again = wait_for("the place of a dead node's stream", || open(&world.servers[1]));
    wait_for("that to be known", || is_refused(&world.servers[0]));
    drop(other);
    let _last = wait_for("the place of a closed stream", || open(&world.servers[1]));
    drop(again);
    for server in world.servers {
        server.stop();
    }
}

#[test]
fn there_are_as_many_searches_over_all_nodes_as_one_may_make() {
    let Some(place) = Place::on_postgres() else { return };
    let site = crate::web::site("application/json", r#"{"results": [{"title": "One", "url": "https://example.org/"}]}"#);
    let more = format!("[tools.web.search]\nengine = \"searxng\"\nbase_url = \"http://{site}/search\"\nper_minute = 2\n");
    let Some(world) = world_in(place, &more, 2, &[], |_| short()) else { return };
    let search = |at: usize| {
        let told =
            world.servers[at].ask("POST /api/v1/tools/call", &json!({"name": "web__search", "arguments": {"query": "one"}}));
        (told["outcome"].as_str().unwrap().to_owned(), told["content"].to_string())
    };
    for at in 0..2 {
        let (outcome, content) = search(at);
        assert!(outcome == "success" && content.contains("https://example.org/"), "{outcome}: {content}");
    }
    for at in 0..2 {
        let (outcome, content) = search(at);
        assert!(
            outcome != "success" && content.contains("searches are limited to 2 a minute; the next one may be in "),
            "{content}"
        );
    }
    for server in world.servers {
        server.stop();
    }
}

#[test]
fn nodes_of_two_nats_clusters_on_one_database_say_so_for_as_long_as_it_is_so_and_lose_nothing() {
    let Some(world) = world(1, &[], |_| short()) else { return };
    let apart = NatsServer::start(&program().unwrap().unwrap(), &world.place.path("apart"), Keeps::Messages, &[]).unwrap();
    let config = std::fs::read_to_string(world.place.path("turnwright.toml")).unwrap();
    world.place.write("turnwright.toml", config.replace(&world.nats.url(), &apart.url()));
    let stray = Server::start(&world.place);
    for server in [&stray, &world.servers[0]] {
        let told = wait_for("both to be known", || Some(ready(server)).filter(|told| told["status"] == "degraded"));
        let why = told["degraded"][0].as_str().unwrap();
        assert!(why.starts_with("this database is used by nodes that share turns over another NATS cluster"), "{told}");
        let is_said = || server.said().contains("this database is used by nodes that share turns over another NATS cluster");
        wait_for("the warning", || is_said().then_some(()));
    }
    world.create();
    for server in [&stray, &world.servers[0]] {
        let told = server.ask("POST /api/v1/conversations/c/chat", &json!({"content": "Go."}));
        assert_eq!(told["turn"]["status"], "completed", "{told}");
    }
    let messages = world.servers[0].ask("GET /api/v1/conversations/c/messages", &Value::Null);
    assert_eq!(messages["data"].as_array().unwrap().len(), 4, "{messages}");
    stray.stop();
    wait_for("the other to be gone", || (ready(&world.servers[0])["status"] == "ready").then_some(()));
    for server in world.servers {
        server.stop();
    }
}

#[test]
fn what_does_not_fit_into_the_queue_runs_where_it_is_asked_and_both_nodes_say_that_it_is_full() {
    let script = |_: &Value| vec![text_chunk("One "), Piece::Point(MIDDLE), finish_chunk("stop"), Piece::Done];
    let Some(world) = world_in(Place::new(), "queue = 1\n", 2, &[MIDDLE], script) else { return };
    let conversations = ["a", "b", "c"];
    for conversation in conversations {
        world.servers[0].ask("POST /api/v1/conversations", &json!({"id": conversation}));
        world.servers[0].ask(&format!("POST /api/v1/conversations/{conversation}/messages"), &json!({"content": "Go."}));
    }
    wait_for("all turns to run", || (world.model.requests().len() == 3).then_some(()));
    for server in &world.servers {
        let told = wait_for("the queue to be full", || Some(ready(server)).filter(|told| told["status"] == "degraded"));
        assert!(told["degraded"][0].as_str().unwrap().starts_with("the queue of turns is full (1, `[nats] queue`)"), "{told}");
    }
    let warnings = || world.servers[0].said().matches("the turn is driven where it was asked for").count();
    wait_for("both to be told", || (warnings() >= 2).then_some(()));
    let said = world.servers[0].said();
    assert!(warnings() == 2 && said.contains("1 turns wait for a node, which is the limit"), "{said}");
    world.model.run_free();
    for conversation in conversations {
        let path = format!("/api/v1/conversations/{conversation}/events");
        let mut watcher = Watcher::open(world.servers[1].address(), &path, None).unwrap();
        assert_eq!(watcher.until("turn.finished").last().unwrap()["status"], "completed");
    }
    for server in &world.servers {
        wait_for("room in the queue", || (ready(server)["status"] == "ready").then_some(()));
    }
    assert_eq!(world.model.requests().len(), 3, "nothing was asked twice");
    for server in world.servers {
        server.stop();
    }
}
