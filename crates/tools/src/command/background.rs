//! Commands that go on while the conversation does: started, read, written to and stopped by calls of their own.
//!
//! Each belongs to the conversation that started it, and no other reaches it. It ends with that conversation (where it is
//! stopped or deleted), with its source and with this process; and at its time limit.

mod log;
mod process;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnwright_core::ConversationId;
use turnwright_engine::source::{CallContext, ToolError, ToolOutput};

use self::process::{Owner, Process};
use super::run::{launch_of, milliseconds};
use super::{BackgroundLimits, Shared};
use crate::error::{failed, grouped, invalid, not_found};

pub(super) const START: &str = "Starts a command that goes on in the background, such as a server or a watcher. Gives the id \
    by which output, input and stop reach it, and what it prints at first. It ends with the conversation.";
pub(super) const OUTPUT: &str = "Gives what a background process has printed, from the place `from` on, and whether it has \
    ended. Without process, lists the background processes of this conversation.";
pub(super) const INPUT: &str = "Writes text to the input of a background process.";
pub(super) const STOP: &str = "Ends a background process with all that it started, and gives the end of its output.";

/// How long the first output is waited for where the call does not say.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// The longest wait for output.
const MAX_WAIT: Duration = Duration::from_mins(1);
/// How long a process may take to read what is written to it.
const INPUT_WAIT: Duration = Duration::from_secs(5);
/// The longest text that is written at once, in bytes.
const MAX_INPUT_BYTES: usize = 64 * 1024;
/// How many processes that have ended are kept to be read.
const MAX_ENDED: usize = 32;
/// How much of its output the end of a process shows, in bytes.
const LAST_BYTES: u64 = 4 * 1024;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StartArguments {
    /// The shell line; with args, the program.
    command: String,
    /// The program's arguments. Where they are given, even none, there is no shell.
    args: Option<Vec<String>>,
    /// The folder in which it begins, relative to the first root, or absolute inside a root. The first root by default.
    cwd: Option<String>,
    /// How long to wait whether it ends at once, in milliseconds; 500 by default.
    #[schemars(range(max = 60_000))]
    wait_ms: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OutputArguments {
    /// The id that start gave. Without it the processes are listed.
    process: Option<String>,
    /// The place to read from: `next` of an earlier answer; the beginning by default.
    from: Option<u64>,
    /// How long to wait for more where there is nothing after that place, in milliseconds; 0 by default.
    #[schemars(range(max = 60_000))]
    wait_ms: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct InputArguments {
    /// The id that start gave.
    process: String,
    /// What it reads; a line ends with a line break.
    #[serde(default)]
    text: String,
    /// Whether its input ends after that; it goes on by default.
    close: Option<bool>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StopArguments {
    /// The id that start gave.
    process: String,
}

/// The background processes of a source. They end where this is dropped.
#[derive(Debug)]
pub(super) struct Processes {
    all: Mutex<Vec<Arc<Process>>>,
    tracker: TaskTracker,
    stopped: CancellationToken,
}

impl Processes {
    /// None yet. They are awaited by `tracker`, and end where `stopped` fires.
    pub(super) fn new(tracker: TaskTracker, stopped: CancellationToken) -> Self {
        Self { all: Mutex::default(), tracker, stopped }
    }

    /// The conversation was stopped or deleted.
    pub(super) fn end_of(&self, conversation: &ConversationId) {
        for process in self.list().iter().filter(|process| process.owner.conversation.as_ref() == Some(conversation)) {
            process.stop();
        }
    }

    pub(super) async fn start(
        &self,
        shared: &Shared,
        arguments: StartArguments,
        context: &CallContext,
    ) -> Result<ToolOutput, ToolError> {
        let wait = wait_of(arguments.wait_ms, FIRST_WAIT)?;
        let StartArguments { command, args, cwd, .. } = arguments;
        let shown = std::iter::once(&command).chain(args.iter().flatten()).cloned().collect::<Vec<_>>().join(" ");
        let launch = launch_of(shared, command, args, cwd.as_deref())?;
        let owner = Owner::of(context);
        self.make_room(&owner, shared.config.background)?;
        let (process, attend) = Process::start(shared, launch, owner, shown, self.stopped.child_token())?;
        self.tracker.spawn(attend);
        self.lock().push(Arc::clone(&process));
        drop(timeout(wait, process.end()).await);
        Ok(ToolOutput::json(process.told(0)))
    }

    pub(super) async fn output(&self, arguments: OutputArguments, context: &CallContext) -> Result<ToolOutput, ToolError> {
        let wait = wait_of(arguments.wait_ms, Duration::ZERO)?;
        let Some(id) = arguments.process else {
            let owner = Owner::of(context);
            let own: Vec<Value> = self.of(&owner).map(|process| process.summary()).collect();
            return Ok(ToolOutput::json(json!({"processes": own})));
        };
        let process = self.find(&id, context)?;
        let from = arguments.from.unwrap_or(0);
        let written = process.written();
        if from > written {
            let (from, written) = (grouped(from), grouped(written));
            return Err(invalid(format!("from is {from}, and the process has printed {written} bytes")));
        }
        tokio::select! {
            () = context.cancel.cancelled() => {}
            _ = timeout(wait, process.more_than(from)) => {}
        }
        Ok(ToolOutput::json(process.told(from)))
    }

    pub(super) async fn input(&self, arguments: InputArguments, context: &CallContext) -> Result<ToolOutput, ToolError> {
        let InputArguments { process: id, text, close } = arguments;
        if text.len() > MAX_INPUT_BYTES {
            let (size, max) = (grouped(text.len() as u64), grouped(MAX_INPUT_BYTES as u64));
            return Err(invalid(format!("text is {size} bytes, limit {max}; write it in parts")));
        }
        let process = self.find(&id, context)?;
        let written = timeout(INPUT_WAIT, process.write(&text, close.unwrap_or(false))).await;
        match written {
            Ok(Ok(())) => Ok(ToolOutput::json(process.summary())),
            Ok(Err(error)) => Err(failed(format!("process `{id}` takes no input: {error}"))),
            Err(_) => Err(failed(format!(
                "process `{id}` did not read its input within {} s; a part may be written",
                INPUT_WAIT.as_secs()
            ))),
        }
    }

    pub(super) async fn stop(
        &self,
        shared: &Shared,
        arguments: StopArguments,
        context: &CallContext,
    ) -> Result<ToolOutput, ToolError> {
        let process = self.find(&arguments.process, context)?;
        process.stop();
        let patience = shared.config.grace.saturating_add(Duration::from_secs(5));
        if timeout(patience, process.end()).await.is_err() {
            return Err(failed(format!("process `{}` was killed and has not ended yet", arguments.process)));
        }
        Ok(ToolOutput::json(process.told(process.written().saturating_sub(LAST_BYTES))))
    }

    /// Refuses one more where a limit is reached; forgets the oldest that have ended.
    fn make_room(&self, owner: &Owner, limits: BackgroundLimits) -> Result<(), ToolError> {
        let mut all = self.lock();
        let running = |process: &&Arc<Process>| !process.has_ended();
        let own = all.iter().filter(running).filter(|process| process.owner == *owner).count();
        if own >= limits.per_conversation {
            return Err(failed(format!("{own} background processes run in this conversation, limit {own}; stop one first")));
        }
        let everybody = all.iter().filter(running).count();
        if everybody >= limits.overall {
            return Err(failed(format!("{everybody} background processes run, limit {everybody}; try again later")));
        }
        let mut ended = all.iter().filter(|process| process.has_ended()).count();
        all.retain(|process| {
            let goes = process.has_ended() && ended >= MAX_ENDED;
            ended -= usize::from(goes);
            !goes
        });
        Ok(())
    }

    fn find(&self, id: &str, context: &CallContext) -> Result<Arc<Process>, ToolError> {
        let owner = Owner::of(context);
        let found = self.of(&owner).find(|process| process.id == id);
        found.ok_or_else(|| {
            let known: Vec<String> = self.of(&owner).map(|process| format!("`{}`", process.id)).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            not_found(format!(
                "there is no background process `{id}` in this conversation (there is {known}); all end where the \
                 conversation is stopped and where the host is started again"
            ))
        })
    }

    fn of(&self, owner: &Owner) -> impl Iterator<Item = Arc<Process>> {
        self.list().into_iter().filter(move |process| process.owner == *owner)
    }

    fn list(&self) -> Vec<Arc<Process>> {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Process>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for process in self.list() {
            process.stop();
        }
    }
}

fn wait_of(wait_ms: Option<u64>, default: Duration) -> Result<Duration, ToolError> {
    let wait = wait_ms.map_or(default, Duration::from_millis);
    if wait > MAX_WAIT {
        let (given, max) = (grouped(milliseconds(wait)), grouped(milliseconds(MAX_WAIT)));
        return Err(invalid(format!("wait_ms is {given}, limit {max}; ask again for more")));
    }
    Ok(wait)
}
