//! Many at once: 1,000 watchers of 64 conversations in which a turn always runs. Every turn ends, every stream is whole, and
//! memory does not grow.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use turnwright_testkit::model_server::{ModelServer, Piece, call_chunk, finish_chunk, results_shown, text_chunk};

use crate::assembling::Assembly;
use crate::serve::Server;
use crate::support::{LIMIT, Place};

const STREAMS: usize = 1_000;
const CONVERSATIONS: usize = 64;
/// Turns of a conversation, before its worker begins another one.
const TURNS: usize = 2;
const PACE: Duration = Duration::from_millis(250);
const WORDS: usize = 6;
/// What memory may grow by, once caches are filled.
const MAX_GROWTH_KIB: usize = 16 << 10;

/// How long: twenty seconds, or as the variable says.
fn seconds() -> u64 {
    std::env::var("TURNWRIGHT_LOAD_SECONDS").ok().map_or(20, |seconds| seconds.parse().unwrap())
}

fn script(request: &Value) -> Vec<Piece> {
    let step = results_shown(request);
    let words = (0..WORDS).flat_map(|word| [Piece::Pause(PACE), text_chunk(&format!("{step}.{word} "))]);
    let end = match step {
        0 => vec![call_chunk(0, "filesystem__read", "{\"path\":\"a.txt\"}"), finish_chunk("tool_calls"), Piece::Done],
        _ => vec![finish_chunk("stop"), Piece::Done],
    };
    words.chain(end).collect()
}

/// What a step says.
fn said(step: usize) -> String {
    let words: Vec<String> = (0..WORDS).map(|word| format!("{step}.{word} ")).collect();
    words.concat()
}

#[derive(Debug, Default)]
struct Counts {
    turns: AtomicUsize,
    streams: AtomicUsize,
    events: AtomicUsize,
    cut_off: AtomicUsize,
}

