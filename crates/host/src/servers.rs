//! MCP servers while a host runs: listed, added, changed, removed, started and stopped, none of it touching the others.
//!
//! What is added is stored, and every host over the same data takes it over at its next turn or request. Servers of files
//! are those files' to change.

mod brought;
mod by;
mod farewell;
mod import;
mod leaving;
mod moved;
pub(crate) mod sealed;
mod set;
mod sign_ins;
mod status;
mod stored;
#[cfg(test)]
pub(crate) mod tokens_fixture;
mod ways;

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Map, Value};
use turnwright_core::{DriverId, UserId};
use turnwright_engine::{Document, Engine, EngineError, SourceState, StoreError, ToolSource};
use turnwright_mcp::{FileBoard, LogLine, McpServer, Notice, without_last_lines};

use crate::config::server_name;

use by::By;
pub use by::ServerRights;
pub use import::{McpImport, McpImported};
pub(crate) use set::{Entry, Origin, ServerSet};
pub use status::McpStatus;
pub(crate) use status::status;
pub use stored::{Asked, Owner};
use stored::{KIND, Stored, changed, literal_secrets};
pub(crate) use ways::WaysOfUsers;

/// The keys that say how a server is reached.
const WAYS: [&str; 3] = ["command", "url", "image"];

/// The MCP servers of a host. Cheap to clone; all clones are one.
#[derive(Debug, Clone)]
pub struct McpServers {
    pub(crate) set: Arc<ServerSet>,
    engine: Engine,
    /// Who asks: everyone's servers can be looked at by all, and another's are not there.
    by: By,
    /// The folder of what processes say of their servers.
    board: PathBuf,
}

/// A server to add.
#[derive(Debug, Clone, PartialEq)]
pub struct NewMcpServer {
    /// Its name: the first half of its tools' qualified names.
    pub name: String,
    /// Whose it is.
    pub owner: Owner,
    /// The keys of `[mcp.servers.NAME]`; stored as they are written, variables not put in.
    pub config: Map<String, Value>,
    /// The request, where it may come again.
    pub asked: Option<Asked>,
}

/// Why the servers are as they were.
#[derive(Debug, thiserror::Error)]
pub enum McpChangeError {
    /// There is no such server.
    #[error("there is no MCP server `{0}`")]
    NotFound(String),
    /// It has no such tool.
    #[error("{0}")]
    NoTool(String),
    /// There is one of this name.
    #[error("{0}")]
    Exists(String),
    /// A file names it.
    #[error("the MCP server `{name}` is configured in {file}; change it there")]
    OfFile {
        /// Its name.
        name: String,
        /// The file.
        file: String,
    },
    /// It may not run.
    #[error("the MCP server `{0}` is switched off (enabled = false)")]
    Disabled(String),
    /// What is wrong with it.
    #[error("{0}")]
    Invalid(String),
    /// Who asks may not do this.
    #[error("{0}")]
    NotAllowed(String),
    /// The request came before and asked for something else.
    #[error("the Idempotency-Key `{0}` was used for another request")]
    KeyReused(String),
    /// It is other than whoever asks saw.
    #[error("the MCP server `{0}` was changed since; read it again")]
    Changed(String),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Whether a server may be added under this name.
fn fits(name: &str) -> Result<(), McpChangeError> {
    let refused = |expected| McpChangeError::Invalid(format!("a server cannot be called {name:?}: choose {expected}"));
    server_name(name).map_err(refused)
}

impl McpServers {
    pub(crate) fn new(set: Arc<ServerSet>, engine: Engine, board: PathBuf) -> Self {
        Self { set, engine, by: By::Everybody, board }
    }

    /// The same as one user may use them: another's are not there. A member reaches servers by their address alone, with
    /// nothing of this machine's in it, and changes their own. Who may not declare what tools are taken for keeps a server that has
    /// such declarations where it is.
    #[must_use]
    pub fn acting_for(&self, user: UserId, may: ServerRights, may_declare: bool) -> Self {
        let by = By::User { user: user.clone(), may, may_declare };
        Self { engine: self.engine.acting_for(user), by, ..self.clone() }
    }

    /// For whom it acts.
    pub fn user(&self) -> &UserId {
        self.engine.user()
    }

