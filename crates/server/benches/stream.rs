//! What a streamed turn costs: the fold alone, and the whole way from the request to the last byte over doubles.

use std::hint::black_box;
use std::sync::Arc;

use axum::body::Body;
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use futures_util::StreamExt;
use http::Request;
use tower::ServiceExt;
use turnwright_core::policy::Policy;
use turnwright_core::{MessageId, ModelRef, Seq, TurnId, TurnSettings};
use turnwright_engine::{Engine, EngineParts, Event, Frame};
use turnwright_server::ui::{Begin, UiFold, UiVersion};
use turnwright_server::{ServerOptions, ServerState, router};
use turnwright_testkit::{Answer, ManualClock, MemoryStore, ScriptedProvider, ScriptedProviders, text};

const TOKENS: u64 = 64;

fn plain_turn() -> Vec<Frame> {
    let turn_id = TurnId(Seq::FIRST);
    let message_id = MessageId(Seq::FIRST.next());
    let mut events = vec![Event::TurnStarted { turn_id, model: ModelRef::new("p", "m") }, Event::StepStarted { message_id }];
    events.extend((0..TOKENS).map(|token| Event::TextDelta { block: 0, offset: token * 4, text: "qzN ".to_owned() }));
    events.push(Event::TurnFinished { turn_id, status: "completed", stop: None, stop_summary: None, error: None });
    let frames =
        events.into_iter().map(|event| Frame { seq: Some(Seq::FIRST), events: Arc::from([event]), has_caught_up: true });
    frames.collect()
}

fn fold(criterion: &mut Criterion) {
    let frames = plain_turn();
    criterion.bench_function("fold a plain turn of 64 tokens", |bencher| {
        bencher.iter(|| {
            let Ok(id) = "conv_1".parse() else { return };
            let mut fold = UiFold::new(id, TurnId(Seq::FIRST), UiVersion::V7, Begin::Turn, Arc::from([]));
            for frame in &frames {
                let mut out = Vec::with_capacity(512);
                fold.fold(black_box(frame), &mut out);
                black_box(out);
            }
        });
    });
}

fn route(criterion: &mut Criterion) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_time().build() else { return };
    let set_up = || {
        let batches = (0..TOKENS).map(|_| text("qzN "));
        let engine = Engine::new(EngineParts {
            providers: Arc::new(ScriptedProviders(ScriptedProvider::new([Answer::of(batches)]))),
            sources: Vec::new(),
            store: Arc::new(MemoryStore::default()),
            clock: Arc::new(ManualClock::at(0)),
            policy: Policy::default(),
            defaults: TurnSettings::new(ModelRef::new("test", "scripted")),
        });
        router(ServerState::new(engine, ServerOptions::default()))
    };
    criterion.bench_function("stream a plain turn of 64 tokens over doubles", |bencher| {
        bencher.iter_batched(
            set_up,
            |router| {
                runtime.block_on(async {
                    let request = Request::post("/api/v1/conversations/c1/chat")
                        .header("host", "127.0.0.1:8700")
                        .header("accept", "text/event-stream")
                        .body(Body::from(r#"{"content":"Hi"}"#));
                    let Ok(request) = request else { return };
                    let Ok(response) = router.oneshot(request).await;
                    let mut body = response.into_body().into_data_stream();
                    while let Some(chunk) = body.next().await {
                        black_box(&chunk);
                    }
                });
            },
            BatchSize::SmallInput,
        );
    });
}

criterion_group!(benches, fold, route);
criterion_main!(benches);
