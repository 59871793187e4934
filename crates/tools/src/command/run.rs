//! The tool `run`.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use turnwright_core::{ContentBlock, ToolErrorKind};
use turnwright_engine::source::{CallContext, ToolError, ToolOutput};

use super::group::{self, ProcessGroup, Reach};
use super::output::{Output, Printed};
use super::{Launch, Launcher, Leader, Prepared, Shared};
use crate::error::{denied, failed, grouped, invalid, not_found};

pub(super) const DESCRIPTION: &str = "Runs a command and gives its exit code and what it prints. command is a line for the \
    shell; with args it is a program, started without a shell. All that it started ends with it.";

/// How long the outputs may stay open after the command ended: processes that it left behind hold them.
pub(crate) const LINGER: Duration = Duration::from_millis(250);
/// The longest command, in bytes.
const MAX_COMMAND_BYTES: usize = 64 * 1024;
/// The most characters of each output that a failure shows.
const MOST_SHOWN_CHARACTERS: usize = 2_000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The shell line; with args, the program.
    command: String,
    /// The program's arguments. Where they are given, even none, there is no shell.
    args: Option<Vec<String>>,
    /// The folder in which it begins, relative to the first root, or absolute inside a root. The first root by default.
    cwd: Option<String>,
    /// What it reads as its input; nothing by default.
    stdin: Option<String>,
    /// How long it may take, in milliseconds.
    #[schemars(range(min = 1))]
    timeout_ms: Option<u64>,
}

/// Why the command's outputs are not read any longer.
enum Ending {
    Exited(std::io::Result<ExitStatus>),
    TimedOut,
    Cancelled,
}

