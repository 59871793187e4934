//! What a turn costs the processor: a server on SQLite beside one on PostgreSQL, round by round, so that what disturbs one disturbs
//! the other.

use std::thread;

use serde_json::json;

use super::{model, own_database, psql};
use crate::serve::Server;
use crate::support::{Place, test_postgres};

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

/// The same of a process with all its children.
fn ticks_of_family(process: u32) -> u64 {
    let all = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    ticks(process) + all.filter(|one| parent(*one) == Some(process)).map(ticks).sum::<u64>()
}

/// Takes turns in all conversations at once.
fn take_turns(server: &Server) {
    thread::scope(|scope| {
        for conversation in 0..CONVERSATIONS {
            scope.spawn(move || {
                for _ in 0..TURNS {
                    let path = format!("POST /api/v1/conversations/c{conversation}/chat");
                    let told = server.ask(&path, &json!({"content": "What does a.txt say?"}));
                    assert_eq!(told["turn"]["status"], "completed", "{told}");
                }
            });
        }
    });
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
    let backend: u32 = psql(&address, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'").parse().unwrap();
    let postmaster = parent(backend).unwrap();
    let model = model();
    let places = ["", &address].map(|address| Place::new().with_variable("TURNWRIGHT_DATABASE", address));
    let servers = places.each_ref().map(|place| super::server(place, &model));
    servers.iter().for_each(take_turns);
    let turns = (CONVERSATIONS * TURNS) as f64;
    // A tick is ten milliseconds, by Linux' own word to programs.
    let milliseconds = |before: u64, after: u64| (after - before) as f64 * 10.0 / turns;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let round = servers.each_ref().map(|server| {
            let (node, database) = (ticks(server.pid()), ticks_of_family(postmaster));
            take_turns(server);
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
