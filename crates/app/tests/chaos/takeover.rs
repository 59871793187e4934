//! A node that is killed while turns run: others take them over within the time that is promised.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use turnwright_testkit::model_server::{Piece, finish_chunk, text_chunk};

use crate::clients::Clients;
use crate::cluster::Cluster;
use crate::http::Door;
use crate::laws::{Record, broken};
use crate::plan::{Member, Numbers};
use crate::world::World;

/// What is promised (docs/operations.md).
const PROMISED: Duration = Duration::from_secs(5);
const TURNS: usize = 6;
const MIDDLE: &str = "the middle of an answer";
const LIMIT: Duration = Duration::from_mins(1);
const LOOK_EVERY: Duration = Duration::from_millis(20);

fn spoken(_effects: &Path) -> impl Fn(&Value) -> Vec<Piece> + Send + Sync + use<> {
    |_request| vec![text_chunk("One "), Piece::Point(MIDDLE), text_chunk("two."), finish_chunk("stop"), Piece::Done]
}

/// How often turns were claimed.
fn claims(cluster: &Cluster) -> usize {
    let query = r#"SELECT count(*) FROM turnwright.entry WHERE body LIKE '{"control":{"claimed"%'"#;
    cluster.sql(query).unwrap().trim().parse().unwrap()
}

/// How many turns a node drives.
fn driven(door: &Door) -> usize {
    let answer = door.ask("GET /metrics", "", &Value::Null).unwrap();
    let text = answer.body.as_str().unwrap();
    text.lines().find_map(|line| line.strip_prefix("turnwright_turns_driven ")).unwrap().trim().parse().unwrap()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LIMIT, "waited in vain for {what}");
        thread::sleep(LOOK_EVERY);
    }
}

#[test]
#[ignore = "needs a cluster: cargo xtask chaos"]
fn turns_of_a_node_that_is_killed_go_on_elsewhere_within_five_seconds() {
    let Some(mut world) = World::start(&[MIDDLE], spoken) else { return };
    let clients = Clients::new(world.cluster.doors(), world.written.clone());
    let numbers = &mut Numbers::from(1);
    let ids: Vec<String> = (0..TURNS).map(|at| format!("c{at}")).collect();
    let mut sent = Vec::new();
    for id in &ids {
        clients.create(id, "all", numbers);
        sent.push(clients.say(id, &format!("{id} 1"), numbers));
    }
    let doors = world.cluster.doors();
    // Twice: a turn that moves on and on without a word ends as failed.
    for _ in 0..2 {
        until("all turns to be driven", || doors.iter().map(driven).sum::<usize>() == TURNS);
        let (busiest, lost) = (0..).zip(doors.iter().map(driven)).max_by_key(|(_, driven)| *driven).unwrap();
        let before = claims(&world.cluster);
        let killed_at = Instant::now();
        world.cluster.kill(Member::Node(busiest)).unwrap();
        until("another node to take over", || claims(&world.cluster) >= before + lost);
        let took = killed_at.elapsed();
        println!("{lost} turns of node {} went on elsewhere after {:.2} s", busiest + 1, took.as_secs_f64());
        assert!(took < PROMISED, "{took:?}");
        world.cluster.revive(Member::Node(busiest)).unwrap();
        let is_there = |door: &Door| door.ask("GET /readyz", "", &Value::Null).is_ok_and(|answer| answer.status == 200);
        until("the node to be there again", || doors.iter().all(is_there));
    }
    world.model.run_free();
    for id in &ids {
        clients.tend(id, false, numbers);
    }
    let record = Record { sent, journals: world.journals(), ..Record::default() };
    assert_eq!(broken(&record), []);
}
