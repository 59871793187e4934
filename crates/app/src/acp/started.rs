//! The host of the editor's folder, started by its first session.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use agent_client_protocol::v1::schema::{McpServer, McpServerStdio};
use agent_client_protocol::{Error, ErrorCode};
use tokio::sync::{Mutex, mpsc, oneshot};
use turnwright_engine::Engine;
use turnwright_host::config::{self, Secret};
use turnwright_host::{Host, Needs};

use crate::cli::Everywhere;
use crate::exit::Failure;
use crate::opened::{self, QUIET};

/// The one host of this process: files and servers are those of one folder.
#[derive(Debug)]
pub(super) struct Started {
    wishes: mpsc::Sender<Wish>,
    running: Mutex<Option<Running>>,
}

/// A host that is to be started.
#[derive(Debug)]
pub(super) struct Wish {
    folder: PathBuf,
    servers: Vec<McpServer>,
    reply: oneshot::Sender<Result<Running, Error>>,
}

#[derive(Debug)]
struct Running {
    host: Host,
    folder: PathBuf,
    servers: Vec<McpServer>,
}

impl Started {
    /// Nothing yet; [`start_hosts`] carries its wishes out.
    pub(super) fn new() -> (Self, mpsc::Receiver<Wish>) {
        let (wishes, received) = mpsc::channel(1);
        (Self { wishes, running: Mutex::default() }, received)
    }

    /// The engine for sessions in `folder` with these MCP servers beside the configured ones.
    ///
    /// # Errors
    /// Where the folder is not one, is another than the first session's, or its configuration cannot be used.
    pub(super) async fn in_folder(&self, folder: &Path, servers: &[McpServer]) -> Result<Engine, Error> {
        if !folder.is_absolute() {
            let why = format!("cwd is `{}`, it must be an absolute path", folder.display());
            return Err(Error::new(ErrorCode::INVALID_PARAMS, why));
        }
        let mut first = self.running.lock().await;
        let running = match &*first {
            Some(running) => running,
            None => first.insert(self.wish(folder, servers).await?),
        };
        if running.folder != folder {
            let why = format!(
                "this process works in `{}`, the session wants `{}`; start another `turnwright acp` for it",
                running.folder.display(),
                folder.display()
            );
            return Err(Error::new(ErrorCode::INVALID_PARAMS, why));
        }
        if let Some(other) = servers.iter().find(|server| !running.servers.iter().any(|known| are_alike(known, server))) {
            let why = format!(
                "{} did not come with the first session, whose MCP servers serve all of this process; start another `turnwright acp` for it",
                called(other)
            );
            return Err(Error::new(ErrorCode::INVALID_PARAMS, why));
        }
        Ok(running.host.engine().clone())
    }

    /// The engine and its folder, once a session was begun.
    ///
    /// # Errors
    /// Where none was.
    pub(super) async fn begun(&self) -> Result<(Engine, PathBuf), Error> {
        let running = self.running.lock().await;
        let place = running.as_ref().map(|running| (running.host.engine().clone(), running.folder.clone()));
        place.ok_or_else(|| Error::new(ErrorCode::INVALID_PARAMS, "there is no session yet; begin one first"))
    }

    /// Ends what was started. Turns stay open.
    pub(super) async fn end(&self) {
        if let Some(running) = self.running.lock().await.take() {
            running.host.shutdown().await;
        }
    }

    async fn wish(&self, folder: &Path, servers: &[McpServer]) -> Result<Running, Error> {
        let (reply, started) = oneshot::channel();
        let wish = Wish { folder: folder.to_owned(), servers: servers.to_vec(), reply };
        let ended = || Error::new(ErrorCode::INTERNAL_ERROR, "the process ends");
        self.wishes.send(wish).await.map_err(|_| ended())?;
        started.await.map_err(|_| ended())?
    }
}

/// Starts what sessions wish for, on the task that began the process: a host is not started on another one.
pub(super) async fn start_hosts(everywhere: &Everywhere, mut wished: mpsc::Receiver<Wish>) {
    while let Some(Wish { folder, servers, reply }) = wished.recv().await {
        let started = Box::pin(start(everywhere, &folder, &servers)).await;
        // A client that went away meanwhile left the host to be dropped.
        drop(reply.send(started.map(|host| Running { host, folder, servers })));
    }
}

async fn start(everywhere: &Everywhere, folder: &Path, servers: &[McpServer]) -> Result<Host, Error> {
    // Configuration, roots of tools and relative paths begin where the editor works.
    std::env::set_current_dir(folder).map_err(|error| {
        Error::new(ErrorCode::INVALID_PARAMS, format!("cwd `{}` cannot be used: {error}", folder.display()))
    })?;
    let opened = opened::open(&opened::overrides(everywhere), QUIET).map_err(|failure| told(&failure))?;
    let mut opened = opened.of(everywhere);
    for server in servers {
        match server {
            McpServer::Stdio(server) => {
                // Rules name servers: one that an editor brings is never taken for another.
                let before = opened.loaded.config.mcp.servers.insert(server.name.clone(), configured(server));
                if before.is_some() {
                    let why = format!(
                        "there is an MCP server `{}` already, in the configuration or in this request; give this one another name",
                        server.name
                    );
                    return Err(Error::new(ErrorCode::INVALID_PARAMS, why));
                }
            }
            other => {
                // Its headers may hold a secret.
                let why = format!("only MCP servers over stdio can come with a session; {} is another kind", called(other));
                return Err(Error::new(ErrorCode::INVALID_PARAMS, why));
            }
        }
    }
    opened.start(Needs::Everything).await.map_err(|failure| told(&failure))
}

/// Whether both are started alike: an editor may say variables in another order each time.
fn are_alike(one: &McpServer, other: &McpServer) -> bool {
    let (McpServer::Stdio(one), McpServer::Stdio(other)) = (one, other) else { return one == other };
    let [variables, others] = [one, other]
        .map(|server| server.env.iter().map(|variable| (&*variable.name, &*variable.value)).collect::<BTreeMap<_, _>>());
    (&one.name, &one.command, &one.args, variables) == (&other.name, &other.command, &other.args, others)
}

fn called(server: &McpServer) -> String {
    match server {
        McpServer::Stdio(server) => format!("the MCP server `{}`", server.name),
        McpServer::Http(server) => format!("the MCP server `{}` (HTTP)", server.name),
        McpServer::Sse(server) => format!("the MCP server `{}` (SSE)", server.name),
        _ => "an MCP server".to_owned(),
    }
}

fn configured(server: &McpServerStdio) -> config::McpServer {
    config::McpServer {
        command: Some(server.command.to_string_lossy().into_owned()),
        args: server.args.clone(),
        env: server.env.iter().map(|variable| (variable.name.clone(), Secret::new(&*variable.value))).collect(),
        ..config::McpServer::default()
    }
}

/// A failure as the protocol tells it.
fn told(failure: &Failure) -> Error {
    Error::new(ErrorCode::INTERNAL_ERROR, failure.lines().collect::<Vec<_>>().join("\n"))
}
