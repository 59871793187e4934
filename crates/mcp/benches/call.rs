//! A call through [`McpServer`] beside the same line written and read by hand, on one server.
//!
//! The ratio of the two is what counts, so it is measured first, in turns, and told in the name of the group; the server is `server-everything` where it is installed, else the one in Python
//! that the tests use.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::{Map, Value};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use turnwright_engine::{CallContext, Progress, ProgressSink, SourceCall, SystemClock, ToolSource};
use turnwright_mcp::{McpServer, ServerConfig, StdioConfig, Surroundings};

/// How often each of the two is measured.
const TURNS: usize = 4_000;

type Failure = Box<dyn std::error::Error>;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"0"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

#[derive(Debug)]
struct NoProgress;

impl ProgressSink for NoProgress {
    fn report(&self, _progress: Progress) {}
}

struct Server {
    tool: &'static str,
    command: &'static str,
    script: PathBuf,
    argument: &'static str,
}

fn server() -> Server {
    let cache = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default().join(".cache/turnwright/test-servers");
    let folder = std::env::var_os("TURNWRIGHT_TEST_SERVERS").map_or(cache, PathBuf::from);
    let everything = folder.join("npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    if everything.is_file() {
        Server { tool: "echo", command: "node", script: everything, argument: "stdio" }
    } else {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/misbehave.py");
        Server { tool: "t", command: "python3", script, argument: "good" }
    }
}

struct ByHand {
    _child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    line: String,
    id: u64,
}

impl ByHand {
    async fn start(server: &Server) -> Result<Self, Failure> {
        let mut child = Command::new(server.command)
            .arg(&server.script)
            .arg(server.argument)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let stdin = child.stdin.take().ok_or("no input")?;
        let stdout = BufReader::new(child.stdout.take().ok_or("no output")?);
        let mut by_hand = Self { _child: child, stdin, stdout, line: String::new(), id: 0 };
        by_hand.ask(INITIALIZE).await?;
        by_hand.stdin.write_all(format!("{INITIALIZED}\n").as_bytes()).await?;
        Ok(by_hand)
    }

    async fn ask(&mut self, line: &str) -> Result<Value, Failure> {
        self.stdin.write_all(format!("{line}\n").as_bytes()).await?;
        loop {
            self.line.clear();
            self.stdout.read_line(&mut self.line).await?;
            let value: Value = serde_json::from_str(&self.line)?;
            if value.get("id").and_then(Value::as_u64) == Some(self.id) {
                return Ok(value);
            }
        }
    }

    async fn call(&mut self, tool: &str, text: &str) -> Result<Value, Failure> {
        self.id += 1;
        let params = serde_json::json!({"name": tool, "arguments": {"message": text}, "_meta": {"progressToken": self.id}});
        let line = serde_json::json!({"jsonrpc": "2.0", "id": self.id, "method": "tools/call", "params": params}).to_string();
        self.ask(&line).await
    }
}

fn calls(criterion: &mut Criterion) {
    if let Err(error) = try_calls(criterion) {
        tracing::error!(%error, "the benchmark could not run");
    }
}

fn try_calls(criterion: &mut Criterion) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let server = server();
    let mut by_hand = runtime.block_on(ByHand::start(&server))?;
    let mut stdio = StdioConfig::new(server.command);
    stdio.args = vec![server.script.display().to_string(), server.argument.to_owned()];
    let config = ServerConfig::new("bench", stdio);
    let inherited_env = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| turnwright_mcp::is_inherited(name))
        .collect();
    let mut surroundings = Surroundings::new(Arc::new(SystemClock));
    surroundings.inherited_env = inherited_env;
    let source = McpServer::new(config, surroundings);
    runtime.block_on(source.settled());
    for (name, text) in [("small", "hello".to_owned()), ("64 KiB", "x".repeat(64 << 10))] {
        let ratio = runtime.block_on(overhead(&mut by_hand, &source, (server.tool, &text)))?;
        let mut group = criterion.benchmark_group(format!("{name}, {ratio}"));
        group.bench_function("by hand", |bencher| {
            bencher.iter(|| runtime.block_on(by_hand.call(server.tool, &text)).map(black_box).is_ok());
        });
        group.bench_function("McpServer", |bencher| {
            bencher.iter(|| runtime.block_on(through(&source, server.tool, &text)));
        });
        group.finish();
    }
    runtime.block_on(source.stop());
    Ok(())
}

async fn through(source: &McpServer, tool: &str, text: &str) -> bool {
    let arguments = Map::from_iter([("message".to_owned(), Value::String(text.to_owned()))]);
    let call = SourceCall { tool: tool.to_owned(), arguments, idempotency_key: String::new() };
    let context = CallContext::new(CancellationToken::new(), Arc::new(NoProgress));
    source.call(call, context).await.map(black_box).is_ok()
}

/// The medians of both in turns, so that whatever else the machine does meets both alike.
async fn overhead(by_hand: &mut ByHand, source: &McpServer, (tool, text): (&str, &str)) -> Result<String, Failure> {
    let (mut plain, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        let begun = Instant::now();
        black_box(by_hand.call(tool, text).await?);
        plain.push(begun.elapsed());
        let begun = Instant::now();
        through(source, tool, text).await;
        ours.push(begun.elapsed());
    }
    plain.sort();
    ours.sort();
    let median = |of: &[Duration]| of.get(TURNS / 2).copied().unwrap_or_default().as_secs_f64() * 1e6;
    let (plain, ours) = (median(&plain), median(&ours));
    Ok(format!("{plain:.0} us by hand, {ours:.0} us here, {:+.0} %", (ours / plain - 1.0) * 100.0))
}

criterion_group!(benches, calls);
criterion_main!(benches);
