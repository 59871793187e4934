//! What a turn, and an event that a stream is told, cost the processor: a server on SQLite beside one on PostgreSQL, round by round, so that what disturbs one disturbs
//! the other.

use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::thread;

use serde_json::json;

use super::{model, own_database, psql};
use crate::serve::Server;
use crate::support::{Place, test_postgres, wait_for};
use crate::watching::Watcher;

const ROUNDS: usize = 7;
const CONVERSATIONS: usize = 16;
const TURNS: usize = 25;
/// What a turn on PostgreSQL may take of what one on SQLite takes.
const MOST: f64 = 2.0;

/// Fields of `/proc/PID/stat`, from the state on.
fn stat(process: u32) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    Some(text.rsplit_once(") ")?.1.split(' ').map(str::to_owned).collect())
}

/// Ticks of the processor that a process has had, and its children that are over.
fn ticks(process: u32) -> u64 {
    let fields = stat(process).unwrap_or_default();
    fields.iter().skip(11).take(4).map(|field| field.parse::<u64>().unwrap()).sum()
}

fn parent(process: u32) -> Option<u32> {
    stat(process)?[1].parse().ok()
}

/// The process whose children do the database's work.
fn postmaster(address: &str) -> u32 {
    let checkpointer = psql(address, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'");
    parent(checkpointer.parse().unwrap()).unwrap()
}

/// The same of a process with all its children.
fn ticks_of_family(process: u32) -> u64 {
    let all = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    ticks(process) + all.filter(|one| parent(*one) == Some(process)).map(ticks).sum::<u64>()
}

/// Takes turns in all conversations at once.
fn take_turns(server: &Server, name: &str) {
    thread::scope(|scope| {
        for conversation in 0..CONVERSATIONS {
            scope.spawn(move || {
                for _ in 0..TURNS {
                    let path = format!("POST /api/v1/conversations/{name}{conversation}/chat");
                    let told = server.ask(&path, &json!({"content": "What does a.txt say?"}));
                    assert_eq!(told["turn"]["status"], "completed", "{told}");
                }
            });
        }
    });
}

/// A count as a real number; what is counted here is below 2^32.
fn real<T: TryInto<u32, Error: std::fmt::Debug>>(count: T) -> f64 {
    f64::from(count.try_into().unwrap())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
#[ignore = "measures: benches/README.md has the command"]
fn a_turn_on_postgresql_takes_at_most_twice_the_processor_of_one_on_sqlite() {
    let Some(address) = test_postgres() else { return };
    let address = own_database(&address);
    let postmaster = postmaster(&address);
    let model = model();
    let places = ["", &address].map(|address| Place::new().with_variable("TURNWRIGHT_DATABASE", address));
    let servers = places.each_ref().map(|place| super::server(place, &model));
    for server in &servers {
        take_turns(server, "c");
    }
    let turns = real(CONVERSATIONS * TURNS);
    // A tick is ten milliseconds, by Linux' own word to programs.
    let milliseconds = |before: u64, after: u64| real(after - before) * 10.0 / turns;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let round = servers.each_ref().map(|server| {
            let (node, database) = (ticks(server.pid()), ticks_of_family(postmaster));
            take_turns(server, "c");
            (milliseconds(node, ticks(server.pid())), milliseconds(database, ticks_of_family(postmaster)))
        });
        rounds.push(round);
    }
    let of = |value: fn(&[(f64, f64); 2]) -> f64| median(rounds.iter().map(value).collect());
    let ratio = of(|[sqlite, postgres]| postgres.0 / sqlite.0);
    println!(
        "{ROUNDS} rounds of {turns} turns each: CPU of a turn on SQLite {:.2} ms, on PostgreSQL {:.2} ms ({ratio:.2} times), the database's own {:.2} ms",
        of(|[sqlite, _]| sqlite.0),
        of(|[_, postgres]| postgres.0),
        of(|[_, postgres]| postgres.1),
    );
    servers.into_iter().for_each(Server::stop);
    assert!(ratio <= MOST, "{rounds:?}");
}

/// How many streams watch each conversation.
const WATCHERS: usize = 8;

/// Reads a conversation's events until so many turns are over; how many there were.
fn watch(server: &Server, conversation: &str) -> usize {
    let mut watcher = Watcher::open(server.address(), &format!("/api/v1/conversations/{conversation}/events"), None).unwrap();
    let (mut events, mut over) = (0, 0);
    while over < TURNS {
        let told = watcher.next().unwrap();
        events += 1;
        over += usize::from(told.event["type"] == "turn.finished");
    }
    events
}

#[test]
#[ignore = "measures: benches/README.md has the command"]
fn what_a_stream_costs_for_each_event_that_it_is_told() {
    let model = model();
    let place = Place::new().with_variable("TURNWRIGHT_DATABASE", "");
    let server = super::server(&place, &model);
    take_turns(&server, "warm");
    let mut costs = Vec::new();
    for round in 0..ROUNDS {
        let begun = ticks(server.pid());
        take_turns(&server, &format!("alone{round}x"));
        let alone = ticks(server.pid());
        let names: Vec<String> = (0..CONVERSATIONS).map(|at| format!("watched{round}x{at}")).collect();
        for id in &names {
            server.ask("POST /api/v1/conversations", &json!({"id": id}));
        }
        let events: usize = thread::scope(|scope| {
            let watched: Vec<_> =
                names.iter().flat_map(|id| [id; WATCHERS]).map(|id| scope.spawn(|| watch(&server, id))).collect();
            take_turns(&server, &format!("watched{round}x"));
            watched.into_iter().map(|watcher| watcher.join().unwrap()).sum()
        });
        let watched = ticks(server.pid());
        costs.push(real((watched - alone).saturating_sub(alone - begun)) * 10_000.0 / real(events));
    }
    println!("an event that a stream is told: {:.1} µs of CPU, the median of {costs:.1?}", median(costs.clone()));
    server.stop();
}

/// How many connections listen, as nodes do, and how often they are told.
const LISTENERS: usize = 20;
const NOTICES: usize = 1_000;

/// What the database takes of the processor while it tells of so many writes.
fn tell(address: &str, postmaster: u32) -> u64 {
    let before = ticks_of_family(postmaster);
    let told = format!(
        "DO $$ BEGIN FOR n IN 1 .. {NOTICES} LOOP
            PERFORM pg_notify('costs', n::text); COMMIT; PERFORM pg_sleep(0.005); END LOOP; END $$"
    );
    psql(address, &told);
    ticks_of_family(postmaster) - before
}

#[test]
#[ignore = "measures: benches/README.md has the command"]
fn what_a_notice_costs_the_database_for_each_node_that_hears_it() {
    let Some(address) = test_postgres() else { return };
    let postmaster = postmaster(&address);
    let listen = || {
        let mut session =
            Command::new("psql").arg(&address).arg("--quiet").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        session.stdin.as_mut().unwrap().write_all(b"LISTEN costs;\n").unwrap();
        session
    };
    let mut costs = Vec::new();
    for _ in 0..ROUNDS {
        let alone = tell(&address, postmaster);
        let mut sessions: Vec<Child> = (0..LISTENERS).map(|_| listen()).collect();
        let listening = "SELECT count(*) FROM pg_stat_activity WHERE query = 'LISTEN costs;' AND state = 'idle'";
        wait_for("all to listen", || (psql(&address, listening) == LISTENERS.to_string()).then_some(()));
        let heard = tell(&address, postmaster);
        for session in &mut sessions {
            session.kill().unwrap();
            session.wait().unwrap();
        }
        costs.push(real(heard.saturating_sub(alone)) * 10_000.0 / real(NOTICES * LISTENERS));
    }
    println!("a notice that one node hears: {:.1} µs of the database's CPU, the median of {costs:.1?}", median(costs.clone()));
}

/// How many turns are open while they are listed, and how often.
const OPEN: usize = 20_000;
const LISTED: usize = 20;

#[test]
#[ignore = "measures: benches/README.md has the command"]
fn what_an_open_turn_costs_the_database_each_time_a_node_looks_for_those_that_nobody_drives() {
    let Some(address) = test_postgres() else { return };
    let address = own_database(&address);
    let postmaster = postmaster(&address);
    let model = model();
    let place = Place::new().with_variable("TURNWRIGHT_DATABASE", &address);
    super::server(&place, &model).stop();
    psql(
        &address,
        &format!(
            "INSERT INTO conversation (id, next_seq, created_at_ms, updated_at_ms, settings)
                SELECT 'open' || n, 12, n, n, '{{}}' FROM generate_series(1, {OPEN}) n;
            INSERT INTO open_turn (conversation, turn, is_parked, kept_by)
                SELECT key, 1, 0, 'servers' FROM conversation WHERE id LIKE 'open%';
            ANALYZE"
        ),
    );
    // As in crates/store/src/postgres/read.rs.
    let list = "SELECT conversation.id, open_turn.turn, open_turn.is_parked, open_turn.kept_by, conversation.owner,
        conversation.next_seq FROM open_turn JOIN conversation ON conversation.key = open_turn.conversation
        ORDER BY open_turn.conversation;";
    let mut costs = Vec::new();
    for _ in 0..ROUNDS {
        let before = ticks_of_family(postmaster);
        assert_eq!(psql(&address, &list.repeat(LISTED)).lines().count(), OPEN * LISTED);
        costs.push(real(ticks_of_family(postmaster) - before) * 10_000.0 / real(OPEN * LISTED));
    }
    println!(
        "an open turn in a list of them: {:.2} µs of the database's CPU, the median of {costs:.2?}",
        median(costs.clone())
    );
}