pub(super) async fn run(shared: &Shared, arguments: Arguments, context: &CallContext) -> Result<ToolOutput, ToolError> {
    let config = &shared.config;
    let limit = arguments.timeout_ms.map_or(config.default_timeout, Duration::from_millis);
    if limit > config.max_timeout {
        let max = grouped(milliseconds(config.max_timeout));
        return Err(invalid(format!("timeout_ms is {}, limit {max}", grouped(milliseconds(limit)))));
    }
    let stdin = arguments.stdin.clone();
    let Arguments { command, args, cwd, .. } = arguments;
    let mut launch = launch_of(shared, command, args, cwd.as_deref())?;
    let mark = group::new_mark();
    launch.environment.push((group::MARK.into(), mark.clone().into()));
    let started = Instant::now();
    let (mut command, leader) = prepared(shared, &launch)?;
    command.stdin(if stdin.is_some() { Stdio::piped() } else { Stdio::null() }).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = spawned(command, &launch)?;
    let mut group = ProcessGroup::led_by(child.id(), leader, &mark);
    let mut stdout = Output::spilling(config.max_output_bytes, context.spool.as_ref());
    let mut stderr = Output::spilling(config.max_output_bytes, context.spool.as_ref());
    let ending = {
        let (input, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let killed = CancellationToken::new();
        let fed = async {
            tokio::select! {
                () = feed(input, stdin) => {}
                () = killed.cancelled() => {}
            }
        };
        let mut pipes = pin!(async { tokio::join!(fed, stdout.read_out(out, &killed), stderr.read_out(err, &killed)) });
        let mut is_closed = false;
        let mut has_ended = true;
        let mut ending = tokio::select! {
            biased;
            status = exit_of(&mut child, pipes.as_mut(), &mut is_closed) => Ending::Exited(status),
            () = context.cancel.cancelled() => Ending::Cancelled,
            () = sleep(limit) => Ending::TimedOut,
        };
        if !matches!(ending, Ending::Exited(_)) {
            group.terminate();
            let exit = exit_of(&mut child, pipes.as_mut(), &mut is_closed);
            // A command that ends on request at a cancel has a real result.
            match (timeout(config.grace, exit).await, &ending) {
                (Ok(Ok(status)), Ending::Cancelled) if has_ended_itself(status) => ending = Ending::Exited(Ok(status)),
                (Ok(_), _) => {}
                (Err(_), _) => has_ended = false,
            }
        } else if !is_closed {
            is_closed = timeout(LINGER, pipes.as_mut()).await.is_ok();
        }
        // What it left behind ends with it, also what does not hold the outputs.
        group.kill(if matches!(ending, Ending::Exited(_)) { Reach::Later } else { Reach::All });
        killed.cancel();
        if !has_ended && timeout(LINGER, exit_of(&mut child, pipes.as_mut(), &mut is_closed)).await.is_err() {
            tracing::warn!("a killed command has not ended yet");
        }
        // What it printed is in the pipes, and comes to an end.
        if !is_closed {
            pipes.await;
        }
        ending
    };
    let duration_ms = milliseconds(started.elapsed());
    let so_far = |stdout: Output, stderr: Output| so_far(&stdout.into_text(), &stderr.into_text());
    match ending {
        Ending::Exited(Ok(status)) => {
            let (stdout, stderr) = tokio::join!(stdout.finish("stdout.txt"), stderr.finish("stderr.txt"));
            Ok(finished(status, stdout, stderr, duration_ms))
        }
        Ending::Exited(Err(error)) => Err(failed(format!("the command's end could not be seen: {error}"))),
        Ending::TimedOut => {
            let what = format!("the command did not end within {} ms and was killed", grouped(milliseconds(limit)));
            Err(ToolError::new(ToolErrorKind::Timeout, what + &so_far(stdout, stderr)))
        }
        Ending::Cancelled => {
            let what = format!("the command was stopped after {} ms; what it did until then happened", grouped(duration_ms));
            Err(ToolError::new(ToolErrorKind::Interrupted, what + &so_far(stdout, stderr)))
        }
    }
}

/// Whether a command that was told to end did so in its own way. One that the signal killed did not, also where something in between, as
/// a shell or the sandbox, says so by a code of its own.
fn has_ended_itself(status: ExitStatus) -> bool {
    let killed = [Signal::SIGTERM, Signal::SIGKILL].map(|signal| 128 + signal as i32);
    status.code().is_some_and(|code| !killed.contains(&code))
}

/// What is started for these arguments.
pub(super) fn launch_of(
    shared: &Shared,
    command: String,
    args: Option<Vec<String>>,
    cwd: Option<&str>,
) -> Result<Launch, ToolError> {
    if command.trim().is_empty() {
        return Err(invalid("command is empty"));
    }
    let size = command.len() + args.iter().flatten().map(String::len).sum::<usize>();
    if size > MAX_COMMAND_BYTES {
        let (size, max) = (grouped(size as u64), grouped(MAX_COMMAND_BYTES as u64));
        return Err(invalid(format!("the command is {size} bytes, limit {max}; write it to a file and run that")));
    }
    if command.contains('\0') || args.iter().flatten().any(|argument| argument.contains('\0')) {
        return Err(invalid("a command holds no zero bytes"));
    }
    let place = shared.roots.place(cwd.unwrap_or("."))?;
    let explain = |error: std::io::Error| shared.roots.explain(&place, &error);
    // Opened only to learn that it is a folder inside the root.
    place.dir().open_dir(&place.path).map_err(explain)?;
    let config = &shared.config;
    let (program, arguments) = match args {
        Some(args) => (OsString::from(command), args.into_iter().map(OsString::from).collect()),
        None => (config.shell.clone().into_os_string(), vec![OsString::from("-c"), OsString::from(command)]),
    };
    Ok(Launch {
        program,
        arguments,
        cwd: place.absolute(),
        roots: config.roots.clone(),
        environment: config.inherited_env.clone(),
    })
}

/// What is started, in a process group of its own; its input and outputs are the caller's to set.
pub(super) fn prepared(shared: &Shared, launch: &Launch) -> Result<(Command, Leader), ToolError> {
    start_of(&*shared.config.launcher, launch)
}

/// The same by any launcher.
pub(crate) fn start_of(launcher: &dyn Launcher, launch: &Launch) -> Result<(Command, Leader), ToolError> {
    let prepared = launcher.prepare(launch);
    let Prepared { mut command, leader } = prepared.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => not_found(format!("there is no program `{}`", launch.program.to_string_lossy())),
        _ => denied(format!("the command cannot be isolated: {error}")),
    })?;
    command.process_group(0).kill_on_drop(true);
    Ok((command, leader))
}

