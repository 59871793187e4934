//! Three nodes over PostgreSQL and a cluster of NATS, in networks of their own, while members are killed, stopped, cut off, slowed,
//! left without room and given wrong clocks at random: no acknowledged message is lost, each call has exactly one result, no
//! unsafe tool runs twice, each watcher sees what is stored, and every turn ends or waits for a person.
//!
//! `TURNWRIGHT_CHAOS_SECONDS` is for how long (60), `TURNWRIGHT_CHAOS_SEED` what the faults follow from; `cargo xtask chaos` sets both.
//! `TURNWRIGHT_CHAOS_ONLY` is one kind of faults (`kill`, `stop`, `cut`, `slow`, `disk`, `clock`, or `still`: each node in turn for longer than its lease), `TURNWRIGHT_CHAOS_CONVERSATIONS` how many there are (10).
//! `TURNWRIGHT_CHAOS_BINARY` names another build of the nodes, such as one that is broken on purpose; with
//! `TURNWRIGHT_CHAOS_KEEP` the logs are kept where nothing was wrong too.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and bounds its own waits"
)]

#[path = "../cli/assembling.rs"]
mod assembling;
mod clients;
mod cluster;
mod faults;
mod http;
mod laws;
mod network;
mod plan;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use turnwright_testkit::model_server::{ModelServer, Piece, call_chunk, finish_chunk, results_shown, text_chunk};
use turnwright_testkit::nats_server;

use crate::clients::Clients;
use crate::cluster::{Cluster, Programs};
use crate::faults::Faults;
use crate::laws::{Effect, Record, broken};
use crate::plan::{Numbers, plan};

/// Where `TURNWRIGHT_CHAOS_CONVERSATIONS` says nothing else.
const CONVERSATIONS: u64 = 10;
/// How long turns may take to end once nothing goes wrong any more.
const SETTLE: Duration = Duration::from_mins(2);
const TICK: Duration = Duration::from_millis(50);

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|value| value.parse().unwrap())
}

/// What is missing here, where something is.
fn programs() -> Result<Programs, String> {
    if let Some(why) = network::unavailable() {
        return Err(why);
    }
    let nats = nats_server::program().unwrap().ok_or("run scripts/install-test-servers")?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/install-test-postgres");
    let postgres = network::run(&script.display().to_string(), &[]).map_err(|error| error.to_string())?;
    let clock = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";
    let clock = Some(PathBuf::from(clock)).filter(|path| path.exists());
    let turnwright = std::env::var_os("TURNWRIGHT_CHAOS_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_turnwright").into());
    Ok(Programs { turnwright: turnwright.into(), nats, postgres: postgres.trim().into(), clock })
}

/// Two steps: some words and one or two calls of an unsafe tool, then some words. What a step says follows from its message.
fn script(effects: &Path) -> impl Fn(&Value) -> Vec<Piece> + Send + Sync + 'static {
    let effects = effects.display().to_string();
    move |request| {
        let messages = request["messages"].as_array().unwrap();
        let asked = messages.iter().rfind(|message| message["role"] == "user").unwrap();
        let text = asked["content"].as_str().or_else(|| asked["content"][0]["text"].as_str()).unwrap();
        let name = text.replace(' ', "-");
        let words = (0..8).flat_map(|word| [text_chunk(&format!("{name} wörd {word} ")), Piece::Pause(4 * TICK / 5)]);
        let calls = 1 + text.len() % 2 + usize::from(text.ends_with('7'));
        if results_shown(request) >= calls {
            return words.chain([finish_chunk("stop"), Piece::Done]).collect();
        }
        let call = |at: usize| {
            let command = format!("echo {name}-{at} $PPID $(date +%s%N) >> {effects}; sleep 0.{at}");
            call_chunk(u32::try_from(at).unwrap(), "command__run", &json!({"command": command}).to_string())
        };
        words.chain((0..calls).map(call)).chain([finish_chunk("tool_calls"), Piece::Done]).collect()
    }
}

fn effects(path: &Path) -> Vec<Effect> {
    let written = std::fs::read_to_string(path).unwrap_or_default();
    let effect = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        Effect { name: words[0].to_owned(), node: words[1].parse().unwrap(), at_ns: words[2].parse().unwrap() }
    };
    written.lines().map(effect).collect()
}

/// The journals as the database has them.
fn journals(cluster: &Cluster) -> BTreeMap<String, Vec<Value>> {
    let query = "SELECT json_build_array(conversation.id, entry.body::json) FROM turnwright.entry AS entry
        JOIN turnwright.conversation AS conversation ON conversation.key = entry.place >> 32 ORDER BY entry.place";
    let mut journals: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for line in cluster.sql(query).unwrap().lines().filter(|line| !line.is_empty()) {
        let row: Value = serde_json::from_str(line).unwrap();
        journals.entry(row[0].as_str().unwrap().to_owned()).or_default().push(row[1].clone());
    }
    journals
}

/// What all nodes are told of the model and their tools.
fn configuration(base_url: impl std::fmt::Display) -> String {
    format!(
        "model = \"p/m\"\nlog_level = \"info\"\n[providers.p]\ndialect = \"openai-chat\"\nbase_url = \"{base_url}\"\nmodels = [\"m\"]\n\
         [tools.command]\nsandbox = \"off\"\n"
    )
}

/// Keeps the logs and what was read of a run, and says where.
fn keep(folder: &Path, seed: u64, record: &Record) {
    let kept = std::env::temp_dir().join(format!("turnwright-chaos-{seed}"));
    drop(std::fs::remove_dir_all(&kept));
    std::fs::create_dir_all(&kept).unwrap();
    for entry in std::fs::read_dir(folder).unwrap().flatten().filter(|entry| entry.path().is_file()) {
        std::fs::copy(entry.path(), kept.join(entry.file_name())).unwrap();
    }
    std::fs::write(kept.join("journals.json"), json!(record.journals).to_string()).unwrap();
    println!("the logs, effects and journals are in {}", kept.display());
}

