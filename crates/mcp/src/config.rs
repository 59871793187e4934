//! What the operator says about a server, as plain values.

mod docker;
mod granted;
mod transport;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use turnwright_core::UserId;
use turnwright_engine::{CallLimits, Clock, Completed, KnownSecrets};
use turnwright_network::Network;

pub(crate) use docker::DEFAULT_ENGINE;
pub use docker::{DockerConfig, Mount};
pub use granted::{Granted, Root, Roots};
pub(crate) use transport::shown_address;
pub use transport::{HttpConfig, OauthConfig, OauthGrant, StdioConfig, TransportConfig};

use crate::{
    Board, Definitions, NoBoard, NoDefinitions, NoLedger, NoTokens, ProcessLedger, Protocol, ResourceSource, RestartPolicy,
    TokenStore,
};

/// A server: `[mcp.servers.NAME]`, variables expanded.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerConfig {
    /// The first half of its tools' qualified names.
    pub name: String,
    /// How it is reached.
    pub transport: TransportConfig,
    /// The one user in whose conversations its tools are offered; everybody's where `None`.
    pub owner: Option<UserId>,
    /// Where it may be, where it has an address.
    pub bounds: Bounds,
    /// How long a start may take, from the spawn to the list of its tools; also how long a call waits for one.
    pub start_limit: Duration,
    /// When it is started.
    pub start: StartPolicy,
    /// How long it runs without a call before it is ended; until the host ends where not given. The next call starts it.
    pub idle_stop: Option<Duration>,
    /// How long a call may take, where its tool says nothing else.
    pub limits: CallLimits,
    /// Whether it may run at all.
    pub enabled: bool,
    /// Whether calls of all of its tools run one after another.
    pub serial: bool,
    /// Whether `readOnlyHint` and `idempotentHint` of its tools are believed.
    pub trust_annotations: bool,
    /// Whether it remembers what calls told it, so that a conversation's calls go to the process that called it before; where it
    /// is not given: a child process and a container do, what has an address does not, since it is the same from everywhere.
    pub keeps_state: Option<bool>,
    /// What it is given when it asks for it.
    pub granted: Arc<Granted>,
    /// From which level on it is asked to log; what it likes where not given.
    pub log_level: Option<LogLevel>,
    /// The version of the protocol that it is spoken to in; where it is not given it is asked.
    pub protocol: Option<Protocol>,
    /// What is declared about single tools, by their names at the server.
    pub tools: BTreeMap<String, ToolDeclaration>,
    /// The most calls that may run at once.
    pub max_concurrent_calls: usize,
    /// The longest message that is taken from it, in bytes; a longer answer fails its call.
    pub max_message_bytes: usize,
    /// When it is started again after an end that nobody asked for.
    pub restart: RestartPolicy,
    /// How long it may take to leave after its input closed, and again after SIGTERM.
    pub stop_grace: Duration,
    /// How long a cancelled call may still take to bring its real result.
    pub cancel_grace: Duration,
}

impl ServerConfig {
    /// A server with everything but its name and the way to it at its default.
    pub fn new(name: impl Into<String>, transport: impl Into<TransportConfig>) -> Self {
        Self {
            name: name.into(),
            transport: transport.into(),
            owner: None,
            bounds: Bounds::default(),
            start_limit: Duration::from_mins(1),
            start: StartPolicy::default(),
            idle_stop: None,
            limits: CallLimits::default(),
            enabled: true,
            serial: false,
            trust_annotations: false,
            keeps_state: None,
            granted: Arc::default(),
            log_level: None,
            protocol: None,
            tools: BTreeMap::new(),
            max_concurrent_calls: 64,
            max_message_bytes: 64 << 20,
            restart: RestartPolicy::default(),
            stop_grace: Duration::from_secs(2),
            cancel_grace: Duration::from_secs(1),
        }
    }

    /// Whether what it remembers is in this process, or its child, alone.
    pub(crate) fn keeps_state_here(&self) -> bool {
        self.keeps_state.unwrap_or(match self.transport {
            TransportConfig::Stdio(_) | TransportConfig::Docker(_) => true,
            TransportConfig::Http(_) => false,
        })
    }
}

/// How grave something is that a server logs (RFC 5424), the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// For whoever looks for a fault.
    Debug,
    /// What happens.
    Info,
    /// What happens and is worth knowing.
    Notice,
    /// What may be wrong.
    Warning,
    /// What is wrong.
    Error,
    /// What must be mended soon.
    Critical,
    /// What must be mended now.
    Alert,
    /// Nothing works.
    Emergency,
}