    /// All of them: those of files first, then those that were added, by name.
    ///
    /// # Errors
    /// [`StoreError`] where those that were added cannot be read.
    pub async fn all(&self) -> Result<Vec<McpStatus>, StoreError> {
        self.refresh().await?;
        Ok(self.known())
    }

    /// The same as it was known the last time.
    pub(crate) fn known(&self) -> Vec<McpStatus> {
        let entries = self.set.entries();
        entries.iter().filter(|entry| self.by.sees(entry)).map(|entry| self.told(entry)).collect()
    }

    /// What whoever asks is told of a server: what it wrote itself, those alone who may read its log.
    fn told(&self, entry: &Entry) -> McpStatus {
        let mut told = status(entry, &self.engine.tools_set_aside());
        if self.by.may_change(entry).is_err() {
            told.log.clear();
            if let SourceState::Failing { reason } | SourceState::NeedsSignIn { reason } = &mut told.state {
                *reason = without_last_lines(reason).to_owned();
            }
        }
        told
    }

    /// One of them.
    ///
    /// # Errors
    /// [`McpChangeError::NotFound`], [`McpChangeError::Store`].
    pub async fn one(&self, name: &str) -> Result<McpStatus, McpChangeError> {
        Ok(self.told(&self.entry(name).await?))
    }

    /// Its last 200 log lines, oldest first: those of this process, else of another that runs it, else of the last that did.
    ///
    /// # Errors
    /// As [`McpServers::one`].
    pub async fn logs(&self, name: &str) -> Result<Vec<LogLine>, McpChangeError> {
        let own = self.changeable(name).await?.server.map(|server| server.logs()).unwrap_or_default();
        if !own.is_empty() {
            return Ok(own);
        }
        let mut notices = FileBoard::notices(&self.board, name).into_iter();
        let newest = notices.next();
        let living = self.elsewhere(name).await.filter(|living| !living.lines.is_empty());
        Ok(living.or(newest).map(|notice| notice.lines).unwrap_or_default())
    }

    /// What another process that lives says of a server; of several, one where it is ready.
    pub async fn elsewhere(&self, name: &str) -> Option<Notice> {
        let mut living = Vec::new();
        for notice in FileBoard::notices(&self.board, name) {
            let driver = DriverId(notice.driver.clone());
            let is_other = driver != *self.set.store.driver();
            if is_other && self.set.store.is_alive(&driver).await.unwrap_or(false) {
                living.push(notice);
            }
        }
        let rank = |notice: &Notice| match notice.state.as_str() {
            "ready" => 0,
            "starting" => 1,
            "stopped" => 3,
            _ => 2,
        };
        living.into_iter().min_by_key(rank)
    }

    /// Adds a server, for every host over the same data, and starts it here where it may run. The same request again is
    /// answered as it was.
    ///
    /// # Errors
    /// [`McpChangeError`]: nothing is stored then.
    pub async fn add(&self, new: NewMcpServer) -> Result<McpStatus, McpChangeError> {
        let NewMcpServer { name, owner, config, asked } = new;
        fits(&name)?;
        self.by.may_add(&owner, &config)?;
        let _changing = self.set.changing.lock().await;
        let folder = self.set.environment.working_directory().to_owned();
        let stored = Stored { is_kept_outside: self.by.is_kept_outside(), ..Stored::new(owner, config, folder, asked) };
        loop {
            self.refresh().await?;
            if let Some(asked) = &stored.asked
                && let Some((before, same)) = self.asked_before(asked)
            {
                return if same { self.one(&before).await } else { Err(McpChangeError::KeyReused(asked.written().to_owned())) };
            }
            if let Some(why) = self.taken(&name) {
                return Err(McpChangeError::Exists(why));
            }
            match self.store(&name, &stored, None).await {
                // Another process was first: it is looked at what that did.
                Err(McpChangeError::Store(StoreError::Altered { .. })) => {}
                done => return done,
            }
        }
    }

