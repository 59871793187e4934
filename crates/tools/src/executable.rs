//! Tools that are programs: JSON in on their input, JSON out on their output.
//!
//! An operator names them, with or without what is said of them; one that says it itself is asked, by `--schema`, when the
//! source is first waited for. Each call is a process of its own, with the limits of commands.

mod answer;
mod process;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::{OnceCell, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnwright_core::{Declared, ToolErrorKind};
use turnwright_engine::source::{
    CallContext, CallLimits, SetAside, SourceCall, SourceState, SourceTool, ToolError, ToolOutput, ToolSource,
};

use crate::command::Launcher;
use crate::error::not_found;

/// How long a program may take to say what it is.
const DESCRIBE_LIMIT: Duration = Duration::from_secs(10);

/// A program that is a tool.
#[derive(Debug, Clone)]
pub struct ExecutableTool {
    /// The tool's name at the source.
    pub name: String,
    /// The program and its arguments; no shell reads them.
    pub command: Vec<OsString>,
    /// What it does, for the model; the program is asked where `None`.
    pub description: Option<String>,
    /// The JSON Schema of its arguments; the program is asked where `None`.
    pub input_schema: Option<Value>,
    /// What the operator declares.
    pub declared: Declared,
    /// Its whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Where it begins.
    pub folder: PathBuf,
    /// How long a call may take.
    pub timeout: Duration,
    /// How long it has between the request to end and its end.
    pub grace: Duration,
    /// How long a result may be given again to the same user for the same arguments; never where `None`.
    pub cache_ttl: Option<Duration>,
    /// The largest result, in bytes.
    pub max_result_bytes: usize,
    /// How it is started.
    pub launcher: Arc<dyn Launcher>,
}

/// What a program says of itself, asked by `--schema`.
#[derive(Debug, Clone, Default, Deserialize)]
struct Described {
    #[serde(default)]
    description: Option<String>,
    #[serde(default, alias = "schema", alias = "parameters", alias = "inputSchema")]
    input_schema: Option<Value>,
}

/// The source of these tools.
#[derive(Debug)]
pub struct Executables {
    name: String,
    programs: Vec<Arc<ExecutableTool>>,
    described: OnceCell<()>,
    offered: Mutex<Offered>,
    news: watch::Sender<u64>,
    stopped: CancellationToken,
    running: TaskTracker,
}

#[derive(Debug, Default)]
struct Offered {
    tools: Arc<[SourceTool]>,
    set_aside: Vec<SetAside>,
}

impl Executables {
    /// The source `name` of these tools.
    pub fn new(name: impl Into<String>, programs: Vec<ExecutableTool>) -> Self {
        let programs: Vec<_> = programs.into_iter().map(Arc::new).collect();
        let says_all = programs.iter().all(|program| !program.must_be_asked());
        let known = programs.iter().filter(|program| !program.must_be_asked());
        let tools = known.map(|program| program.offered(&Described::default())).collect();
        Self {
            name: name.into(),
            programs,
            described: OnceCell::new_with(says_all.then_some(())),
            offered: Mutex::new(Offered { tools, set_aside: Vec::new() }),
            news: watch::Sender::new(0),
            stopped: CancellationToken::new(),
            running: TaskTracker::new(),
        }
    }

