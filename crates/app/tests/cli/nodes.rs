//! Servers over one data directory that share turns through NATS: any of them takes any request, and none that ends loses a
//! turn.

mod asked;
mod balanced;
mod crossing;
mod kept;
mod shared;
mod still;
mod versions;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use turnwright_testkit::Port;
use turnwright_testkit::model_server::{ModelServer, Piece, call_chunk, finish_chunk, results_shown, text_chunk};
use turnwright_testkit::nats_server::{Keeps, NatsServer, program};

use crate::serve::Server;
use crate::support::{Place, wait_for};
use crate::watching::{Told, Watcher};

const WORDS: usize = 60;
const PACE: Duration = Duration::from_millis(10);
/// Where the model stops until it is let go on.
const MIDDLE: &str = "the middle of an answer";

struct World {
    place: Place,
    nats: NatsServer,
    model: ModelServer,
    servers: Vec<Server>,
}

fn words(from: usize, to: usize) -> impl Iterator<Item = Piece> {
    (from..to).flat_map(|word| [text_chunk(&format!("wörd {word} ")), Piece::Pause(PACE)])
}

/// An answer that is spoken at its own pace, with [`MIDDLE`] in it.
fn spoken() -> Vec<Piece> {
    words(0, WORDS / 2)
        .chain([Piece::Point(MIDDLE)])
        .chain(words(WORDS / 2, WORDS))
        .chain([finish_chunk("stop"), Piece::Done])
        .collect()
}

