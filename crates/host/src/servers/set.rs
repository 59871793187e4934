//! The MCP servers of a host at one moment, and all sources that its engine offers.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;
use turnwright_core::UserId;
use turnwright_engine::{Document, SourceSet, SourceState, StoreError, ToolSource};
use turnwright_mcp::{Bounds, McpServer, ServerConfig, Surroundings, TokenStore};
use turnwright_store::Storage;

use super::farewell::{Farewells, leaves_for_good};
use super::sealed::{self, Unopened};
use super::sign_ins::SignIns;
use super::stored::{KIND, Stored};
use super::ways::is_members;
use crate::config::mcp_server_takes_from_here;
use crate::sources::{Server, server_config};
use crate::{Environment, Needs, config};

/// A server of the set.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) origin: Origin,
    /// The server, or why it cannot be one.
    pub(crate) server: Result<Arc<McpServer>, String>,
}

impl Entry {
    /// Whether something is stored of it.
    pub(crate) fn is_added(&self) -> bool {
        matches!(self.origin, Origin::Added(_))
    }
}

/// What names a server.
#[derive(Debug, Clone)]
pub(crate) enum Origin {
    /// A file, which alone can change it.
    File(String),
    /// A client of this process brought it, which alone can bring another.
    Brought,
    /// Somebody added it while a host ran.
    Added(Option<Box<Stored>>),
}

impl Origin {
    /// What alone can change it; nothing where people can.
    pub(crate) fn holder(&self) -> Option<&str> {
        match self {
            Self::File(file) => Some(file),
            Self::Brought => Some("the client that brought it"),
            Self::Added(_) => None,
        }
    }
}

/// Servers that a client brought, in their places and not begun.
#[derive(Debug, Default)]
pub(crate) struct Brought {
    new: Vec<Arc<McpServer>>,
    /// Those that others took the places of, each with that.
    leaving: Vec<(Arc<McpServer>, Arc<McpServer>)>,
}

/// What can be said where it does not depend on the time.
#[derive(Debug)]
pub(crate) struct ServerSet {
    pub(crate) store: Arc<dyn Storage>,
    pub(crate) environment: Environment,
    surroundings: Surroundings,
    needs: Needs,
    built_in: Vec<Arc<dyn ToolSource>>,
    of_files: Vec<Entry>,
    /// Servers that a client of this process brought. Taken for a moment, also while `now` is.
    brought: Mutex<Vec<Entry>>,
    /// Held while what is stored is read and changed, so that two changes do not undo each other.
    pub(crate) changing: tokio::sync::Mutex<()>,
    /// Held while what is stored is taken over.
    refreshing: tokio::sync::Mutex<()>,
    now: Mutex<Now>,
    /// How often another process wrote. Held, so that the store keeps looking.
    foreign: watch::Receiver<u64>,
    /// How often what is offered changed.
    news: watch::Sender<u64>,
    /// Servers on their way out. Closed, so that waiting for it ends when there is none.
    leaving: TaskTracker,
    /// Servers that are changed here so that what is kept of them is forgotten.
    pub(crate) farewells: Farewells,
    /// Sign-ins that people have begun.
    pub(crate) sign_ins: SignIns,
}

#[derive(Debug, Default)]
struct Now {
    documents: Vec<Document>,
    added: Vec<Entry>,
    /// What [`turnwright_engine::Store::foreign_writes`] said when they were read; `None` where they never were.
    writes: Option<u64>,
    /// Those whose secrets could not be read when what is stored of them was taken over: they are tried again.
    unread: HashSet<String>,
    /// Of servers of users that ask for something of this machine, whose they are, and whether as a member's they were given nothing of it.
    given: HashMap<String, (UserId, bool)>,
    /// Servers that a person stopped: they are not offered.
    held: HashSet<String>,
    sources: Arc<[Arc<dyn ToolSource>]>,
}

