//! What messages cost NATS: those that are handed on to other nodes, and those that a stream of a cluster of three stores, as the
//! queue of turns does. Prints how many a second pass, and the processor's time for each; `cargo run --release -p turnwright-nodes
//! --example carrying [MESSAGES]`. What sends and hears them runs on the same processors.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measurement prints what it measured, with the clock of the machine"
)]

use std::error::Error;
use std::time::Instant;

use async_nats::jetstream::stream::{Config, RetentionPolicy, StorageType};
use async_nats::{Client, jetstream};
use futures_util::StreamExt;
use turnwright_testkit::Port;
use turnwright_testkit::nats_server::{Keeps, NatsServer, program};

/// About as long as a piece of text with its frame is.
const BYTES: usize = 250;
/// How many stored messages are waited for at once.
const AT_ONCE: usize = 256;
/// Nodes that hear each message.
const EARS: usize = 2;

type Failed = Box<dyn Error>;

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let messages: usize = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(50_000);
    let program = program()?.ok_or("there is no nats-server; run scripts/install-test-servers")?;
    let folder = tempfile::tempdir()?;
    let routes: Vec<Port> = (0..3).map(|_| Port::reserve()).collect::<Result<_, _>>()?;
    let all = routes.iter().map(|port| format!("nats://{}", port.address())).collect::<Vec<_>>().join(",");
    let mut servers = Vec::new();
    for (number, route) in routes.iter().enumerate() {
        let (name, own) = (format!("n{number}"), format!("nats://{}", route.address()));
        let more = ["--name", &*name, "--cluster_name", "costs", "--cluster", &*own, "--routes", &*all];
        servers.push(NatsServer::start(&program, &folder.path().join(&name), Keeps::Messages, &more)?);
    }
    let mut clients = Vec::new();
    for server in &servers {
        clients.push(async_nats::connect(server.url()).await?);
    }
    let (handed, stored) = (hand_on(&clients, &servers, messages).await?, store(&clients, &servers, messages / 5).await?);
    println!("handed on by three servers to {EARS} nodes each: {handed}");
    println!("stored by a stream of three replicas: {stored}");
    Ok(())
}

/// Publishes at one server what is heard at the others.
async fn hand_on(clients: &[Client], servers: &[NatsServer], messages: usize) -> Result<String, Failed> {
    let [from, others @ ..] = clients else { return Err("no client".into()) };
    let mut ears = Vec::new();
    for other in others.iter().take(EARS) {
        let mut ear = other.subscribe("told").await?;
        other.flush().await?;
        ears.push(tokio::spawn(
            async move { while ear.next().await.is_some_and(|heard| !heard.payload.starts_with(b"end")) {} },
        ));
    }
    // Interest crosses the cluster.
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let (begun, before) = (Instant::now(), ticks(servers));
    for _ in 0..messages {
        from.publish("told", vec![b'x'; BYTES].into()).await?;
    }
    from.publish("told", "end".into()).await?;
    for ear in ears {
        ear.await?;
    }
    Ok(figures(messages, begun, ticks(servers).saturating_sub(before)))
}

/// Publishes into a work queue whose messages three servers keep, as offers of turns are.
async fn store(clients: &[Client], servers: &[NatsServer], messages: usize) -> Result<String, Failed> {
    let client = clients.first().ok_or("no client")?;
    let context = jetstream::new(client.clone());
    let config = Config {
        name: "costs".to_owned(),
        subjects: vec!["costs.>".to_owned()],
        retention: RetentionPolicy::WorkQueue,
        storage: StorageType::File,
        num_replicas: servers.len(),
        ..Config::default()
    };
    let mut tries = 0;
    while let Err(error) = context.create_or_update_stream(config.clone()).await {
        // The three find their leader first.
        tries += 1;
        if tries > 50 {
            return Err(error.into());
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    let (begun, before) = (Instant::now(), ticks(servers));
    let mut all = futures_util::stream::iter(0..messages)
        .map(|number| {
            let context = &context;
            async move { context.publish(format!("costs.{number}"), vec![b'x'; BYTES].into()).await?.await }
        })
        .buffer_unordered(AT_ONCE);
    while let Some(answer) = all.next().await {
        answer?;
    }
    Ok(figures(messages, begun, ticks(servers).saturating_sub(before)))
}

fn figures(messages: usize, begun: Instant, ticks: u64) -> String {
    let (messages, milliseconds) = (messages as u64, u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX));
    // A tick of Linux is ten milliseconds.
    let nanoseconds = ticks * 10_000_000 / messages.max(1);
    let a_second = messages * 1_000 / milliseconds.max(1);
    format!("{a_second} a second, {nanoseconds} ns of the servers' CPU for each")
}

/// Ticks of the processor that these have had.
fn ticks(servers: &[NatsServer]) -> u64 {
    let of = |server: &NatsServer| {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.pid().unwrap_or_default())).unwrap_or_default();
        let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields).split(' ');
        fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum::<u64>()
    };
    servers.iter().map(of).sum()
}
