//! What the routes share.

use std::sync::{Arc, OnceLock};

use tokio::sync::{Mutex, watch};
use turnwright_engine::accounts::{Accounts, Scope};
use turnwright_engine::artifacts::Artifacts;
use turnwright_engine::search::Texts;
use turnwright_engine::upkeep::Upkeep;
use turnwright_engine::{Documents, Door, Engine, Slots};
use turnwright_host::{Knowledge, McpEndpoint, McpServers, Memory, ModelProviders, Oidc, ResourceSource, ServerRights};

use crate::apps::Apps;
use crate::auth::{Auth, Caller, Site};
use crate::entrance::Place;
use crate::error::ApiError;
use crate::forwarded::Client;
use crate::heard::Heard;
use crate::metrics::Metrics;
use crate::openai::activity::ToolActivity;
use crate::openai::known::KnownHistories;

/// What the server is told by its configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerOptions {
    /// The largest request body, in bytes.
    pub body_limit_bytes: usize,
    /// How many bytes of a request body must come in each second, counted over all of it after its first minute; at least 1.
    pub body_bytes_per_second: u64,
    /// How many streams may be open at once.
    pub streams: StreamLimits,
    /// How answers of OpenAI's APIs show what tools do on our side, where the request does not say.
    pub tool_activity: ToolActivity,
    /// Whether whoever comes has to sign in.
    pub auth: Auth,
    /// The flags, each after a space, with which a command that clients are told reaches the same data.
    pub command_flags: String,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            body_limit_bytes: 32 * 1024 * 1024,
            body_bytes_per_second: 1024,
            streams: StreamLimits::default(),
            tool_activity: ToolActivity::default(),
            auth: Auth::default(),
            command_flags: String::new(),
        }
    }
}

/// How many streams may be open at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamLimits {
    /// Over all users, at this process.
    pub all: usize,
    /// Of one user; where nodes share turns, of those that are open at all of them.
    pub per_user: usize,
}

impl Default for StreamLimits {
    fn default() -> Self {
        Self { all: usize::MAX, per_user: usize::MAX }
    }
}

/// What the routes share, as one caller may use it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ServerState {
    shared: Arc<Shared>,
    engine: Engine,
    caller: Caller,
    client: Client,
    place: Option<Place>,
}

#[derive(Debug)]
struct Shared {
    mcp: Option<McpEndpoint>,
    servers: Option<McpServers>,
    options: ServerOptions,
    changing_settings: Mutex<()>,
    resources: OnceLock<Arc<ResourceSource>>,
    known: Arc<KnownHistories>,
    heard: Heard,
    metrics: OnceLock<Metrics>,
    accounts: OnceLock<Arc<dyn Accounts>>,
    identity: OnceLock<Arc<Oidc>>,
    site: OnceLock<Site>,
    artifacts: OnceLock<Arc<dyn Artifacts>>,
    documents: OnceLock<Arc<dyn Documents>>,
    texts: OnceLock<Arc<dyn Texts>>,
    knowledge: OnceLock<Knowledge>,
    memory: OnceLock<Memory>,
    model_providers: OnceLock<ModelProviders>,
    upkeep: OnceLock<Arc<dyn Upkeep>>,
    streams: Slots,
    revocations: watch::Sender<u64>,
}

impl ServerState {
    /// The state of a server for `engine`.
    pub fn new(engine: Engine, options: ServerOptions) -> Self {
        Self::of(engine, options, None, None)
    }

    /// With an endpoint for MCP clients, and with the MCP servers of a host, which can be listed and changed then.
    #[must_use]
    pub fn with_mcp(engine: Engine, options: ServerOptions, mcp: McpEndpoint, servers: McpServers) -> Self {
        Self::of(engine, options, Some(mcp), Some(servers))
    }

    fn of(engine: Engine, options: ServerOptions, mcp: Option<McpEndpoint>, servers: Option<McpServers>) -> Self {
        let streams = Slots::new(options.streams.all, options.streams.per_user);
        engine.share_streams(&streams);
        let known = Arc::new(KnownHistories::new(engine.shared_clock()));
        let forgets = Arc::downgrade(&known);
        engine.tell_gone_to(forgets);
        let shared = Arc::new(Shared {
            mcp,
            servers,
            options,
            changing_settings: Mutex::new(()),
            resources: OnceLock::new(),
            known,
            heard: Heard::default(),
            metrics: OnceLock::new(),
            accounts: OnceLock::new(),
            identity: OnceLock::new(),
            site: OnceLock::new(),
            artifacts: OnceLock::new(),
            documents: OnceLock::new(),
            texts: OnceLock::new(),
            knowledge: OnceLock::new(),
            memory: OnceLock::new(),
            model_providers: OnceLock::new(),
            upkeep: OnceLock::new(),
            streams,
            revocations: watch::Sender::new(0),
        });
        Self { shared, engine, caller: Caller::local(), client: Client::default(), place: None }
    }

