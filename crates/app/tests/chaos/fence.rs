//! A node that stands still exactly between the entry that says that a call is started and the call: the one instant at which
//! nothing but the look at its lease keeps it from an effect that another has had meanwhile.

use std::io::{Result, Write};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::clients::Clients;
use crate::cluster::Cluster;
use crate::laws::{Record, broken};
use crate::plan::{Member, NODES, Numbers};
use crate::script;
use crate::world::World;

const LIMIT: Duration = Duration::from_mins(1);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// By what the database knows the lock that appends wait for.
const LOCK: u32 = 4_711;

/// Lets each append that says that a call is started wait for the lock before it is stored.
const TRIGGER: &str = r#"CREATE FUNCTION turnwright.wait() RETURNS trigger LANGUAGE plpgsql
        AS 'BEGIN PERFORM pg_advisory_xact_lock_shared(4711); RETURN NULL; END';
    CREATE TRIGGER wait AFTER INSERT ON turnwright.entry FOR EACH ROW WHEN (NEW.body LIKE '{"started"%')
        EXECUTE FUNCTION turnwright.wait()"#;

/// The lock, held until this is dropped.
struct Lock(Child);

impl Lock {
    fn take(cluster: &Cluster) -> Result<Self> {
        let mut session = Command::new("psql");
        session.args([&cluster.database(), "--no-psqlrc", "--quiet"]).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut session = session.spawn()?;
        if let Some(input) = &mut session.stdin {
            writeln!(input, "SELECT pg_advisory_lock({LOCK});")?;
        }
        let lock = Self(session);
        let held = format!("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = {LOCK} AND granted");
        until("the lock", || cluster.sql(&held).is_ok_and(|rows| !rows.is_empty()).then_some(()));
        Ok(lock)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // The end of its input ends the session, and that the lock.
        drop(self.0.stdin.take());
        drop(self.0.wait());
    }
}

fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < LIMIT, "waited in vain for {what}");
        thread::sleep(LOOK_EVERY);
    }
}

/// The node whose append waits.
fn waiting(cluster: &Cluster) -> Option<Member> {
    let query = format!(
        "SELECT host(client_addr) FROM pg_stat_activity JOIN pg_locks USING (pid)
         WHERE locktype = 'advisory' AND objid = {LOCK} AND NOT granted"
    );
    let address = cluster.sql(&query).ok()?;
    (0..NODES).map(Member::Node).find(|node| cluster.network.address(*node).to_string() == address.trim())
}

#[test]
#[ignore = "needs a cluster: cargo xtask chaos"]
fn a_node_that_stood_still_between_the_entry_and_the_effect_does_nothing_of_it() {
    let Some(mut world) = World::start(&[], script) else { return };
    world.cluster.sql(TRIGGER).unwrap();
    let numbers = &mut Numbers::from(1);
    let all = Clients::new(world.cluster.doors(), world.written.clone());
    all.create("c", "ask", numbers);
    let lock = Lock::take(&world.cluster).unwrap();
    let mut sent = vec![all.say("c", "c 10", numbers)];
    let stopped = until("the node that stores that it starts the call", || {
        all.decide("c", numbers);
        waiting(&world.cluster)
    });
    world.cluster.signal(stopped, Signal::SIGSTOP).unwrap();
    // It is stored, and that it is stored waits where the node will find it.
    drop(lock);

    let (own, others): (Vec<_>, Vec<_>) =
        (0..NODES).zip(world.cluster.doors()).partition(|(at, _)| Member::Node(*at) == stopped);
    let doors = |nodes: Vec<(u8, _)>| nodes.into_iter().map(|(_, door)| door).collect();
    // Another takes over, asks what became of the call, and hears that it did not happen.
    let others = Clients::new(doors(others), world.written.clone());
    others.tend("c", false, numbers);
    assert_eq!(world.effects().len(), 1, "{stopped:?} is still, and another made the call");

    world.cluster.signal(stopped, Signal::SIGCONT).unwrap();
    // A whole turn through the node that woke up: what it had in hand came before.
    let own = Clients::new(doors(own), world.written.clone());
    sent.push(own.say("c", "c 12", numbers));
    own.tend("c", false, numbers);

    // No time after it went on is excused: it stood still before its look at the lease, not after.
    let record =
        Record { sent, journals: world.journals(), effects: world.effects(), watched: Vec::new(), resumed: Vec::new() };
    let found = broken(&record);
    println!("{stopped:?} stood still; effects: {:#?}", record.effects);
    if !found.is_empty() {
        world.keep("fence", &record);
    }
    let odd: Vec<String> = [all, others, own].iter().flat_map(|clients| clients.odd.lock().unwrap().clone()).collect();
    assert!(found.is_empty(), "{found:#?}");
    assert_eq!(odd, Vec::<String>::new());
    let resumed = |entry: &&Value| entry["control"]["resumed"].is_object();
    assert_eq!(record.journals["c"].iter().filter(resumed).count(), 1, "another took over: {:#?}", record.journals);
}