    /// Asks those that must be asked, together.
    async fn describe(&self) {
        let asked = self.programs.iter().map(|program| async move {
            if program.must_be_asked() { program.describe().await } else { Ok(Described::default()) }
        });
        let described = futures_util::future::join_all(asked).await;
        let mut offered = Offered::default();
        let mut tools = Vec::new();
        for (program, described) in self.programs.iter().zip(described) {
            match described {
                Ok(described) => tools.push(program.offered(&described)),
                Err(reason) => {
                    tracing::warn!(tool = program.name, reason, "an executable tool cannot be offered");
                    let (source, tool) = (self.name.clone(), program.name.clone());
                    offered.set_aside.push(SetAside { source, tool, reason, definition: None });
                }
            }
        }
        offered.tools = tools.into();
        *self.lock() = offered;
        self.news.send_modify(|news| *news += 1);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Offered> {
        self.offered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopped(&self) -> ToolError {
        ToolError::new(ToolErrorKind::Unavailable, format!("the tool source `{}` was stopped", self.name))
    }
}

impl ExecutableTool {
    fn must_be_asked(&self) -> bool {
        self.description.is_none() || self.input_schema.is_none()
    }

    async fn describe(&self) -> Result<Described, String> {
        let cancel = CancellationToken::new();
        let asked = process::Asked { more: Some("--schema"), input: String::new(), limit: DESCRIBE_LIMIT };
        let words = self.command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
        let said = |error: ToolError| format!("`{words} --schema`: {}", error.model_text);
        let value = process::run(self, asked, &cancel).await.and_then(|printed| answer::read(&printed)).map_err(said)?;
        let described = Described::deserialize(value).map_err(|error| format!("`{words} --schema`: {error}"))?;
        if described.description.is_none() && self.description.is_none() {
            return Err(format!("`{words} --schema` gives no `description`, and neither does the configuration"));
        }
        Ok(described)
    }

    fn offered(&self, described: &Described) -> SourceTool {
        let any = || Value::Object(Map::from_iter([("type".to_owned(), Value::from("object"))]));
        SourceTool {
            name: self.name.clone(),
            title: None,
            description: self.description.clone().or_else(|| described.description.clone()).unwrap_or_default(),
            input_schema: self.input_schema.clone().or_else(|| described.input_schema.clone()).unwrap_or_else(any),
            annotations: None,
            declared: self.declared,
            face: Arc::default(),
        }
    }

    async fn call(&self, call: SourceCall, context: &CallContext) -> Result<ToolOutput, ToolError> {
        let input = Value::Object(call.arguments).to_string();
        let asked = process::Asked { more: None, input, limit: self.timeout };
        let printed = process::run(self, asked, &context.cancel).await?;
        Ok(answer::output(answer::read(&printed)?))
    }
}

#[async_trait]
impl ToolSource for Executables {
    fn name(&self) -> &str {
        &self.name
    }

    fn state(&self) -> SourceState {
        match (self.stopped.is_cancelled(), self.described.initialized()) {
            (true, _) => SourceState::Stopped,
            (false, true) => SourceState::Ready,
            (false, false) => SourceState::Starting,
        }
    }

    fn tools(&self) -> Arc<[SourceTool]> {
        Arc::clone(&self.lock().tools)
    }

    fn news(&self) -> Option<watch::Receiver<u64>> {
        Some(self.news.subscribe())
    }

    fn set_aside(&self) -> Vec<SetAside> {
        self.lock().set_aside.clone()
    }

    async fn settled(&self) {
        self.described.get_or_init(|| self.describe()).await;
    }

    async fn call(&self, call: SourceCall, context: CallContext) -> Result<ToolOutput, ToolError> {
        let program = self.programs.iter().find(|program| program.name == call.tool).cloned();
        let program =
            program.ok_or_else(|| not_found(format!("the tool source `{}` has no tool `{}`", self.name, call.tool)))?;
        let _running = self.running.token();
        if self.stopped.is_cancelled() {
            return Err(self.is_stopped());
        }
        tokio::select! {
            biased;
            result = program.call(call, &context) => result,
            () = self.stopped.cancelled() => Err(self.is_stopped()),
        }
    }

    fn limits(&self, tool: &str) -> CallLimits {
        // The program's own limit comes first, so that its words are kept; the engine's is the net below.
        let program = self.programs.iter().find(|program| program.name == tool);
        program.map_or_else(CallLimits::default, |program| {
            let longest = program.timeout.saturating_add(program.grace).saturating_add(Duration::from_secs(5));
            CallLimits { idle: longest, total: longest }
        })
    }

    fn cache_ttl(&self, tool: &str) -> Option<Duration> {
        self.programs.iter().find(|program| program.name == tool).and_then(|program| program.cache_ttl)
    }

    async fn stop(&self) {
        self.stopped.cancel();
        self.running.close();
        self.running.wait().await;
    }
}
