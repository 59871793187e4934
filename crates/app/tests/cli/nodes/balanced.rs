//! nginx as `deploy/nginx.conf` configures it, before three nodes of which one ends and one is killed.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use turnwright_testkit::model_server::{Piece, finish_chunk, text_chunk};

use super::{MIDDLE, World, world};
use crate::serve::request;
use crate::support::wait_for;
use crate::watching::Watcher;

/// nginx, which ends with the test.
struct Balancer {
    child: Child,
    address: String,
}

impl Drop for Balancer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// `None` where nginx is not installed.
fn balancer(world: &World) -> Option<Balancer> {
    let is_there = Command::new("nginx").arg("-v").stderr(Stdio::null()).status().is_ok_and(|ran| ran.success());
    if !is_there {
        let is_required = std::env::var_os("TURNWRIGHT_REQUIRE_TEST_SERVERS").is_some_and(|value| value == "1");
        assert!(!is_required, "nginx is not installed: as root on Debian: apt-get install nginx-light");
        println!("skipped: nginx is not installed");
        return None;
    }
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/nginx.conf");
    let mut config = std::fs::read_to_string(config).unwrap();
    for (at, server) in world.servers.iter().enumerate() {
        config = config.replace(&format!("node-{}:8700", at + 1), server.address());
    }
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    config = config.replace("listen 8700;", &format!("listen {address};"));
    // What it writes is the test's; one process is ended by one signal.
    let own = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(|name| format!("{name}_temp_path {name}_temp;"));
    config = config.replace("http {", &format!("http {{ access_log off; {}", own.concat()));
    config = format!("daemon off; master_process off; pid nginx.pid; error_log nginx.log;\n{config}");
    world.place.write("nginx.conf", config);
    let folder = world.place.path("");
    let mut command = Command::new("nginx");
    command.arg("-p").arg(&folder).arg("-c").arg(world.place.path("nginx.conf")).arg("-e").arg(world.place.path("nginx.log"));
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().unwrap();
    wait_for("nginx", || std::net::TcpStream::connect(&address).ok());
    Some(Balancer { child, address })
}

impl Balancer {
    /// Begins a turn, which must be taken.
    fn say(&self, conversation: &str) {
        let head = format!("POST /api/v1/conversations/{conversation}/messages");
        let answer = request(&self.address, &head, &json!({"content": "Go."}).to_string());
        assert!(answer.starts_with("HTTP/1.1 202 "), "{conversation}: {answer}");
    }
}

#[test]
fn a_node_that_ends_or_is_killed_behind_the_balancer_costs_no_client_an_error() {
    let script = |_: &Value| vec![text_chunk("One "), Piece::Point(MIDDLE), finish_chunk("stop"), Piece::Done];
    let Some(mut world) = world(3, &[MIDDLE], script) else { return };
    let Some(balancer) = balancer(&world) else { return };
    for turn in 0..24 {
        let created = request(&balancer.address, "POST /api/v1/conversations", &json!({"id": format!("c{turn}")}).to_string());
        assert!(created.starts_with("HTTP/1.1 201 "), "{created}");
    }
    balancer.say("c0");
    assert!(world.model.wait_for(MIDDLE, crate::support::LIMIT));
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
        let mut watcher = Watcher::open(&balancer.address, &path, None).unwrap();
        assert_eq!(watcher.until("turn.finished").last().unwrap()["status"], "completed");
    }
    for server in world.servers {
        server.stop();
    }
}