impl ServerSet {
    pub(crate) fn new(
        store: Arc<dyn Storage>,
        environment: Environment,
        surroundings: Surroundings,
        needs: Needs,
        built_in: Vec<Arc<dyn ToolSource>>,
        of_files: Vec<Server>,
    ) -> Self {
        let entry = |Server { name, made, origin }| Entry { name, origin: Origin::File(origin), server: made };
        let of_files: Vec<Entry> = of_files.into_iter().map(entry).collect();
        let now = Now::default();
        let leaving = TaskTracker::new();
        leaving.close();
        let changing = tokio::sync::Mutex::default();
        let set = Self {
            foreign: store.foreign_writes(),
            store,
            environment,
            surroundings,
            needs,
            built_in,
            of_files,
            brought: Mutex::default(),
            changing,
            refreshing: tokio::sync::Mutex::default(),
            now: Mutex::new(now),
            news: watch::Sender::new(0),
            leaving,
            farewells: Farewells::default(),
            sign_ins: SignIns::default(),
        };
        set.arrange(&mut set.now());
        set.of_files.iter().filter_map(|entry| entry.server.as_ref().ok()).for_each(|server| set.begin(server));
        set
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The servers as they were known the last time.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.all(&self.now())
    }

    fn all(&self, now: &Now) -> Vec<Entry> {
        self.of_files.iter().chain(&*self.brought()).chain(&now.added).cloned().collect()
    }