    /// Changes the keys of a server that was added, in the form of RFC 7396, where it is as whoever asks saw it, in whatever process
    /// it was changed; it is started anew with them.
    ///
    /// # Errors
    /// [`McpChangeError`]: everything stays as it was then.
    pub async fn change(
        &self,
        name: &str,
        change: &Map<String, Value>,
        owner: Option<Owner>,
        is_seen: impl Fn(McpStatus) -> bool + Send + Sync,
    ) -> Result<McpStatus, McpChangeError> {
        let changing = self.set.changing.lock().await;
        loop {
            let (entry, document) = self.seen(name, &is_seen).await?;
            let before = stored(&entry)?;
            let mut after = Stored { config: changed(&before.config, change), ..before.clone() };
            after.owner = owner.clone().unwrap_or_else(|| before.owner.clone());
            // Another way to reach it takes the place of the one before.
            if let Some(way) = WAYS.iter().find(|way| change.get(**way).is_some_and(|value| !value.is_null())) {
                after.config.retain(|key, _| key == way || !WAYS.contains(&key.as_str()) || change.contains_key(key));
            }
            if after.config.get("url") != before.config.get("url") {
                after.is_kept_outside = self.by.is_kept_outside();
                self.by.may_send_elsewhere(&after.config)?;
            }
            self.by.may_add(&after.owner, change)?;
            moved::may_move(&before.config, &after.config, self.by.may_declare())?;
            if after == *before {
                return Ok(self.told(&entry));
            }
            let is_another = is_another(before, &after);
            let announced = is_another.then(|| self.set.farewells.announce(name, self.board.clone()));
            if is_another {
                self.set.note_leaving(&document).await?;
            }
            match self.store(name, &after, Some((before, &document))).await {
                Err(McpChangeError::Store(StoreError::Altered { .. })) => {}
                done => {
                    let done = done?;
                    if let Some(announced) = announced {
                        self.set.sign_ins.give_up(name).await;
                        let over = announced.over();
                        drop(changing);
                        over.await;
                        self.has_left(name).await;
                    }
                    return Ok(done);
                }
            }
        }
    }

    /// Removes a server that was added, where it is as whoever asks saw it. Nothing of it runs here when this returns.
    ///
    /// # Errors
    /// [`McpChangeError`].
    pub async fn remove(&self, name: &str, is_seen: impl Fn(McpStatus) -> bool + Send + Sync) -> Result<(), McpChangeError> {
        let changing = self.set.changing.lock().await;
        let announced = self.set.farewells.announce(name, self.board.clone());
        loop {
            let (entry, document) = self.seen(name, &is_seen).await?;
            if let Some(holder) = entry.origin.holder() {
                return Err(McpChangeError::OfFile { name: name.to_owned(), file: holder.to_owned() });
            }
            self.set.note_leaving(&document).await?;
            match self.set.store.change_document(KIND, &document, None).await {
                Err(StoreError::Altered { .. }) => {}
                done => {
                    done?;
                    break;
                }
            }
        }
        self.set.sign_ins.give_up(name).await;
        self.refresh().await?;
        let over = announced.over();
        drop(changing);
        over.await;
        self.has_left(name).await;
        Ok(())
    }

    /// What is kept of a server is forgotten by now; what is not, and what was typed in with it, is.
    async fn has_left(&self, name: &str) {
        if let Err(error) = self.set.finish_leaving_of(name).await {
            tracing::warn!(server = name, %error, "what is kept of an MCP server that left is forgotten later");
        }
    }

    /// Starts a server in this process and waits for the outcome; its tools are offered again where a stop took them away.
    ///
    /// # Errors
    /// [`McpChangeError`]. A start that fails is told by the state.
    pub async fn start(&self, name: &str) -> Result<McpStatus, McpChangeError> {
        let (entry, server) = self.startable(name).await?;
        self.set.hold(name, false);
        self.engine.refresh_sources().await;
        match server.state() {
            // A person does not wait until it is tried again by itself.
            SourceState::Failing { .. } | SourceState::NeedsSignIn { .. } => server.restart().await,
            SourceState::Starting | SourceState::Ready | SourceState::Stopped | SourceState::Disabled => server.start(),
        }
        server.outcome().await;
        Ok(self.told(&entry))
    }

    /// Ends a server in this process; its tools are not offered until it is started again. Nothing of it runs when this
    /// returns.
    ///
    /// # Errors
    /// [`McpChangeError`].
    pub async fn stop(&self, name: &str) -> Result<McpStatus, McpChangeError> {
        let entry = self.changeable(name).await?;
        self.set.hold(name, true);
        self.engine.refresh_sources().await;
        if let Ok(server) = &entry.server {
            server.stop().await;
        }
        Ok(self.told(&entry))
    }

