//! A tool source made of typed functions.
//!
//! Each tool is an async function of a typed argument struct: its JSON Schema comes from the type, and its arguments come
//! parsed. The built-in sources are made this way, and an embedder's own can be.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnwright_core::{ConversationId, Declared, ToolErrorKind};
use turnwright_engine::source::{
    CallContext, CallLimits, SourceCall, SourceState, SourceTool, ToolError, ToolOutput, ToolSource, Writes,
};

use crate::error::{invalid, not_found};

type Run = Box<dyn Fn(Map<String, Value>, CallContext) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync>;

type WritesOf = Box<dyn Fn(&str, &Map<String, Value>) -> Writes + Send + Sync>;

type WhenOver = Box<dyn Fn(&ConversationId) + Send + Sync>;

/// What is said about a tool besides its arguments.
#[derive(Debug, Clone)]
pub struct ToolSpec {
    name: String,
    title: Option<String>,
    description: String,
    declared: Declared,
    limits: CallLimits,
    cache_ttl: Option<Duration>,
    keeps_state: bool,
}

impl ToolSpec {
    /// A tool that may change the world: it is asked about before it runs, and never run again by itself.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: description.into(),
            declared: Declared::default(),
            limits: CallLimits::default(),
            cache_ttl: None,
            keeps_state: false,
        }
    }

    /// A title for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// It changes nothing: runs without being asked, and may be run again.
    pub fn read_only(mut self) -> Self {
        self.declared.read_only = true;
        self
    }

    /// Running it twice is the same as running it once.
    pub fn replayable(mut self) -> Self {
        self.declared.replayable = true;
        self
    }

    /// Its calls run one after another, where [`TypedSource::writing`] does not say that they write different things.
    pub fn serial(mut self) -> Self {
        self.declared.serial = true;
        self
    }

    /// It is asked again and again for how far something is: its calls are no loop.
    pub fn polled(mut self) -> Self {
        self.declared.polled = true;
        self
    }

    /// What a call leaves stays in this process, where later calls of the conversation find it.
    pub fn keeping_state(mut self) -> Self {
        self.keeps_state = true;
        self
    }

    /// A successful result may be given again for so long, to the same user for the same arguments.
    pub fn cached_for(mut self, time_to_live: Duration) -> Self {
        self.cache_ttl = Some(time_to_live);
        self
    }

    /// How long a call may take, where the port's default does not fit.
    pub fn limits(mut self, limits: CallLimits) -> Self {
        self.limits = limits;
        self
    }
}

/// A tool source made of typed functions. Ready from the beginning; add the tools, then hand it to the engine.
pub struct TypedSource {
    name: String,
    tools: Arc<[SourceTool]>,
    /// Beside `tools`, in the same order.
    typed: Vec<Typed>,
    stopped: CancellationToken,
    running: TaskTracker,
    when_over: Option<WhenOver>,
    writes_of: Option<WritesOf>,
}

struct Typed {
    limits: CallLimits,
    cache_ttl: Option<Duration>,
    keeps_state: bool,
    run: Run,
}