impl LogLevel {
    /// All of them, the least first.
    pub const ALL: [Self; 8] =
        [Self::Debug, Self::Info, Self::Notice, Self::Warning, Self::Error, Self::Critical, Self::Alert, Self::Emergency];

    /// As the protocol says it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}

/// When a server is started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StartPolicy {
    /// When one of its tools is called, or when it is not known what it offers.
    #[default]
    Lazy,
    /// With its host.
    Eager,
}

/// What the operator declares about one tool: `[mcp.servers.NAME.tools.TOOL]`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ToolDeclaration {
    /// Whether it changes nothing; what the server says of it where nothing is said and that is believed.
    pub read_only: Option<bool>,
    /// Whether running it twice is the same as running it once; the same.
    pub replayable: Option<bool>,
    /// Whether its calls run one after another; as those of the whole server where nothing is said.
    pub serial: Option<bool>,
    /// It is asked again and again for how far something is.
    pub polled: bool,
    /// How long a call may take; the server's limits where nothing is said.
    pub limits: Option<CallLimits>,
    /// How long a result may be given again to the same user for the same arguments; never where `None`.
    pub cache_ttl: Option<Duration>,
}

/// What a server needs from its host. Made by [`Surroundings::new`], then changed where a host has more to give.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Surroundings {
    /// The variables that every server gets: those of the host for which [`is_inherited`] holds.
    pub inherited_env: Vec<(String, String)>,
    /// Remembers the processes, so that they can be swept after the host was killed.
    pub ledger: Arc<dyn ProcessLedger>,
    /// Keeps what signing in to servers brought.
    pub tokens: Arc<dyn TokenStore>,
    /// Remembers what servers offer, so that one is started only when it is needed.
    pub definitions: Arc<dyn Definitions>,
    /// Takes what other processes may know of the servers.
    pub board: Arc<dyn Board>,
    /// Knows every server that is made for sharing, and offers what they have to read.
    pub resources: Arc<ResourceSource>,
    /// Where the Docker engine listens, as `DOCKER_HOST` says it; its usual socket where not given.
    pub docker_host: Option<String>,
    /// Takes that what servers wanted people to open in a browser is done there.
    pub completed: Option<mpsc::Sender<Completed>>,
    /// How servers with an address are reached.
    pub network: Network,
    /// How each of them is, where that is not the same for all.
    pub ways: Option<Arc<dyn Ways>>,
    /// Tells the time of log lines.
    pub clock: Arc<dyn Clock>,
    /// Learns the secrets that servers are given, and hides all that it knows in what servers say.
    pub secrets: KnownSecrets,
    /// Whether somebody can be shown the pages of tools (MCP Apps): servers are told so.
    pub shows_apps: bool,
}

impl Surroundings {
    /// No variables, a ledger that remembers nothing, and nowhere to keep a token.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            inherited_env: Vec::new(),
            ledger: Arc::new(NoLedger),
            tokens: Arc::new(NoTokens),
            definitions: Arc::new(NoDefinitions),
            board: Arc::new(NoBoard),
            resources: Arc::default(),
            docker_host: None,
            completed: None,
            network: Network::default(),
            ways: None,
            clock,
            secrets: KnownSecrets::default(),
            shows_apps: false,
        }
    }
}

/// Where a server with an address may be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Bounds {
    /// Where those of its owner may be.
    #[default]
    AsItsOwners,
    /// Outside of this machine and its network, whoever owns it.
    Outside,
}

/// Knows how servers of different owners are reached.
#[async_trait]
pub trait Ways: Debug + Send + Sync {
    /// How this one is at this moment. It is asked for each connection, and for each sign-in.
    async fn network(&self, of: &ServerConfig) -> Network;
}

impl Surroundings {
    /// How a server is reached.
    pub(crate) async fn network_of(&self, config: &ServerConfig) -> Network {
        match &self.ways {
            Some(ways) => ways.network(config).await,
            None => self.network.clone(),
        }
    }
}

/// Whether a variable of the host's environment is passed to servers that did not ask for it.
/// None of these holds a secret by convention.
pub fn is_inherited(name: &str) -> bool {
    const NAMES: [&str; 19] = [
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LANGUAGE",
        "TERM",
        "TMPDIR",
        "TZ",
        "XDG_CACHE_HOME",
        "XDG_RUNTIME_DIR",
        "SSL_CERT_FILE",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "http_proxy",
        "https_proxy",
        "no_proxy",
    ];
    name.starts_with("LC_") || NAMES.contains(&name)
}
