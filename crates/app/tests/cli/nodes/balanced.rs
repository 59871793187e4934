//! nginx as `deploy/nginx.conf` configures it, before three nodes: of which one ends and one is killed, which have no room, and
//! which trust it.

use std::path::Path;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use turnwright_testkit::Port;
use turnwright_testkit::model_server::{Piece, finish_chunk, text_chunk};

use super::{MIDDLE, World, world, world_in};
use crate::nginx::Nginx;
use crate::serve::request;
use crate::support::{LIMIT, Place, wait_for};
use crate::watching::Watcher;

/// `None` where nginx is not installed.
fn balancer(world: &World) -> Option<Balancer> {
    if !Nginx::is_there() {
        return None;
    }
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/nginx.conf");
    let mut config = std::fs::read_to_string(config).unwrap();
    for (at, server) in world.servers.iter().enumerate() {
        config = config.replace(&format!("node-{}:8700", at + 1), server.address());
    }
    let port = Port::reserve().unwrap();
    config = config.replace("listen 8700;", &format!("listen {};", port.address()));
    Some(Balancer(Nginx::start(&world.place, port, &config)))
}

/// nginx before the nodes.
struct Balancer(Nginx);

impl Balancer {
    /// Begins a turn, which must be taken.
    fn say(&self, conversation: &str) {
        let head = format!("POST /api/v1/conversations/{conversation}/messages");
        let answer = request(&self.0.address, &head, &json!({"content": "Go."}).to_string());
        assert!(answer.starts_with("HTTP/1.1 202 "), "{conversation}: {answer}");
    }
}

#[test]
fn a_node_that_ends_or_is_killed_behind_the_balancer_costs_no_client_an_error() {
    let script = |_: &Value| vec![text_chunk("One "), Piece::Point(MIDDLE), finish_chunk("stop"), Piece::Done];
    let Some(mut world) = world(3, &[MIDDLE], script) else { return };
    let Some(balancer) = balancer(&world) else { return };
    for turn in 0..24 {
        let created =
            request(&balancer.0.address, "POST /api/v1/conversations", &json!({"id": format!("c{turn}")}).to_string());
        assert!(created.starts_with("HTTP/1.1 201 "), "{created}");
    }
    balancer.say("c0");
    assert!(world.model.wait_for(MIDDLE, LIMIT));
    // It has a turn to bring to the end of its step, and takes no other meanwhile.
    let driver = world.driver();
    let ends = world.servers.remove(driver);
    ends.signal(Signal::SIGTERM);
    wait_for("the end to begin", || ends.request("GET /readyz", "").starts_with("HTTP/1.1 503 ").then_some(()));
    let told = ends.request("POST /api/v1/conversations/c1/messages", &json!({"content": "Go."}).to_string());
    assert!(told.starts_with("HTTP/1.1 503 "), "{told}");
    for turn in 1..12 {
        balancer.say(&format!("c{turn}"));
    }
    world.model.run_free();
    ends.stop();
    world.servers.remove(0).kill();
    for turn in 12..24 {
        balancer.say(&format!("c{turn}"));
    }
    for turn in 0..24 {
        let path = format!("/api/v1/conversations/c{turn}/events");
        let mut watcher = Watcher::open(&balancer.0.address, &path, None).unwrap();
        assert_eq!(watcher.until("turn.finished").last().unwrap()["status"], "completed");
    }
    for server in world.servers {
        server.stop();
    }
}

#[test]
fn nodes_without_room_say_so_through_the_balancer_and_take_what_is_always_taken() {
    let script = |_: &Value| vec![text_chunk("One "), Piece::Point(MIDDLE), finish_chunk("stop"), Piece::Done];
    let limits = "[server.limits]\nturns = 1\nstreams = 1\n";
    let Some(mut world) = world_in(Place::new(), limits, 3, &[MIDDLE], script) else { return };
    let Some(balancer) = balancer(&world) else { return };
    for turn in 0..3 {
        let created =
            request(&balancer.0.address, "POST /api/v1/conversations", &json!({"id": format!("c{turn}")}).to_string());
        assert!(created.starts_with("HTTP/1.1 201 "), "{created}");
        balancer.say(&format!("c{turn}"));
    }
    wait_for("a turn at each node", || world.servers.iter().all(super::drives).then_some(()));
    let mut watchers: Vec<Watcher> = (0..3)
        .map(|at| {
            let path = format!("/api/v1/conversations/c{at}/events");
            Watcher::open(world.servers[at].address(), &path, None).unwrap()
        })
        .collect();
    // More of them than there are nodes, and more than a node may fail before it is left out.
    let turned_away = || {
        for at in 0..12 {
            let told = request(&balancer.0.address, &format!("GET /api/v1/conversations/c{}/events", at % 2), "");
            assert!(told.starts_with("HTTP/1.1 503 "), "{told}");
            assert!(told.to_lowercase().contains("\r\nretry-after: ") && told.contains("too_many_streams"), "{told}");
            balancer.say(&format!("c{}", at % 2));
        }
    };
    turned_away();
    // One that is not there is no reason for another word.
    world.servers.remove(2).kill();
    watchers.truncate(2);
    turned_away();
    let stopped = request(&balancer.0.address, "POST /api/v1/conversations/c0/cancel", "");
    assert!(stopped.starts_with("HTTP/1.1 2"), "{stopped}");
    world.model.run_free();
    for (watcher, status) in watchers.iter_mut().zip(["cancelled", "completed"]) {
        assert_eq!(watcher.until("turn.finished").last().unwrap()["status"], status);
    }
    drop(watchers);
    for server in world.servers {
        server.stop();
    }
}

#[test]
fn what_a_client_says_of_proxies_before_it_goes_no_further_than_the_balancer() {
    let trusting = "[server]\ntrusted_proxies = [\"127.0.0.1\"]\n";
    let Some(world) = world_in(Place::new(), trusting, 3, &[], |_| Vec::new()) else { return };
    let Some(balancer) = balancer(&world) else { return };
    let create = |more: &str| {
        let head = format!("POST /api/v1/conversations HTTP/1.1\r\n{more}X-Sent: yes");
        let answer = request(&balancer.0.address, &head, "{}");
        answer.lines().next().unwrap_or_default().to_owned()
    };
    let own = format!("Origin: http://{}\r\n", balancer.0.address);
    let foreign = "Origin: http://evil.example\r\n";
    for said in ["", "Forwarded: for=192.0.2.1;host=evil.example;proto=https\r\n", "X-Forwarded-Host: evil.example\r\n"] {
        assert_eq!(create(&format!("{own}{said}")), "HTTP/1.1 201 Created", "{said}");
        assert_eq!(create(&format!("{foreign}{said}")), "HTTP/1.1 403 Forbidden", "{said}");
    }
    for server in world.servers {
        server.stop();
    }
}
