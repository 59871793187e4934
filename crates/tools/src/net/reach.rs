//! Connecting to what may be reached.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lru::LruCache;
use reqwest::header::LOCATION;
use reqwest::{Client, ClientBuilder, RequestBuilder, StatusCode, redirect};
use turnwright_core::ToolErrorKind;
use turnwright_engine::source::ToolError;
use turnwright_network::{Allow, is_local_name};

use super::answer::{Answer, AnswerLimits};
use super::clients::Clients;
use super::lookup::{Guarded, Lookup};
use super::refusal::Refusal;
use super::target::Target;

/// The most ports for which a client is kept.
const MAX_CLIENTS: NonZeroUsize = NonZeroUsize::new(16).unwrap();
/// How long a connection may take to stand.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// Connects to public addresses, and to those that the operator allows.
pub(crate) struct Reach {
    allow: Allow,
    lookup: Arc<dyn Lookup>,
    clients: Clients,
    /// By port: what a name may lead to depends on it.
    made: Mutex<LruCache<u16, Client>>,
    way: Way,
}

/// Who makes the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// We do: the address that is connected to is known.
    Direct,
    /// A proxy does, and looks names up: what they lead to cannot be seen, only what they are.
    Proxy,
}

/// What is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Asking {
    pub(crate) accept: &'static str,
    pub(crate) user_agent: String,
}

/// What came of one request.
#[derive(Debug)]
pub(crate) enum Step {
    There(Answer),
    Elsewhere(Target),
}

impl Reach {
    /// The most redirects that are followed.
    pub(crate) const MAX_REDIRECTS: usize = 8;

    pub(crate) fn new(allow: Allow, lookup: Arc<dyn Lookup>, clients: Clients, way: Way) -> Self {
        Self { allow, lookup, clients, way, made: Mutex::new(LruCache::new(MAX_CLIENTS)) }
    }

    /// What may be reached besides the public internet.
    pub(crate) fn allow(&self) -> &Allow {
        &self.allow
    }

    /// Gets what is there, after redirects, each of which is looked at.
    pub(crate) async fn get(&self, target: Target, asking: &Asking, limits: AnswerLimits) -> Result<Answer, Failure> {
        let following = async {
            let mut target = target;
            for _ in 0..=Self::MAX_REDIRECTS {
                match self.step(&target, asking, limits.max_bytes).await? {
                    Step::There(answer) => return Ok(answer),
                    Step::Elsewhere(next) => target = next,
                }
            }
            Err(Failure::Redirects { limit: Self::MAX_REDIRECTS })
        };
        within(limits.total, following).await
    }

    /// Gets what is there, or where that says it is.
    pub(crate) async fn step(&self, target: &Target, asking: &Asking, max_bytes: usize) -> Result<Step, Failure> {
        let request = |client: &Client, target: &Target| {
            let request = client.get(target.url().clone()).header("accept", asking.accept);
            request.header("user-agent", &asking.user_agent)
        };
        let answer = self.send(target, max_bytes, request).await?;
        Ok(match answer.header(LOCATION.as_str()).filter(|_| answer.status.is_redirection()) {
            Some(location) => Step::Elsewhere(target.join(location, &self.allow)?),
            None => Step::There(answer),
        })
    }

    /// Sends one request; a redirect is an answer like others.
    pub(crate) async fn send(
        &self,
        target: &Target,
        max_bytes: usize,
        request: impl FnOnce(&Client, &Target) -> RequestBuilder,
    ) -> Result<Answer, Failure> {
        let client = self.client(target).await?;
        let response = request(&client, target).send().await.map_err(|error| Failure::of(&error, &self.clients))?;
        // The resolver gave nothing else to connect to; whoever changes how clients connect is told here.
        if let (Way::Direct, Some(peer)) = (self.way, response.remote_addr()) {
            Refusal::unless(&self.allow, peer.ip(), peer.port())?;
        }
        Answer::read(target.clone(), response, max_bytes, &self.clients).await
    }

