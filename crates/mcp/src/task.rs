//! Calls that their server took as tasks: it goes on by itself, and is asked how far it is.
//!
//! In two forms: `tasks/get` and `tasks/result` of 2025-11-25, where the client asks for a task, and the extension
//! `io.modelcontextprotocol/tasks` of 2026-07-28, where the server decides. What is stored of a task is its name: with that the
//! next process goes on asking.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::time::Duration;

use rmcp::model::{ErrorCode, ErrorData, InputResponses};
use serde_json::{Map, Value, json};
use turnwright_core::ToolErrorKind;
use turnwright_engine::{CallContext, Progress, ToolError};

use crate::McpServer;
use crate::call::{Called, refused};
use crate::features::asking::{NoAnswer, ask_for};
use crate::input::{self, Again, Wanted};
use crate::output;
use crate::transport::Door;

/// The extension, as 2026-07-28 names it.
pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// How long a server may take to say how far a task is.
const STATE_LIMIT: Duration = Duration::from_secs(30);
/// How often it is asked where it does not say; and the bounds of what it may say.
const POLL: Duration = Duration::from_secs(1);
const LEAST_POLL: Duration = Duration::from_millis(20);
const MOST_POLL: Duration = Duration::from_mins(1);
/// How often in a row it may fail to say before the task is given up.
const MAX_LOST: u32 = 5;
/// How long it may take to hear that a task is not needed any more.
const CANCEL_LIMIT: Duration = Duration::from_secs(3);
/// The member of a stored task that names what it was given.
const GIVEN: &str = "given";
/// How long a server is asked to keep a task (2025-11-25).
const KEPT: Duration = Duration::from_hours(24);

/// A task, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) id: String,
    poll: Duration,
    /// The keys of what it was given: it may list them for a while yet.
    given: BTreeSet<String>,
}

impl Task {
    /// The task that an answer to `tools/call` names.
    pub(crate) fn read(answer: &Map<String, Value>) -> Option<Self> {
        let task = answer.get("task").and_then(Value::as_object).unwrap_or(answer);
        let id = task.get("taskId")?.as_str().filter(|id| !id.is_empty())?.to_owned();
        Some(Self { id, poll: poll(task).unwrap_or(POLL), given: BTreeSet::new() })
    }

    /// As it is stored.
    pub(crate) fn stored(&self) -> Value {
        let mut stored = json!({"taskId": self.id, "pollInterval": u64::try_from(self.poll.as_millis()).unwrap_or(u64::MAX)});
        if let (Value::Object(stored), false) = (&mut stored, self.given.is_empty()) {
            stored.insert(GIVEN.to_owned(), json!(self.given));
        }
        stored
    }

    /// The one that was stored.
    pub(crate) fn resumed(stored: &Value) -> Option<Self> {
        let given = stored.get(GIVEN).and_then(Value::as_array).into_iter().flatten();
        let given = given.filter_map(Value::as_str).map(str::to_owned).collect();
        Some(Self { given, ..Self::read(stored.as_object()?)? })
    }

    /// What it wants and was not given; `None` where that is nothing.
    fn unanswered(&self, mut state: Map<String, Value>) -> Option<Map<String, Value>> {
        if let Some(Value::Object(requests)) = state.get_mut("inputRequests") {
            requests.retain(|key, _| !self.given.contains(key));
            if requests.is_empty() {
                return None;
            }
        }
        Some(state)
    }
}

impl<T> First<T> {
    fn map<U>(self, with: impl FnOnce(T) -> U) -> First<U> {
        match self {
            Self::Cancelled => First::Cancelled,
            Self::End(told) => First::End(told),
            Self::Done(done) => First::Done(with(done)),
        }
    }
}

/// Where the questions go that come while a result is waited for.
fn door(context: &CallContext) -> Door {
    Door { asks: context.asks.clone(), standstill: context.standstill.clone() }
}

/// How often the server wants to be asked.
fn poll(task: &Map<String, Value>) -> Option<Duration> {
    let milliseconds = task.get("pollInterval").or_else(|| task.get("pollIntervalMs"))?.as_f64()?;
    Duration::try_from_secs_f64(milliseconds / 1_000.0).ok().map(|poll| poll.clamp(LEAST_POLL, MOST_POLL))
}

