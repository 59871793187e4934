//! What a turn costs a database, counted by the database: statements, and bytes of its log. Golden figures: who changes one
//! says why.

mod processor;

use std::process::Command;

use serde_json::{Value, json};
use turnwright_testkit::model_server::{ModelServer, Piece, call_chunk, finish_chunk, results_shown, text_chunk};

use crate::serve::Server;
use crate::support::{Place, test_postgres};

/// Turns that are counted; each asks for one tool and then answers.
const TURNS: u64 = 20;

/// Statements of such a turn on PostgreSQL, at most; what waits together goes in one.
const STATEMENTS: u64 = 7;
/// Bytes of PostgreSQL's write-ahead log, without images of whole pages; at most a tenth more or less.
const POSTGRES_BYTES: u64 = 4_100;
/// Bytes of SQLite's, which holds whole pages; at most a tenth more or less.
const SQLITE_BYTES: u64 = 56_000;

fn model() -> ModelServer {
    ModelServer::start([], |request| match results_shown(request) {
        0 => vec![call_chunk(0, "filesystem__read", "{\"path\":\"a.txt\"}"), finish_chunk("tool_calls"), Piece::Done],
        _ => vec![text_chunk("It says hello."), finish_chunk("stop"), Piece::Done],
    })
    .unwrap()
}

/// A server whose first turns are over.
fn server(place: &Place, model: &ModelServer) -> Server {
    let config = format!(
        "model = \"p/m\"\n[providers.p]\ndialect = \"openai-chat\"\nbase_url = \"{}\"\nmodels = [\"m\"]\n",
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
        let told = server.ask("POST /api/v1/conversations/c/chat", &json!({"content": "What does a.txt say?"}));
        assert_eq!(told["turn"]["status"], "completed", "{told}");
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
    let name = format!("costs{}", std::process::id());
    psql(server, &format!("CREATE DATABASE {name}"));
    let (server, _) = server.rsplit_once('/').unwrap();
    let address = format!("{server}/{name}");
    psql(&address, "CREATE EXTENSION pg_stat_statements");
    address
}

fn is_about(found: u64, golden: u64) -> bool {
    found.abs_diff(golden) * 10 <= golden
}

#[test]
fn a_turn_on_postgresql_takes_so_many_statements_and_bytes() {
    let Some(address) = test_postgres() else { return };
    let address = own_database(&address);
    let place = Place::new().with_variable("TURNWRIGHT_DATABASE", &address);
    let model = model();
    let server = server(&place, &model);
    psql(&address, "SELECT pg_stat_statements_reset()");
    take_turns(&server, TURNS);
    // What is said whether or not there are turns is not a turn's: leases, looking for what others wrote, new connections.
    let counted = format!(
        "FROM pg_stat_statements JOIN pg_database ON pg_database.oid = dbid WHERE datname = current_database() AND \
         calls >= {TURNS} / 2 AND query !~* 'driver|pg_stat|listen|pg_snapshot'"
    );
    let lines = format!("SELECT calls, regexp_replace(left(query, 110), '\\s+', ' ', 'g') {counted} ORDER BY calls DESC");
    println!("{}", psql(&address, &lines));
    let sums = psql(&address, &format!("SELECT json_build_array(sum(calls), sum(wal_bytes), sum(wal_fpi)) {counted}"));
    let sums: Value = serde_json::from_str(&sums).unwrap();
    let (statements, bytes) = (sums[0].as_u64().unwrap(), sums[1].as_u64().unwrap());
    println!("{TURNS} turns on PostgreSQL: {statements} statements; {} bytes each", bytes / TURNS);
    server.stop();
    assert_eq!(statements.div_ceil(TURNS), STATEMENTS);
    assert!(is_about(bytes / TURNS, POSTGRES_BYTES), "{} bytes", bytes / TURNS);
}

#[test]
fn a_turn_on_sqlite_takes_so_many_bytes() {
    let place = Place::new().with_variable("TURNWRIGHT_DATABASE", "");
    let model = model();
    let server = server(&place, &model);
    let log = place.path("data/turnwright.db-wal");
    let before = std::fs::metadata(&log).unwrap().len();
    take_turns(&server, TURNS);
    let bytes = std::fs::metadata(&log).unwrap().len() - before;
    println!("a turn on SQLite: {} bytes", bytes / TURNS);
    server.stop();
    assert!(is_about(bytes / TURNS, SQLITE_BYTES), "{} bytes", bytes / TURNS);
}
