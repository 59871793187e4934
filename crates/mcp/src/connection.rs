//! An open connection: carried, probed, opened, its tools listed; all of it within one limit.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::Url;
use rmcp::model::{ClientNotification, CustomNotification, ProtocolVersion};
use rmcp::service::{ClientCacheConfig, ClientInitializeError, RunningService};
use rmcp::transport::Transport;
use rmcp::{ClientServiceExt, Peer, RoleClient};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnwright_engine::telemetry::spans::{McpCall, McpWay};
use turnwright_network::Network;

use crate::agreed::{Agreed, Offer};
use crate::carrier::{self, Carrier, Ends, Pipes};
use crate::client::{Client, me};
use crate::era::{self, Era, Finding, Ground};
use crate::list::{self, Listing};
use crate::log::ServerLog;
use crate::login::Account;
use crate::transport::http::{self, HttpTransport, Probed, SseTransport};
use crate::transport::{PipeTransport, Wire};
use crate::{HttpConfig, McpError, Protocol, ServerConfig, Surroundings, TransportConfig};

/// The longest that a silent server's era is waited for.
const MAX_PROBE: Duration = Duration::from_secs(10);
/// How long a notice may take on its way.
const TELL_LIMIT: Duration = Duration::from_secs(2);
/// Servers register more tools right after the handshake and say so; what they say so soon belongs to the first list.
const FIRST_LIST_SETTLES: Duration = Duration::from_millis(30);

/// What calls need of a running server.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) wire: Arc<Wire>,
    /// What it and we agreed on when it was opened.
    pub(crate) agreed: Agreed,
    /// Owns what calls leave behind.
    pub(crate) tracker: TaskTracker,
    /// Where it is, host and port, where it has an address.
    address: Option<(String, Option<u16>)>,
    end: OnceLock<String>,
    ended: CancellationToken,
    has_served: AtomicBool,
}

impl Connection {
    /// Whether calls may be tried on it.
    pub(crate) fn is_open(&self) -> bool {
        !self.wire.closed.is_cancelled() && !self.wire.is_condemned.is_cancelled()
    }

