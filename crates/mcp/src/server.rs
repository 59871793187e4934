//! An MCP server as a tool source.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use turnwright_core::ToolErrorKind;
use turnwright_engine::{
    CallContext, CallLimits, SetAside, SourceCall, SourceState, SourceTool, ToolError, ToolOutput, ToolSource,
};

use crate::call::{self, Caller};
use crate::connection::Connection;
use crate::list::Quarantined;
use crate::supervisor::{self, Phase, Shared};
use crate::{Agreed, LogLine, ServerConfig, Surroundings, TokenStore};

/// How long the end of a server may take beyond what it is granted.
const MAX_END: Duration = Duration::from_secs(5);

/// A server, however it is reached.
///
/// First [`McpServer::new`]; then [`McpServer::start`], or the first call or [`ToolSource::settled`] does it; at the end
/// [`ToolSource::stop`], after which nothing of it runs. It may be started again. Dropping it ends it too, in the
/// background. All of its tasks are its own; it must be used inside a tokio runtime.
pub struct McpServer {
    shared: Arc<Shared>,
    run: Mutex<Run>,
}

#[derive(Debug)]
enum Run {
    Never,
    Running { _stop_on_drop: DropGuard, stop: CancellationToken, tracker: TaskTracker },
    Stopped { tracker: Option<TaskTracker> },
}

impl McpServer {
    /// A server that is not started yet.
    pub fn new(config: ServerConfig, surroundings: Surroundings) -> Self {
        Self { shared: Arc::new(Shared::new(config, surroundings)), run: Mutex::new(Run::Never) }
    }

    /// Starts it in the background, unless it runs or is switched off. Also after a stop.
    pub fn start(&self) {
        let mut run = self.run.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*run, Run::Running { .. }) || !self.shared.config.enabled {
            return;
        }
        let before = match &*run {
            Run::Stopped { tracker } => tracker.clone(),
            Run::Never | Run::Running { .. } => None,
        };
        let (stop, tracker) = (CancellationToken::new(), TaskTracker::new());
        self.shared.status.send_modify(|status| status.phase = Phase::Starting);
        tracker.spawn(supervisor::supervise(Arc::clone(&self.shared), stop.clone(), tracker.clone(), before));
        *run = Run::Running { _stop_on_drop: stop.clone().drop_guard(), stop, tracker };
    }

    /// Starts it as [`McpServer::start`] does, where it is not known what it offers. Where it is, the first call starts it.
    pub fn start_unless_known(&self) {
        if !self.shared.is_known() {
            self.start();
        }
    }

    /// Ends it and starts it again.
    pub async fn restart(&self) {
        self.stop().await;
        self.start();
    }

    /// Its last 200 log lines, oldest first, over all of its starts.
    pub fn logs(&self) -> Vec<LogLine> {
        self.shared.log.lines()
    }

    /// The tools that it has and that are not offered, with the reasons; and what was wrong with its list.
    pub fn quarantined(&self) -> Arc<[Quarantined]> {
        self.shared.offered().quarantined
    }

    /// What it and we agreed on, while it is there.
    pub fn agreed(&self) -> Option<Agreed> {
        match &self.shared.status.borrow().phase {
            Phase::Ready(connection) => Some(connection.agreed.clone()),
            Phase::Idle | Phase::Starting | Phase::Failing(_) | Phase::NeedsSignIn(_) | Phase::Stopped => None,
        }
    }

    /// What the operator said about it.
    pub fn config(&self) -> &ServerConfig {
        &self.shared.config
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(crate) fn tokens(&self) -> &Arc<dyn TokenStore> {
        &self.shared.surroundings.tokens
    }

    /// Waits for the outcome of its start. Other than [`ToolSource::settled`] it waits, too, for the reason of a start that
    /// took too long: that is told when nothing of the server runs any more.
    pub async fn outcome(&self) {
        self.start_unless_stopped();
        let mut status = self.shared.status.subscribe();
        let known = status.wait_for(|status| !matches!(status.phase, Phase::Starting));
        let config = &self.shared.config;
        let limit = config.start_limit.saturating_add(config.stop_grace * 2).saturating_add(MAX_END);
        let _ = tokio::time::timeout(limit, known).await;
    }

    fn start_unless_stopped(&self) {
        let is_new = matches!(*self.run.lock().unwrap_or_else(PoisonError::into_inner), Run::Never);
        if is_new {
            self.start();
        }
    }

    /// The open connection, waited for at most the start limit. One start serves all who wait.
    pub(crate) async fn connection(&self, tool: &str) -> Result<Arc<Connection>, ToolError> {
        self.start_unless_stopped();
        let mut status = self.shared.status.subscribe();
        let failed_before = status.borrow().failed_starts;
        let mut asked = false;
        let waiting = async {
            loop {
                let now = status.borrow_and_update().clone();
                match now.phase {
                    Phase::Ready(connection) if connection.is_open() => return Ok(connection),
                    Phase::Failing(reason) if now.failed_starts > failed_before => {
                        return Err(self.unavailable(tool, "cannot be started", &reason));
                    }
                    Phase::NeedsSignIn(reason) if now.failed_starts > failed_before => {
                        return Err(self.unavailable(tool, "needs somebody to sign in", &reason));
                    }
                    Phase::Failing(_) | Phase::NeedsSignIn(_) if !asked => {
                        asked = true;
                        self.shared.needed.notify_one();
                    }
                    Phase::Idle | Phase::Stopped => {
                        let why = if self.shared.config.enabled { "was stopped" } else { "is switched off" };
                        return Err(self.unavailable(tool, why, why));
                    }
                    Phase::Starting | Phase::Ready(_) | Phase::Failing(_) | Phase::NeedsSignIn(_) => {}
                }
                if status.changed().await.is_err() {
                    return Err(self.unavailable(tool, "was stopped", "it was dropped"));
                }
            }
        };
        if let Ok(connection) = tokio::time::timeout(self.shared.config.start_limit, waiting).await {
            return connection;
        }
        let limit = self.shared.config.start_limit.as_millis();
        let reason = self.shared.log.with_last_words(&format!("it was not ready within {limit} ms"));
        Err(self.unavailable(tool, "is not ready", &reason))
    }

    fn tool(&self, name: &str) -> Option<SourceTool> {
        self.shared.offered().tools.iter().find(|tool| tool.name == name).cloned()
    }

    fn changed(&self, tool: &str) -> ToolError {
        let server = &self.shared.config.name;
        ToolError::new(
            ToolErrorKind::Unavailable,
            format!("`{tool}` of the MCP server `{server}` is not what it was when it was offered: it was not called."),
        )
    }

    fn unavailable(&self, tool: &str, why: &str, reason: &str) -> ToolError {
        let server = &self.shared.config.name;
        ToolError {
            kind: ToolErrorKind::Unavailable,
            model_text: format!(
                "The MCP server `{server}` {why}: `{tool}` was not called. Go on without it, or tell the user."
            ),
            diagnostic: Some(reason.to_owned()),
        }
    }
}