impl TypedSource {
    /// A source without tools.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            tools: Arc::from([]),
            typed: Vec::new(),
            stopped: CancellationToken::new(),
            running: TaskTracker::new(),
            when_over: None,
            writes_of: None,
        }
    }

    /// Adds a tool. `A` is a struct that is read from a JSON object; its documentation becomes the descriptions of the
    /// arguments. `run` is dropped where the call is given up, and should end soon where `CallContext::cancel` fires.
    /// What computes for long or blocks belongs in `tokio::task::spawn_blocking`, see [`ToolSource::call`].
    pub fn tool<A, F, R>(mut self, spec: ToolSpec, run: F) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        F: Fn(A, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        let tool = SourceTool {
            name: spec.name.clone(),
            title: spec.title,
            description: spec.description,
            input_schema: schema_of::<A>(),
            annotations: None,
            declared: spec.declared,
            face: Arc::default(),
        };
        let name = spec.name;
        let run: Run = Box::new(move |arguments, context| match serde_json::from_value::<A>(Value::Object(arguments)) {
            Ok(arguments) => Box::pin(run(arguments, context)),
            Err(error) => {
                let error = invalid(format!("the arguments do not fit the tool `{name}`: {error}"));
                Box::pin(std::future::ready(Err(error)))
            }
        });
        self.tools = self.tools.iter().cloned().chain([tool]).collect();
        self.typed.push(Typed { limits: spec.limits, cache_ttl: spec.cache_ttl, keeps_state: spec.keeps_state, run });
        self
    }

    /// Where a tool puts work that may outlast its call, such as work on the blocking pool: [`ToolSource::stop`] waits
    /// for it.
    pub fn tracker(&self) -> &TaskTracker {
        &self.running
    }

    /// Fires where the source is stopped: for work that outlasts the calls.
    pub fn stop_token(&self) -> CancellationToken {
        self.stopped.clone()
    }

    /// What is done where a conversation was stopped or deleted, for sources that keep something running for it. Must not
    /// block.
    pub fn when_over(mut self, end: impl Fn(&ConversationId) + Send + Sync + 'static) -> Self {
        self.when_over = Some(Box::new(end));
        self
    }

    /// What a call of a serial tool writes, by the tool's name and its arguments: those that write different things run at the same
    /// time. Must not touch the world.
    pub fn writing(mut self, of: impl Fn(&str, &Map<String, Value>) -> Writes + Send + Sync + 'static) -> Self {
        self.writes_of = Some(Box::new(of));
        self
    }

    fn typed(&self, tool: &str) -> Option<&Typed> {
        let index = self.tools.iter().position(|known| known.name == tool)?;
        self.typed.get(index)
    }

    fn is_stopped(&self) -> ToolError {
        ToolError::new(ToolErrorKind::Unavailable, format!("the tool source `{}` was stopped", self.name))
    }
}

impl fmt::Debug for TypedSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools: Vec<&str> = self.tools.iter().map(|tool| tool.name.as_str()).collect();
        f.debug_struct("TypedSource").field("name", &self.name).field("tools", &tools).finish_non_exhaustive()
    }
}

/// The schema of `A` without what a model has no use for.
fn schema_of<A: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
        settings.transforms.push(Box::new(RecursiveTransform(remove_rust_format)));
    });
    let mut schema = settings.into_generator().into_root_schema_for::<A>();
    schema.remove("title");
    schema.remove("description");
    schema.to_value()
}

/// Formats such as `uint64` name Rust's types; some providers refuse a format that they do not know.
fn remove_rust_format(schema: &mut Schema) {
    let is_rust = |format: &str| format.trim_start_matches('u').starts_with("int");
    if schema.get("format").and_then(Value::as_str).is_some_and(is_rust) {
        schema.remove("format");
    }
}

#[async_trait]
impl ToolSource for TypedSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn state(&self) -> SourceState {
        if self.stopped.is_cancelled() { SourceState::Stopped } else { SourceState::Ready }
    }

    fn tools(&self) -> Arc<[SourceTool]> {
        Arc::clone(&self.tools)
    }

    async fn settled(&self) {}

    fn conversation_over(&self, conversation: &ConversationId) {
        if let Some(end) = &self.when_over {
            end(conversation);
        }
    }

    async fn call(&self, call: SourceCall, context: CallContext) -> Result<ToolOutput, ToolError> {
        let typed = self
            .typed(&call.tool)
            .ok_or_else(|| not_found(format!("the tool source `{}` has no tool `{}`", self.name, call.tool)))?;
        let _running = self.running.token();
        // Asked after the token is taken, so that no call slips past a stop that waits.
        if self.stopped.is_cancelled() {
            return Err(self.is_stopped());
        }
        tokio::select! {
            biased;
            result = (typed.run)(call.arguments, context) => result,
            () = self.stopped.cancelled() => Err(self.is_stopped()),
        }
    }

    fn writes(&self, tool: &str, arguments: &Map<String, Value>) -> Writes {
        self.writes_of.as_ref().map_or(Writes::All, |of| of(tool, arguments))
    }

    fn limits(&self, tool: &str) -> CallLimits {
        self.typed(tool).map(|typed| typed.limits).unwrap_or_default()
    }

    fn keeps_state(&self, tool: &str) -> bool {
        self.typed(tool).is_some_and(|typed| typed.keeps_state)
    }

    fn cache_ttl(&self, tool: &str) -> Option<Duration> {
        self.typed(tool).and_then(|typed| typed.cache_ttl)
    }

    async fn stop(&self) {
        self.stopped.cancel();
        self.running.close();
        self.running.wait().await;
    }
}
