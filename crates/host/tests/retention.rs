//! `[storage] retention`: what is old goes, and what somebody still needs stays.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use turnwright_engine::{ConversationChange, Document, NewMessage, REPEATABLE_REQUESTS, SettingsOverlay, TurnState};
use turnwright_host::{Environment, Host, Needs, Overrides, config};
use turnwright_testkit::ManualClock;
use turnwright_testkit::model_server::{ModelServer, Piece, call_chunk, finish_chunk, results_shown, text_chunk};

const DAY_MS: u64 = 24 * 3_600_000;

/// A model that writes a file where it is told to write, and else says something.
fn model() -> ModelServer {
    ModelServer::start(None, |request: &Value| {
        let says_write =
            request["messages"].as_array().and_then(|said| said.last()).is_some_and(|said| said["content"] == "write");
        if says_write && results_shown(request) == 0 {
            let call = call_chunk(0, "filesystem__write", r#"{"path":"a.txt","content":"x"}"#);
            return vec![call, finish_chunk("tool_calls"), Piece::Done];
        }
        vec![text_chunk("Done."), finish_chunk("stop"), Piece::Done]
    })
    .unwrap()
}

async fn host(folder: &Path, model: &ModelServer, clock: Arc<ManualClock>, retention: &str) -> Host {
    let text = format!(
        "model = \"scripted/m\"\n[providers.scripted]\ndialect = \"openai-chat\"\nbase_url = \"{}\"\nmodels = [\"m\"]\n\
         [storage]\n{retention}\n",
        model.base_url()
    );
    std::fs::write(folder.join("turnwright.toml"), text).unwrap();
    let environment = Environment::new(folder);
    let overrides = Overrides { data_dir: Some(folder.join("data")), ..Overrides::default() };
    let loaded = config::open(&environment, &overrides).unwrap();
    Host::builder(loaded, environment).needs(Needs::OnDemand).clock(clock).start().await.unwrap()
}

/// Says something in a new conversation of this name, and how its turn is then.
async fn say(host: &Host, id: &str, text: &str) -> TurnState {
    let id = id.parse().unwrap();
    let sent = host.engine().send(&id, NewMessage { create: true, ..NewMessage::text(text) }).await.unwrap();
    host.engine().wait(&id, sent.turn_id).await.unwrap()
}

/// A server ran here at this time: that it is so late is no mistake of the clock.
async fn ran(host: &Host) {
    let body = json!({"at_ms": host.engine().clock().now_ms()}).to_string();
    host.documents().put_document("seen", Document { key: "server".to_owned(), body }).await.unwrap();
}

async fn names(host: &Host) -> Vec<String> {
    let all = host.engine().conversations(None, 100).await.unwrap();
    let mut names: Vec<String> = all.iter().map(|conversation| conversation.id.to_string()).collect();
    names.sort_unstable();
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retention_removes_what_is_old_and_spares_what_waits_what_is_pinned_and_what_goes_on() {
    let (folder, model) = (tempfile::tempdir().unwrap(), model());
    let clock = Arc::new(ManualClock::at(1_736_622_000_000));
    let host = host(folder.path(), &model, clock.clone(), "retention = \"30d\"").await;
    assert_eq!(say(&host, "waits", "write").await, TurnState::Parked);
    for id in ["old", "pinned", "goes-on"] {
        say(&host, id, "hello").await;
    }
    let pinned = SettingsOverlay { pinned: Some(true), ..SettingsOverlay::default() };
    let change = ConversationChange { overlay: Some(pinned), ..ConversationChange::default() };
    host.engine().update(&"pinned".parse().unwrap(), change).await.unwrap();

    clock.advance(30 * DAY_MS);
    ran(&host).await;
    host.tidy_once().await;
    assert_eq!(names(&host).await, ["goes-on", "old", "pinned", "waits"], "thirty days are kept whole");

    say(&host, "goes-on", "and again").await;
    say(&host, "new", "hello").await;
    clock.advance(1);
    host.tidy_once().await;
    assert_eq!(names(&host).await, ["goes-on", "new", "pinned", "waits"]);
    let gone = host.engine().journal(&"old".parse().unwrap()).await;
    assert!(gone.is_err(), "{gone:?}");

    clock.advance(31 * DAY_MS);
    ran(&host).await;
    host.tidy_once().await;
    assert_eq!(names(&host).await, ["pinned", "waits"]);
    host.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_to_idempotency_keys_that_stand_in_no_conversation_go_with_their_age_too() {
    old_keys_go("retention = \"10d\"", 10).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_to_idempotency_keys_that_stand_in_no_conversation_are_kept_for_thirty_days_without_it() {
    old_keys_go("", 30).await;
}

async fn old_keys_go(retention: &str, days: u64) {
    let (folder, model) = (tempfile::tempdir().unwrap(), model());
    let now_ms = 1_736_622_000_000;
    let clock = Arc::new(ManualClock::at(now_ms));
    let host = host(folder.path(), &model, clock.clone(), retention).await;
    let put = async |key: &str, body: Value| {
        let document = Document { key: key.to_owned(), body: body.to_string() };
        host.documents().put_document(REPEATABLE_REQUESTS, document).await.unwrap();
    };
    let left = async || {
        let all = host.documents().documents(REPEATABLE_REQUESTS).await.unwrap();
        all.into_iter().map(|document| document.key).collect::<Vec<_>>()
    };
    put("a", json!({"fingerprint": "f", "at_ms": now_ms, "answer": null, "made": ""})).await;
    put("b", json!({"fingerprint": "f", "at_ms": now_ms + 1, "answer": null, "made": ""})).await;
    put("of an older version", json!({"fingerprint": "f", "answer": null, "made": ""})).await;
    ran(&host).await;
    host.tidy_once().await;
    clock.advance(days * DAY_MS);
    ran(&host).await;
    host.tidy_once().await;
    assert_eq!(left().await, ["a", "b", "of an older version"], "{days} days are kept whole");
    clock.advance(3_600_001);
    put("b", json!({"fingerprint": "f", "at_ms": now_ms + 3_600_001, "answer": null, "made": ""})).await;
    host.tidy_once().await;
    assert_eq!(left().await, ["b"]);
    host.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_may_be_sent_again_are_forgotten_after_an_hour_whatever_the_retention() {
    let (folder, model) = (tempfile::tempdir().unwrap(), model());
    let clock = Arc::new(ManualClock::at(1_736_622_000_000));
    let host = host(folder.path(), &model, clock.clone(), "").await;
    let key = host.engine().new_request_key(&"0f".repeat(32), None).unwrap();
    for (id, key) in [("a", key.clone()), ("b", "chosen".to_owned())] {
        let message = NewMessage { idempotency: Some((key, "f".to_owned())), create: true, ..NewMessage::text("hello") };
        host.engine().send(&id.parse().unwrap(), message).await.unwrap();
    }
    let kept = async || {
        let engine = host.engine();
        (engine.idempotent(&key).await.unwrap().is_some(), engine.idempotent("chosen").await.unwrap().is_some())
    };
    clock.advance(3_600_000);
    host.tidy_once().await;
    assert_eq!(kept().await, (true, true), "an hour is kept whole");
    clock.advance(3_600_000);
    host.tidy_once().await;
    assert_eq!(kept().await, (false, true));
    host.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_it_nothing_goes_however_old_it_is() {
    let (folder, model) = (tempfile::tempdir().unwrap(), model());
    let clock = Arc::new(ManualClock::at(1_736_622_000_000));
    let host = host(folder.path(), &model, clock.clone(), "").await;
    say(&host, "old", "hello").await;
    clock.advance(10_000 * DAY_MS);
    ran(&host).await;
    host.tidy_once().await;
    assert_eq!(names(&host).await, ["old"]);
    host.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_is_months_ahead_removes_nothing() {
    let (folder, model) = (tempfile::tempdir().unwrap(), model());
    let now_ms = 1_736_622_000_000;
    let first = host(folder.path(), &model, Arc::new(ManualClock::at(now_ms)), "retention = \"90d\"").await;
    let key = first.engine().new_request_key(&"0f".repeat(32), None).unwrap();
    let message = NewMessage { idempotency: Some((key.clone(), "f".to_owned())), create: true, ..NewMessage::text("hello") };
    let sent = first.engine().send(&"c1".parse().unwrap(), message).await.unwrap();
    first.engine().wait(&"c1".parse().unwrap(), sent.turn_id).await.unwrap();
    ran(&first).await;
    first.tidy_once().await;
    first.shutdown().await;
    let ahead = Arc::new(ManualClock::at(now_ms + 95 * DAY_MS));
    let wrong = host(folder.path(), &model, ahead, "retention = \"90d\"").await;
    // Also where somebody says something by it.
    say(&wrong, "c2", "hello").await;
    wrong.tidy_once().await;
    wrong.tidy_once().await;
    assert_eq!(names(&wrong).await, ["c1", "c2"]);
    assert!(wrong.engine().idempotent(&key).await.unwrap().is_some(), "nor what a request began that may come again");
    wrong.shutdown().await;
    let mended = host(folder.path(), &model, Arc::new(ManualClock::at(now_ms + DAY_MS)), "retention = \"90d\"").await;
    mended.tidy_once().await;
    assert_eq!(names(&mended).await, ["c1", "c2"]);
    mended.shutdown().await;
}
