//! One child process with all that it starts: spawned in a group of its own, its error output always drained, ended as a
//! whole.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use tokio::io::{AsyncRead, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

use super::group::{self, Group, MARK};
use super::new_mark;
use crate::log::{LogOrigin, MAX_LINE_BYTES, ServerLog};
use crate::transport::line::{Line, LineReader};
use crate::{McpError, ProcessLedger, ProcessRecord, StdioConfig, Surroundings};

/// How long a dead server's last lines are waited for: a child of it may hold the pipe open for ever.
const LAST_LINES: Duration = Duration::from_millis(200);

/// The two ends that the protocol is spoken over.
#[derive(Debug)]
pub(crate) struct Pipes {
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
}

/// A running server process and its descendants.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    group: Group,
    stderr: JoinHandle<()>,
    ledger: Arc<dyn ProcessLedger>,
    is_ended: bool,
}

/// Starts the program.
pub(crate) fn spawn(
    server: &str,
    config: &StdioConfig,
    surroundings: &Surroundings,
    log: &Arc<ServerLog>,
    tracker: &TaskTracker,
) -> Result<(Process, Pipes), McpError> {
    if let Some(cwd) = config.cwd.as_deref().filter(|cwd| !cwd.is_dir()) {
        return Err(McpError::NoWorkingDirectory { cwd: cwd.to_owned() });
    }
    let mut record = ProcessRecord { boot_id: group::boot_id(), ..ProcessRecord::new(new_mark(server), server) };
    let failed = |source| McpError::Spawn { command: config.command.clone(), source };
    surroundings.ledger.started(&record).map_err(failed)?;
    let spawned = command(config, surroundings, &record.mark).spawn().and_then(|child| with_pipes(child, &record.mark));
    let (child, pid, pipes, stderr) = match spawned {
        Ok(spawned) => spawned,
        Err(source) => {
            surroundings.ledger.ended(&record.mark);
            return Err(match source.kind() {
                io::ErrorKind::NotFound => McpError::CommandNotFound { command: config.command.clone() },
                _ => failed(source),
            });
        }
    };
    let log = Arc::clone(log);
    let process = Process {
        child,
        group: Group { mark: record.mark.clone(), trusted: Some(pid) },
        stderr: tracker.spawn(async move { drain(stderr, &log).await }),
        ledger: Arc::clone(&surroundings.ledger),
        is_ended: false,
    };
    record.pgid = Some(pid.as_raw());
    record.started = group::stat(pid).map(|process| process.started);
    if let Err(error) = process.ledger.started(&record) {
        tracing::warn!(server, %error, "the process group of a server could not be recorded");
    }
    Ok((process, pipes))
}

fn command(config: &StdioConfig, surroundings: &Surroundings, mark: &str) -> Command {
    let mut command = Command::new(&config.command);
    command
        .args(&config.args)
        .env_clear()
        .envs(surroundings.inherited_env.iter().map(|(name, value)| (name, value)))
        .envs(config.env.iter().map(|(name, value)| (name, value)))
        .env(MARK, mark)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    if let Some(cwd) = &config.cwd {
        command.current_dir(cwd);
    }
    command
}

fn with_pipes(mut child: Child, mark: &str) -> io::Result<(Child, Pid, Pipes, ChildStderr)> {
    let pid = child.id().and_then(|id| i32::try_from(id).ok());
    if let (Some(pid), Some(stdin), Some(stdout), Some(stderr)) =
        (pid, child.stdin.take(), child.stdout.take(), child.stderr.take())
    {
        return Ok((child, Pid::from_raw(pid), Pipes { stdin, stdout }, stderr));
    }
    Group { mark: mark.to_owned(), trusted: None }.signal(Signal::SIGKILL);
    Err(io::Error::other("the child process has no id or no pipes"))
}

pub(super) async fn drain(stderr: impl AsyncRead + Unpin, log: &ServerLog) {
    let mut lines = LineReader::new(BufReader::new(stderr), MAX_LINE_BYTES);
    loop {
        // One that prints without end must not keep everybody else from their turn.
        tokio::task::coop::consume_budget().await;
        match lines.next().await {
            Ok(Some(Line::Whole(line))) => log.push_bytes(LogOrigin::Stderr, line),
            Ok(Some(Line::TooLong { head, .. })) => log.push_bytes(LogOrigin::Stderr, head),
            Ok(None) | Err(_) => return,
        }
    }
}

impl Process {
    /// Waits until the first process is gone.
    pub(crate) async fn exited(&mut self) -> String {
        match self.child.wait().await {
            Ok(status) => describe(status),
            Err(error) => format!("its end could not be seen: {error}"),
        }
    }

    /// Whether its input was closed and it left by itself within `grace`; what it left behind may still be there.
    pub(crate) async fn exited_within(&mut self, grace: Duration) -> Option<String> {
        tokio::time::timeout(grace, self.exited()).await.ok()
    }

    /// Ends everything that is left: SIGTERM, at most `grace`, SIGKILL. Its input must be closed already where it should
    /// have the chance to leave by itself.
    pub(crate) async fn end(mut self, grace: Duration) {
        // The first process is collected meanwhile; bounded, since one that hangs in the kernel cannot be killed.
        let collected = tokio::time::timeout(grace + Duration::from_secs(5), self.child.wait());
        let _ = tokio::join!(self.group.end(grace), collected);
        if tokio::time::timeout(LAST_LINES, &mut self.stderr).await.is_err() {
            self.stderr.abort();
        }
        self.is_ended = true;
        self.ledger.ended(&self.group.mark);
    }

    /// Waits for what a dead process wrote last.
    pub(crate) async fn last_lines(&mut self) {
        if !self.stderr.is_finished() {
            let deadline = tokio::time::Instant::now() + LAST_LINES;
            while !self.stderr.is_finished() && tokio::time::Instant::now() < deadline {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.is_ended {
            // Whoever ends it in order does not come here: the runtime is being shut down.
            self.group.signal(Signal::SIGKILL);
            self.stderr.abort();
        }
    }
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(number)) => match Signal::try_from(number) {
            Ok(signal) => format!("killed by {signal}"),
            Err(_) => format!("killed by signal {number}"),
        },
        (None, None) => "no exit code".to_owned(),
    }
}