    /// How traces tell a call on it.
    pub(crate) fn traced(&self) -> McpCall<'_> {
        let way = match &self.address {
            Some((host, port)) => McpWay::Http { host, port: *port },
            None => McpWay::Pipe,
        };
        McpCall { protocol_version: &self.agreed.version, session: self.wire.session.get().map(AsRef::as_ref), way }
    }

    /// It answered a call.
    pub(crate) fn served(&self) {
        self.has_served.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_served(&self) -> bool {
        self.has_served.load(Ordering::Relaxed)
    }

    /// Tells the server something that needs no answer. One that does not read is found by its next call.
    pub(crate) async fn tell(&self, method: &'static str) {
        // Some servers drop a notice whose `params` are null.
        let params = Some(serde_json::Value::Object(serde_json::Map::new()));
        let notice = ClientNotification::CustomNotification(CustomNotification::new(method, params));
        let _ = tokio::time::timeout(TELL_LIMIT, self.peer.send_notification(notice)).await;
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
    pub(crate) carrier: Carrier,
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

impl From<McpError> for NotOpened {
    fn from(error: McpError) -> Self {
        Self::Failed(error)
    }
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

/// The way to a server that was started, or that runs elsewhere.
enum Way<'a> {
    Pipes(Pipes),
    Container(Ends),
    Address(&'a HttpConfig),
}

/// Starts the server. `era` is what it spoke the last time, and is learned. Nothing runs any more where this fails.
pub(crate) async fn open(opening: &Opening<'_>, era: &mut Option<Era>) -> Result<Running, NotOpened> {
    let Opening { config, stop, .. } = opening;
    let limit = config.start_limit;
    let deadline = Instant::now() + limit;
    let (carrier, way) = carry(opening, deadline).await?;
    let wire = Arc::new(Wire::default());
    if let Some(completed) = &opening.surroundings.completed {
        let _ = wire.completed.set((completed.clone(), config.name.clone()));
    }
    let mut waited_for = "no answer to server/discover or initialize came";
    let result = tokio::select! {
        biased;
        () = stop.cancelled() => Err(NotOpened::Stopped),
        // Before the handshake: one that always has something to read would use up the time in which this is looked at.
        () = tokio::time::sleep_until(deadline) => Err(NotOpened::Failed(McpError::StartTimeout { limit, waited_for })),
        result = handshake(opening, way, &wire, deadline, era, &mut waited_for) => result.map_err(NotOpened::Failed),
    };
    match result {
        Ok(Opened { service, agreed, listing }) => {
            let (peer, ended) = (service.peer().clone(), CancellationToken::new());
            let tracker = TaskTracker::clone(opening.tracker);
            let (end, has_served) = (OnceLock::new(), AtomicBool::new(false));
            let address = address(&config.transport);
            let connection = Arc::new(Connection { peer, wire, agreed, tracker, address, end, ended, has_served });
            Ok(Running { carrier, service, connection, listing })
        }
        Err(failure) => {
            // It may speak the other era than it did, or answer later than it was asked.
            *era = wire.known_late();
            let failure = match (failure, wire.condemned_because()) {
                (NotOpened::Failed(_), Some(_)) if wire.challenged().is_some() => {
                    let challenge = wire.challenged().map(str::to_owned);
                    NotOpened::Failed(McpError::NeedsSignIn { reason: "it refused a request".to_owned(), challenge })
                }
                (NotOpened::Failed(_), Some(why)) => NotOpened::Failed(McpError::Condemned { why: why.to_owned() }),
                (failure, _) => failure,
            };
            Err(close_failed(carrier, failure, config.stop_grace).await)
        }
    }
}

/// Host and port of a server that has an address.
fn address(transport: &TransportConfig) -> Option<(String, Option<u16>)> {
    let TransportConfig::Http(http) = transport else { return None };
    let url: Url = http.url.parse().ok()?;
    Some((url.host_str()?.to_owned(), url.port_or_known_default()))
}

/// Starts what carries the server, where that is ours to start.
async fn carry<'a>(opening: &Opening<'a>, deadline: Instant) -> Result<(Carrier, Way<'a>), NotOpened> {
    let Opening { config, surroundings, log, tracker, stop } = *opening;
    match &config.transport {
        TransportConfig::Stdio(stdio) => {
            let (process, pipes) = carrier::spawn(&config.name, stdio, surroundings, log, tracker)?;
            Ok((Carrier::Process(Box::new(process)), Way::Pipes(pipes)))
        }
        TransportConfig::Docker(docker) => {
            let limit = config.start_limit;
            let given_up = async {
                tokio::select! {
                    biased;
                    () = stop.cancelled() => NotOpened::Stopped,
                    () = tokio::time::sleep_until(deadline) => {
                        McpError::StartTimeout { limit, waited_for: "its container did not start" }.into()
                    }
                }
            };
            let (container, ends) = carrier::start(&config.name, docker, surroundings, log, tracker, given_up).await?;
            Ok((Carrier::Container(Box::new(container)), Way::Container(ends)))
        }
        TransportConfig::Http(http) => Ok((Carrier::Remote, Way::Address(http))),
    }
}

/// Ends what a failed start left, and says so where the server was gone already.
async fn close_failed(mut carrier: Carrier, failure: NotOpened, grace: Duration) -> NotOpened {
    // The pipes are closed: whoever left by itself did so before, or does now.
    let patience = match &failure {
        NotOpened::Failed(McpError::EndedAtStart { .. }) => grace,
        NotOpened::Stopped | NotOpened::Failed(_) => grace.min(Duration::from_millis(200)),
    };
    let how = carrier.exited_within(patience).await;
    carrier.last_lines().await;
    carrier.end(grace).await;
    match (failure, how) {
        (NotOpened::Failed(McpError::EndedAtStart { .. }), Some(how)) => NotOpened::Failed(McpError::EndedAtStart { how }),
        (failure, _) => failure,
    }
}

struct Opened {
    service: RunningService<RoleClient, Client>,
    agreed: Agreed,
    listing: Listing,
}

async fn handshake(
    opening: &Opening<'_>,
    way: Way<'_>,
    wire: &Arc<Wire>,
    deadline: Instant,
    era: &mut Option<Era>,
    waited_for: &mut &'static str,
) -> Result<Opened, McpError> {
    let Opening { config, log, .. } = opening;
    let most = (config.start_limit / 2).min(MAX_PROBE);
    let chosen = config.protocol.map(|protocol| Finding { era: protocol.era(), ground: Ground::Chosen });
    let known = chosen.or_else(|| era.map(|era| Finding { era, ground: Ground::Remembered }));
    // Which of the two transports with an address it speaks is found with the era.
    let mut is_remembered = true;
    let (wire_end, log_end, limit) = (Arc::clone(wire), Arc::clone(log), config.max_message_bytes);
    let shows_apps = opening.surroundings.shows_apps;
    let chosen = config.protocol.map(Protocol::version).filter(ProtocolVersion::has_initialize);
    let version = chosen.unwrap_or(ProtocolVersion::LATEST_WITH_INITIALIZE);
    let client =
        Client { wire: Arc::clone(wire), log: Arc::clone(log), granted: Arc::clone(&config.granted), shows_apps, version };
    let (finding, service) = match way {
        Way::Pipes(Pipes { stdout, stdin }) => {
            piped(PipeTransport::new(stdout, stdin, limit, wire_end, log_end), client, known, most).await?
        }
        Way::Container(Ends { stdout, stdin }) => {
            piped(PipeTransport::new(stdout, stdin, limit, wire_end, log_end), client, known, most).await?
        }
        Way::Address(address) => {
            let network = &opening.surroundings.network_of(config).await;
            let account = Account::of(address, network, opening).await;
            let account = account.map_err(|error| McpError::SignIn { message: error.to_string() })?;
            let endpoint = http::Endpoint::new(address, limit, account, network).await?;
            let probed = match known {
                // Which transport it has is found with the question, and only the oldest version has another one.
                Some(finding) if config.protocol == Some(Protocol::V20241105) => {
                    let mut probed = endpoint.probe(&me(), most).await?;
                    probed.finding = finding;
                    probed
                }
                Some(finding) => Probed::remembered(finding),
                None => endpoint.probe(&me(), most).await?,
            };
            let old = if probed.takes_posts {
                None
            } else {
                SseTransport::open(&endpoint, Arc::clone(&wire_end), Arc::clone(&log_end)).await?
            };
            if let Some(old) = old {
                is_remembered = false;
                (probed.finding, greet(old, client, Era::Legacy, network).await?)
            } else {
                let transport = HttpTransport::new(&endpoint, wire_end, log_end);
                let greeted = greet(transport, client, probed.finding.era, network).await;
                (probed.finding, greeted.map_err(|error| probed.explained(error))?)
            }
        }
    };
    let agreed = Agreed::of(&service, finding, &opening.surroundings.secrets.now())?;
    *era = is_remembered.then_some(finding.era);
    *waited_for = "no answer to tools/list came";
    let listing = if agreed.offers(Offer::Tools) {
        first_list(service.peer(), wire, opening, deadline).await?
    } else {
        Listing::default()
    };
    Ok(Opened { service, agreed, listing })
}

/// Opens the protocol over lines, after asking which era it is spoken in where that is not known.
async fn piped<R, W>(
    mut transport: PipeTransport<R, W>,
    client: Client,
    known: Option<Finding>,
    most: Duration,
) -> Result<(Finding, RunningService<RoleClient, Client>), McpError>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let finding = match known {
        Some(known) => known,
        None => era::probe(&mut transport, &me(), most).await.ok_or_else(gone)?,
    };
    Ok((finding, greet(transport, client, finding.era, &Network::default()).await?))
}

/// Opens the protocol over a transport, as its era wants it.
async fn greet<T>(
    transport: T,
    client: Client,
    era: Era,
    network: &Network,
) -> Result<RunningService<RoleClient, Client>, McpError>
where
    T: Transport<RoleClient> + 'static,
{
    let service = client.serve_with_lifecycle(transport, era.lifecycle()).await;
    let service = service.map_err(|error| refused(error, network))?;
    // What is kept is kept here, where an answer from before is not taken for one of a server that is gone.
    service.peer().set_response_cache_config(ClientCacheConfig::disabled()).await;
    Ok(service)
}

async fn first_list(
    peer: &Peer<RoleClient>,
    wire: &Wire,
    opening: &Opening<'_>,
    deadline: Instant,
) -> Result<Listing, McpError> {
    let Opening { config, tracker, .. } = opening;
    let left = || deadline.saturating_duration_since(Instant::now());
    let first = list::list((peer, tracker), config, left()).await?;
    match tokio::time::timeout(FIRST_LIST_SETTLES, wire.tools_changed.notified()).await {
        Ok(()) => {
            tokio::time::sleep(FIRST_LIST_SETTLES).await;
            list::list((peer, tracker), config, left()).await
        }
        Err(_) => Ok(first),
    }
}

fn gone() -> McpError {
    McpError::EndedAtStart { how: "its output ended".to_owned() }
}

fn refused(error: ClientInitializeError, network: &Network) -> McpError {
    match error {
        ClientInitializeError::TransportError { error, .. } => http::refused(&*error.error, network).unwrap_or_else(gone),
        ClientInitializeError::ConnectionClosed(_) => gone(),
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

/// The versions of the protocol that are spoken here, for people.
pub(crate) fn known_versions() -> String {
    ProtocolVersion::KNOWN_VERSIONS.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
