//! A tool source whose tools do what a test says, and remember it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use turnwright_core::{Declared, ToolErrorKind};
use turnwright_engine::{
    CallContext, CallLimits, SourceCall, SourceState, SourceTool, ToolError, ToolFace, ToolOutput, ToolReply, ToolSource,
    Writes,
};

type Work = Arc<dyn Fn(SourceCall, CallContext) -> BoxFuture<'static, Result<ToolReply, ToolError>> + Send + Sync>;

/// A tool and what it does.
#[derive(Clone)]
pub struct ScriptedTool {
    tool: SourceTool,
    work: Work,
}

impl fmt::Debug for ScriptedTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ScriptedTool").field(&self.tool.name).finish()
    }
}

impl ScriptedTool {
    /// A tool that takes any object and does this.
    pub fn new<F>(name: &str, work: impl Fn(SourceCall, CallContext) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        Self::asking(name, move |call, context| {
            let work = work(call, context);
            async move { work.await.map(ToolReply::Done) }
        })
    }

    /// A tool that takes any object, does this, and may ask people first.
    pub fn asking<F>(name: &str, work: impl Fn(SourceCall, CallContext) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<ToolReply, ToolError>> + Send + 'static,
    {
        let tool = SourceTool {
            name: name.to_owned(),
            title: None,
            description: format!("The tool {name}"),
            input_schema: json!({"type": "object"}),
            annotations: None,
            declared: Declared::default(),
            face: Arc::default(),
        };
        Self { tool, work: Arc::new(move |call, context| Box::pin(work(call, context))) }
    }

    /// A tool that gives its arguments back.
    pub fn echo(name: &str) -> Self {
        Self::new(name, |call, _| async move { Ok(ToolOutput::text(Value::Object(call.arguments).to_string())) })
    }

    /// The same, declared so.
    #[must_use]
    pub fn declared(mut self, declared: Declared) -> Self {
        self.tool.declared = declared;
        self
    }

    /// The same, with this face.
    #[must_use]
    pub fn face(mut self, face: ToolFace) -> Self {
        self.tool.face = Arc::new(face);
        self
    }

    /// The same, with this schema.
    #[must_use]
    pub fn schema(mut self, schema: Value) -> Self {
        self.tool.input_schema = schema;
        self
    }
}

/// A call that reached a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// The call's idempotency key.
    pub idempotency_key: String,
}

/// A source of scripted tools.
#[derive(Debug)]
pub struct ScriptedSource {
    name: String,
    tools: Mutex<(Vec<ScriptedTool>, Arc<[SourceTool]>)>,
    effects: Mutex<Vec<Effect>>,
    called_off: Mutex<Vec<Value>>,
    limits: CallLimits,
    cache_ttl: Option<Duration>,
    max_concurrent_calls: usize,
    is_foreign: bool,
    keeps_state: bool,
    writes: WritesOf,
    state: Mutex<SourceState>,
}

/// What a call writes, by its arguments.
type WritesOf = fn(&Map<String, Value>) -> Writes;

impl ScriptedSource {
    /// A source of these tools.
    pub fn new(name: &str, tools: impl IntoIterator<Item = ScriptedTool>) -> Self {
        let source = Self {
            name: name.to_owned(),
            tools: Mutex::new((Vec::new(), Arc::from([]))),
            effects: Mutex::default(),
            called_off: Mutex::default(),
            limits: CallLimits::default(),
            cache_ttl: None,
            max_concurrent_calls: 16,
            is_foreign: false,
            keeps_state: false,
            writes: |_| Writes::All,
            state: Mutex::new(SourceState::Ready),
        };
        source.set_tools(tools);
        source
    }

    /// The same, with these limits.
    #[must_use]
    pub fn limits(mut self, limits: CallLimits) -> Self {
        self.limits = limits;
        self
    }

    /// The same, whose results may be given again for so long.
    #[must_use]
    pub fn cached_for(mut self, time_to_live: Duration) -> Self {
        self.cache_ttl = Some(time_to_live);
        self
    }

    /// The same, with so many slots.
    #[must_use]
    pub fn slots(mut self, max_concurrent_calls: usize) -> Self {
        self.max_concurrent_calls = max_concurrent_calls;
        self
    }

    /// The same, where calls of serial tools write this by their arguments.
    #[must_use]
    pub fn writing(mut self, of: fn(&Map<String, Value>) -> Writes) -> Self {
        self.writes = of;
        self
    }

    /// The same, whose tools are others' to change.
    #[must_use]
    pub fn foreign(mut self) -> Self {
        self.is_foreign = true;
        self
    }

    /// The same, where what calls leave stays in this process.
    #[must_use]
    pub fn keeping_state(mut self) -> Self {
        self.keeps_state = true;
        self
    }

    /// Offers these tools from here on.
    pub fn set_tools(&self, tools: impl IntoIterator<Item = ScriptedTool>) {
        let tools: Vec<ScriptedTool> = tools.into_iter().collect();
        let list = tools.iter().map(|tool| tool.tool.clone()).collect();
        *self.tools.lock().unwrap_or_else(PoisonError::into_inner) = (tools, list);
    }

    /// Is in this state from here on; until it is told, it answers.
    pub fn set_state(&self, state: SourceState) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    /// The calls that reached a tool, in the order in which they did.
    pub fn effects(&self) -> Vec<Effect> {
        self.effects.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The tasks that nobody needs any more, in the order in which it was told.
    pub fn called_off(&self) -> Vec<Value> {
        self.called_off.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl ToolSource for ScriptedSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn state(&self) -> SourceState {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn tools(&self) -> Arc<[SourceTool]> {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }

    async fn settled(&self) {}

    async fn call(&self, call: SourceCall, context: CallContext) -> Result<ToolOutput, ToolError> {
        match self.advance(call, context).await? {
            ToolReply::Done(output) => Ok(output),
            ToolReply::Changed => Err(ToolError::new(ToolErrorKind::Unavailable, "it changed")),
            ToolReply::Asks { .. } => Err(ToolError::new(ToolErrorKind::ExecutionFailed, "it asks and nobody is there")),
        }
    }

    async fn advance(&self, call: SourceCall, context: CallContext) -> Result<ToolReply, ToolError> {
        let tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner).0.clone();
        let Some(tool) = tools.into_iter().find(|tool| tool.tool.name == call.tool) else {
            return Err(ToolError::new(ToolErrorKind::NotFound, format!("no tool {}", call.tool)));
        };
        self.effects.lock().unwrap_or_else(PoisonError::into_inner).push(Effect {
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
            idempotency_key: call.idempotency_key.clone(),
        });
        (tool.work)(call, context).await
    }

    async fn call_off(&self, _tool: &str, task: &Value) {
        self.called_off.lock().unwrap_or_else(PoisonError::into_inner).push(task.clone());
    }

    fn writes(&self, _tool: &str, arguments: &Map<String, Value>) -> Writes {
        (self.writes)(arguments)
    }

    fn limits(&self, _tool: &str) -> CallLimits {
        self.limits
    }

    fn cache_ttl(&self, _tool: &str) -> Option<Duration> {
        self.cache_ttl
    }

    fn is_foreign(&self) -> bool {
        self.is_foreign
    }

    fn keeps_state(&self, _tool: &str) -> bool {
        self.keeps_state
    }

    fn max_concurrent_calls(&self) -> usize {
        self.max_concurrent_calls
    }

    async fn stop(&self) {}
}