#[test]
#[ignore = "lets a cluster fail for a minute: cargo xtask chaos"]
fn a_cluster_loses_nothing_whatever_fails() {
    let programs = match programs() {
        Ok(programs) => programs,
        Err(why) => {
            assert!(std::env::var_os("TURNWRIGHT_REQUIRE_TEST_NETWORK").is_none(), "{why}");
            println!("skipped: {why}");
            return;
        }
    };
    let length = Duration::from_secs(number("TURNWRIGHT_CHAOS_SECONDS").unwrap_or(60));
    let seed = number("TURNWRIGHT_CHAOS_SEED").unwrap_or_else(|| u64::try_from(cluster::now_ns() % 1_000_000).unwrap());
    println!("seed {seed}, {} s", length.as_secs());
    if programs.clock.is_none() {
        println!("note: no wall clock is moved: faketime is not installed");
    }
    println!("note: a slow link is a narrow one (tbf)");
    let folder = tempfile::Builder::new().prefix("turnwright-chaos.").tempdir().unwrap();
    let written = folder.path().join("effects");
    std::fs::write(&written, "").unwrap();
    let model: Mutex<Option<ModelServer>> = Mutex::new(None);
    let mut cluster = Cluster::start(folder.path(), programs, |network| {
        let server = ModelServer::start_at(network.outside().into(), [], script(&written)).unwrap();
        let config = configuration(server.base_url());
        *model.lock().unwrap() = Some(server);
        config
    })
    .unwrap();

    let clients = Arc::new(Clients::new(cluster.doors(), written.clone()));
    let conversations = number("TURNWRIGHT_CHAOS_CONVERSATIONS").unwrap_or(CONVERSATIONS);
    let ids: Vec<String> = (0..conversations).map(|at| format!("c{at}")).collect();
    let wholes: Vec<Arc<Mutex<Option<usize>>>> = ids.iter().map(|_| Arc::default()).collect();
    let mut talkers = Vec::new();
    let mut watchers = Vec::new();
    for ((at, id), whole) in (0..).zip(&ids).zip(&wholes) {
        let approve = if at % 2 == 0 { "all" } else { "ask" };
        let (own, name) = (clients.clone(), id.clone());
        talkers.push(thread::spawn(move || own.talk(&name, approve, Numbers::from(seed ^ (at << 32)))));
        for watcher in 1..3_u64 {
            let (own, name, whole) = (clients.clone(), id.clone(), whole.clone());
            let numbers = Numbers::from(seed ^ (at << 32) ^ (watcher << 48));
            watchers.push(thread::spawn(move || own.watch(&name, &whole, numbers)));
        }
    }
    let only = std::env::var("TURNWRIGHT_CHAOS_ONLY").ok();
    let mut faults = Faults::new(plan(seed, length, only.as_deref()));
    let begun = Instant::now();
    while begun.elapsed() < length {
        faults.until(begun.elapsed(), &mut cluster).unwrap();
        cluster.keep_up().unwrap();
        thread::sleep(TICK);
    }
    faults.until(length, &mut cluster).unwrap();
    clients.is_closing.store(true, Ordering::Relaxed);
    let closed = Instant::now();
    while closed.elapsed() < SETTLE && talkers.iter().any(|talker| !talker.is_finished()) {
        cluster.keep_up().unwrap();
        thread::sleep(TICK);
    }
    let settled = closed.elapsed();
    let journals = journals(&cluster);
    for (id, whole) in ids.iter().zip(&wholes) {
        *whole.lock().unwrap() = Some(journals.get(id).map_or(0, Vec::len));
    }
    let asked = Instant::now();
    while asked.elapsed() < SETTLE && watchers.iter().any(|watcher| !watcher.is_finished()) {
        thread::sleep(TICK);
    }
    clients.is_over.store(true, Ordering::Relaxed);
    let sent = talkers.into_iter().flat_map(|talker| talker.join().unwrap()).collect();
    let watched = watchers.into_iter().map(|watcher| watcher.join().unwrap()).collect();
    let record = Record { sent, journals, effects: effects(&written), watched, resumed: cluster.resumed.clone() };

    let count = |count: &std::sync::atomic::AtomicUsize| count.load(Ordering::Relaxed);
    for line in &faults.told {
        println!("{line}");
    }
    println!("started again since they ended by themselves: {:?}", cluster.ended());
    let odd = clients.odd.lock().unwrap().clone();
    println!("{} odd answers: {:#?}", odd.len(), odd.iter().take(10).collect::<Vec<_>>());
    println!(
        "{} faults; {} turns, {} messages, {} decisions, {} effects, {} watchers over {} connections, {} entries; the longest turn took {:.1} s, the last ended {:.1} s after the faults",
        faults.told.len(),
        count(&clients.turns),
        record.sent.len(),
        count(&clients.decisions),
        record.effects.len(),
        record.watched.len(),
        count(&clients.connections),
        record.journals.values().map(Vec::len).sum::<usize>(),
        clients.longest.lock().unwrap().as_secs_f64(),
        settled.as_secs_f64()
    );
    let found = broken(&record);
    if !found.is_empty() || std::env::var_os("TURNWRIGHT_CHAOS_KEEP").is_some() {
        keep(folder.path(), seed, &record);
    }
    // While there is a network, by which the model learns that nobody asks any more.
    cluster.end();
    drop(model);
    drop(cluster);
    assert!(found.is_empty(), "seed {seed}: {found:#?}");
    assert!(!record.effects.is_empty(), "no turn got anywhere");
}
