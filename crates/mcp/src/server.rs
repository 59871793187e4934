//! An MCP server as a tool source.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use turnwright_core::{
    Answered, AnsweredBy, CallId, Elicitation, ElicitationId, Resumption, Seq, Settled, ToolErrorKind, UserId,
};
use turnwright_engine::{
    Asks, CallContext, CallLimits, Reply, SetAside, SourceCall, SourceState, SourceTool, ToolError, ToolOutput, ToolReply,
    ToolSource,
};
use turnwright_network::Network;

use crate::client;
use crate::connection::Connection;
use crate::list::Quarantined;
use crate::meant::Meant;
use crate::secrets::{hidden_in_reply, known_around};
use crate::supervisor::{self, Phase, Shared, Status};
use crate::task::{Reach, Task};
use crate::{Agreed, LogLine, ServerConfig, StartPolicy, Surroundings, TokenStore};

/// How often a call is made again since its server wants something first.
pub(crate) const MAX_ROUNDS: u32 = 10;

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
    /// It was said that it is started soon: nothing else starts it.
    Announced,
    Running {
        _stop_on_drop: DropGuard,
        stop: CancellationToken,
        tracker: TaskTracker,
    },
    Stopped {
        tracker: Option<TaskTracker>,
    },
}

impl McpServer {
    /// A server that is not started yet.
    pub fn new(config: ServerConfig, surroundings: Surroundings) -> Self {
        Self { shared: Arc::new(Shared::new(config, surroundings)), run: Mutex::new(Run::Never) }
    }

    /// The same, shared, and known to the [`crate::ResourceSource`] of its surroundings.
    pub fn shared_in(config: ServerConfig, surroundings: Surroundings) -> Arc<Self> {
        let resources = Arc::clone(&surroundings.resources);
        let server = Arc::new(Self::new(config, surroundings));
        resources.add(&server);
        server
    }