/// What a call in the form of a task has besides (2025-11-25).
pub(crate) fn wish() -> Value {
    json!({"ttl": u64::try_from(KEPT.as_millis()).unwrap_or(u64::MAX)})
}

/// What became of asking.
enum Told {
    /// What it says of the task.
    State(Map<String, Value>),
    /// It does not know the task.
    Unknown(ErrorData),
    /// It says nothing.
    Nothing(String),
}

/// The result of a task, which is waited for while its state is asked for (2025-11-25).
type Ending<'a> = Option<Pin<Box<dyn Future<Output = Told> + Send + 'a>>>;

/// What came first.
enum First<T> {
    Cancelled,
    /// The task is over, or its result cannot be had this way.
    End(Told),
    Done(T),
}

/// Whether a task's result is waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Awaits {
    /// As soon as the task goes on.
    Yes,
    /// Only once the task says that it is over.
    AtItsEnd,
}

/// Whether a task that another process began was heard of here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TakenUp {
    /// Not yet.
    Unheard,
    /// Its server said that it goes on; or it began here.
    Heard,
}

/// How its server is reached to be told that a task is not needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Where it runs.
    Open,
    /// It is started for that.
    Start,
}

/// Whether an error is about the task: asked for a result, any is, which may be the call's own; asked how far it is, or given something,
/// only one that says that there is nothing of this name (MCP 2025-11-25, Tasks, "Protocol Errors": -32602). Any other says that the server cannot tell now.
fn is_of_task(method: &str, error: &ErrorData) -> bool {
    let says_unknown =
        [ErrorCode::INVALID_PARAMS, ErrorCode::METHOD_NOT_FOUND, ErrorCode::INVALID_REQUEST, ErrorCode::RESOURCE_NOT_FOUND];
    method == "tasks/result" || says_unknown.contains(&error.code)
}

async fn first<T>(what: impl Future<Output = T>, ending: &mut Ending<'_>, context: &CallContext) -> First<T> {
    let ended = async {
        match ending {
            Some(ended) => ended.await,
            None => std::future::pending().await,
        }
    };
    let first = tokio::select! {
        biased;
        () = context.cancel.cancelled() => First::Cancelled,
        told = ended => First::End(told),
        done = what => First::Done(done),
    };
    if matches!(first, First::End(_)) {
        *ending = None;
    }
    first
}