#[async_trait]
impl ToolSource for McpServer {
    fn name(&self) -> &str {
        &self.shared.config.name
    }

    fn state(&self) -> SourceState {
        match &self.shared.status.borrow().phase {
            _ if !self.shared.config.enabled => SourceState::Disabled,
            Phase::Idle | Phase::Stopped => SourceState::Stopped,
            Phase::Starting => SourceState::Starting,
            Phase::Ready(connection) if connection.is_open() => SourceState::Ready,
            // Its end is seen here first; the supervisor names the reason in a moment.
            Phase::Ready(_) => SourceState::Failing { reason: "its connection was closed".to_owned() },
            Phase::Failing(reason) => SourceState::Failing { reason: reason.to_string() },
            Phase::NeedsSignIn(reason) => SourceState::NeedsSignIn { reason: reason.to_string() },
        }
    }

    fn tools(&self) -> Arc<[SourceTool]> {
        self.shared.offered().tools
    }

    fn set_aside(&self) -> Vec<SetAside> {
        let aside =
            |bad: &Quarantined| SetAside { source: self.name().to_owned(), tool: bad.tool.clone(), reason: bad.reason.clone() };
        self.quarantined().iter().map(aside).collect()
    }

    async fn settled(&self) {
        self.start_unless_stopped();
        let mut status = self.shared.status.subscribe();
        let settled = status.wait_for(|status| !matches!(status.phase, Phase::Starting));
        // The limit of the start itself ends a little later, with its reason.
        let _ = tokio::time::timeout(self.shared.config.start_limit, settled).await;
    }

    async fn call(&self, call: SourceCall, context: CallContext) -> Result<ToolOutput, ToolError> {
        let meant = self.tool(&call.tool);
        let connection = tokio::select! {
            biased;
            connection = self.connection(&call.tool) => connection?,
            () = context.cancel.cancelled() => {
                let text = format!("`{}` was cancelled before it was called.", call.tool);
                return Err(ToolError::new(ToolErrorKind::Cancelled, text));
            }
        };
        // What was offered may be what an earlier run had learned.
        if meant.is_some() && meant != self.tool(&call.tool) {
            return Err(self.changed(&call.tool));
        }
        let caller = Caller {
            server: &self.shared.config.name,
            log: &self.shared.log,
            total: self.limits(&call.tool).total,
            cancel_grace: self.shared.config.cancel_grace,
        };
        let (promises, meant) = (self.shared.offered().promises, self.tool(&call.tool));
        let output = call::call(caller, &connection, call, context).await?;
        Ok(promises.judged(meant.as_ref(), self.shared.log.secrets().hidden_in(output)))
    }

    fn limits(&self, tool: &str) -> CallLimits {
        let config = &self.shared.config;
        config.tools.get(tool).and_then(|tool| tool.limits).unwrap_or(config.limits)
    }

    fn max_concurrent_calls(&self) -> usize {
        self.shared.config.max_concurrent_calls
    }

    async fn stop(&self) {
        let tracker = {
            let mut run = self.run.lock().unwrap_or_else(PoisonError::into_inner);
            let tracker = match &*run {
                Run::Never => None,
                Run::Running { stop, tracker, .. } => {
                    stop.cancel();
                    Some(tracker.clone())
                }
                Run::Stopped { tracker } => tracker.clone(),
            };
            self.shared.status.send_modify(|status| status.phase = Phase::Stopped);
            *run = Run::Stopped { tracker: tracker.clone() };
            tracker
        };
        if let Some(tracker) = tracker {
            tracker.close();
            tracker.wait().await;
        }
    }
}

impl fmt::Debug for McpServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("McpServer").field("name", &self.shared.config.name).finish_non_exhaustive()
    }
}