    async fn client(&self, target: &Target) -> Result<Client, Failure> {
        let port = match self.way {
            Way::Direct => target.port(),
            Way::Proxy => {
                if let Some(name) = target.name().filter(|name| is_local_name(name)) {
                    return Err(Refusal::LocalName { name: name.to_owned() }.into());
                }
                0
            }
        };
        if let Some(known) = self.made.lock().unwrap_or_else(PoisonError::into_inner).get(&port) {
            return Ok(known.clone());
        }
        let mut builder = self.clients.begin().redirect(redirect::Policy::none()).connect_timeout(CONNECT_TIME);
        if self.way == Way::Direct {
            let guarded = Guarded { lookup: Arc::clone(&self.lookup), allow: self.allow.clone(), port };
            builder = builder.no_proxy().dns_resolver(guarded);
        }
        let made = built(builder, &self.clients).await?;
        self.made.lock().unwrap_or_else(PoisonError::into_inner).put(port, made.clone());
        Ok(made)
    }
}

impl fmt::Debug for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reach").field("allow", &self.allow).field("way", &self.way).finish_non_exhaustive()
    }
}

/// A client of what was begun.
pub(super) async fn built(builder: ClientBuilder, clients: &Clients) -> Result<Client, Failure> {
    // Reading the system's certificates blocks for milliseconds.
    let made = tokio::task::spawn_blocking(move || {
        // Another part of the process may have installed one before: either will do.
        drop(rustls::crypto::ring::default_provider().install_default());
        builder.build()
    });
    let made = made.await.map_err(|error| Failure::Network { reason: error.to_string(), at: None, is_sent: false })?;
    made.map_err(|error| Failure::Network { reason: clients.reason(&error), at: None, is_sent: false })
}

/// What does not take longer than this.
pub(super) async fn within<T>(limit: Duration, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::time::timeout(limit, work).await.unwrap_or(Err(Failure::Timeout { limit }))
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("the address leads on to another more than {limit} times")]
    Redirects { limit: usize },
    #[error("no whole answer within {} s; try once more later, or another source", limit.as_secs_f32())]
    Timeout { limit: Duration },
    #[error("no answer: {reason}; try once more later, or another source")]
    Network {
        reason: String,
        /// Who was asked: scheme, host and port.
        at: Option<String>,
        /// Whether the request may have arrived.
        is_sent: bool,
    },
    #[error("the answer ({status}) is packed as `{coding}` (its content-encoding) and {why}; try another source")]
    Packed { status: StatusCode, coding: String, why: String },
}

impl Failure {
    /// What an error of the client means.
    pub(super) fn of(error: &reqwest::Error, clients: &Clients) -> Self {
        let causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
        let refused = causes.into_iter().find_map(|cause| (cause as &dyn std::error::Error).downcast_ref::<Refusal>().cloned());
        match refused {
            Some(refusal) => Self::Refused(refusal),
            None => Self::Network {
                reason: clients.reason(error),
                at: error.url().map(|url| url.origin().ascii_serialization()),
                is_sent: !(error.is_connect() || error.is_builder()),
            },
        }
    }
}

impl From<Failure> for ToolError {
    fn from(failure: Failure) -> Self {
        let kind = match &failure {
            Failure::Refused(Refusal::NotAUrl { .. } | Refusal::Scheme { .. } | Refusal::UserInfo) => {
                ToolErrorKind::InvalidArguments
            }
            Failure::Refused(Refusal::NoSuchName { .. }) => ToolErrorKind::NotFound,
            Failure::Refused(
                Refusal::Port { .. } | Refusal::Address { .. } | Refusal::Name { .. } | Refusal::LocalName { .. },
            ) => ToolErrorKind::PermissionDenied,
            Failure::Timeout { .. } => ToolErrorKind::Timeout,
            Failure::Redirects { .. } | Failure::Network { .. } | Failure::Packed { .. } => ToolErrorKind::ExecutionFailed,
        };
        Self::new(kind, failure.to_string())
    }
}
