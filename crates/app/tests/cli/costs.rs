//! What a turn costs a database, counted by the database: statements, and bytes of its log. Golden figures: who changes one
//! says why.
//!
//! The turn writes a file. One that reads would do with an append less where the result is there before the model's message is
//! whole, which is so at one time and not at another.

mod processor;

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use turnwright_testkit::model_server::{ModelServer, Piece, call_chunk, finish_chunk, results_shown, text_chunk};

use crate::serve::Server;
use crate::support::{Place, test_postgres, wait_for};

/// Turns that are counted; each asks for one tool and then answers.
const TURNS: u64 = 20;

/// How often a statement is asked in a turn.
enum Times {
    Exactly(u64),
    /// At most: not where the driver of the turn before has not let go yet, which then knows by itself what is stored.
    AtMost(u64),
}

/// The statements of such a turn on PostgreSQL, by a part of each. What waits together goes in one `append`: the message with the claim,
/// the call with its start, its result, the answer with the end. Then what is remembered of the user, whether there are documents to
/// look into, and whether somebody else wrote in the conversation.
const OF_A_TURN: [(&str, Times); 4] = [
    ("SELECT verdict, place, key FROM append(", Times::Exactly(4)),
    ("SELECT key, body FROM document WHERE kind = $1 AND key = ", Times::Exactly(1)),
    ("FROM knowledge_file WHERE knowledge = (SELECT key FROM knowledge WHERE name = ", Times::Exactly(1)),
    ("SELECT next_seq, title, settings, created_at_ms, owner FROM conversation WHERE id = ", Times::AtMost(1)),
];
/// Statements that come with time, whether or not there are turns, by how each begins, and when. They are not counted; any other fails
/// the test, however rare.
const OF_THE_TIME: [(&str, &str); 6] = [
    ("INSERT INTO driver AS d", "each second: the lease is renewed"),
    ("SELECT id, (extract(", "each second: whose leases hold"),
    ("SELECT conversation.id, open_turn.turn, ", "each five seconds: turns whose driver is gone"),
    ("SET ", "where the pool opens a connection"),
    ("LISTEN ", "where the connection that listens was broken"),
    ("SELECT pg_snapshot_xmax(", "while there is none that listens"),
];
/// Bytes of PostgreSQL's write-ahead log that these statements write, without images of whole pages. The same in every run; a
/// hundredth more or less is left to other versions of PostgreSQL.
const POSTGRES_BYTES: u64 = 4_427;
/// Bytes of SQLite's, which holds whole pages. The same in every run; a hundredth more or less is left to other versions of SQLite.
const SQLITE_BYTES: u64 = 61_594;

fn model() -> ModelServer {
    ModelServer::start([], |request| match results_shown(request) {
        0 => vec![call_chunk(0, "filesystem__read", "{\"path\":\"a.txt\"}"), finish_chunk("tool_calls"), Piece::Done],
        _ => vec![text_chunk("It says hello."), finish_chunk("stop"), Piece::Done],
    })
    .unwrap()
}

/// A model that has the same file written in each turn.
fn writer() -> ModelServer {
    ModelServer::start([], |request| match results_shown(request) {
        0 => {
            let write = call_chunk(0, "filesystem__write", "{\"path\":\"b.txt\",\"content\":\"hello\"}");
            vec![write, finish_chunk("tool_calls"), Piece::Done]
        }
        _ => vec![text_chunk("It says hello."), finish_chunk("stop"), Piece::Done],
    })
    .unwrap()
}

/// A server whose first turns are over.
fn server(place: &Place, model: &ModelServer) -> Server {
    let config = format!(
        "model = \"p/m\"\napprove = \"all\"\n[providers.p]\ndialect = \"openai-chat\"\nbase_url = \"{}\"\nmodels = [\"m\"]\n",
        model.base_url()
    );
    place.write("turnwright.toml", config);
    let server = Server::start(place);
    server.ask("POST /api/v1/conversations", &json!({"id": "c"}));
    take_turns(&server, 3);
    server
}

fn take_turns(server: &Server, turns: u64) {
    for _ in 0..turns {
        let told = server.ask("POST /api/v1/conversations/c/chat", &json!({"content": "Say hello in b.txt."}));
        assert_eq!(told["turn"]["status"], "completed", "{told}");
        // Most often its driver has let go then.
        let is_over = || server.request("GET /metrics", "").lines().any(|line| line == "turnwright_turns_driven 0");
        wait_for("the driver to let go", || is_over().then_some(()));
    }
}

