//! What the tests of this crate share.

pub(crate) mod child;
pub(crate) mod far;
pub(crate) mod http_server;
pub(crate) mod oauth;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use turnwright_core::{ContentBlock, ToolErrorKind};
use turnwright_engine::{
    CallContext, Clock, Progress, ProgressSink, SourceCall, SourceState, ToolError, ToolOutput, ToolSource,
};
use turnwright_mcp::{
    FileDefinitions, FileLedger, McpServer, ProcessRecord, RestartPolicy, ServerConfig, StdioConfig, Surroundings,
    TransportConfig,
};

/// Longer than anything here takes; a test that needs it has failed.
pub(crate) const LONG: Duration = Duration::from_mins(2);

#[derive(Debug)]
pub(crate) struct StoppedClock;

impl Clock for StoppedClock {
    fn now_ms(&self) -> u64 {
        0
    }
}

/// A server with its ledger, which knows its process groups.
pub(crate) struct Fixture {
    pub(crate) server: McpServer,
    pub(crate) folder: tempfile::TempDir,
}

/// Quick where the defaults are patient, so that tests are.
pub(crate) fn quick(config: &mut ServerConfig) {
    config.start_limit = Duration::from_mins(1);
    config.stop_grace = Duration::from_millis(300);
    config.cancel_grace = Duration::from_millis(300);
    config.restart = RestartPolicy { first: Duration::from_millis(10), open: Duration::ZERO, ..RestartPolicy::default() };
}

pub(crate) fn misbehaving(mode: &str, argument: &str) -> ServerConfig {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/misbehave.py");
    let mut stdio = StdioConfig::new("python3");
    stdio.args = vec![script.display().to_string(), mode.to_owned(), argument.to_owned()];
    let mut config = ServerConfig::new("bad", stdio);
    quick(&mut config);
    config
}

/// The program of a server that is one.
pub(crate) fn stdio(config: &mut ServerConfig) -> &mut StdioConfig {
    match &mut config.transport {
        TransportConfig::Stdio(stdio) => stdio,
        other @ (TransportConfig::Http(_) | TransportConfig::Docker(_)) => panic!("{other} is no program"),
    }
}

pub(crate) fn fixture(config: ServerConfig) -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    Fixture { server: fixture_in(config, folder.path()), folder }
}

/// A server of the driver `test`, whose ledger is below this folder.
pub(crate) fn fixture_in(config: ServerConfig, folder: &Path) -> McpServer {
    surrounded(config, folder, test_engine())
}

/// The Docker engine of the tests, where there is one.
pub(crate) fn test_engine() -> Option<String> {
    std::env::var_os("TURNWRIGHT_TEST_DOCKER")?.into_string().ok()
}

/// The same with the Docker engine at this address.
pub(crate) fn fixture_at(config: ServerConfig, folder: &Path, engine: &str) -> McpServer {
    surrounded(config, folder, Some(engine.to_owned()))
}

fn surrounded(config: ServerConfig, folder: &Path, docker_host: Option<String>) -> McpServer {
    let ledger = FileLedger::open(&folder.join("processes"), "test").unwrap();
    let inherited_env = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| turnwright_mcp::is_inherited(name))
        .collect();
    let mut surroundings = Surroundings::new(Arc::new(StoppedClock));
    (surroundings.inherited_env, surroundings.ledger) = (inherited_env, Arc::new(ledger));
    surroundings.definitions = Arc::new(FileDefinitions::new(folder.join("definitions")));
    surroundings.docker_host = docker_host;
    McpServer::new(config, surroundings)
}

/// Starts it and waits until it is ready.
pub(crate) async fn started(config: ServerConfig) -> Fixture {
    let fixture = fixture(config);
    fixture.server.settled().await;
    assert_eq!(fixture.server.state(), SourceState::Ready, "{:?}", fixture.server.logs());
    fixture
}

impl Fixture {
    pub(crate) fn records(&self) -> Vec<ProcessRecord> {
        let folder = self.folder.path().join("processes/test");
        std::fs::read_dir(folder)
            .unwrap()
            .map(|file| serde_json::from_slice(&std::fs::read(file.unwrap().path()).unwrap()).unwrap())
            .collect()
    }