async fn open(address: &str, head: &str, body: &str) -> std::io::Result<BufReader<TcpStream>> {
    let mut stream = TcpStream::connect(address).await?;
    let length = body.len();
    let head = format!("{head}Host: {address}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(head.as_bytes()).await?;
    let mut reader = BufReader::with_capacity(1 << 10, stream);
    let mut line = String::new();
    while reader.read_line(&mut line).await? > 2 {}
    assert!(line.starts_with("HTTP/1.0 2"), "{line}");
    Ok(reader)
}

async fn post(address: &str, path: &str, body: Value) -> Value {
    let mut reader = open(address, &format!("POST /api/v1/{path} HTTP/1.0\r\n"), &body.to_string()).await.unwrap();
    let mut answer = String::new();
    timeout(LIMIT, reader.read_to_string(&mut answer)).await.unwrap().unwrap();
    serde_json::from_str(&answer).unwrap()
}

/// Runs conversations one after the other, and says which is on.
async fn work(address: &str, worker: usize, until: Instant, on: watch::Sender<Option<String>>, counts: &Counts) {
    for round in 0.. {
        if Instant::now() > until {
            return;
        }
        let conversation = format!("w{worker}-{round}");
        post(address, "conversations", json!({"id": conversation})).await;
        on.send_replace(Some(conversation.clone()));
        for _ in 0..TURNS {
            let answer = post(address, &format!("conversations/{conversation}/chat"), json!({"content": "Go."})).await;
            assert_eq!(
                (&answer["turn"]["status"], &answer["turn"]["text"]),
                (&json!("completed"), &json!(said(1))),
                "{answer}"
            );
            counts.turns.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Watches each conversation of a worker to its end.
async fn follow(address: &str, mut on: watch::Receiver<Option<String>>, counts: &Counts) {
    while on.changed().await.is_ok() {
        let conversation = on.borrow_and_update().clone().unwrap();
        let mut seen = Assembly::default();
        while seen.finished < TURNS {
            let last = seen.last.as_deref().unwrap_or_default();
            let head = format!("GET /api/v1/conversations/{conversation}/events HTTP/1.0\r\nLast-Event-ID: {last}\r\n");
            let reader = open(address, &head, "").await.unwrap();
            read(reader, &mut seen, counts).await;
            counts.cut_off.fetch_add(usize::from(seen.finished < TURNS), Ordering::Relaxed);
        }
        let all: Vec<String> = (0..TURNS).flat_map(|_| [said(0), said(1)]).collect();
        assert_eq!(seen.said, all, "{conversation}");
        counts.streams.fetch_add(1, Ordering::Relaxed);
    }
}

/// Reads a stream until the last turn is over, or it ends.
async fn read(mut reader: BufReader<TcpStream>, seen: &mut Assembly, counts: &Counts) {
    let (mut id, mut line) = (String::new(), String::new());
    while seen.finished < TURNS {
        line.clear();
        if timeout(LIMIT, reader.read_line(&mut line)).await.unwrap().unwrap() == 0 {
            return;
        }
        if let Some(value) = line.strip_prefix("id: ") {
            value.trim_end().clone_into(&mut id);
        } else if let Some(data) = line.strip_prefix("data: ") {
            seen.take(&id, serde_json::from_str(data).unwrap()).unwrap();
            counts.events.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// What a process has in memory, in KiB.
fn resident_kib(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_streams_of_running_conversations_are_whole_and_memory_does_not_grow() {
    let model = ModelServer::start([], script).unwrap();
    let place = Place::new();
    let config = format!(
        "model = \"p/m\"\n[providers.p]\ndialect = \"openai-chat\"\nbase_url = \"{}\"\nmodels = [\"m\"]\n",
        model.base_url()
    );
    place.write("turnwright.toml", config);
    let server = Server::start(&place);
    let (pid, address) = (server.pid(), server.address().to_owned());
    let counts = Arc::new(Counts::default());
    let at_rest = resident_kib(pid);
    let begun = Instant::now();
    let until = begun + Duration::from_secs(seconds());
    let samples: Arc<Mutex<Vec<usize>>> = Arc::default();
    let mut tasks = tokio::task::JoinSet::new();
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..CONVERSATIONS {
        let (tell, told) = watch::channel(None);
        for _ in (worker..STREAMS).step_by(CONVERSATIONS) {
            let (address, told, counts) = (address.clone(), told.clone(), counts.clone());
            tasks.spawn(async move { follow(&address, told, &counts).await });
        }
        let (address, counts) = (address.clone(), counts.clone());
        workers.spawn(async move { work(&address, worker, until, tell, &counts).await });
    }
    let sampling = {
        let samples = samples.clone();
        tokio::spawn(async move {
            let mut every = tokio::time::interval(Duration::from_millis(500));
            loop {
                every.tick().await;
                samples.lock().unwrap().push(resident_kib(pid));
            }
        })
    };
    while let Some(ended) = workers.join_next().await {
        ended.unwrap();
    }
    sampling.abort();
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    let samples = samples.lock().unwrap().clone();
    // What is there after the first minute, or the first half where there is less than two.
    let settled = samples.len().min(240) / 2;
    let most = |part: &[usize]| part.iter().copied().max().unwrap();
    let (early, late) = (most(&samples[..settled]), most(&samples[settled..]));
    let count = |count: &AtomicUsize| count.load(Ordering::Relaxed);
    println!(
        "{} turns, {} streams, {} events, {} streams cut off in {:.0} s; {at_rest} KiB at rest, {early} KiB in the first part, {late} KiB after",
        count(&counts.turns),
        count(&counts.streams),
        count(&counts.events),
        count(&counts.cut_off),
        begun.elapsed().as_secs_f64()
    );
    assert!(count(&counts.turns) >= CONVERSATIONS * TURNS, "{counts:?}");
    assert!(count(&counts.streams) >= STREAMS, "{counts:?}");
    assert!(late < early + MAX_GROWTH_KIB, "{early} KiB, then {late} KiB");
    server.stop();
}