    /// With users, and as the world knows it.
    #[must_use]
    pub fn with_accounts(self, accounts: Arc<dyn Accounts>, site: Site) -> Self {
        let _ = self.shared.accounts.set(accounts);
        let _ = self.shared.site.set(site);
        self
    }

    /// With a place for files that people bring.
    #[must_use]
    pub fn with_artifacts(self, artifacts: Arc<dyn Artifacts>) -> Self {
        let _ = self.shared.artifacts.set(artifacts);
        self
    }

    /// With a place for the answers of requests that may come again.
    #[must_use]
    pub fn with_documents(self, documents: Arc<dyn Documents>) -> Self {
        let _ = self.shared.documents.set(documents);
        self
    }

    /// With what removes for good.
    #[must_use]
    pub fn with_upkeep(self, upkeep: Arc<dyn Upkeep>) -> Self {
        let _ = self.shared.upkeep.set(upkeep);
        self
    }

    /// What removes for good.
    pub(crate) fn upkeep(&self) -> Option<&Arc<dyn Upkeep>> {
        self.shared.upkeep.get()
    }

    /// With what finds conversations by what was said; without it, titles and names alone are looked through.
    #[must_use]
    pub fn with_search(self, texts: Arc<dyn Texts>) -> Self {
        let _ = self.shared.texts.set(texts);
        self
    }

    /// With documents that are looked up, and what is remembered of users; what is `None` is switched off.
    #[must_use]
    pub fn with_knowledge(self, knowledge: Option<&Knowledge>, memory: Option<&Memory>) -> Self {
        let _ = knowledge.is_none_or(|knowledge| self.shared.knowledge.set(knowledge.clone()).is_ok());
        let _ = memory.is_none_or(|memory| self.shared.memory.set(memory.clone()).is_ok());
        self
    }

    /// With the model providers of a host, which can be added and removed then.
    #[must_use]
    pub fn with_model_providers(self, providers: ModelProviders) -> Self {
        let _ = self.shared.model_providers.set(providers);
        self
    }

    /// The model providers, where they can be changed.
    pub(crate) fn model_providers(&self) -> Option<&ModelProviders> {
        self.shared.model_providers.get()
    }

    /// The documents that are looked up.
    pub(crate) fn knowledge(&self) -> Option<&Knowledge> {
        self.shared.knowledge.get()
    }

    /// What is remembered of users.
    pub(crate) fn memory(&self) -> Option<&Memory> {
        self.shared.memory.get()
    }

    /// What finds conversations by what was said.
    pub(crate) fn texts(&self) -> Option<&Arc<dyn Texts>> {
        self.shared.texts.get()
    }

    /// Where the answers of requests that may come again are kept.
    pub(crate) fn documents(&self) -> Result<&Arc<dyn Documents>, ApiError> {
        let detail = "this server remembers no idempotency keys; send the request without one";
        self.shared.documents.get().ok_or_else(|| ApiError::bad_request("invalid_idempotency_key", detail))
    }

    /// Where files that people bring are kept.
    pub(crate) fn artifacts(&self) -> Result<&Arc<dyn Artifacts>, ApiError> {
        self.shared.artifacts.get().ok_or_else(|| ApiError::not_found("place for files here"))
    }

    /// With an identity provider at which users may sign in.
    #[must_use]
    pub fn with_identity_provider(self, provider: Arc<Oidc>) -> Self {
        let _ = self.shared.identity.set(provider);
        self
    }

    /// The same for this caller: what belongs to another is not there.
    pub(crate) fn acting_for(&self, caller: Caller, client: Client, door: Option<Arc<dyn Door>>) -> Self {
        let engine = self.engine.acting_for(caller.user().clone()).at_door(door);
        let engine = if caller.may(Scope::Approve) { engine } else { engine.without_decisions() };
        Self { shared: self.shared.clone(), engine, caller, client, place: None }
    }

    /// The same for a request that came in at this place.
    pub(crate) fn in_place(self, place: Option<Place>) -> Self {
        Self { place, ..self }
    }

    /// Where the request came in; `None` where it came by no connection of this server's own.
    pub(crate) fn place(&self) -> Option<&Place> {
        self.place.as_ref()
    }

    /// From where the request comes.
    pub(crate) fn client(&self) -> Client {
        self.client
    }

    /// Who asks.
    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The users.
    pub(crate) fn accounts(&self) -> Result<&Arc<dyn Accounts>, ApiError> {
        self.shared.accounts.get().ok_or_else(|| ApiError::not_found("user here: this server keeps no accounts"))
    }

    /// The identity provider, where there is one.
    pub(crate) fn identity(&self) -> Option<&Arc<Oidc>> {
        self.shared.identity.get()
    }

