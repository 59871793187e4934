//! One background process and the task that attends to it.

use std::io;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin};
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use turnwright_core::{ConversationId, UserId};
use turnwright_engine::source::{CallContext, ToolError};

use super::super::group::{self, ProcessGroup, Reach};
use super::super::run::{LINGER, exit_of, exit_of_status, milliseconds, prepared, spawned};
use super::super::{CommandConfig, Launch, Shared};
use super::log::Log;

/// The size of one read, in bytes.
const READ_BYTES: usize = 16 * 1024;

/// To whom a process belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) user: UserId,
    pub(super) conversation: Option<ConversationId>,
}

impl Owner {
    pub(super) fn of(context: &CallContext) -> Self {
        Self { user: context.user.clone(), conversation: context.conversation.clone() }
    }
}

/// A background process.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) id: String,
    pub(super) owner: Owner,
    /// The command, for people and models.
    command: String,
    started: Instant,
    stop: CancellationToken,
    input: Mutex<Option<ChildStdin>>,
    said: watch::Sender<Said>,
}

/// What is known of it.
#[derive(Debug)]
struct Said {
    log: Log,
    end: Option<End>,
}

/// How it ended.
#[derive(Debug)]
struct End {
    exit_code: Option<i32>,
    signal: Option<String>,
    by: Cause,
    duration_ms: u64,
}

/// Why it ended.
#[derive(Debug, Clone, Copy)]
enum Cause {
    Itself,
    Stop,
    TimeLimit,
}

impl Cause {
    fn as_str(self) -> &'static str {
        match self {
            Self::Itself => "itself",
            Self::Stop => "stop",
            Self::TimeLimit => "time_limit",
        }
    }
}

impl Process {
    /// Starts it; the second is what attends to it, to its end.
    pub(super) fn start(
        shared: &Shared,
        mut launch: Launch,
        owner: Owner,
        command: String,
        stop: CancellationToken,
    ) -> Result<(Arc<Self>, impl Future<Output = ()> + Send + 'static), ToolError> {
        let mark = group::new_mark();
        launch.environment.push((group::MARK.into(), mark.clone().into()));
        let (mut prepared, leader) = prepared(shared, &launch)?;
        prepared.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = spawned(prepared, &launch)?;
        let group = ProcessGroup::led_by(child.id(), leader, &mark);
        let log = Log::new(shared.config.max_output_bytes);
        let process = Arc::new(Self {
            id: format!("p_{}", mark.get(..8).unwrap_or(&mark)),
            owner,
            command,
            started: Instant::now(),
            stop,
            input: Mutex::new(child.stdin.take()),
            said: watch::Sender::new(Said { log, end: None }),
        });
        let attend = Arc::clone(&process).attend(child, group, shared.config.clone());
        Ok((process, attend))
    }

    async fn attend(self: Arc<Self>, mut child: Child, mut group: ProcessGroup, config: CommandConfig) {
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let mut pipes = pin!(async { tokio::join!(self.read(out), self.read(err)) });
        let mut is_closed = false;
        let (mut status, by) = tokio::select! {
            biased;
            status = exit_of(&mut child, pipes.as_mut(), &mut is_closed) => (status.ok(), Cause::Itself),
            () = self.stop.cancelled() => (None, Cause::Stop),
            () = sleep(config.background.longest) => (None, Cause::TimeLimit),
        };
        match by {
            Cause::Itself => {}
            Cause::Stop | Cause::TimeLimit => {
                group.terminate();
                let exit = exit_of(&mut child, pipes.as_mut(), &mut is_closed);
                status = timeout(config.grace, exit).await.ok().and_then(Result::ok);
            }
        }
        if !is_closed && status.is_some() {
            is_closed = timeout(LINGER, pipes.as_mut()).await.is_ok();
        }
        group.kill(Reach::All);
        if status.is_none() {
            status = timeout(LINGER, exit_of(&mut child, pipes.as_mut(), &mut is_closed)).await.ok().and_then(Result::ok);
        }
        if !is_closed && timeout(LINGER, pipes.as_mut()).await.is_err() {
            tracing::debug!("a background process's output is held open by a process outside of its group");
        }
        *self.input.lock().await = None;
        self.ended(status, by);
    }

    fn ended(&self, status: Option<ExitStatus>, by: Cause) {
        let (exit_code, signal) = status.map(exit_of_status).map_or((None, None), |(code, signal)| (Some(code), signal));
        let end = End { exit_code, signal, by, duration_ms: milliseconds(self.started.elapsed()) };
        self.said.send_modify(|said| said.end = Some(end));
    }

    async fn read<R: AsyncRead + Unpin>(&self, source: Option<R>) {
        let Some(mut source) = source else { return };
        let mut buffer = vec![0; READ_BYTES];
        while let Ok(count @ 1..) = source.read(&mut buffer).await {
            self.said.send_modify(|said| said.log.push(buffer.get(..count).unwrap_or_default()));
        }
    }

    /// Asks it to end, and kills it after the grace period.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    pub(super) fn has_ended(&self) -> bool {
        self.said.borrow().end.is_some()
    }

    /// How much it has printed, in bytes.
    pub(super) fn written(&self) -> u64 {
        self.said.borrow().log.end()
    }

    /// Waits for its end.
    pub(super) async fn end(&self) {
        drop(self.said.subscribe().wait_for(|said| said.end.is_some()).await);
    }

    /// Waits until it has printed more than so many bytes, or ended.
    pub(super) async fn more_than(&self, bytes: u64) {
        drop(self.said.subscribe().wait_for(|said| said.end.is_some() || said.log.end() > bytes).await);
    }

    /// Writes to its input; `close` ends the input afterwards.
    pub(super) async fn write(&self, text: &str, close: bool) -> io::Result<()> {
        let mut input = self.input.lock().await;
        let Some(open) = &mut *input else { return Err(io::Error::other("its input is closed")) };
        open.write_all(text.as_bytes()).await?;
        open.flush().await?;
        if close {
            *input = None;
        }
        Ok(())
    }

    /// What it is and how it stands.
    pub(super) fn summary(&self) -> Value {
        self.describe(&self.said.borrow())
    }

    /// The same with its output from a place on.
    pub(super) fn told(&self, from: u64) -> Value {
        let said = self.said.borrow();
        let part = said.log.part(from, said.end.is_some());
        let mut value = self.describe(&said);
        if let Value::Object(fields) = &mut value {
            fields.insert("output".to_owned(), Value::from(part.text));
            fields.insert("from".to_owned(), Value::from(part.from));
            fields.insert("next".to_owned(), Value::from(part.next));
            if part.next < said.log.end() {
                fields.insert("more_bytes".to_owned(), Value::from(said.log.end() - part.next));
            }
        }
        value
    }

    fn describe(&self, said: &Said) -> Value {
        let (id, command) = (&self.id, &self.command);
        match &said.end {
            None => {
                let duration_ms = milliseconds(self.started.elapsed());
                json!({"process": id, "command": command, "state": "running", "duration_ms": duration_ms})
            }
            Some(End { exit_code, signal, by, duration_ms }) => {
                let mut value = json!({
                    "process": id, "command": command, "state": "ended", "ended_by": by.as_str(), "exit_code": exit_code,
                    "duration_ms": duration_ms,
                });
                if let (Some(signal), Value::Object(fields)) = (signal, &mut value) {
                    fields.insert("signal".to_owned(), Value::from(signal.as_str()));
                }
                value
            }
        }
    }
}
