//! An open connection: spawned, probed, opened, its tools listed; all of it within one limit.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rmcp::model::{ClientConfig, Implementation, ProtocolVersion};
use rmcp::service::{ClientInitializeError, RunningService};
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, Peer, RoleClient};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::list::{self, Listing};
use crate::log::ServerLog;
use crate::probe::{self, Era};
use crate::process::{self, Pipes, Process};
use crate::transport::StdioTransport;
use crate::wire::Wire;
use crate::{McpError, ServerConfig, Surroundings};

/// The longest that a silent server's era is waited for.
const MAX_PROBE: Duration = Duration::from_secs(10);
/// Servers register more tools right after the handshake and say so; what they say so soon belongs to the first list.
const FIRST_LIST_SETTLES: Duration = Duration::from_millis(30);

/// What calls need of a running server.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) wire: Arc<Wire>,
    /// Owns what calls leave behind.
    pub(crate) tracker: TaskTracker,
    end: OnceLock<String>,
    ended: CancellationToken,
}

impl Connection {
    /// Whether calls may be tried on it.
    pub(crate) fn is_open(&self) -> bool {
        !self.wire.closed.is_cancelled() && !self.wire.is_condemned.is_cancelled()
    }

    /// Its end and the reason, which everybody who waits for it is told.
    pub(crate) fn finish(&self, reason: String) {
        let _ = self.end.set(reason);
        self.ended.cancel();
    }

    /// Why it ended, waited for at most `limit`.
    pub(crate) async fn end(&self, limit: Duration) -> Option<&str> {
        let _ = tokio::time::timeout(limit, self.ended.cancelled()).await;
        self.end.get().map(String::as_str)
    }
}

/// A running server, as its supervisor holds it.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) process: Process,
    pub(crate) service: RunningService<RoleClient, Client>,
    pub(crate) connection: Arc<Connection>,
    pub(crate) listing: Listing,
}

/// Why there is none.
#[derive(Debug)]
pub(crate) enum NotOpened {
    /// It was asked to stop meanwhile.
    Stopped,
    /// It failed.
    Failed(McpError),
}

/// What a start needs.
#[derive(Debug)]
pub(crate) struct Opening<'a> {
    pub(crate) config: &'a ServerConfig,
    pub(crate) surroundings: &'a Surroundings,
    pub(crate) log: &'a Arc<ServerLog>,
    pub(crate) tracker: &'a TaskTracker,
    pub(crate) stop: &'a CancellationToken,
}

/// Starts the server. `era` is what it spoke the last time, and is learned. Nothing runs any more where this fails.
pub(crate) async fn open(opening: &Opening<'_>, era: &mut Option<Era>) -> Result<Running, NotOpened> {
    let Opening { config, surroundings, log, tracker, stop } = opening;
    let limit = config.start_limit;
    let deadline = Instant::now() + limit;
    let (process, pipes) = process::spawn(config, surroundings, log, tracker).map_err(NotOpened::Failed)?;
    let wire = Arc::new(Wire::default());
    let mut waited_for = "no answer to server/discover or initialize came";
    let result = tokio::select! {
        biased;
        () = stop.cancelled() => Err(NotOpened::Stopped),
        // Before the handshake: one that always has something to read would use up the time in which this is looked at.
        () = tokio::time::sleep_until(deadline) => Err(NotOpened::Failed(McpError::StartTimeout { limit, waited_for })),
        result = handshake(config, log, pipes, &wire, deadline, era, &mut waited_for) => result.map_err(NotOpened::Failed),
    };
    match result {
        Ok((service, listing)) => {
            let (peer, ended) = (service.peer().clone(), CancellationToken::new());
            let connection =
                Arc::new(Connection { peer, wire, tracker: TaskTracker::clone(tracker), end: OnceLock::new(), ended });
            Ok(Running { process, service, connection, listing })
        }
        Err(failure) => {
            // It may speak the other era than it did, or answer later than it was asked.
            *era = wire.known_late();
            let failure = match (failure, wire.condemned_because()) {
                (NotOpened::Failed(_), Some(why)) => NotOpened::Failed(McpError::Condemned { why: why.to_owned() }),
                (failure, _) => failure,
            };
            Err(close_failed(process, failure, config.stop_grace).await)
        }
    }
}