/// So many servers and a model; `None` where no NATS server is installed.
fn world(count: usize, stops: &[&'static str], script: impl Fn(&Value) -> Vec<Piece> + Send + Sync + 'static) -> Option<World> {
    world_in(Place::new(), "", count, stops, script)
}

/// The same in a place, with more in its configuration.
fn world_in(
    place: Place,
    more: &str,
    count: usize,
    stops: &[&'static str],
    script: impl Fn(&Value) -> Vec<Piece> + Send + Sync + 'static,
) -> Option<World> {
    let Some(program) = program().unwrap() else {
        println!("skipped: run scripts/install-test-servers");
        return None;
    };
    let model = ModelServer::start(stops.iter().copied(), script).unwrap();
    let nats = NatsServer::start(&program, &place.path("nats"), Keeps::Messages, &[]).unwrap();
    let config = format!(
        "model = \"p/m\"\n[providers.p]\ndialect = \"openai-chat\"\nbase_url = \"{}\"\nmodels = [\"m\"]\n\
         [tools.command]\nsandbox = \"off\"\n[nats]\nurl = \"{}\"\n{more}",
        model.base_url(),
        nats.url()
    );
    place.write("turnwright.toml", config);
    let servers: Vec<Server> = (0..count).map(|_| Server::start(&place)).collect();
    for server in &servers {
        wait_for("the nodes to know one another", || (ready(server)["nodes"] == count).then_some(()));
    }
    Some(World { place, nats, model, servers })
}

/// What a server says of its readiness; where it is not ready, why.
fn ready(server: &Server) -> Value {
    let answer = server.request("GET /readyz", "");
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

impl World {
    /// Begins the conversation's first turn, or another one.
    fn say(&self, at: usize, text: &str) {
        self.servers[at].ask("POST /api/v1/conversations/c/messages", &json!({"content": text}));
    }

    fn create(&self) {
        self.servers[0].ask("POST /api/v1/conversations", &json!({"id": "c"}));
    }

    fn watch(&self, at: usize, last: Option<&str>) -> Watcher {
        Watcher::open(self.servers[at].address(), "/api/v1/conversations/c/events", last).unwrap()
    }

    /// Which of the servers drives the turn.
    fn driver(&self) -> usize {
        wait_for("a driver", || self.servers.iter().position(drives))
    }
}

fn drives(server: &Server) -> bool {
    server.request("GET /metrics", "").lines().any(|line| line.trim() == "turnwright_turns_driven 1")
}

/// What somebody saw who reads the events as they are described: nothing missed, nothing twice.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    entries: Vec<Value>,
    texts: Vec<String>,
    kinds: Vec<String>,
}

/// What was told up to the turn's end; also how many pieces of text came.
fn seen(mut before: Seen, events: &[Told]) -> (Seen, usize) {
    let mut blocks: BTreeMap<u64, String> = BTreeMap::new();
    let mut pieces = 0;
    for Told { id, event } in events {
        match event["type"].as_str().unwrap() {
            "entry" => {
                let place = before.entries.last().map_or(0, |entry| entry["seq"].as_u64().unwrap());
                assert_eq!(event["seq"].as_u64().unwrap(), place + 1, "{events:?}");
                assert_eq!(*id, event["seq"].to_string());
                before.entries.push(event.clone());
                before.texts.extend(std::mem::take(&mut blocks).into_values());
            }
            "step.started" | "step.reset" => blocks.clear(),
            "text.delta" => {
                let told = blocks.entry(event["block"].as_u64().unwrap()).or_default();
                assert_eq!(event["offset"].as_u64().unwrap(), told.len() as u64, "{events:?}");
                told.push_str(event["text"].as_str().unwrap());
                pieces += 1;
            }
            kind => before.kinds.push(kind.to_owned()),
        }
    }
    (before, pieces)
}

fn until_end(watcher: &mut Watcher) -> Vec<Told> {
    let mut events: Vec<Told> = Vec::new();
    while events.last().is_none_or(|told| told.event["type"] != "turn.finished") {
        events.push(watcher.next().unwrap_or_else(|| panic!("no end after {events:?}")));
    }
    events
}

fn whole() -> String {
    (0..WORDS).map(|word| format!("wörd {word} ")).collect::<Vec<_>>().concat()
}

#[test]
fn text_that_streams_at_one_node_is_seen_at_every_other_while_it_streams() {
    let Some(world) = world(3, &[MIDDLE], |_| spoken()) else { return };
    world.create();
    let mut watchers = [0, 1, 2].map(|at| world.watch(at, None));
    world.say(1, "Go.");
    assert!(world.model.wait_for(MIDDLE, crate::support::LIMIT));
    // The middle of the answer is seen everywhere before the model goes on.
    let mut told: Vec<Vec<Told>> = watchers
        .iter_mut()
        .map(|watcher| {
            let mut events: Vec<Told> = Vec::new();
            // What may be the beginning of a secret, such as a database's password, is told with what follows it.
            let half = format!("wörd {}", WORDS / 2 - 2);
            let mut heard = String::new();
            while !heard.contains(&half) {
                let told = watcher.next().unwrap();
                heard.push_str(told.event["text"].as_str().unwrap_or_default());
                events.push(told);
            }
            events
        })
        .collect();
    // Who comes now is told from the beginning, wherever.
    let mut late = [0, 1, 2].map(|at| world.watch(at, None));
    // And who goes to another node goes on where they were.
    let last = told[0].last().unwrap().id.clone();
    let mut moved = world.watch(2, Some(&last));
    world.model.run_free();
    let known = || Seen {
        entries: told[0].iter().filter(|told| told.event["type"] == "entry").map(|told| told.event.clone()).collect(),
        ..Seen::default()
    };
    let (moved, _) = seen(known(), &until_end(&mut moved));
    assert_eq!(moved.texts.last().unwrap(), &whole());
    for (events, watcher) in told.iter_mut().zip(&mut watchers) {
        events.extend(until_end(watcher));
    }
    let told: Vec<(Seen, usize)> = told.iter().map(|events| seen(Seen::default(), events)).collect();
    assert_eq!((&told[0].0, &told[0].0), (&told[1].0, &told[2].0));
    assert_eq!(told[0].0.texts.last().unwrap(), &whole());
    assert!(
        told.iter().all(|(_, pieces)| *pieces >= WORDS / 4),
        "{:?}",
        told.iter().map(|(_, pieces)| pieces).collect::<Vec<_>>()
    );
    for watcher in &mut late {
        assert_eq!(seen(Seen::default(), &until_end(watcher)).0, told[0].0);
    }
    for server in world.servers {
        server.stop();
    }
}

#[test]
fn a_turn_is_decided_about_and_stopped_through_another_node() {
    let script = |request: &Value| {
        if results_shown(request) == 0 {
            let write = call_chunk(0, "filesystem__write", "{\"path\":\"b.txt\",\"content\":\"hi\"}");
            return vec![write, finish_chunk("tool_calls"), Piece::Done];
        }
        spoken()
    };
    let Some(world) = world(2, &[MIDDLE], script) else { return };
    world.create();
    let mut watchers = [0, 1].map(|at| world.watch(at, None));
    world.say(0, "Go.");
    for watcher in &mut watchers {
        watcher.until("turn.suspended");
    }
    world.servers[1].allow("c");
    assert!(world.model.wait_for(MIDDLE, crate::support::LIMIT));
    assert!(world.place.path("b.txt").exists());
    let driver = world.driver();
    let asked_at = Instant::now();
    world.servers[1 - driver].ask("POST /api/v1/conversations/c/cancel", &json!({}));
    for watcher in &mut watchers {
        assert_eq!(watcher.until("turn.finished").last().unwrap()["status"], "cancelled");
    }
    println!("the stop was seen at both nodes after {} ms", asked_at.elapsed().as_millis());
    world.model.run_free();
    for server in world.servers {
        server.stop();
    }
}

#[test]
fn a_node_that_is_killed_in_the_middle_of_a_turn_is_replaced() {
    let Some(mut world) = world(3, &[MIDDLE], |_| spoken()) else { return };
    world.create();
    world.say(0, "Go.");
    assert!(world.model.wait_for(MIDDLE, crate::support::LIMIT));
    let driver = world.driver();
    world.servers.remove(driver).kill();
    let killed_at = Instant::now();
    world.model.run_free();
    wait_for("another driver", || world.servers.iter().any(drives).then_some(()));
    println!("another node drove the turn {} ms after its node was killed", killed_at.elapsed().as_millis());
    let mut told = [0, 1].map(|at| until_end(&mut world.watch(at, None)));
    let [one, other] = told.each_mut().map(|events| seen(Seen::default(), events).0);
    assert_eq!(one, other);
    assert_eq!(one.texts.last().unwrap(), &whole());
    assert_eq!(world.model.requests().len(), 2);
    for server in world.servers {
        server.stop();
    }
}

#[test]
fn a_node_that_ends_hands_its_turn_to_another_at_the_end_of_its_step() {
    let script = |request: &Value| {
        if results_shown(request) == 0 {
            let read = call_chunk(0, "filesystem__read", "{\"path\":\"a.txt\"}");
            let call = [Piece::Point(MIDDLE), read, finish_chunk("tool_calls"), Piece::Done];
            return words(0, 5).chain(call).collect();
        }
        spoken()
    };
    let Some(mut world) = world(2, &[MIDDLE], script) else { return };
    world.create();
    world.say(0, "Go.");
    assert!(world.model.wait_for(MIDDLE, crate::support::LIMIT));
    let driver = world.driver();
    let ends = world.servers.remove(driver);
    let mut watcher = world.watch(0, None);
    ends.signal(Signal::SIGTERM);
    wait_for("the end to begin", || ends.request("GET /readyz", "").starts_with("HTTP/1.1 503 ").then_some(()));
    world.model.run_free();
    let (told, _) = seen(Seen::default(), &until_end(&mut watcher));
    assert_eq!(told.texts.last().unwrap(), &whole());
    assert_eq!(world.model.requests().len(), 2, "no step was made twice");
    ends.stop();
    for server in world.servers {
        server.stop();
    }
}

#[test]
fn nothing_is_lost_where_nats_ends_and_starts_again() {
    let Some(mut world) = world(2, &[MIDDLE], |_| spoken()) else { return };
    world.create();
    let mut watchers = [0, 1].map(|at| world.watch(at, None));
    world.say(0, "One.");
    assert!(world.model.wait_for(MIDDLE, crate::support::LIMIT));
    world.nats.kill();
    for server in &world.servers {
        let told = wait_for("the break to be seen", || Some(ready(server)).filter(|told| told["status"] == "degraded"));
        let why = told["degraded"][0].as_str().unwrap().to_owned();
        assert!(why.starts_with("NATS cannot be reached ("), "{why}");
        assert!(server.request("GET /metrics", "").contains("turnwright_nats_connected 0\n"));
    }
    world.model.run_free();
    let first = watchers.each_mut().map(|watcher| seen(Seen::default(), &until_end(watcher)).0);
    assert_eq!(first[0], first[1]);
    assert_eq!(first[0].texts.last().unwrap(), &whole());
    // What is asked meanwhile runs where it is asked.
    world.say(1, "Two.");
    let [one, other] = first;
    let mut told = [one, other].into_iter().zip(&mut watchers).map(|(before, watcher)| seen(before, &until_end(watcher)).0);
    let second = [told.next().unwrap(), told.next().unwrap()];
    drop(told);
    assert_eq!(second[0], second[1]);
    world.nats.start_again().unwrap();
    for server in &world.servers {
        wait_for("the connection", || (ready(server)["status"] == "ready").then_some(()));
    }
    world.say(0, "Three.");
    let mut told = second.into_iter().zip(&mut watchers).map(|(before, watcher)| seen(before, &until_end(watcher)).0);
    let third = [told.next().unwrap(), told.next().unwrap()];
    drop(told);
    assert_eq!(third[0], third[1]);
    let is_whole = |text: &&String| **text == whole();
    assert_eq!(third[0].texts.iter().filter(is_whole).count(), 3);
    assert_eq!(world.model.requests().len(), 3, "nothing was asked twice");
    for server in world.servers {
        server.stop();
    }
}

#[test]
fn a_server_that_cannot_join_says_why_and_ends() {
    let place = Place::new();
    let port = Port::reserve().unwrap();
    let free = port.address();
    let ran = place.run(&["serve", "--listen", "127.0.0.1:0", "--nats", &format!("nats://{free}")]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let said = format!("error: no NATS server answers at nats://{free}: ");
    assert!(ran.stderr.contains(&said), "{ran:?}");
    let ran = place.run(&["serve", "--nats", "http://127.0.0.1:1"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("nats://HOST:PORT"), "{ran:?}");
    let Some(program) = program().unwrap() else {
        println!("skipped: run scripts/install-test-servers");
        return;
    };
    let nats = NatsServer::start(&program, &place.path("nats"), Keeps::Messages, &[]).unwrap();
    let address = nats.url();
    let other = Place::with(&format!("[nats]\nurl = \"{address}\"\n"));
    let first = Server::start(&other);
    // Another database by mistake.
    let ran = place.run(&["serve", "--listen", "127.0.0.1:0", "--nats", &address]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("error: the NATS prefix `turnwright` belongs to nodes of another database"), "{ran:?}");
    first.stop();
}