    pub(crate) fn tool_names(&self) -> Vec<String> {
        self.server.tools().iter().map(|tool| tool.name.clone()).collect()
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<ToolOutput, ToolError> {
        let (context, _) = context();
        tokio::time::timeout(LONG, self.server.call(call(tool, arguments), context)).await.expect("the call ends")
    }

    /// Waits for a log line that holds `text`.
    pub(crate) async fn logged(&self, text: &str) -> String {
        let found = async {
            loop {
                if let Some(line) = self.server.logs().into_iter().find(|line| line.text.contains(text)) {
                    return line.text;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(LONG, found).await.unwrap_or_else(|_| panic!("`{text}` in {:?}", self.server.logs()))
    }

    /// Waits until the server is in this state.
    pub(crate) async fn until(&self, wanted: impl Fn(&SourceState) -> bool) -> SourceState {
        let found = async {
            loop {
                let state = self.server.state();
                if wanted(&state) {
                    return state;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(LONG, found).await.unwrap_or_else(|_| panic!("{:?}", self.server.logs()))
    }

    /// Stops it and checks that no process of it is left.
    pub(crate) async fn stop(&self) {
        let groups: Vec<i32> = self.records().iter().filter_map(|record| record.pgid).collect();
        tokio::time::timeout(LONG, self.server.stop()).await.expect("the stop ends");
        assert_eq!(self.server.state(), SourceState::Stopped);
        for group in groups {
            assert_eq!(members(group), Vec::<i32>::new());
        }
        assert_eq!(self.records(), []);
    }
}

pub(crate) fn call(tool: &str, arguments: Value) -> SourceCall {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    SourceCall { tool: tool.to_owned(), arguments, idempotency_key: "key".to_owned() }
}

pub(crate) fn nothing() -> Value {
    Value::Object(Map::new())
}

#[derive(Debug, Default)]
pub(crate) struct Reports(pub(crate) Mutex<Vec<Progress>>);

impl ProgressSink for Reports {
    fn report(&self, progress: Progress) {
        self.0.lock().unwrap().push(progress);
    }
}

pub(crate) fn context() -> (CallContext, Arc<Reports>) {
    let reports = Arc::new(Reports::default());
    (CallContext::new(CancellationToken::new(), reports.clone()), reports)
}

/// The living processes of a group.
pub(crate) fn members(group: i32) -> Vec<i32> {
    processes().into_iter().filter(|(_, of)| *of == group).map(|(pid, _)| pid).collect()
}

pub(crate) fn is_alive(pid: i32) -> bool {
    processes().iter().any(|(living, _)| *living == pid)
}

/// `(process, group)` of everything that lives.
fn processes() -> Vec<(i32, i32)> {
    let stat = |entry: std::io::Result<std::fs::DirEntry>| {
        let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<String> = text.rsplit_once(')')?.1.split_whitespace().map(str::to_owned).collect();
        (fields[0] != "Z").then(|| (pid, fields[2].parse().unwrap()))
    };
    std::fs::read_dir("/proc").unwrap().filter_map(stat).collect()
}

/// The children that a server said it has.
pub(crate) fn children(fixture: &Fixture) -> Vec<i32> {
    let logs = fixture.server.logs();
    logs.iter().filter_map(|line| line.text.strip_prefix("child ")?.parse().ok()).collect()
}

pub(crate) fn text(output: &ToolOutput) -> &str {
    match output.content.as_slice() {
        [ContentBlock::Text { text }] => text,
        other => panic!("one text: {other:?}"),
    }
}

/// What is told about a failed call: its kind, the model's text, the operator's.
pub(crate) fn told(error: &ToolError) -> (ToolErrorKind, &str, Option<&str>) {
    (error.kind, &error.model_text, error.diagnostic.as_deref())
}

/// The folder of installed servers; `None`, after saying so, where there is none.
pub(crate) fn installed() -> Option<PathBuf> {
    let folder = std::env::var_os("TURNWRIGHT_TEST_SERVERS").map(PathBuf::from).or_else(|| {
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
        Some(cache.join("turnwright/test-servers"))
    });
    let found = folder.filter(|folder| folder.join("installed").is_file());
    if found.is_none() {
        assert!(
            std::env::var_os("TURNWRIGHT_REQUIRE_TEST_SERVERS").is_none_or(|value| value != "1"),
            "the test servers are not installed: run scripts/install-test-servers"
        );
        println!("skipped: run scripts/install-test-servers");
    }
    found
}