    /// Ends a server and starts it again.
    ///
    /// # Errors
    /// As [`McpServers::start`].
    pub async fn restart(&self, name: &str) -> Result<McpStatus, McpChangeError> {
        let (_, server) = self.startable(name).await?;
        server.stop().await;
        self.start(name).await
    }

    /// Begins a sign-in at a server, in place of one that somebody had begun before: the address that a person opens in a browser of
    /// this machine, to which it comes back. The server is started anew once they did, for which they have five minutes.
    ///
    /// # Errors
    /// [`McpChangeError::Invalid`] with the reason where there is nothing to sign in to; otherwise as [`McpServers::start`].
    pub async fn sign_in(&self, name: &str) -> Result<String, McpChangeError> {
        let (_, server) = self.startable(name).await?;
        let sign_ins = &self.set.sign_ins;
        sign_ins.give_up(name).await;
        let (show, shown) = tokio::sync::oneshot::channel();
        let (servers, of) = (self.clone(), name.to_owned());
        let mut begun = sign_ins.begin(async move {
            let signed_in = server.sign_in(move |address| drop(show.send(address.to_owned()))).await;
            match &signed_in {
                Ok(()) => drop(servers.restart(&of).await),
                Err(error) => tracing::warn!(server = of, %error, "nobody signed in at an MCP server"),
            }
            signed_in
        });
        tokio::select! {
            Ok(address) = shown => {
                sign_ins.keep(name, begun);
                Ok(address)
            }
            ended = &mut begun => Err(McpChangeError::Invalid(match ended {
                Ok(Err(error)) => error.to_string(),
                Ok(Ok(())) | Err(_) => format!("the sign-in at `{name}` ended before it began"),
            })),
        }
    }

    /// A person agrees to the definitions of a server's tools as they are now, or to that of one; the server is started where
    /// that is needed to know them. The qualified names of the tools that it holds for. `definition` is what they were shown, where
    /// they were ([`turnwright_engine::SetAside::definition`]).
    ///
    /// # Errors
    /// [`McpChangeError::NotFound`], [`McpChangeError::NoTool`]; [`McpChangeError::Invalid`] where it is another by now than was shown.
    pub async fn agree(&self, name: &str, tool: Option<&str>, definition: Option<&str>) -> Result<Vec<String>, McpChangeError> {
        let entry = self.changeable(name).await?;
        if let Ok(server) = &entry.server
            && server.config().enabled
            && server.tools().is_empty()
        {
            server.start();
            server.outcome().await;
        }
        self.engine.agree(name, tool, definition).await.map_err(|error| match error {
            EngineError::Store(error) => McpChangeError::Store(error),
            error @ EngineError::NoTool { .. } => McpChangeError::NoTool(error.to_string()),
            error => McpChangeError::Invalid(error.to_string()),
        })
    }

    /// The values of a configuration that are secrets by their names and stand in it as they are, by their paths.
    pub fn literal_secrets(config: &Map<String, Value>) -> Vec<String> {
        literal_secrets(config)
    }

    /// How a server of these keys is reached, as it would be if it were added; nothing is stored or started.
    ///
    /// # Errors
    /// [`McpChangeError::Invalid`].
    pub async fn preview(&self, name: &str, config: &Map<String, Value>) -> Result<String, McpChangeError> {
        let folder = self.set.environment.working_directory().to_owned();
        let stored = Stored::new(Owner::Everyone, config.clone(), folder, None);
        let server = self.set.make(name, &stored).await.map_err(McpChangeError::Invalid)?;
        Ok(server.config().transport.to_string())
    }

    async fn refresh(&self) -> Result<(), StoreError> {
        self.set.refresh().await?;
        self.engine.refresh_sources().await;
        Ok(())
    }

    /// Why a server cannot have this name since another has it. A server that is not there for whoever asks is not told of.
    fn taken(&self, name: &str) -> Option<String> {
        let holder = self.set.entry(name);
        match holder {
            Some(holder) if self.by.sees(&holder) => {
                Some(format!("the name `{name}` is taken; choose another, or change the server that has it"))
            }
            Some(_) => Some(format!("the name `{name}` is taken; choose another")),
            None => self.set.is_taken(name).then(|| format!("the name `{name}` is taken by built-in tools; choose another")),
        }
    }

