//! What a conversation of 10,000 entries costs beside a new one, over SQLite and the practice model: its first page as the
//! first thing that a process is asked, and its next turn.

use std::error::Error;
use std::path::Path;

use axum::Router;
use axum::body::{Body, to_bytes};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use http::Request;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tower::ServiceExt;
use turnwright_core::ConversationId;
use turnwright_engine::{NewConversation, WholeJournal};
use turnwright_host::config::{self, ConfigFile};
use turnwright_host::{Environment, Host, Overrides, import};
use turnwright_server::{ServerOptions, ServerState, router};

const ENTRIES: usize = 10_000;

type Failure = Box<dyn Error>;

/// A host over the database of this folder, with nothing but the practice model.
async fn host(folder: &Path) -> Result<Host, Failure> {
    let text = "[tools.filesystem]\nenabled = false\n[tools.command]\nenabled = false\n".to_owned();
    let file = ConfigFile { path: folder.join("turnwright.toml"), text };
    let environment = Environment::new(folder);
    let overrides = Overrides { data_dir: Some(folder.to_owned()), ..Overrides::default() };
    let loaded = config::load(Some(&file), &environment, &overrides)?;
    Ok(Host::builder(loaded, environment).start().await?)
}

fn routes(host: &Host) -> Router {
    router(ServerState::new(host.engine().clone(), ServerOptions::default()))
}

/// Stores a conversation named `long`.
async fn store_long(host: &Host) -> Result<(), Failure> {
    let turn = |at: usize| {
        let answer = format!("The answer to question {at}. ").repeat(6);
        [
            json!({"role": "user", "content": format!("What is the answer to question {at}?")}),
            json!({"role": "assistant", "content": answer}),
        ]
    };
    let messages: Vec<Value> = (0..ENTRIES).flat_map(turn).collect();
    let read = import::read(&serde_json::to_vec(&messages)?, &host.engine().defaults())?;
    let mut entries = read.conversations.into_iter().next().ok_or("nothing is said")?.entries;
    // To the end of the turn that is over by then.
    let end = entries.iter().take(ENTRIES).rposition(|entry| entry.kind() == "ended").ok_or("no turn ends")?;
    entries.truncate(end + 1);
    let conversation = NewConversation { id: Some("long".parse::<ConversationId>()?), ..NewConversation::default() };
    let whole = WholeJournal { conversation, created_at_ms: None, entries, times_ms: Vec::new() };
    host.engine().import(whole).await?;
    Ok(())
}

async fn ask(routes: &Router, request: http::request::Builder, body: Body) -> Result<(), Failure> {
    let request = request.header("host", "127.0.0.1:8700").header("content-type", "application/json").body(body)?;
    let response = routes.clone().oneshot(request).await?;
    let status = response.status();
    to_bytes(response.into_body(), usize::MAX).await?;
    if status.is_success() { Ok(()) } else { Err(format!("it was answered with {status}").into()) }
}

async fn page(routes: &Router) -> Result<(), Failure> {
    ask(routes, Request::get("/api/v1/conversations/long/messages"), Body::empty()).await
}

async fn turn(routes: &Router, conversation: &str) -> Result<(), Failure> {
    let path = format!("/api/v1/conversations/{conversation}/chat");
    ask(routes, Request::post(path), Body::from(r#"{"content":"hello"}"#)).await
}

fn measure(criterion: &mut Criterion, runtime: &Runtime) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let first = runtime.block_on(host(folder.path()))?;
    runtime.block_on(store_long(&first))?;
    runtime.block_on(first.shutdown());

    criterion.bench_function("first page of 10,000 entries, a new process's first request", |bencher| {
        bencher.iter_batched(
            || runtime.block_on(host(folder.path())),
            |host| {
                let opened = host.and_then(|host| runtime.block_on(page(&routes(&host))).map(|()| host));
                debug_assert!(opened.is_ok());
                opened
            },
            BatchSize::PerIteration,
        );
    });
    let host = runtime.block_on(host(folder.path()))?;
    let routes = routes(&host);
    runtime.block_on(turn(&routes, "long"))?;
    criterion.bench_function("first page of 10,000 entries in memory", |bencher| {
        bencher.iter(|| runtime.block_on(page(&routes)).is_ok());
    });
    criterion.bench_function("next turn after 10,000 entries", |bencher| {
        bencher.iter(|| runtime.block_on(turn(&routes, "long")).is_ok());
    });
    let mut names = 0_u64;
    criterion.bench_function("first turn of a new conversation", |bencher| {
        bencher.iter(|| {
            names += 1;
            runtime.block_on(turn(&routes, &format!("new{names}"))).is_ok()
        });
    });
    runtime.block_on(host.shutdown());
    Ok(())
}

#[expect(clippy::panic, reason = "nothing is measured where a request fails, and whoever measures must see that")]
fn opening(criterion: &mut Criterion) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    if let Err(failure) = measure(criterion, &runtime) {
        panic!("{failure}");
    }
}

criterion_group!(benches, opening);
criterion_main!(benches);
