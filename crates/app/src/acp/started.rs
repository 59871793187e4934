//! The host of the editor's folder, started by its first session.

use std::path::{Path, PathBuf};

use agent_client_protocol::v1::schema::McpServer;
use agent_client_protocol::{Error, ErrorCode};
use tokio::sync::{Mutex, mpsc, oneshot};
use turnwright_engine::Engine;
use turnwright_host::config::{self, Secret};
use turnwright_host::{Host, McpChangeError, Needs};

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
    reply: oneshot::Sender<Result<Running, Error>>,
}

#[derive(Debug)]
struct Running {
    host: Host,
    folder: PathBuf,
}

impl Started {
    /// Nothing yet; [`start_hosts`] carries its wishes out.
    pub(super) fn new() -> (Self, mpsc::Receiver<Wish>) {
        let (wishes, received) = mpsc::channel(1);
        (Self { wishes, running: Mutex::default() }, received)
    }

    /// The engine for sessions in `folder`, with these MCP servers beside the configured ones and those of other sessions.
    ///
    /// # Errors
    /// Where the folder is not one, is another than the first session's, or its configuration cannot be used; where a server cannot come
    /// with a session.
    pub(super) async fn in_folder(&self, folder: &Path, servers: &[McpServer]) -> Result<Engine, Error> {
        let invalid = |why: String| Error::new(ErrorCode::INVALID_PARAMS, why);
        if !folder.is_absolute() {
            return Err(invalid(format!("cwd is `{}`, it must be an absolute path", folder.display())));
        }
        let brought = servers.iter().map(configured).collect::<Result<_, Error>>()?;
        let mut first = self.running.lock().await;
        let running = match &*first {
            Some(running) => running,
            None => first.insert(self.wish(folder).await?),
        };
        if running.folder != folder {
            return Err(invalid(format!(
                "this process works in `{}`, the session wants `{}`; start another `turnwright acp` for it",
                running.folder.display(),
                folder.display()
            )));
        }
        running.host.mcp().bring(brought).await.map_err(|error| match error {
            McpChangeError::Store(_) => Error::new(ErrorCode::INTERNAL_ERROR, error.to_string()),
            other => invalid(other.to_string()),
        })?;
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

    async fn wish(&self, folder: &Path) -> Result<Running, Error> {
        let (reply, started) = oneshot::channel();
        let wish = Wish { folder: folder.to_owned(), reply };
        let ended = || Error::new(ErrorCode::INTERNAL_ERROR, "the process ends");
        self.wishes.send(wish).await.map_err(|_| ended())?;
        started.await.map_err(|_| ended())?
    }
}

/// Starts what sessions wish for, on the task that began the process: a host is not started on another one.
pub(super) async fn start_hosts(everywhere: &Everywhere, mut wished: mpsc::Receiver<Wish>) {
    while let Some(Wish { folder, reply }) = wished.recv().await {
        let started = Box::pin(start(everywhere, &folder)).await;
        // A client that went away meanwhile left the host to be dropped.
        drop(reply.send(started.map(|host| Running { host, folder })));
    }
}

async fn start(everywhere: &Everywhere, folder: &Path) -> Result<Host, Error> {
    // Configuration, roots of tools and relative paths begin where the editor works.
    std::env::set_current_dir(folder).map_err(|error| {
        Error::new(ErrorCode::INVALID_PARAMS, format!("cwd `{}` cannot be used: {error}", folder.display()))
    })?;
    let opened = opened::open(&opened::overrides(everywhere), QUIET).map_err(|failure| told(&failure))?;
    opened.of(everywhere).start(Needs::Everything).await.map_err(|failure| told(&failure))
}

/// The name of a server, and its keys as the configuration would have them.
fn configured(server: &McpServer) -> Result<(String, config::McpServer), Error> {
    match server {
        McpServer::Stdio(server) => {
            let keys = config::McpServer {
                command: Some(server.command.to_string_lossy().into_owned()),
                args: server.args.clone(),
                env: server.env.iter().map(|variable| (variable.name.clone(), Secret::new(&*variable.value))).collect(),
                ..config::McpServer::default()
            };
            Ok((server.name.clone(), keys))
        }
        McpServer::Http(server) => {
            let keys = config::McpServer {
                url: Some(server.url.clone()),
                headers: server.headers.iter().map(|header| (header.name.clone(), Secret::new(&*header.value))).collect(),
                ..config::McpServer::default()
            };
            Ok((server.name.clone(), keys))
        }
        McpServer::Sse(server) => Err(no_way_to(&format!("the MCP server `{}` (SSE)", server.name))),
        _ => Err(no_way_to("an MCP server")),
    }
}

/// Its headers may hold a secret, and are not told.
fn no_way_to(server: &str) -> Error {
    let why = format!("only MCP servers over stdio and HTTP can come with a session; {server} is another kind");
    Error::new(ErrorCode::INVALID_PARAMS, why)
}

/// A failure as the protocol tells it.
fn told(failure: &Failure) -> Error {
    Error::new(ErrorCode::INTERNAL_ERROR, failure.lines().collect::<Vec<_>>().join("\n"))
}