impl McpServer {
    /// Asks how far a task is until it is done, or wants something.
    pub(crate) async fn follow(
        &self,
        tool: &str,
        task: &mut Task,
        context: &CallContext,
        taken_up: &mut TakenUp,
    ) -> Result<Called, ToolError> {
        let (mut poll_again, mut lost, mut polls) = (task.poll, 0_u32, 0_u32);
        let (mut awaits, mut ending): (_, Ending<'_>) = (Awaits::Yes, None);
        let mut pause = None;
        loop {
            let heard = match pause.take() {
                Some(pause) => first(self.rest(pause), &mut ending, context).await.map(|()| None),
                None => first(self.task_told("tasks/get", &task.id, Map::new(), None), &mut ending, context).await.map(Some),
            };
            let told = match heard {
                First::Cancelled => return Err(self.called_off(tool, task, Reach::Open).await),
                First::End(Told::State(result)) => return self.task_result(tool, Value::Object(result)),
                First::End(Told::Unknown(_)) => {
                    awaits = Awaits::AtItsEnd;
                    continue;
                }
                // Whoever answers so at once is not asked at once again.
                First::End(Told::Nothing(_)) => {
                    pause = Some(poll_again.max(POLL));
                    continue;
                }
                First::Done(None) => continue,
                First::Done(Some(told)) => told,
            };
            let state = match told {
                Told::State(state) => state,
                Told::Unknown(error) => return Err(self.forgotten(tool, &error)),
                Told::Nothing(why) if lost >= MAX_LOST => return Err(self.out_of_sight(tool, &why)),
                Told::Nothing(_) => {
                    // One that serves one request after the other says nothing while its result is waited for.
                    lost = if ending.is_some() { 0 } else { lost.saturating_add(1) };
                    pause = Some(poll_again.max(POLL) * lost.max(1));
                    continue;
                }
            };
            lost = 0;
            polls = polls.saturating_add(1);
            poll_again = poll(&state).unwrap_or(poll_again);
            let message = state.get("statusMessage").and_then(Value::as_str).map(str::to_owned);
            match state.get("status").and_then(Value::as_str) {
                Some("working") => {
                    if std::mem::replace(taken_up, TakenUp::Heard) == TakenUp::Unheard {
                        context.tasks.accepted(task.stored()).await;
                    }
                    context.progress.report(Progress { progress: f64::from(polls), total: None, message });
                    if awaits == Awaits::Yes
                        && ending.is_none()
                        && self.open_connection().is_some_and(|open| !open.agreed.is_modern())
                    {
                        let id = task.id.clone();
                        let result = async move { self.task_told("tasks/result", &id, Map::new(), Some(door(context))).await };
                        ending = Some(Box::pin(result));
                    }
                    pause = Some(poll_again);
                }
                Some("input_required") if state.get("inputRequests").is_some() => {
                    let Some(state) = task.unanswered(state) else {
                        pause = Some(poll_again.max(POLL));
                        continue;
                    };
                    let wanted = input::wanted(state, &self.config().granted);
                    let wanted = wanted.map_err(|why| self.failed(tool, &why))?;
                    if !wanted.asks.is_empty() {
                        let again = Again::Task { task: task.clone(), responses: wanted.again.responses() };
                        return Ok(Called::Wants(Wanted { asks: wanted.asks, again }));
                    }
                    Box::pin(self.tell_task(tool, task, &wanted.again.responses(), context)).await?;
                }
                // What it asks comes while its result is waited for.
                Some("input_required" | "completed" | "failed") => {
                    match self.task_end(tool, task, state, &mut ending, context).await? {
                        Some(called) => return Ok(called),
                        None => pause = Some(poll_again),
                    }
                }
                Some("cancelled") => {
                    let text = format!("The task of `{tool}` was cancelled at the MCP server `{}`.", self.config().name);
                    return Err(ToolError::new(ToolErrorKind::Cancelled, text));
                }
                _ => return Err(self.failed(tool, "goes on as a task of which it does not say how far it is")),
            }
        }
    }

    /// The end of a task that its server says is at it, or waits for an answer on the way there. `None` where it could not be had.
    async fn task_end(
        &self,
        tool: &str,
        task: &Task,
        mut state: Map<String, Value>,
        ending: &mut Ending<'_>,
        context: &CallContext,
    ) -> Result<Option<Called>, ToolError> {
        let is_error = |error: &Value| serde_json::from_value::<ErrorData>(error.clone()).ok();
        if let Some(result) = state.remove("result") {
            return self.task_result(tool, result).map(Some);
        }
        if let Some(error) = state.get("error").and_then(is_error) {
            return Err(refused(&self.config().name, tool, &error));
        }
        let awaited = ending.take();
        let awaited = async {
            match awaited {
                Some(awaited) => awaited.await,
                None => self.task_told("tasks/result", &task.id, Map::new(), Some(door(context))).await,
            }
        };
        let told = match first(awaited, ending, context).await {
            First::Cancelled => return Err(self.called_off(tool, task, Reach::Open).await),
            First::End(told) | First::Done(told) => told,
        };
        match told {
            Told::State(result) => self.task_result(tool, Value::Object(result)).map(Some),
            Told::Unknown(error) => Err(refused(&self.config().name, tool, &error)),
            Told::Nothing(_) => Ok(None),
        }
    }

    fn task_result(&self, tool: &str, result: Value) -> Result<Called, ToolError> {
        output::read(result).map(Called::Done).map_err(|_| self.failed(tool, "ended as a task with a result that is none"))
    }

    /// Gives a task what it wanted, as often as it takes: it goes on alone, and what people answered is there once.
    pub(crate) async fn tell_task(
        &self,
        tool: &str,
        task: &mut Task,
        responses: &InputResponses,
        context: &CallContext,
    ) -> Result<(), ToolError> {
        for lost in 0..=MAX_LOST {
            if lost > 0
                && let First::Cancelled = first(self.rest(task.poll.max(POLL) * lost), &mut None, context).await
            {
                return Err(self.called_off(tool, task, Reach::Open).await);
            }
            let params = Map::from_iter([("inputResponses".to_owned(), json!(responses))]);
            match first(self.task_told("tasks/update", &task.id, params, None), &mut None, context).await {
                First::Cancelled => return Err(self.called_off(tool, task, Reach::Open).await),
                First::Done(Told::Unknown(error)) if lost == 0 => return Err(refused(&self.config().name, tool, &error)),
                // It may have been given it before, in which case its state says so.
                First::End(_) | First::Done(Told::State(_) | Told::Unknown(_)) => break,
                First::Done(Told::Nothing(why)) if lost == MAX_LOST => return Err(self.out_of_sight(tool, &why)),
                First::Done(Told::Nothing(_)) => {}
            }
        }
        task.given.extend(responses.keys().cloned());
        Ok(())
    }

    /// What its server says of a task to a request about it.
    async fn task_told(&self, method: &'static str, task: &str, mut params: Map<String, Value>, door: Option<Door>) -> Told {
        let connection = match self.connection(method).await {
            Ok(connection) => connection,
            Err(error) => return Told::Nothing(error.diagnostic.unwrap_or(error.model_text)),
        };
        // A result is waited for as long as the call may take, which whoever called sees to.
        let limit = if door.is_some() { KEPT } else { STATE_LIMIT };
        params.insert("taskId".to_owned(), task.into());
        match ask_for(&connection, method, params.into(), limit, door).await {
            Ok(Value::Object(told)) => match told.get("task") {
                Some(Value::Object(task)) if !told.contains_key("status") => Told::State(task.clone()),
                _ => Told::State(told),
            },
            // It was told something, and has nothing to tell.
            Ok(_) if method == "tasks/update" => Told::State(Map::new()),
            Ok(_) => Told::Nothing("its answer is no object".to_owned()),
            Err(NoAnswer::Refused(error)) if is_of_task(method, &error) => Told::Unknown(error),
            Err(error) => Told::Nothing(error.in_words(method)),
        }
    }

    /// Waits until the task is asked about again: for as long as its server wants, or until it says that something changed.
    async fn rest(&self, pause: Duration) {
        let changed = async {
            match self.open_connection() {
                Some(connection) => connection.wire.task_changed.notified().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = changed => {}
        }
    }

    /// Tells the server that the task is not needed any more.
    pub(crate) async fn called_off(&self, tool: &str, task: &Task, reach: Reach) -> ToolError {
        let server = &self.config().name;
        let told = async {
            let connection = match reach {
                Reach::Open => self.open_connection()?,
                Reach::Start => self.connection(tool).await.ok()?,
            };
            ask_for(&connection, "tasks/cancel", json!({"taskId": task.id}), CANCEL_LIMIT, None).await.ok()
        };
        let how = match told.await {
            Some(_) => "its server was told",
            None => "its server could not be told",
        };
        let text = format!(
            "The task of `{tool}` on the MCP server `{server}` was cancelled, and {how}. Whether it took effect is unknown."
        );
        ToolError::new(ToolErrorKind::Interrupted, text)
    }

    fn forgotten(&self, tool: &str, error: &ErrorData) -> ToolError {
        let server = &self.config().name;
        let text = format!(
            "The MCP server `{server}` had accepted `{tool}` as a task and does not know it any more. What came of it is unknown: \
             check before you call it again."
        );
        let diagnostic = Some(format!("JSON-RPC error {}: {}", error.code.0, error.message));
        ToolError { kind: ToolErrorKind::Interrupted, model_text: text, diagnostic }
    }

    fn out_of_sight(&self, tool: &str, why: &str) -> ToolError {
        let server = &self.config().name;
        let text = format!(
            "The MCP server `{server}` had accepted `{tool}` as a task and does not say any more how far it is. What comes of it \
             is unknown: check before you call it again."
        );
        ToolError { kind: ToolErrorKind::Interrupted, model_text: text, diagnostic: Some(why.to_owned()) }
    }

    fn failed(&self, tool: &str, why: &str) -> ToolError {
        let text = format!("The tool `{tool}` of the MCP server `{}` {why}.", self.config().name);
        ToolError::new(ToolErrorKind::ExecutionFailed, text)
    }
}