    /// Starts it in the background, unless it runs or is switched off. Also after a stop.
    pub fn start(&self) {
        let mut run = self.run.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*run, Run::Running { .. }) || !self.shared.config.enabled {
            let wakes = |status: &mut Status| {
                let is_unused = matches!(status.phase, Phase::Unused);
                if is_unused {
                    status.phase = Phase::Starting;
                }
                is_unused
            };
            if self.shared.status.send_if_modified(wakes) {
                self.shared.needed.notify_one();
            }
            return;
        }
        let before = match &*run {
            Run::Stopped { tracker } => tracker.clone(),
            Run::Never | Run::Announced | Run::Running { .. } => None,
        };
        let (stop, tracker) = (CancellationToken::new(), TaskTracker::new());
        self.shared.status.send_modify(|status| status.phase = Phase::Starting);
        tracker.spawn(supervisor::supervise(Arc::clone(&self.shared), stop.clone(), tracker.clone(), before));
        *run = Run::Running { _stop_on_drop: stop.clone().drop_guard(), stop, tracker };
    }

    /// Starts it as [`McpServer::start`] does, where it is to be started early or it is not known what it offers. Where it is,
    /// the first call starts it.
    pub fn start_unless_known(&self) {
        if self.shared.config.start == StartPolicy::Eager || !self.shared.is_known() {
            self.start();
        }
    }

    /// Says that [`McpServer::start_unless_known`] is about to be called, where that starts it and nobody has started it yet: who waits
    /// for what is being started waits for it from here on, and none of them starts it.
    pub fn announce(&self) {
        let mut run = self.run.lock().unwrap_or_else(PoisonError::into_inner);
        let starts = self.shared.config.start == StartPolicy::Eager || !self.shared.is_known();
        if matches!(*run, Run::Never) && self.shared.config.enabled && starts {
            *run = Run::Announced;
            self.shared.status.send_modify(|status| status.phase = Phase::Starting);
        }
    }

    /// Starts it and waits for the outcome, where it is not known what it offers; else it is left as it is.
    pub async fn learn(&self) {
        if self.shared.config.enabled && !self.shared.is_known() {
            self.start();
            self.outcome().await;
        }
    }

    /// Starts it where it waits for a sign-in, and somebody signed in meanwhile, in this process or another.
    pub async fn look_for_sign_in(&self) {
        self.shared.look_for_sign_in().await;
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

    /// How it is reached, as a person would name it, without anything that is known to be secret.
    pub fn shown_transport(&self) -> String {
        self.shared.log.secrets().hide(&self.config().transport.to_string()).into_owned()
    }

    /// What it and we agreed on, while it is there.
    pub fn agreed(&self) -> Option<Agreed> {
        match &self.shared.status.borrow().phase {
            Phase::Ready(connection) => Some(connection.agreed.clone()),
            Phase::Idle | Phase::Starting | Phase::Failing(_) | Phase::NeedsSignIn(_) | Phase::Unused | Phase::Stopped => None,
        }
    }

    /// The open connection, where there is one now.
    pub(crate) fn open_connection(&self) -> Option<Arc<Connection>> {
        match &self.shared.status.borrow().phase {
            Phase::Ready(connection) if connection.is_open() => Some(Arc::clone(connection)),
            Phase::Ready(_)
            | Phase::Idle
            | Phase::Starting
            | Phase::Failing(_)
            | Phase::NeedsSignIn(_)
            | Phase::Unused
            | Phase::Stopped => None,
        }
    }

    /// What the operator said about it.
    pub fn config(&self) -> &ServerConfig {
        &self.shared.config
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(crate) async fn network(&self) -> Network {
        self.shared.surroundings.network_of(&self.shared.config).await
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
        if let Some(connection) = self.open_connection() {
            return Ok(connection);
        }
        let mut status = self.shared.status.subscribe();
        let failed_before = status.borrow().failed_starts;
        let mut asked = false;
        let waiting = async {
            loop {
                let now = status.borrow_and_update().clone();
                match now.phase {
                    Phase::Ready(connection) if connection.is_open() => return Ok(connection),
                    Phase::Failing(reason) if now.rests_until.is_some() => {
                        let rest = now.rests_until.map(|until| until.saturating_duration_since(Instant::now()));
                        let seconds = rest.unwrap_or_default().as_secs().saturating_add(1);
                        let why = format!("failed several times in a row and is not tried again for {seconds} s");
                        return Err(self.unavailable(tool, &why, &reason));
                    }
                    Phase::Failing(reason) if now.failed_starts > failed_before => {
                        return Err(self.unavailable(tool, "cannot be started", &reason));
                    }
                    Phase::NeedsSignIn(reason) if now.failed_starts > failed_before => {
                        return Err(self.unavailable(tool, "needs somebody to sign in", &reason));
                    }
                    Phase::Failing(_) | Phase::NeedsSignIn(_) | Phase::Unused if !asked => {
                        asked = true;
                        self.shared.needed.notify_one();
                    }
                    Phase::Idle | Phase::Stopped => {
                        let why = if self.shared.config.enabled { "was stopped" } else { "is switched off" };
                        return Err(self.unavailable(tool, why, why));
                    }
                    Phase::Starting | Phase::Ready(_) | Phase::Failing(_) | Phase::NeedsSignIn(_) | Phase::Unused => {}
                }
                if status.changed().await.is_err() {
                    return Err(self.unavailable(tool, "was stopped", "it was dropped"));
                }
            }
        };
        if let Ok(connection) = Box::pin(tokio::time::timeout(self.shared.config.start_limit, waiting)).await {
            return connection;
        }
        let limit = self.shared.config.start_limit.as_millis();
        let reason = self.shared.log.with_last_words(&format!("it was not ready within {limit} ms"));
        Err(self.unavailable(tool, "is not ready", &reason))
    }

    /// Gives it the roots of `config`, and says so to the server where it runs. Returns whether they are all that `config`
    /// changes; else a new server must be made of it.
    pub fn take_roots(&self, config: &ServerConfig) -> bool {
        let (own, roots) = (&self.shared.config, config.granted.roots.listed());
        let mut same = config.clone();
        same.granted = Arc::clone(&own.granted);
        // Whether it may ask at all is agreed on when it is opened.
        let may_ask = !roots.is_empty() && !own.granted.roots.is_empty();
        if !may_ask || same != *own || config.granted.sampling != own.granted.sampling || roots == own.granted.roots.listed() {
            return false;
        }
        own.granted.roots.replace(roots);
        if let Some(connection) = self.open_connection().filter(|connection| !connection.agreed.is_modern()) {
            let tracker = connection.tracker.clone();
            tracker.spawn(async move { connection.tell(client::ROOTS_CHANGED).await });
        }
        true
    }

    /// Keeps it from being ended as unused for as long as this is held.
    pub(crate) fn in_use(&self) -> InUse<'_> {
        InUse::of(&self.shared.users)
    }

    pub(crate) fn tool(&self, name: &str) -> Option<Meant> {
        Meant::find(self.shared.offered().tools, name)
    }

    pub(crate) fn not_finished(&self, tool: &str, why: &str) -> ToolError {
        let server = &self.shared.config.name;
        ToolError::new(ToolErrorKind::PermissionDenied, format!("The tool `{tool}` of the MCP server `{server}` {why}."))
    }

    pub(crate) fn insatiable(&self, tool: &str) -> ToolError {
        let server = &self.shared.config.name;
        let text = format!(
            "The tool `{tool}` of the MCP server `{server}` wanted something first {MAX_ROUNDS} times and still wants more. It \
             did not finish."
        );
        ToolError::new(ToolErrorKind::ExecutionFailed, text)
    }

    pub(crate) fn changed(&self, tool: &str) -> ToolError {
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

/// A call, counted for as long as it runs or waits.
pub(crate) struct InUse<'a>(&'a watch::Sender<usize>);

impl<'a> InUse<'a> {
    fn of(users: &'a watch::Sender<usize>) -> Self {
        users.send_modify(|users| *users += 1);
        Self(users)
    }
}

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|users| *users -= 1);
    }
}

