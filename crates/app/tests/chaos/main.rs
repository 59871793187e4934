//! Three nodes over PostgreSQL and a cluster of NATS, in networks of their own, while members are killed, stopped, cut off, slowed,
//! left without room and given wrong clocks at random: no acknowledged message is lost, each call has exactly one result, no
//! unsafe tool runs twice, none that was denied runs, each watcher sees what is stored, and every turn ends or waits for a person. `fence` and `takeover`
//! make one fault at the one instant that matters.
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
mod fence;
mod http;
mod laws;
mod network;
mod plan;
mod takeover;
mod world;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use turnwright_testkit::model_server::{Piece, call_chunk, finish_chunk, results_shown, text_chunk};

use crate::clients::Clients;
use crate::faults::Faults;
use crate::laws::{Record, broken};
use crate::plan::{Numbers, plan};
use crate::world::World;

/// Where `TURNWRIGHT_CHAOS_CONVERSATIONS` says nothing else.
const CONVERSATIONS: u64 = 10;
/// How long turns may take to end once nothing goes wrong any more.
const SETTLE: Duration = Duration::from_mins(2);
const TICK: Duration = Duration::from_millis(50);

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|value| value.parse().unwrap())
}

/// Two steps: some words and one or two calls of an unsafe tool, then some words. What a step says follows from its message.
fn script(effects: &Path) -> impl Fn(&Value) -> Vec<Piece> + Send + Sync + use<> {
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

#[test]
#[ignore = "lets a cluster fail for a minute: cargo xtask chaos"]
fn a_cluster_loses_nothing_whatever_fails() {
    let length = Duration::from_secs(number("TURNWRIGHT_CHAOS_SECONDS").unwrap_or(60));
    let seed = number("TURNWRIGHT_CHAOS_SEED").unwrap_or_else(|| u64::try_from(cluster::now_ns() % 1_000_000).unwrap());
    println!("seed {seed}, {} s", length.as_secs());
    let Some(mut world) = World::start(&[], script) else { return };
    println!("a slow link is: {}", world.cluster.network.slowness());

    let clients = Clients { denies: true, ..Clients::new(world.cluster.doors(), world.written.clone()) };
    let clients = Arc::new(clients);
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
    // Nothing goes wrong before each conversation had a turn, however slow the machine is.
    let opened = Instant::now();
    while opened.elapsed() < SETTLE && clients.turns.load(Ordering::Relaxed) < ids.len() {
        world.cluster.keep_up().unwrap();
        thread::sleep(TICK);
    }
    let only = std::env::var("TURNWRIGHT_CHAOS_ONLY").ok();
    let mut faults = Faults::new(plan(seed, length, only.as_deref()));
    let begun = Instant::now();
    while begun.elapsed() < length {
        faults.until(begun.elapsed(), &mut world.cluster).unwrap();
        world.cluster.keep_up().unwrap();
        thread::sleep(TICK);
    }
    faults.until(length, &mut world.cluster).unwrap();
    clients.is_closing.store(true, Ordering::Relaxed);
    let closed = Instant::now();
    while closed.elapsed() < SETTLE && talkers.iter().any(|talker| !talker.is_finished()) {
        world.cluster.keep_up().unwrap();
        thread::sleep(TICK);
    }
    let settled = closed.elapsed();
    let journals = world.journals();
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
    let record = Record { sent, journals, effects: world.effects(), watched, resumed: world.cluster.resumed.clone() };

    let count = |count: &std::sync::atomic::AtomicUsize| count.load(Ordering::Relaxed);
    for line in &faults.told {
        println!("{line}");
    }
    println!("started again since they ended by themselves: {:?}", world.cluster.ended());
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
    let mut ends: BTreeMap<String, usize> = BTreeMap::new();
    for ended in record.journals.values().flat_map(|journal| laws::ends(journal)) {
        *ends.entry(ended["status"].to_string()).or_default() += 1;
    }
    println!("turns ended: {ends:?}");
    let found = broken(&record);
    if !found.is_empty() || std::env::var_os("TURNWRIGHT_CHAOS_KEEP").is_some() {
        world.keep(&seed.to_string(), &record);
    }
    drop(world);
    assert!(found.is_empty(), "seed {seed}: {found:#?}");
    assert!(odd.is_empty(), "seed {seed}: answers that no fault explains");
    assert!(!record.effects.is_empty(), "no turn got anywhere");
}
