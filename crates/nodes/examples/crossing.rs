//! How long an event takes from the node that drives a turn to a watcher at another: two engines over one store in memory,
//! and a NATS server of its own. Prints the median and the 99th percentile; `cargo run --release -p turnwright-nodes --example
//! crossing [EVENTS]`.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measurement prints what it measured, with the clock of the machine"
)]

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use turnwright_core::policy::Policy;
use turnwright_core::{ConversationId, DriverId, ModelRef, StreamDelta, TurnSettings};
use turnwright_engine::{Engine, EngineParts, Event, NewMessage, SystemClock, Watch, WatchFrom};
use turnwright_nodes::{Credentials, NatsNodes, Node, Options};
use turnwright_testkit::nats_server::{Keeps, NatsServer, program};
use turnwright_testkit::{Answer, MemoryStore, ScriptedProvider, ScriptedProviders};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let events: usize = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(2_000);
    let program = program()?.ok_or("there is no nats-server; run scripts/install-test-servers")?;
    let folder = tempfile::tempdir()?;
    let server = NatsServer::start(&program, folder.path(), Keeps::Messages, &[])?;
    let gate = Arc::new(Semaphore::new(0));
    let word = || vec![StreamDelta::Text("word ".to_owned())];
    let provider = ScriptedProvider::new([Answer::of(std::iter::repeat_with(word).take(events + 10)).gated(&gate)]);
    let disk = MemoryStore::default();
    let mut engines = Vec::new();
    for number in 0..2 {
        engines.push(engine(number, &disk, &provider, server.url()).await?);
    }
    let id: ConversationId = "c".parse()?;
    let [one, other] = &*engines else { return Err("two engines".into()) };
    one.send(&id, NewMessage { create: true, ..NewMessage::text("go") }).await?;
    while provider.asked().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let far = if one.workload().driven_turns == 1 { other } else { one };
    let mut watch = far.watch(&id, WatchFrom::Now).await?;
    for _ in 0..5 {
        gate.add_permits(1);
        next_text(&mut watch).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mut took = Vec::new();
    let (ticks_before, carried_before) = (ticks("self"), ticks(&server.pid().unwrap_or_default().to_string()));
    for _ in 0..events {
        let begun = Instant::now();
        gate.add_permits(1);
        next_text(&mut watch).await;
        took.push(begun.elapsed());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let carried = ticks(&server.pid().unwrap_or_default().to_string()).saturating_sub(carried_before);
    let ticks = ticks("self").saturating_sub(ticks_before);
    took.sort_unstable();
    let at = |share: usize| took.get(took.len().saturating_sub(1) * share / 100).copied().unwrap_or_default();
    println!(
        "{} events from one node to another: median {:?}, 99th percentile {:?}, longest {:?}",
        took.len(),
        at(50),
        at(99),
        at(100)
    );
    // A tick of Linux is ten milliseconds.
    let each = |ticks: u64| ticks * 10_000 / took.len().max(1) as u64;
    println!("CPU of both nodes, the model among them: {} µs for each; of NATS: {} µs", each(ticks), each(carried));
    for engine in engines {
        engine.shutdown().await;
    }
    Ok(())
}

/// Ticks of the processor that a process has had; none where the system does not say.
fn ticks(process: &str) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields).split(' ');
    fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum()
}

async fn next_text(watch: &mut Watch) {
    while let Some(frame) = watch.next().await {
        if frame.events.iter().any(|event| matches!(event, Event::TextDelta { .. })) {
            return;
        }
    }
}

async fn engine(
    number: usize,
    disk: &MemoryStore,
    provider: &Arc<ScriptedProvider>,
    url: String,
) -> Result<Engine, Box<dyn Error>> {
    let engine = Engine::new(EngineParts {
        providers: Arc::new(ScriptedProviders(provider.clone())),
        sources: Vec::new(),
        store: Arc::new(disk.another_process()),
        clock: Arc::new(SystemClock),
        policy: Policy::new(Vec::new())?,
        defaults: TurnSettings::new(ModelRef::new("test", "scripted")),
    });
    let node = Node { name: number.to_string(), address: String::new(), version: String::new(), started_at_ms: 0 };
    let options = Options {
        urls: vec![url],
        credentials: Credentials::None,
        ca: None,
        prefix: "tw".to_owned(),
        replicas: 1,
        queue: 100,
        cluster: "c".to_owned(),
        driver: DriverId(number.to_string()),
        node,
    };
    engine.join(Arc::new(NatsNodes::join(options).await?));
    engine.keep_resuming();
    Ok(engine)
}
