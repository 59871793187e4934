//! What the driver costs: one turn over scripted ports, from the message to its end.
#![expect(clippy::unwrap_used, reason = "a benchmark stops by panicking")]

use std::sync::Arc;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use turnwright_core::policy::Policy;
use turnwright_core::{ApproveMode, ConversationId, ModelRef, TurnSettings};
use turnwright_engine::{Engine, EngineParts, NewMessage, SystemClock};
use turnwright_testkit::{Answer, MemoryStore, ScriptedProvider, ScriptedProviders, ScriptedSource, ScriptedTool, call, text};

fn engine(calls: u32) -> Engine {
    let provider = ScriptedProvider::by(move |asked| {
        let answers = calls == 0 || asked.contains("result: ");
        if answers {
            Answer::of([(0..64).flat_map(|n| text(&format!("token{n} "))).collect()])
        } else {
            Answer::whole((0..calls).map(|key| call(key, "tools__echo", r#"{"message":"hello"}"#)))
        }
    });
    let defaults = TurnSettings { approve: ApproveMode::All, ..TurnSettings::new(ModelRef::new("test", "scripted")) };
    Engine::new(EngineParts {
        providers: Arc::new(ScriptedProviders(provider)),
        sources: vec![Arc::new(ScriptedSource::new("tools", [ScriptedTool::echo("echo")]))],
        store: Arc::new(MemoryStore::default()),
        clock: Arc::new(SystemClock),
        policy: Policy::default(),
        defaults,
    })
}

fn turns(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    for (name, calls) in [("plain, 64 deltas", 0), ("one step of one call", 1), ("one step of five calls", 5)] {
        let engine = runtime.block_on(async { engine(calls) });
        let mut number = 0_u64;
        criterion.bench_function(&format!("turn: {name}"), |bencher| {
            bencher.iter_batched(
                || {
                    number += 1;
                    format!("c{number}").parse::<ConversationId>().unwrap()
                },
                |id| {
                    runtime.block_on(async {
                        let message = NewMessage { create: true, ..NewMessage::text("go") };
                        let sent = engine.send(&id, message).await.unwrap();
                        engine.wait(&id, sent.turn_id).await.unwrap()
                    })
                },
                BatchSize::SmallInput,
            );
        });
    }
}

criterion_group!(benches, turns);
criterion_main!(benches);