    pub(crate) async fn entry(&self, name: &str) -> Result<Entry, McpChangeError> {
        self.refresh().await?;
        let entry = self.set.entry(name).filter(|entry| self.by.sees(entry));
        entry.ok_or_else(|| McpChangeError::NotFound(name.to_owned()))
    }

    /// The same, where who asks may do something to it.
    async fn changeable(&self, name: &str) -> Result<Entry, McpChangeError> {
        let entry = self.entry(name).await?;
        self.by.may_change(&entry)?;
        Ok(entry)
    }

    async fn startable(&self, name: &str) -> Result<(Entry, Arc<McpServer>), McpChangeError> {
        let entry = self.changeable(name).await?;
        let server = entry.server.clone().map_err(McpChangeError::Invalid)?;
        if !server.config().enabled {
            return Err(McpChangeError::Disabled(name.to_owned()));
        }
        Ok((entry, server))
    }

    /// The server that a request of this key added, and whether it asked for the same.
    fn asked_before(&self, asked: &Asked) -> Option<(String, bool)> {
        self.set.entries().into_iter().find_map(|entry| match entry.origin {
            Origin::Added(Some(stored)) if self.by.sees_owner(&stored.owner) => {
                let before = stored.asked.filter(|before| before.key == asked.key)?;
                Some((entry.name, before == *asked))
            }
            Origin::Added(_) | Origin::File(_) | Origin::Brought => None,
        })
    }

    /// A server that may be changed and is as whoever asks saw it, with what is stored of it.
    async fn seen(&self, name: &str, is_seen: &impl Fn(McpStatus) -> bool) -> Result<(Entry, Document), McpChangeError> {
        self.refresh().await?;
        let found = self.set.with_document(name).filter(|(entry, _)| self.by.sees(entry));
        let (entry, document) = found.ok_or_else(|| McpChangeError::NotFound(name.to_owned()))?;
        self.by.may_change(&entry)?;
        if !is_seen(self.told(&entry)) {
            return Err(McpChangeError::Changed(name.to_owned()));
        }
        Ok((entry, document))
    }

    /// Stores what is new of a server, where there was none, or it still is what it was.
    async fn store(
        &self,
        name: &str,
        stored: &Stored,
        before: Option<(&Stored, &Document)>,
    ) -> Result<McpStatus, McpChangeError> {
        let made = self.set.make(name, stored).await.map_err(McpChangeError::Invalid)?;
        if before.is_none_or(|(before, _)| before.config.get("url") != stored.config.get("url")) {
            made.admitted().await.map_err(|error| McpChangeError::Invalid(error.to_string()))?;
        }
        let tokens = self.set.tokens();
        let mut kept = stored.clone();
        let unkept = |error: std::io::Error| McpChangeError::Invalid(format!("its secrets cannot be kept: {error}"));
        sealed::seal(&mut kept.config, tokens).await.map_err(unkept)?;
        let document = kept.document(name).map_err(|error| McpChangeError::Invalid(error.to_string()))?;
        let store = &self.set.store;
        let done = match before {
            Some((_, of)) => store.change_document(KIND, of, Some(document.body)).await,
            None => store.add_new_document(KIND, document).await,
        };
        if let Err(error) = done {
            sealed::forget(&kept.config, &stored.config, tokens).await;
            return Err(error.into());
        }
        // Of one that leaves they go with what signing in brought, which may be found by an address that holds one.
        if let Some((before, _)) = before.filter(|(before, _)| !is_another(before, stored)) {
            sealed::forget(&before.config, &kept.config, tokens).await;
        }
        self.one(name).await
    }
}

/// Whether a server becomes another: somebody else's, or one that is elsewhere.
fn is_another(before: &Stored, after: &Stored) -> bool {
    after.owner != before.owner || after.config.get("url") != before.config.get("url")
}

/// What is stored of a server that was added.
fn stored(entry: &Entry) -> Result<&Stored, McpChangeError> {
    match &entry.origin {
        Origin::Added(Some(stored)) => Ok(stored),
        Origin::Added(None) => Err(McpChangeError::Invalid(entry.server.as_ref().err().cloned().unwrap_or_default())),
        Origin::File(_) | Origin::Brought => {
            let file = entry.origin.holder().unwrap_or_default().to_owned();
            Err(McpChangeError::OfFile { name: entry.name.clone(), file })
        }
    }
}
