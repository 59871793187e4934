//! A node that stands still for longer than its lease, which only PostgreSQL gives: on one machine a process that stands still
//! lives.

use nix::sys::signal::Signal;

use super::{MIDDLE, Seen, drives, ready, seen, spoken, until_end, whole, world_in};
use crate::support::{LIMIT, Place, wait_for};

#[test]
fn a_node_that_stood_still_stores_nothing_more_of_a_turn_that_another_took() {
    let Some(place) = Place::on_postgres() else { return };
    let Some(world) = world_in(place, "", 3, &[MIDDLE], |_| spoken()) else { return };
    world.create();
    world.say(0, "Go.");
    assert!(world.model.wait_for(MIDDLE, LIMIT));
    let driver = world.driver();
    let others: Vec<usize> = (0..3).filter(|at| *at != driver).collect();
    world.servers[driver].signal(Signal::SIGSTOP);
    wait_for("another driver", || others.iter().any(|at| drives(&world.servers[*at])).then_some(()));
    // What the model says goes to both from here on.
    world.model.run_free();
    let ended = seen(Seen::default(), &until_end(&mut world.watch(others[0], None))).0;
    assert_eq!(ended.texts.last().unwrap(), &whole());
    world.servers[driver].signal(Signal::SIGCONT);
    wait_for("the node to let go", || {
        let server = &world.servers[driver];
        server.request("GET /metrics", "").lines().any(|line| line.trim() == "turnwright_turns_driven 0").then_some(())
    });
    wait_for("the nodes to know one another", || world.servers.iter().all(|at| ready(at)["nodes"] == 3).then_some(()));
    for at in 0..3 {
        assert_eq!(seen(Seen::default(), &until_end(&mut world.watch(at, None))).0, ended, "at {at}");
    }
    assert_eq!(world.model.requests().len(), 2);
    for server in world.servers {
        server.stop();
    }
}