/// Ends what a failed start left, and says so where the server was gone already.
async fn close_failed(mut process: Process, failure: NotOpened, grace: Duration) -> NotOpened {
    // The pipes are closed: whoever left by itself did so before, or does now.
    let patience = match &failure {
        NotOpened::Failed(McpError::EndedAtStart { .. }) => grace,
        NotOpened::Stopped | NotOpened::Failed(_) => grace.min(Duration::from_millis(200)),
    };
    let how = process.exited_within(patience).await;
    process.last_lines().await;
    process.end(grace).await;
    match (failure, how) {
        (NotOpened::Failed(McpError::EndedAtStart { .. }), Some(how)) => NotOpened::Failed(McpError::EndedAtStart { how }),
        (failure, _) => failure,
    }
}

type Opened = (RunningService<RoleClient, Client>, Listing);

async fn handshake(
    config: &ServerConfig,
    log: &Arc<ServerLog>,
    pipes: Pipes,
    wire: &Arc<Wire>,
    deadline: Instant,
    era: &mut Option<Era>,
    waited_for: &mut &'static str,
) -> Result<Opened, McpError> {
    let gone = || McpError::EndedAtStart { how: "its output ended".to_owned() };
    let mut transport = StdioTransport::new(pipes, config.max_message_bytes, Arc::clone(wire), Arc::clone(log));
    let spoken = match *era {
        Some(era) => era,
        None => probe::probe(&mut transport, &me(), (config.start_limit / 2).min(MAX_PROBE)).await.ok_or_else(gone)?,
    };
    let lifecycle = match spoken {
        Era::Modern => ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] },
        Era::Legacy => ClientLifecycleMode::Initialize,
    };
    let service = Client.serve_with_lifecycle(transport, lifecycle).await.map_err(refused)?;
    let info = service.peer_info();
    let version = info.as_ref().map(|info| info.protocol_version.clone());
    if !version.as_ref().is_some_and(|version| ProtocolVersion::KNOWN_VERSIONS.contains(version)) {
        let version = version.map(|version| version.to_string()).unwrap_or_default();
        return Err(McpError::UnknownVersion { version, known: known_versions() });
    }
    *era = Some(spoken);
    *waited_for = "no answer to tools/list came";
    let listing = if info.is_some_and(|info| info.capabilities.tools.is_some()) {
        first_list(service.peer(), wire, config, deadline).await?
    } else {
        Listing::default()
    };
    Ok((service, listing))
}

async fn first_list(
    peer: &Peer<RoleClient>,
    wire: &Wire,
    config: &ServerConfig,
    deadline: Instant,
) -> Result<Listing, McpError> {
    let left = || deadline.saturating_duration_since(Instant::now());
    let first = list::list(peer, config, left()).await?;
    match tokio::time::timeout(FIRST_LIST_SETTLES, wire.tools_changed.notified()).await {
        Ok(()) => {
            tokio::time::sleep(FIRST_LIST_SETTLES).await;
            list::list(peer, config, left()).await
        }
        Err(_) => Ok(first),
    }
}

fn refused(error: ClientInitializeError) -> McpError {
    match error {
        ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. } => {
            McpError::EndedAtStart { how: "its output ended".to_owned() }
        }
        ClientInitializeError::JsonRpcError(error) => {
            McpError::Handshake { message: format!("{} ({})", error.message, error.code.0) }
        }
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let version = server_supported.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            McpError::UnknownVersion { version, known: known_versions() }
        }
        ClientInitializeError::ExpectedInitResult(_) | ClientInitializeError::ExpectedInitResponse(_) => {
            McpError::Handshake { message: "its answer is none that the protocol knows".to_owned() }
        }
        other => McpError::Handshake { message: other.to_string() },
    }
}

fn known_versions() -> String {
    ProtocolVersion::KNOWN_VERSIONS.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn me() -> Implementation {
    Implementation::new("turnwright", env!("CARGO_PKG_VERSION"))
}

/// The client's side of the protocol: declares no capability, so that servers ask nothing of it. Pings are answered by
/// `rmcp`, forms declined.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Client;

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(rmcp::model::ClientCapabilities::default(), me())
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}