pub(crate) fn spawned(mut command: Command, launch: &Launch) -> Result<Child, ToolError> {
    command.spawn().map_err(|error| {
        let program = launch.program.to_string_lossy();
        match error.kind() {
            // The system says the same of both.
            std::io::ErrorKind::NotFound if !launch.cwd.is_dir() => {
                not_found(format!("the folder `{}` is not there any more", launch.cwd.display()))
            }
            std::io::ErrorKind::NotFound => not_found(format!("there is no program `{program}`")),
            std::io::ErrorKind::PermissionDenied => denied(format!("`{program}` may not be run: {error}")),
            _ => failed(format!("`{program}` could not be started: {error}")),
        }
    })
}

/// Waits for the command's end while its outputs are read.
pub(crate) async fn exit_of<P: Future>(
    child: &mut Child,
    mut pipes: std::pin::Pin<&mut P>,
    is_closed: &mut bool,
) -> std::io::Result<ExitStatus> {
    loop {
        tokio::select! {
            status = child.wait() => return status,
            _ = pipes.as_mut(), if !*is_closed => *is_closed = true,
        }
    }
}

/// Writes the command's input and closes it. A command that does not read it to its end is no failure.
pub(crate) async fn feed(input: Option<ChildStdin>, text: Option<String>) {
    if let (Some(mut input), Some(text)) = (input, text)
        && let Err(error) = input.write_all(text.as_bytes()).await
    {
        tracing::debug!(%error, "a command did not read all of its input");
    }
}

/// The exit code, as shells have it (128 and the signal's number), and the name of the signal that ended it.
pub(crate) fn exit_of_status(status: ExitStatus) -> (i32, Option<String>) {
    let signal = status.signal();
    let name =
        signal.map(|signal| Signal::try_from(signal).map_or_else(|_| signal.to_string(), |signal| signal.as_str().to_owned()));
    (status.code().unwrap_or_else(|| 128 + signal.unwrap_or_default()), name)
}

fn finished(status: ExitStatus, stdout: Printed, stderr: Printed, duration_ms: u64) -> ToolOutput {
    let (exit_code, signal) = exit_of_status(status);
    let mut content = Map::new();
    let mut links = Vec::new();
    content.insert("exit_code".to_owned(), Value::from(exit_code));
    for (name, artifact, Printed { text, whole }) in
        [("stdout", "stdout_artifact", stdout), ("stderr", "stderr_artifact", stderr)]
    {
        content.insert(name.to_owned(), Value::from(text));
        if let Some(whole) = whole {
            content.insert(artifact.to_owned(), Value::from(whole.id.as_str()));
            links.push(whole.link());
        }
    }
    content.insert("duration_ms".to_owned(), Value::from(duration_ms));
    if let Some(signal) = signal {
        content.insert("signal".to_owned(), Value::from(signal));
    }
    let content = Value::Object(content);
    ToolOutput {
        content: std::iter::once(ContentBlock::text(content.to_string())).chain(links).collect(),
        structured_content: Some(content),
        is_error: !status.success(),
        diagnostic: None,
    }
}

/// The end of what it printed, for a failure's text.
fn so_far(stdout: &str, stderr: &str) -> String {
    let shown = |(name, output): (&str, &str)| {
        let skipped = output.chars().count().saturating_sub(MOST_SHOWN_CHARACTERS);
        let end: String = output.chars().skip(skipped).collect();
        let cut = if skipped > 0 { "…" } else { "" };
        format!("\n{name}: {cut}{end}")
    };
    [("stdout", stdout), ("stderr", stderr)].into_iter().filter(|(_, output)| !output.is_empty()).map(shown).collect()
}

pub(crate) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
