//! One container with all that runs in it: made with nothing but what it was given, attached before it starts, removed at
//! its end.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncWriteExt, DuplexStream};
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

use super::engine::{Engine, EngineError};
use super::{frames, new_mark, process};
use crate::config::DEFAULT_ENGINE;
use crate::log::{LogOrigin, ServerLog};
use crate::{DockerConfig, McpError, ProcessLedger, ProcessRecord, Surroundings};

/// The label by which the containers of one start are found. Its value is that of [`super::MARK`] for processes.
pub(super) const LABEL: &str = "dev.turnwright.process";
/// The label that names the server, for people.
const SERVER_LABEL: &str = "dev.turnwright.server";
/// What lies between us and the container on either way.
const PIPE_BYTES: usize = 64 << 10;
/// How long an engine may take to remove a container.
const REMOVE_LIMIT: Duration = Duration::from_secs(20);
/// How long a dead server's last lines are waited for.
const LAST_LINES: Duration = Duration::from_millis(500);

/// The two ends that the protocol is spoken over.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) stdin: DuplexStream,
    pub(crate) stdout: DuplexStream,
}

/// A running container.
///
/// Dropping it leaves it to the next start, which finds it by its record: only an engine can end it, and nothing can be
/// waited for there. One that minds the end of its input ends at once even so.
#[derive(Debug)]
pub(crate) struct Container {
    engine: Engine,
    id: String,
    mark: String,
    memory: u64,
    ledger: Arc<dyn ProcessLedger>,
    log: Arc<ServerLog>,
    input: JoinHandle<()>,
    output: JoinHandle<()>,
    stderr: JoinHandle<()>,
}

/// Starts a container. Where that fails, or `given_up` comes first, nothing of it is left.
pub(crate) async fn start<E: From<McpError>>(
    server: &str,
    config: &DockerConfig,
    surroundings: &Surroundings,
    log: &Arc<ServerLog>,
    tracker: &TaskTracker,
    given_up: impl Future<Output = E>,
) -> Result<(Container, Ends), E> {
    let address = surroundings.docker_host.as_deref().unwrap_or(DEFAULT_ENGINE);
    let no_engine = |reason| McpError::NoEngine { address: address.to_owned(), reason };
    let engine = Engine::at(address).map_err(no_engine)?;
    let record = ProcessRecord { engine: Some(address.to_owned()), ..ProcessRecord::new(new_mark(server), server) };
    let mark = record.mark.clone();
    let unrecorded = |error: std::io::Error| McpError::Container { image: config.image.clone(), message: error.to_string() };
    surroundings.ledger.started(&record).map_err(unrecorded)?;
    let mut is_made = true;
    let started = tokio::select! {
        biased;
        given_up = given_up => Err(given_up),
        started = begin(&engine, server, config, &mark, log) => started.map_err(|error| {
            E::from(match error {
                EngineError::Absent(reason) => {
                    is_made = false;
                    no_engine(reason)
                }
                EngineError::Unclear(reason) => no_engine(reason),
                EngineError::Refused { status: StatusCode::NOT_FOUND, message } if is_image_missing(&message) => {
                    McpError::NoImage { image: config.image.clone() }
                }
                EngineError::Refused { message, .. } => McpError::Container { image: config.image.clone(), message },
            })
        }),
    };
    let (id, attached) = match started {
        Ok(started) => started,
        Err(error) => {
            if !is_made || remove(address, &mark).await.is_ok() {
                surroundings.ledger.ended(&mark);
            }
            return Err(error);
        }
    };
    let (from, mut to) = tokio::io::split(attached);
    let (stdin, mut input) = tokio::io::duplex(PIPE_BYTES);
    let (output, stdout) = tokio::io::duplex(PIPE_BYTES);
    let (errors, stderr) = tokio::io::duplex(PIPE_BYTES);
    let (drained, log) = (Arc::clone(log), Arc::clone(log));
    let container = Container {
        engine,
        id,
        mark,
        memory: config.memory,
        ledger: Arc::clone(&surroundings.ledger),
        log,
        input: tracker.spawn(async move {
            // Its end must be said, or the container never sees it.
            let _ = tokio::io::copy(&mut input, &mut to).await;
            let _ = to.shutdown().await;
        }),
        output: tracker.spawn(async move { drop(frames::take_apart(from, output, errors).await) }),
        stderr: tracker.spawn(async move { process::drain(stderr, &drained).await }),
    };
    Ok((container, Ends { stdin, stdout }))
}

async fn begin(
    engine: &Engine,
    server: &str,
    config: &DockerConfig,
    mark: &str,
    log: &ServerLog,
) -> Result<(String, reqwest::Upgraded), EngineError> {
    let plain = |char: char| if char.is_ascii_alphanumeric() || char == '-' { char } else { '_' };
    let name = format!("turnwright-{}-{mark}", server.chars().map(plain).collect::<String>());
    let body = body(server, config, mark);
    let id = match engine.create(&name, &body).await {
        Err(EngineError::Refused { status: StatusCode::NOT_FOUND, message })
            if config.fetches_image && is_image_missing(&message) =>
        {
            log.push(LogOrigin::Host, &format!("the image `{}` is fetched", config.image));
            engine.fetch(&config.image).await?;
            engine.create(&name, &body).await?
        }
        created => created?,
    };
    let attached = engine.attach(&id).await.map_err(made)?;
    engine.start(&id).await.map_err(made)?;
    Ok((id, attached))
}

