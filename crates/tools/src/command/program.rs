//! A program that an operator named, told something: no tool, and nothing that a model chose.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::Leader;
use super::group::{self, ProcessGroup, Reach};
use super::output::Output;

/// How much of what it says is kept, in bytes.
const MAX_SAID_BYTES: usize = 4096;

/// How long its outputs are read after its end: processes that it left behind may hold them.
const LINGER: Duration = Duration::from_millis(250);

/// A program and its arguments; no shell reads them.
#[derive(Debug, Clone)]
pub struct Program {
    /// The name, or the path, of the program.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Its whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Where it begins.
    pub folder: PathBuf,
}

impl Program {
    /// Runs it with `input` to read, until its end. All that it started ends with it, also when this is dropped.
    ///
    /// # Errors
    /// In words for the operator: where it cannot be started, does not end within `limit`, or ends with another code than 0.
    pub async fn tell(&self, input: &str, limit: Duration) -> Result<(), String> {
        let name = self.program.to_string_lossy();
        let mark = group::new_mark();
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.env(group::MARK, &mark).current_dir(&self.folder).process_group(0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("`{name}` could not be started: {error}"))?;
        let mut group = ProcessGroup::led_by(child.id(), Leader::Command, &mark);
        let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
        let mut said = Output::new(MAX_SAID_BYTES);
        let told = async {
            if let Some(mut stdin) = stdin {
                // One that does not read is told nothing, and that is its own affair.
                drop(stdin.write_all(input.as_bytes()).await);
            }
        };
        // What it says is read as long as it runs: what it leaves behind may hold its outputs open.
        let run = async {
            let mut pipes = std::pin::pin!(async { tokio::join!(told, said.read(stderr)) });
            tokio::select! {
                status = child.wait() => {
                    drop(tokio::time::timeout(LINGER, pipes).await);
                    status
                }
                _ = &mut pipes => child.wait().await,
            }
        };
        let ended = tokio::time::timeout(limit, run).await;
        group.kill(if ended.is_ok() { Reach::Later } else { Reach::All });
        match ended {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => {
                let said = said.into_text();
                let said = said.trim();
                let said = if said.is_empty() { String::new() } else { format!(": {said}") };
                Err(format!("`{name}` failed ({status}){said}"))
            }
            Ok(Err(error)) => Err(format!("the end of `{name}` could not be seen: {error}")),
            Err(_) => Err(format!("`{name}` did not end within {} ms and was killed", limit.as_millis())),
        }
    }
}
