//! How long a step takes whose calls begin while its message is still being written: six calls, four readers of a second each and
//! two writers of one file, in a message that streams for three seconds. It should end within a tenth of the stream's end.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark fails by panicking, reports to standard output, reads the real clock and owns its one task"
)]

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::Semaphore;
use turnwright_core::policy::Policy;
use turnwright_core::{
    ApproveMode, ConversationId, Declared, Finish, FinishReason, ModelRef, StreamDelta, TurnSettings, TurnStatus,
};
use turnwright_engine::{Engine, EngineParts, NewMessage, SystemClock, ToolOutput, TurnState};
use turnwright_testkit::{Answer, MemoryStore, ScriptedProvider, ScriptedProviders, ScriptedSource, ScriptedTool, call, text};
use turnwright_tools::{FilesystemConfig, filesystem};

const ROUNDS: usize = 7;
const READS: Duration = Duration::from_secs(1);
const STREAMS: Duration = Duration::from_secs(3);

/// A step: when its stream ended, and when all its results were there, in milliseconds since its message was sent.
async fn step(number: usize, writes: &[(&str, &str)]) -> (f64, f64) {
    let folder = tempfile::tempdir().unwrap();
    let look = ScriptedTool::new("look", |_, _| async {
        tokio::time::sleep(READS).await;
        Ok(ToolOutput::text("seen"))
    });
    let look = look.declared(Declared { read_only: true, ..Declared::default() });
    let mut batches: Vec<_> = (0_u32..4).map(|key| call(key, "slow__look", &json!({"number": key}).to_string())).collect();
    for (key, (path, content)) in (4_u32..).zip(writes) {
        batches.push(call(key, "filesystem__write", &json!({"path": path, "content": content}).to_string()));
    }
    let pieces = u32::try_from(batches.len()).unwrap();
    batches.push(vec![StreamDelta::Finished(Finish { reason: FinishReason::ToolCalls, raw: None })]);
    let gate = Arc::new(Semaphore::new(0));
    let results: Arc<Mutex<Option<Instant>>> = Arc::default();
    let (held, seen) = (gate.clone(), results.clone());
    let provider = ScriptedProvider::by(move |asked| {
        if asked.contains("result: ") {
            *seen.lock().unwrap() = Some(Instant::now());
            return Answer::whole([text("Done.")]);
        }
        Answer::of(batches.clone()).gated(&held)
    });
    let defaults = TurnSettings { approve: ApproveMode::All, ..TurnSettings::new(ModelRef::new("test", "scripted")) };
    let files = filesystem(FilesystemConfig::new(vec![folder.path().to_path_buf()])).unwrap();
    let engine = Engine::new(EngineParts {
        providers: Arc::new(ScriptedProviders(provider)),
        sources: vec![Arc::new(ScriptedSource::new("slow", [look])), Arc::new(files)],
        store: Arc::new(MemoryStore::default()),
        clock: Arc::new(SystemClock),
        policy: Policy::default(),
        defaults,
    });
    let id: ConversationId = format!("c{number}").parse().unwrap();
    let sent = engine.send(&id, NewMessage { create: true, ..NewMessage::text("go") }).await.unwrap();
    let begun = Instant::now();
    let stream = tokio::spawn(async move {
        // The calls come one after the other, and the end last.
        for _ in 0..pieces {
            gate.add_permits(1);
            tokio::time::sleep(STREAMS / pieces).await;
        }
        gate.add_permits(2);
        Instant::now()
    });
    let ended = engine.wait(&id, sent.turn_id).await.unwrap();
    assert_eq!(ended, TurnState::Ended(TurnStatus::Completed));
    let (streamed, done) = (stream.await.unwrap(), results.lock().unwrap().unwrap());
    let written = std::fs::read_to_string(folder.path().join("a.txt")).unwrap();
    assert_eq!(written, "second", "the writers ran in call order");
    engine.shutdown().await;
    let ms = |at: Instant| at.duration_since(begun).as_secs_f64() * 1_000.0;
    (ms(streamed), ms(done))
}

fn main() {
    if std::env::args().any(|argument| argument == "--test" || argument == "--list") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    println!("a step of four readers of 1,000 ms and two writers of one file, in a message that streams for 3,000 ms:");
    let mut ratios: Vec<f64> = Vec::new();
    for round in 0..ROUNDS {
        let (streamed, done) = runtime.block_on(step(round, &[("a.txt", "first"), ("a.txt", "second")]));
        ratios.push(done / streamed);
        println!("stream {streamed:>8.1} ms   step {done:>8.1} ms   after the stream {:>6.2} ms", done - streamed);
    }
    ratios.sort_by(f64::total_cmp);
    let middle = ratios.get(ROUNDS / 2).copied().unwrap_or_default();
    let most = ratios.last().copied().unwrap_or_default();
    println!("step to stream: median {middle:.4}, most {most:.4}; at most 1.10");
}