/// An engine that went away after it made the container.
fn made(error: EngineError) -> EngineError {
    match error {
        EngineError::Absent(reason) | EngineError::Unclear(reason) => EngineError::Unclear(reason),
        refused @ EngineError::Refused { .. } => refused,
    }
}

fn is_image_missing(message: &str) -> bool {
    message.to_ascii_lowercase().contains("no such image")
}

/// What the engine is asked for: only what the operator gave, the rest shut.
fn body(server: &str, config: &DockerConfig, mark: &str) -> Value {
    let mut host = json!({
        "NetworkMode": config.network.as_deref().unwrap_or("none"),
        // A first process that takes signals and collects the dead, whatever the image brings.
        "Init": true,
        "Memory": config.memory,
        "MemorySwap": config.memory,
        "NanoCpus": nano(config.cpus),
        "PidsLimit": config.max_processes,
        "ReadonlyRootfs": !config.writable,
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges"],
        // What it writes is read here; the engine need not keep it too.
        "LogConfig": { "Type": "none" },
        "Mounts": config.mounts.iter().map(|mount| json!({
            "Type": "bind",
            "Source": mount.source,
            "Target": mount.target,
            "ReadOnly": !mount.writable,
        })).collect::<Vec<_>>(),
    });
    let mut body = json!({
        "Image": config.image,
        "Env": config.env.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>(),
        "Labels": Map::from_iter([(LABEL.to_owned(), mark.into()), (SERVER_LABEL.to_owned(), server.into())]),
        "AttachStdin": true,
        "AttachStdout": true,
        "AttachStderr": true,
        "OpenStdin": true,
        "StdinOnce": true,
        "Tty": false,
    });
    if let Some(host) = host.as_object_mut().filter(|_| !config.writable) {
        host.insert("Tmpfs".to_owned(), json!({ "/tmp": "rw,nosuid,nodev,size=64m" }));
    }
    if let Some(body) = body.as_object_mut() {
        body.insert("HostConfig".to_owned(), host);
        if !config.args.is_empty() {
            body.insert("Cmd".to_owned(), json!(config.args));
        }
        if let Some(user) = &config.user {
            body.insert("User".to_owned(), json!(user));
        }
    }
    body
}

/// Processors as the engine counts them.
#[expect(clippy::cast_possible_truncation, reason = "no machine has so many, and a float is cut to what fits")]
fn nano(cpus: f64) -> i64 {
    (cpus * 1e9) as i64
}

/// Removes the containers of one start; fails where the engine cannot say that they are gone.
pub(super) async fn remove(address: &str, mark: &str) -> Result<(), String> {
    let said = |error| match error {
        EngineError::Absent(reason) | EngineError::Unclear(reason) => reason,
        EngineError::Refused { message, .. } => message,
    };
    let removal = async {
        let engine = Engine::at(address)?;
        for id in engine.labelled(LABEL, mark).await.map_err(said)? {
            engine.remove(&id).await.map_err(said)?;
        }
        Ok(())
    };
    tokio::time::timeout(REMOVE_LIMIT, removal).await.unwrap_or_else(|_| Err("it does not answer".to_owned()))
}

impl Container {
    /// Waits until it does not run any more.
    pub(crate) async fn exited(&mut self) -> String {
        if let Err(error) = self.engine.ended(&self.id).await {
            return match error {
                EngineError::Refused { status: StatusCode::NOT_FOUND, .. } => "its container was removed".to_owned(),
                EngineError::Refused { message, .. } => format!("its end could not be seen: {message}"),
                EngineError::Absent(reason) | EngineError::Unclear(reason) => format!("the Docker engine went away: {reason}"),
            };
        }
        match self.engine.state(&self.id).await {
            Ok(state) if state.is_out_of_memory => {
                format!("killed for memory: it has {} MiB", self.memory >> 20)
            }
            Ok(state) => match state.exit_code {
                137 => "killed by SIGKILL".to_owned(),
                code => format!("exit code {code}"),
            },
            Err(_) => "its container was removed".to_owned(),
        }
    }

    /// How it went, where it goes by itself within `grace`.
    pub(crate) async fn exited_within(&mut self, grace: Duration) -> Option<String> {
        tokio::time::timeout(grace, self.exited()).await.ok()
    }

    /// Waits for what a dead one wrote last.
    pub(crate) async fn last_lines(&mut self) {
        if !self.stderr.is_finished() {
            let _ = tokio::time::timeout(LAST_LINES, &mut self.stderr).await;
        }
    }

    /// Ends and removes it: SIGTERM, at most `grace`, SIGKILL.
    pub(crate) async fn end(self, grace: Duration) {
        // One that does not stop is removed all the same.
        let _ = tokio::time::timeout(grace + REMOVE_LIMIT, self.engine.stop(&self.id, grace)).await;
        let removed = tokio::time::timeout(REMOVE_LIMIT, self.engine.remove(&self.id)).await;
        for task in [&self.input, &self.output, &self.stderr] {
            task.abort();
        }
        if matches!(removed, Ok(Ok(()))) {
            self.ledger.ended(&self.mark);
        } else {
            // The record stays, so that the next start tries again.
            self.log.push(LogOrigin::Host, "its container could not be removed; the next start tries again");
        }
    }
}