/// Asks all of it while the caller waits; `None` where nobody answers any more.
async fn answered(asks: &[Elicitation], resume: Value, people: &dyn Asks) -> Option<Resumption> {
    let mut answers = Vec::new();
    for (ask, index) in asks.iter().zip(0_u32..) {
        let Reply { action, content, sampled, reason } = people.ask(ask.clone()).await?;
        let question = ElicitationId { call: CallId { message: Seq::FIRST, index: 0 }, index };
        let answer = Arc::new(Answered { question, action, content, by: AnsweredBy::Person, reason });
        answers.push(Settled { ask: Arc::new(ask.clone()), answer, sampled });
    }
    Some(Resumption { resume: Arc::new(resume), answers })
}

#[async_trait]
impl ToolSource for McpServer {
    fn name(&self) -> &str {
        &self.shared.config.name
    }

    fn owner(&self) -> Option<&UserId> {
        self.shared.config.owner.as_ref()
    }

    fn state(&self) -> SourceState {
        self.shared.state()
    }

    fn is_awaited(&self) -> bool {
        let status = self.shared.status.borrow();
        matches!(status.phase, Phase::Starting) && status.failed_starts == 0 && !self.shared.is_known()
    }

    fn wait_in_words(&self) -> Option<String> {
        Some(format!("{} (at most {} s)", self.name(), self.shared.config.start_limit.as_secs_f64()))
    }

    fn tools(&self) -> Arc<[SourceTool]> {
        self.shared.offered().tools
    }

    fn news(&self) -> Option<watch::Receiver<u64>> {
        Some(self.shared.news.subscribe())
    }

    fn set_aside(&self) -> Vec<SetAside> {
        let aside = |bad: &Quarantined| SetAside {
            source: self.name().to_owned(),
            tool: bad.tool.clone(),
            reason: bad.reason.clone(),
            definition: None,
        };
        self.quarantined().iter().map(aside).collect()
    }

    async fn settled(&self) {
        self.start_unless_stopped();
        let mut status = self.shared.status.subscribe();
        let settled = status.wait_for(|status| !matches!(status.phase, Phase::Starting));
        // The limit of the start itself ends a little later, with its reason.
        let _ = tokio::time::timeout(self.shared.config.start_limit, settled).await;
    }

    async fn call(&self, call: SourceCall, mut context: CallContext) -> Result<ToolOutput, ToolError> {
        for _ in 0..MAX_ROUNDS {
            let (asks, resume) = match self.advance(call.clone(), context.clone()).await? {
                ToolReply::Done(output) => return Ok(output),
                ToolReply::Asks { asks, resume } => (asks, resume),
                ToolReply::Changed => return Err(self.changed(&call.tool)),
            };
            context.resume = answered(&asks, resume, &*context.asks).await;
            if context.resume.is_none() {
                let text = format!("`{}` asked the user for something, and nobody answers any more.", call.tool);
                return Err(ToolError::new(ToolErrorKind::Interrupted, text));
            }
        }
        Err(self.insatiable(&call.tool))
    }

    async fn advance(&self, call: SourceCall, mut context: CallContext) -> Result<ToolReply, ToolError> {
        let _user = self.in_use();
        let known = &self.shared.surroundings.secrets;
        known_around(known, &mut context);
        let advanced = self.advanced(call, context).await;
        hidden_in_reply(&known.now(), advanced)
    }

    async fn call_off(&self, tool: &str, task: &Value) {
        let _in_use = self.in_use();
        if let Some(task) = Task::resumed(task) {
            self.called_off(tool, &task, Reach::Start).await;
        }
    }

    fn limits(&self, tool: &str) -> CallLimits {
        let config = &self.shared.config;
        config.tools.get(tool).and_then(|tool| tool.limits).unwrap_or(config.limits)
    }

    fn cache_ttl(&self, tool: &str) -> Option<Duration> {
        self.shared.config.tools.get(tool).and_then(|tool| tool.cache_ttl)
    }

    fn is_foreign(&self) -> bool {
        true
    }

    fn keeps_state(&self, _tool: &str) -> bool {
        self.shared.config.keeps_state_here()
    }

    fn max_concurrent_calls(&self) -> usize {
        self.shared.config.max_concurrent_calls
    }

    async fn stop(&self) {
        let tracker = {
            let mut run = self.run.lock().unwrap_or_else(PoisonError::into_inner);
            let tracker = match &*run {
                Run::Never | Run::Announced => None,
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