    /// The server as the world knows it.
    pub(crate) fn site(&self) -> &Site {
        const NONE: &Site = &Site {
            host: None,
            origin: None,
            is_tls: false,
            path: String::new(),
            trusted_proxies: Vec::new(),
            allowed_origins: Vec::new(),
            apps: Apps::OnThisMachine,
        };
        self.shared.site.get().unwrap_or(NONE)
    }

    /// The endpoint for MCP clients, where there is one: the caller's own.
    pub(crate) fn mcp(&self) -> Option<McpEndpoint> {
        // A session has many connections; all of them come by the route, which is for people alone.
        self.shared.mcp.as_ref().map(|endpoint| endpoint.acting_for(&self.engine.at_door(None)))
    }

    /// The MCP servers as the caller may use them.
    pub(crate) fn servers(&self) -> Result<McpServers, ApiError> {
        let may = if self.caller.may(Scope::Admin) { ServerRights::Everyones } else { ServerRights::Own };
        let may_declare = self.caller.may(Scope::Approve);
        let user = self.caller.user();
        let servers = self.shared.servers.as_ref().map(|servers| servers.acting_for(user.clone(), may, may_declare));
        servers.ok_or_else(|| ApiError::not_found("MCP server here: this host has no configuration"))
    }

    /// With MCP servers, for what they have besides tools.
    #[must_use]
    pub fn with_resources(self, resources: Arc<ResourceSource>) -> Self {
        let _ = self.shared.resources.set(resources);
        self
    }

    /// MCP servers, for what they have besides tools.
    pub(crate) fn resources(&self) -> Option<&Arc<ResourceSource>> {
        self.shared.resources.get()
    }

    /// With what was counted before the server began; the engine's observer.
    #[must_use]
    pub fn with_metrics(self, metrics: Metrics) -> Self {
        metrics.expect(&self.engine);
        let _ = self.shared.metrics.set(metrics);
        self
    }

    /// What is counted.
    pub(crate) fn metrics(&self) -> &Metrics {
        self.shared.metrics.get_or_init(Metrics::new)
    }

    /// The engine.
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The turns that pages were told of.
    pub(crate) fn heard(&self) -> &Heard {
        &self.shared.heard
    }

    /// The conversations of clients that keep the history themselves.
    pub(crate) fn known(&self) -> &Arc<KnownHistories> {
        &self.shared.known
    }

    /// The streams that are open.
    pub(crate) fn streams(&self) -> &Slots {
        &self.shared.streams
    }

    /// Changes when a credential may count no more.
    pub(crate) fn revocations(&self) -> watch::Receiver<u64> {
        self.shared.revocations.subscribe()
    }

    /// How often a credential came to count no more, at this process.
    pub(crate) fn revocation_count(&self) -> u64 {
        *self.shared.revocations.borrow()
    }

    /// A credential, or all of a user's, may count no more: open streams look again.
    pub(crate) fn tell_of_revocation(&self) {
        self.shared.revocations.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// The options.
    pub(crate) fn options(&self) -> &ServerOptions {
        &self.shared.options
    }

    /// Held while a conversation's settings are read, changed and written, so that two changes do not undo each other.
    pub(crate) fn changing_settings(&self) -> &Mutex<()> {
        &self.shared.changing_settings
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{json, value::to_raw_value};
    use turnwright_core::policy::Policy;
    use turnwright_core::{ModelRef, TurnSettings};
    use turnwright_engine::{Engine, EngineParts, NewConversation};
    use turnwright_testkit::{ManualClock, MemoryStore, ScriptedProvider, ScriptedProviders};

    use super::{ServerOptions, ServerState};

    #[tokio::test]
    async fn what_came_with_requests_is_forgotten_where_a_conversation_is_deleted_by_whatever_door() {
        let engine = Engine::new(EngineParts {
            providers: Arc::new(ScriptedProviders(ScriptedProvider::new([]))),
            sources: Vec::new(),
            store: Arc::new(MemoryStore::default()),
            clock: Arc::new(ManualClock::at(0)),
            policy: Policy::default(),
            defaults: TurnSettings::new(ModelRef::new("test", "m")),
        });
        let state = ServerState::new(engine.clone(), ServerOptions::default());
        let said = to_raw_value(&json!({"role": "user", "content": "a"})).unwrap();
        let known = state.known();
        let read = || known.seen().read(known.fingerprint(engine.user()), &[&said]).unwrap().0.remove(0);
        let first = read();
        assert!(Arc::ptr_eq(&first, &read()), "it is remembered");
        let of = engine.create(NewConversation::default()).await.unwrap();
        engine.delete(&of.id).await.unwrap();
        assert!(!Arc::ptr_eq(&first, &read()));
    }
}
