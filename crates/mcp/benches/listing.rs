//! Listing a thousand tools of forty servers that run, what one of them keeps in memory when it is idle, and a hundred calls at
//! once.
//!
//! The servers are small Python programs; their own memory and time are not ours. Memory is in the name of the group: what
//! this process took for each server, after all are ready.
#![expect(clippy::unwrap_used, reason = "a benchmark stops by panicking")]

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use futures_util::future::join_all;
use serde_json::Map;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use turnwright_core::policy::Policy;
use turnwright_core::{ModelRef, TurnSettings};
use turnwright_engine::{
    CallContext, Engine, EngineParts, Progress, ProgressSink, SourceCall, SourceState, SystemClock, ToolSource,
};
use turnwright_mcp::{McpServer, ServerConfig, StdioConfig, Surroundings};
use turnwright_testkit::{Answer, MemoryStore, ScriptedProvider, ScriptedProviders};

const SERVERS: usize = 40;
const TOOLS: usize = 25;
/// Two tools of its own, and these.
const MORE_TOOLS: usize = TOOLS - 2;
const AT_ONCE: usize = 100;

#[derive(Debug)]
struct NoProgress;

impl ProgressSink for NoProgress {
    fn report(&self, _progress: Progress) {}
}

fn server(name: String, mode: &str, argument: String) -> Arc<McpServer> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/misbehave.py");
    let mut stdio = StdioConfig::new("python3");
    stdio.args = vec![script.display().to_string(), mode.to_owned(), argument];
    let inherited_env = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| turnwright_mcp::is_inherited(name))
        .collect();
    let mut surroundings = Surroundings::new(Arc::new(SystemClock));
    surroundings.inherited_env = inherited_env;
    Arc::new(McpServer::new(ServerConfig::new(name, stdio), surroundings))
}

fn engine(servers: &[Arc<McpServer>]) -> Engine {
    Engine::new(EngineParts {
        providers: Arc::new(ScriptedProviders(ScriptedProvider::by(|_| Answer::of([Vec::new()])))),
        sources: servers.iter().map(|server| Arc::clone(server) as Arc<dyn ToolSource>).collect(),
        store: Arc::new(MemoryStore::default()),
        clock: Arc::new(SystemClock),
        policy: Policy::default(),
        defaults: TurnSettings::new(ModelRef::new("test", "scripted")),
    })
}

/// What this process alone holds in memory, in KiB.
fn held() -> u64 {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let line = rollup.lines().find(|line| line.starts_with("Anonymous:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn lists(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let warm_up = server("warm-up".to_owned(), "some_tools", MORE_TOOLS.to_string());
    runtime.block_on(warm_up.settled());
    let before = held();
    let servers: Vec<_> =
        (0..SERVERS).map(|number| server(format!("s{number}"), "some_tools", MORE_TOOLS.to_string())).collect();
    runtime.block_on(async {
        // Four at a time: a Python that starts takes a whole core.
        for some in servers.chunks(4) {
            join_all(some.iter().map(|server| server.settled())).await;
        }
    });
    assert!(servers.iter().all(|server| server.state() == SourceState::Ready));
    let each = held().saturating_sub(before) / SERVERS as u64;
    let mut group = criterion.benchmark_group(format!("{SERVERS} servers, {each} KiB each when idle"));
    let known = engine(&servers);
    group.bench_function("tools listed", |bencher| {
        bencher.iter(|| assert_eq!(black_box(runtime.block_on(known.tools())).len(), SERVERS * TOOLS));
    });
    group.bench_function("tools listed for the first time", |bencher| {
        bencher.iter(|| assert_eq!(black_box(runtime.block_on(engine(&servers).tools())).len(), SERVERS * TOOLS));
    });
    group.finish();
    runtime.block_on(async {
        join_all(servers.iter().map(|server| server.stop())).await;
        warm_up.stop().await;
    });
}

/// Every answer takes the server 200 ms.
fn at_once(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let waits = server("waits".to_owned(), "parallel", "0.2".to_owned());
    runtime.block_on(waits.settled());
    let one = || {
        let call = SourceCall { tool: "t".to_owned(), arguments: Map::new(), idempotency_key: String::new() };
        let context = CallContext::new(CancellationToken::new(), Arc::new(NoProgress));
        waits.call(call, context)
    };
    let mut group = criterion.benchmark_group("calls of 200 ms");
    group.sample_size(10);
    for calls in [1, AT_ONCE] {
        group.bench_function(format!("{calls} at once"), |bencher| {
            bencher.iter(|| {
                let answers = runtime.block_on(join_all((0..calls).map(|_| one())));
                assert!(answers.iter().all(Result::is_ok));
            });
        });
    }
    group.finish();
    runtime.block_on(waits.stop());
}

criterion_group!(benches, lists, at_once);
criterion_main!(benches);