    fn brought(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.brought.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server of this name, where nobody brought it.
    pub(crate) fn entry_not_brought(&self, name: &str) -> Option<Entry> {
        self.of_files.iter().chain(&self.now().added).find(|entry| entry.name == name).cloned()
    }

    /// Takes in servers that a client brought; each takes the place of the one of its name that was brought before, where it is another.
    pub(crate) fn take_brought(&self, new: Vec<ServerConfig>) -> Brought {
        let mut taken = Brought::default();
        let mut now = self.now();
        for config in new {
            let name = config.name.clone();
            let mut brought = self.brought();
            let place = brought.iter().position(|entry| entry.name == name);
            let before = place.and_then(|place| brought.get(place)).and_then(|entry| entry.server.as_ref().ok());
            if before.is_some_and(|before| *before.config() == config) {
                continue;
            }
            let server = McpServer::shared_in(config, self.surroundings.clone());
            match before {
                Some(before) => taken.leaving.push((before.clone(), server.clone())),
                None => taken.new.push(server.clone()),
            }
            let entry = Entry { name: name.clone(), origin: Origin::Brought, server: Ok(server) };
            match place.and_then(|place| brought.get_mut(place)) {
                Some(place) => *place = entry,
                None => brought.push(entry),
            }
            now.held.remove(&name);
        }
        self.arrange(&mut now);
        taken
    }

    /// Begins them: one that took another's place once that has ended, when what is given here is over.
    pub(crate) fn begin_brought(&self, taken: Brought) -> Vec<JoinHandle<()>> {
        for server in taken.new {
            self.begin(&server);
        }
        taken.leaving.into_iter().map(|(server, successor)| self.leave(server, false, Some(successor))).collect()
    }

    pub(crate) fn entry(&self, name: &str) -> Option<Entry> {
        self.entries().into_iter().find(|entry| entry.name == name)
    }

    /// The same with what is stored of it, both of one moment; nothing is of one that a file names.
    pub(crate) fn with_document(&self, name: &str) -> Option<(Entry, Document)> {
        let now = self.now();
        let entry = self.all(&now).into_iter().find(|entry| entry.name == name)?;
        let document = now.documents.iter().find(|document| document.key == name && entry.is_added()).cloned();
        Some((entry, document.unwrap_or_else(|| Document { key: name.to_owned(), body: String::new() })))
    }

    /// Whether another source than an added server has this name.
    pub(crate) fn is_taken(&self, name: &str) -> bool {
        self.is_built_in(name) || self.of_files.iter().chain(&*self.brought()).any(|entry| entry.name == name)
    }

    /// Whether a source that is no MCP server has this name.
    pub(crate) fn is_built_in(&self, name: &str) -> bool {
        self.built_in.iter().any(|source| source.name() == name)
    }

    /// What is offered at this moment.
    pub(crate) fn offered(&self) -> Arc<[Arc<dyn ToolSource>]> {
        self.now().sources.clone()
    }

    /// Takes a server out of what is offered, or back in.
    pub(crate) fn hold(&self, name: &str, is_held: bool) {
        let mut now = self.now();
        let has_changed = if is_held { now.held.insert(name.to_owned()) } else { now.held.remove(name) };
        if has_changed {
            self.arrange(&mut now);
        }
    }

    /// Takes over what is stored, where another process may have written: what this one writes, it takes over at once.
    async fn refresh_if_written(&self) -> Result<(), StoreError> {
        let writes = *self.foreign.borrow();
        let is_known = {
            let now = self.now();
            now.writes == Some(writes) && now.unread.is_empty()
        };
        if is_known && self.given_otherwise().await.is_empty() { Ok(()) } else { self.refresh().await }
    }

    /// The servers whose owner has become a member, or is none any more, since they were given what they ask of this machine.
    async fn given_otherwise(&self) -> HashSet<String> {
        let given = self.now().given.clone();
        let mut found = HashSet::new();
        for (name, (owner, as_members)) in given {
            if is_members(&*self.store, &owner).await.is_ok_and(|is_members| is_members != as_members) {
                found.insert(name);
            }
        }
        found
    }

    /// Takes over what is stored.
    pub(crate) async fn refresh(&self) -> Result<(), StoreError> {
        // Before they are read: what is written meanwhile is seen the next time.
        let _refreshing = self.refreshing.lock().await;
        let writes = *self.foreign.borrow();
        let documents = self.store.documents(KIND).await?;
        let (known, unread) = {
            let now = self.now();
            (now.documents.clone(), now.unread.clone())
        };
        let given_otherwise = self.given_otherwise().await;
        let (mut news, mut still_unread) = (HashMap::new(), HashSet::new());
        for document in &documents {
            let (name, is_known) = (&document.key, known.contains(document));
            if is_known && !unread.contains(name) && !given_otherwise.contains(name) {
                continue;
            }
            let told = self.news_of(document).await;
            if let Err(Unopened::NotNow(reason)) = &told.config {
                still_unread.insert(name.clone());
                if is_known {
                    continue;
                }
                tracing::warn!(
                    server = name,
                    reason,
                    "an MCP server that was added cannot be taken over yet; it is tried again"
                );
            }
            news.insert(name.clone(), told);
        }
        let mut now = self.now();
        (now.writes, now.unread) = (Some(writes), still_unread);
        if documents == known && news.is_empty() {
            return Ok(());
        }
        let mut before = std::mem::take(&mut now.added);
        let mut added = Vec::with_capacity(documents.len());
        now.given.retain(|name, _| !news.contains_key(name) && documents.iter().any(|document| document.key == *name));
        now.given.extend(news.iter().filter_map(|(name, news)| Some((name.clone(), news.given.clone()?))));
        let (mut begun, mut leaving) = (Vec::new(), Vec::new());
        for document in &documents {
            let place = before.iter().position(|entry| entry.name == document.key);
            let before = place.map(|place| before.swap_remove(place));
            match (before, news.remove(&document.key)) {
                (Some(same), None) => added.push(same),
                (before, Some(news)) => {
                    if let Some(entry) =
                        before.as_ref().and_then(|before| retold(before, &news).or_else(|| kept(before, &news)))
                    {
                        added.push(entry);
                        continue;
                    }
                    let entry = self.added(document.key.clone(), news);
                    now.held.remove(&entry.name);
                    let successor = entry.server.clone().ok();
                    match before.map(|before| (leaves_for_good(&before, Some(&entry)), before.server)) {
                        Some((is_for_good, Ok(server))) => leaving.push((server, is_for_good, successor)),
                        Some((_, Err(_))) | None => begun.extend(successor),
                    }
                    added.push(entry);
                }
                // What is known has an entry.
                (None, None) => {}
            }
        }
        leaving.extend(before.into_iter().filter_map(|entry| Some((entry.server.ok()?, true, None))));
        (now.documents, now.added) = (documents, added);
        self.arrange(&mut now);
        drop(now);
        for server in begun {
            self.begin(&server);
        }
        for (server, is_for_good, successor) in leaving {
            drop(self.leave(server, is_for_good, successor));
        }
        Ok(())
    }

    /// Ends a server in the background. What both use is free when its successor begins.
    fn leave(&self, server: Arc<McpServer>, is_for_good: bool, successor: Option<Arc<McpServer>>) -> JoinHandle<()> {
        let farewell = is_for_good.then(|| self.farewells.take(&server.config().name)).flatten();
        let needs = self.needs;
        if let Some(successor) = &successor {
            announce(successor, needs);
        }
        self.leaving.spawn(async move {
            server.stop().await;
            let removed = match &farewell {
                Some(farewell) => farewell.forget(&server).await,
                None => None,
            };
            if let Some(successor) = successor {
                begin(&successor, needs);
            }
            if let (Some(farewell), Some(removed)) = (farewell, removed) {
                farewell.give_back(&server, removed).await;
            }
        })
    }

    /// Waits until nothing runs any more of the servers that were taken out.
    pub(crate) async fn settle(&self) {
        self.leaving.wait().await;
    }

    fn begin(&self, server: &McpServer) {
        begin(server, self.needs);
    }

    fn waiting_for_sign_in(&self) -> Vec<Arc<McpServer>> {
        let now = self.now();
        let servers = self.all(&now).into_iter().filter(|entry| !now.held.contains(&entry.name));
        let servers = servers.filter_map(|entry| entry.server.ok());
        servers.filter(|server| matches!(server.state(), SourceState::NeedsSignIn { .. })).collect()
    }

    fn arrange(&self, now: &mut Now) {
        let servers = self.all(now).into_iter().filter(|entry| !now.held.contains(&entry.name));
        let enabled = servers.filter_map(|entry| entry.server.ok()).filter(|server| server.config().enabled);
        let enabled: Vec<_> = enabled.map(|server| server as Arc<dyn ToolSource>).collect();
        now.sources = self.built_in.iter().cloned().chain(enabled).collect();
        self.news.send_modify(|count| *count += 1);
    }

    /// What a document that is new says.
    async fn news_of(&self, document: &Document) -> News {
        let stored = match Stored::read(document) {
            Ok(stored) => stored,
            Err(why) => return News { stored: None, config: Err(Unopened::Wrong(why)), given: None },
        };
        let as_members = self.is_members(&stored).await;
        let config = match &as_members {
            Ok(as_members) => self.config_of(&document.key, &stored, *as_members).await,
            Err(error) => Err(unread(error)),
        };
        let asks = mcp_server_takes_from_here(&sealed::without_references(&stored.config));
        let given = stored.owner.user().cloned().zip(as_members.ok()).filter(|_| asks);
        News { stored: Some(stored), config, given }
    }

    fn added(&self, name: String, News { stored, config, given: _ }: News) -> Entry {
        let server = match config {
            _ if self.is_taken(&name) => Err("its name is taken by the configuration or a built-in source".to_owned()),
            Ok(config) => Ok(McpServer::shared_in(config, self.surroundings.clone())),
            Err(why) => Err(why.into_text()),
        };
        if let Err(reason) = &server {
            match self.needs {
                Needs::Everything => tracing::warn!(server = name, reason, "an MCP server that was added cannot be used"),
                // Whoever lists the servers is told there.
                Needs::Store | Needs::OnDemand => {
                    tracing::debug!(server = name, reason, "an MCP server that was added cannot be used");
                }
            }
        }
        Entry { name, origin: Origin::Added(stored.map(Box::new)), server }
    }

    /// Where secrets are kept.
    pub(crate) fn tokens(&self) -> &dyn TokenStore {
        &*self.surroundings.tokens
    }

    /// A server of what is stored, not started.
    pub(crate) async fn make(&self, name: &str, stored: &Stored) -> Result<Arc<McpServer>, String> {
        let config = self.config(name, stored).await.map_err(Unopened::into_text)?;
        Ok(McpServer::shared_in(config, self.surroundings.clone()))
    }

    /// Whether it is a member's, or of somebody who is gone.
    async fn is_members(&self, stored: &Stored) -> Result<bool, StoreError> {
        match stored.owner.user() {
            Some(owner) => is_members(&*self.store, owner).await,
            None => Ok(false),
        }
    }

    async fn config(&self, name: &str, stored: &Stored) -> Result<ServerConfig, Unopened> {
        let as_members = self.is_members(stored).await.map_err(|error| unread(&error))?;
        self.config_of(name, stored, as_members).await
    }

    /// Nothing that this machine has is put into a server that is a member's, however it came to be stored.
    async fn config_of(&self, name: &str, stored: &Stored, as_members: bool) -> Result<ServerConfig, Unopened> {
        let keys = sealed::opened(&stored.config, self.tokens()).await?;
        let environment = if as_members { Cow::Owned(self.environment.closed()) } else { Cow::Borrowed(&self.environment) };
        let read = config::mcp_server(name, &keys, &stored.folder, &environment);
        let (server, _warnings) = read.map_err(|problems| Unopened::Wrong(problems.to_string()))?;
        server.env_file.iter().for_each(|file| self.environment.secret_files().add(file.clone()));
        let bounds = if stored.is_kept_outside { Bounds::Outside } else { Bounds::AsItsOwners };
        let config = server_config(name, &server).map_err(Unopened::Wrong)?;
        Ok(ServerConfig { owner: stored.owner.user().cloned(), bounds, ..config })
    }
}

fn unread(error: &StoreError) -> Unopened {
    Unopened::NotNow(format!("whether it is a member's cannot be read: {error}"))
}

/// What a document says that was not known.
struct News {
    /// What is stored, where it can be read.
    stored: Option<Stored>,
    /// What the server is made of, or why it cannot be one.
    config: Result<ServerConfig, Unopened>,
    /// Whose it is, and whether it was given nothing of this machine as a member's, where it asks for something of it.
    given: Option<(UserId, bool)>,
}

/// The same server under what is stored of it now, where that gives it other roots and nothing else.
fn retold(before: &Entry, news: &News) -> Option<Entry> {
    let server = before.server.as_ref().ok()?;
    let (stored, config) = (news.stored.clone()?, news.config.as_ref().ok()?);
    server.take_roots(config).then(|| Entry {
        name: before.name.clone(),
        origin: Origin::Added(Some(Box::new(stored))),
        server: Ok(Arc::clone(server)),
    })
}

/// The server as it was, where what is stored of it now cannot be opened yet, and neither takes it away nor gives it to another.
fn kept(before: &Entry, news: &News) -> Option<Entry> {
    let server = before.server.as_ref().ok()?;
    let (stored, Err(Unopened::NotNow(_))) = (news.stored.clone()?, &news.config) else { return None };
    let stays = stored.owner.user() == server.config().owner.as_ref() && !stored.is_switched_off();
    stays.then(|| Entry {
        name: before.name.clone(),
        origin: Origin::Added(Some(Box::new(stored))),
        server: Ok(Arc::clone(server)),
    })
}

/// Says that a server begins soon: a turn that begins before waits for it.
fn announce(server: &McpServer, needs: Needs) {
    match needs {
        Needs::Everything => server.announce(),
        Needs::OnDemand | Needs::Store => {}
    }
}

/// Starts a server that should be there before it is needed.
fn begin(server: &McpServer, needs: Needs) {
    match needs {
        Needs::Everything if server.config().enabled => server.start_unless_known(),
        Needs::Everything | Needs::OnDemand | Needs::Store => {}
    }
}

#[async_trait]
impl SourceSet for ServerSet {
    async fn sources(&self) -> Arc<[Arc<dyn ToolSource>]> {
        if let Err(error) = self.refresh_if_written().await {
            tracing::warn!(%error, "the MCP servers that were added cannot be read; those that are known stay");
        }
        // In this process or another: nothing tells of it.
        for server in self.waiting_for_sign_in() {
            server.look_for_sign_in().await;
        }
        self.offered()
    }

    fn news(&self) -> Option<watch::Receiver<u64>> {
        Some(self.news.subscribe())
    }
}

#[cfg(test)]
mod tests;
