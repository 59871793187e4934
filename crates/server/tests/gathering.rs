//! When the frames of an event stream are written, on a clock that stands still until everybody waits.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use futures_util::StreamExt;
use http::Request;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tower::ServiceExt;
use turnwright_core::policy::Policy;
use turnwright_core::{Finish, FinishReason, ModelRef, StreamDelta, TurnSettings};
use turnwright_engine::{Engine, EngineParts};
use turnwright_server::{ServerOptions, ServerState, router};
use turnwright_testkit::{Answer, ManualClock, MemoryStore, ScriptedProvider, ScriptedProviders, text};

/// An answer of so many words, each after one permit.
fn words(count: usize, gate: &Arc<Semaphore>) -> Answer {
    let end = vec![StreamDelta::Finished(Finish { reason: FinishReason::Stop, raw: None })];
    Answer::of((0..count).map(|index| text(&format!("w{index} "))).chain([end])).gated(gate)
}

/// What is written of a chat with this answer.
async fn chat(answer: Answer) -> BodyDataStream {
    let engine = Engine::new(EngineParts {
        providers: Arc::new(ScriptedProviders(ScriptedProvider::new([answer]))),
        sources: Vec::new(),
        store: Arc::new(MemoryStore::default()),
        clock: Arc::new(ManualClock::at(0)),
        policy: Policy::default(),
        defaults: TurnSettings::new(ModelRef::new("test", "m")),
    });
    let router = router(ServerState::new(engine, ServerOptions::default()));
    let request = Request::post("/api/v1/conversations/c1/chat")
        .header("host", "127.0.0.1:8700")
        .header("accept", "text/event-stream")
        .body(Body::from(r#"{"content":"Go!"}"#))
        .unwrap();
    router.oneshot(request).await.unwrap().into_body().into_data_stream()
}

async fn next(stream: &mut BodyDataStream) -> String {
    String::from_utf8(stream.next().await.unwrap().unwrap().to_vec()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_comes_within_eight_milliseconds_is_written_together() {
    let gate = Arc::new(Semaphore::new(0));
    let began = Instant::now();
    let mut stream = chat(words(4, &gate)).await;
    let first = next(&mut stream).await;
    assert!(first.contains(r#""type":"start""#), "{first}");
    assert_eq!(began.elapsed(), Duration::from_millis(8));

    gate.add_permits(2);
    let two = next(&mut stream).await;
    assert!(two.contains("w0 ") && two.contains("w1 "), "{two}");
    assert_eq!(began.elapsed(), Duration::from_millis(16));

    tokio::time::advance(Duration::from_millis(20)).await;
    gate.add_permits(1);
    let after_silence = next(&mut stream).await;
    assert!(after_silence.contains("w2 "), "{after_silence}");
    assert_eq!(began.elapsed(), Duration::from_millis(36));

    gate.add_permits(3);
    let end = next(&mut stream).await;
    assert!(end.contains("w3 ") && end.contains("[DONE]"), "the end waits for nothing: {end}");
    assert_eq!(began.elapsed(), Duration::from_millis(36));
    assert!(stream.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_stream_in_which_nothing_happens_is_kept_alive_with_comments() {
    let gate = Arc::new(Semaphore::new(0));
    let began = Instant::now();
    let mut stream = chat(words(1, &gate)).await;
    assert!(next(&mut stream).await.contains(r#""type":"start""#));
    for silences in 1..=3 {
        assert_eq!(next(&mut stream).await, ": keep-alive\n\n");
        assert_eq!(began.elapsed(), Duration::from_millis(8) + silences * Duration::from_secs(15));
    }
    tokio::time::advance(Duration::from_secs(10)).await;
    gate.add_permits(1);
    assert!(next(&mut stream).await.contains("w0 "));
    let written = began.elapsed();
    assert_eq!(next(&mut stream).await, ": keep-alive\n\n");
    assert_eq!(began.elapsed(), written + Duration::from_secs(15), "since something was written");
}

#[tokio::test(start_paused = true)]
async fn a_quick_answer_is_one_write_that_waits_for_nothing() {
    let began = Instant::now();
    let mut stream = chat(words(4, &Arc::new(Semaphore::new(9)))).await;
    let all = next(&mut stream).await;
    assert!(all.contains(r#""type":"start""#) && all.contains("w3 ") && all.contains("[DONE]"), "{all}");
    assert!(stream.next().await.is_none());
    assert_eq!(began.elapsed(), Duration::ZERO);
}
