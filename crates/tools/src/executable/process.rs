//! One run of a tool's program: its input written, its output read within bounds, its end.

use std::io;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use turnwright_core::ToolErrorKind;
use turnwright_engine::source::ToolError;

use super::ExecutableTool;
use crate::command::Launch;
use crate::command::group::{self, ProcessGroup, Reach};
use crate::command::output::Output;
use crate::command::run::{LINGER, exit_of, exit_of_status, feed, milliseconds, spawned, start_of};
use crate::error::{failed, grouped};

/// How much of its error output is kept, in bytes.
const MAX_SAID_BYTES: usize = 4 * 1024;
/// The size of one read, in bytes.
const READ_BYTES: usize = 16 * 1024;

/// What a program is asked.
pub(super) struct Asked {
    /// One more argument.
    pub(super) more: Option<&'static str>,
    pub(super) input: String,
    pub(super) limit: Duration,
}

enum Ending {
    Exited(io::Result<ExitStatus>),
    TooLarge,
    TimedOut,
    Cancelled,
}

/// What it prints until its end, where it ends well.
pub(super) async fn run(tool: &ExecutableTool, asked: Asked, cancel: &CancellationToken) -> Result<Vec<u8>, ToolError> {
    let Some((program, arguments)) = tool.command.split_first() else {
        return Err(failed("the tool has no program"));
    };
    let mark = group::new_mark();
    let mut environment = tool.environment.clone();
    environment.push((group::MARK.into(), mark.clone().into()));
    let launch = Launch {
        program: program.clone(),
        arguments: arguments.iter().cloned().chain(asked.more.map(Into::into)).collect(),
        cwd: tool.folder.clone(),
        roots: vec![tool.folder.clone()],
        environment,
    };
    let (mut command, leader) = start_of(&*tool.launcher, &launch)?;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = spawned(command, &launch)?;
    let mut group = ProcessGroup::led_by(child.id(), leader, &mark);
    let (input, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let too_large = CancellationToken::new();
    let mut printed = Vec::new();
    let mut said = Output::new(MAX_SAID_BYTES);
    let (ending, is_whole) = {
        let bounded = bounded(out, &mut printed, tool.max_result_bytes, &too_large);
        let mut pipes = pin!(async { tokio::join!(feed(input, Some(asked.input)), bounded, said.read(err)) });
        let mut is_closed = false;
        let ending = tokio::select! {
            biased;
            () = too_large.cancelled() => Ending::TooLarge,
            status = exit_of(&mut child, pipes.as_mut(), &mut is_closed) => Ending::Exited(status),
            () = cancel.cancelled() => Ending::Cancelled,
            () = sleep(asked.limit) => Ending::TimedOut,
        };
        match ending {
            Ending::Exited(_) if !is_closed => is_closed = timeout(LINGER, pipes.as_mut()).await.is_ok(),
            Ending::TimedOut | Ending::Cancelled => {
                group.terminate();
                drop(timeout(tool.grace, exit_of(&mut child, pipes.as_mut(), &mut is_closed)).await);
            }
            Ending::Exited(_) | Ending::TooLarge => {}
        }
        group.kill(if matches!(ending, Ending::Exited(_)) { Reach::Later } else { Reach::All });
        (ending, is_closed)
    };
    drop(timeout(LINGER, child.wait()).await);
    let ending = if too_large.is_cancelled() { Ending::TooLarge } else { ending };
    let said = said.into_text();
    let said = said.trim();
    let words = |what: String| if said.is_empty() { what } else { format!("{what}\nstderr: {said}") };
    match ending {
        Ending::Exited(Ok(status)) if status.success() => {
            if !is_whole {
                tracing::debug!(tool = tool.name, "a tool's output is held open by a process that it left behind");
            }
            Ok(printed)
        }
        Ending::Exited(Ok(status)) => {
            let (code, signal) = exit_of_status(status);
            let how = signal.map_or_else(|| format!("exit code {code}"), |signal| format!("signal {signal}"));
            let told = String::from_utf8_lossy(&printed).chars().take(MAX_SAID_BYTES).collect::<String>();
            let told = told.trim();
            let told = if told.is_empty() { String::new() } else { format!("\nstdout: {told}") };
            Err(failed(words(format!("the tool's program failed ({how}){told}"))))
        }
        Ending::Exited(Err(error)) => Err(failed(format!("the end of the tool's program could not be seen: {error}"))),
        Ending::TooLarge => {
            let limit = grouped(tool.max_result_bytes as u64);
            Err(failed(format!("the tool's program printed more than {limit} bytes and was killed; ask it for less")))
        }
        Ending::TimedOut => {
            let limit = grouped(milliseconds(asked.limit));
            let what = format!("the tool's program did not end within {limit} ms and was killed");
            Err(ToolError::new(ToolErrorKind::Timeout, words(what)))
        }
        Ending::Cancelled => {
            let what = "the tool's program was stopped; what it did until then happened".to_owned();
            Err(ToolError::new(ToolErrorKind::Interrupted, words(what)))
        }
    }
}

/// Reads to the end, or to one byte more than allowed, which is told.
async fn bounded<R: AsyncRead + Unpin>(source: Option<R>, printed: &mut Vec<u8>, most: usize, too_large: &CancellationToken) {
    let Some(mut source) = source else { return };
    let mut buffer = vec![0; READ_BYTES];
    while let Ok(count @ 1..) = source.read(&mut buffer).await {
        printed.extend_from_slice(buffer.get(..count).unwrap_or_default());
        if printed.len() > most {
            too_large.cancel();
            return;
        }
    }
}