/// What a database answers.
pub(crate) fn psql(address: &str, query: &str) -> String {
    let words = [address, "--no-psqlrc", "--tuples-only", "--no-align", "--command", query];
    let output = Command::new("psql").args(words).output().unwrap();
    assert!(output.status.success(), "{query}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A database of its own, in which nothing else is counted; it ends with its server.
fn own_database(server: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("costs{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    psql(server, &format!("CREATE DATABASE {name}"));
    let (server, _) = server.rsplit_once('/').unwrap();
    let address = format!("{server}/{name}");
    psql(&address, "CREATE EXTENSION pg_stat_statements");
    address
}

fn is_about(found: u64, golden: u64) -> bool {
    found.abs_diff(golden) * 100 <= golden
}

/// A statement as PostgreSQL counts it.
struct Counted {
    calls: u64,
    wal_bytes: u64,
    text: String,
}

/// All statements of a database since they were last forgotten, but those that ask for them.
fn counted(address: &str) -> Vec<Counted> {
    let query = "SELECT coalesce(json_agg(json_build_array(calls, wal_bytes, regexp_replace(query, '\\s+', ' ', 'g')) ORDER BY calls DESC), '[]')
        FROM pg_stat_statements JOIN pg_database ON pg_database.oid = dbid
        WHERE datname = current_database() AND query !~ 'pg_stat_statements'";
    let rows: Value = serde_json::from_str(&psql(address, query)).unwrap();
    let row = |row: &Value| {
        let (calls, wal_bytes) = (row[0].as_u64().unwrap(), row[1].as_u64().unwrap());
        Counted { calls, wal_bytes, text: row[2].as_str().unwrap().to_owned() }
    };
    rows.as_array().unwrap().iter().map(row).collect()
}

#[test]
fn a_turn_on_postgresql_takes_so_many_statements_and_bytes() {
    let Some(address) = test_postgres() else { return };
    let address = own_database(&address);
    let place = Place::new().with_variable("TURNWRIGHT_DATABASE", &address);
    let model = writer();
    let server = server(&place, &model);
    psql(&address, "SELECT pg_stat_statements_reset()");
    take_turns(&server, TURNS);
    let counted = counted(&address);
    server.stop();

    let kind = |one: &Counted| OF_A_TURN.iter().position(|(part, _)| one.text.contains(part));
    let comes_with_time = |one: &&Counted| OF_THE_TIME.iter().any(|(begins, _)| one.text.starts_with(begins));
    let mut told = vec![format!("{TURNS} turns on PostgreSQL; times, bytes of the log, statement")];
    told.extend(counted.iter().map(|one| {
        let aside = OF_THE_TIME.iter().find(|(begins, _)| one.text.starts_with(begins)).map_or("", |(_, when)| when);
        format!("{:>6} {:>8}  {} {aside}", one.calls, one.wal_bytes, one.text.chars().take(150).collect::<String>())
    }));
    let told = told.join("\n");
    let unknown = counted.iter().filter(|one| kind(one).is_none() && !comes_with_time(one));
    let unknown: Vec<&str> = unknown.map(|one| one.text.as_str()).collect();
    assert_eq!(unknown, [""; 0], "neither of a turn nor of the time:\n{told}");
    for (at, (part, times)) in OF_A_TURN.iter().enumerate() {
        let asked: u64 = counted.iter().filter(|one| kind(one) == Some(at)).map(|one| one.calls).sum();
        let fits = match times {
            Times::Exactly(times) => asked == times * TURNS,
            Times::AtMost(times) => asked <= times * TURNS,
        };
        assert!(fits, "`{part}…` was asked {asked} times:\n{told}");
    }
    let bytes = counted.iter().filter(|one| kind(one).is_some()).map(|one| one.wal_bytes).sum::<u64>() / TURNS;
    println!("{told}\na turn on PostgreSQL: {bytes} bytes");
    assert!(is_about(bytes, POSTGRES_BYTES), "{bytes} bytes of the log each:\n{told}");
}

#[test]
fn a_turn_on_sqlite_takes_so_many_bytes() {
    let place = Place::new().with_variable("TURNWRIGHT_DATABASE", "");
    let model = writer();
    let server = server(&place, &model);
    let log = place.path("data/turnwright.db-wal");
    let before = std::fs::metadata(&log).unwrap().len();
    take_turns(&server, TURNS);
    let bytes = (std::fs::metadata(&log).unwrap().len() - before) / TURNS;
    println!("a turn on SQLite: {bytes} bytes");
    server.stop();
    assert!(is_about(bytes, SQLITE_BYTES), "{bytes} bytes");
}
