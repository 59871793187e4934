//! The connection to NATS: made once, with what a server must be; then kept, and known to be up or down.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event, ServerError};
use tokio::sync::watch;

use crate::error::MINIMUM;
use crate::options::shown;
use crate::{Credentials, JoinError, Options};

/// How long a server may take to let this node in, and to answer.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// How often a connection is asked whether it lives.
const PING_EVERY: Duration = Duration::from_secs(5);
/// The longest pause between two tries to connect again.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How many messages may wait to be sent.
const WAITING_TO_BE_SENT: usize = 4_096;

/// What is known of the connection.
#[derive(Debug)]
pub(crate) struct Line {
    /// Rises with each connection that is made after the first.
    pub(crate) remade: watch::Sender<u64>,
    /// The last that the server or the client said was wrong.
    wrong: Mutex<Option<String>>,
}

impl Line {
    fn hear(&self, event: &Event) {
        match event {
            Event::Connected => {
                self.say(None);
                self.remade.send_modify(|count| *count = count.wrapping_add(1));
            }
            Event::Disconnected => {
                tracing::warn!("the connection to NATS broke; what this node drives goes on");
                self.say(Some("the connection broke".to_owned()));
            }
            Event::ServerError(ServerError::AuthorizationViolation) => {
                tracing::error!("NATS refuses the credentials of this node");
                self.say(Some("the server refuses the credentials".to_owned()));
            }
            Event::ServerError(error) => tracing::warn!(%error, "NATS says that something is wrong"),
            Event::ClientError(error) => {
                tracing::debug!(%error, "NATS is not reached");
                self.say(Some(error.to_string()));
            }
            Event::SlowConsumer(subscription) => {
                tracing::warn!(
                    subscription,
                    "messages of NATS came faster than they were read; what was lost is asked for again"
                );
            }
            Event::LameDuckMode => tracing::info!("the NATS server is about to end; this node goes to another"),
            Event::Draining | Event::Closed => {}
        }
    }

    fn say(&self, wrong: Option<String>) {
        *self.wrong.lock().unwrap_or_else(PoisonError::into_inner) = wrong;
    }

    pub(crate) fn wrong(&self) -> Option<String> {
        self.wrong.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Whether a client is connected at this moment.
pub(crate) fn is_up(client: &Client) -> bool {
    client.connection_state() == State::Connected
}

/// The addresses, for people.
pub(crate) fn named(urls: &[String]) -> String {
    urls.iter().map(|url| shown(url)).collect::<Vec<_>>().join(", ")
}

/// Connects, and checks that the server does what is needed.
pub(crate) async fn connect(options: &Options) -> Result<(Client, Arc<Line>), JoinError> {
    let urls = named(&options.urls);
    let line = Arc::new(Line { remade: watch::Sender::new(0), wrong: Mutex::new(None) });
    let told = line.clone();
    let connect = authenticated(options)
        .await?
        .name(format!("turnwright {}", options.node.name))
        .no_echo()
        .connection_timeout(CONNECT_LIMIT)
        .request_timeout(Some(CONNECT_LIMIT))
        .ping_interval(PING_EVERY)
        .client_capacity(WAITING_TO_BE_SENT)
        .reconnect_delay_callback(pause)
        .event_callback(move |event| {
            told.hear(&event);
            std::future::ready(())
        });
    let connect = match &options.ca {
        Some(path) => connect.add_root_certificates(path.clone()),
        None => connect,
    };
    let unreachable = |reason: String| JoinError::Unreachable { urls: urls.clone(), reason };
    let client = match tokio::time::timeout(CONNECT_LIMIT * 2, connect.connect(options.urls.clone())).await {
        Ok(Ok(client)) => client,
        Ok(Err(error)) => {
            return Err(match error.kind() {
                ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => JoinError::Refused { urls },
                ConnectErrorKind::ServerParse => {
                    JoinError::Invalid { value: urls, expected: "an address such as nats://host:4222" }
                }
                _ => unreachable(error.to_string()),
            });
        }
        Err(_) => return Err(unreachable(format!("no answer within {} s", (CONNECT_LIMIT * 2).as_secs()))),
    };
    let (major, minor, patch) = MINIMUM;
    if !client.is_server_compatible(major, minor, patch) {
        return Err(JoinError::TooOld { urls, version: client.server_info().version });
    }
    let jetstream = async_nats::jetstream::new(client.clone());
    match tokio::time::timeout(CONNECT_LIMIT, jetstream.query_account()).await {
        Ok(Ok(_)) => Ok((client, line)),
        Ok(Err(error)) => Err(JoinError::NoJetStream { urls, reason: error.to_string() }),
        Err(_) => Err(JoinError::NoJetStream { urls, reason: "it did not answer".to_owned() }),
    }
}

async fn authenticated(options: &Options) -> Result<ConnectOptions, JoinError> {
    Ok(match &options.credentials {
        Credentials::None => ConnectOptions::new(),
        Credentials::Token(token) => ConnectOptions::with_token(token.clone()),
        Credentials::Password { user, password } => ConnectOptions::with_user_and_password(user.clone(), password.clone()),
        Credentials::File(path) => ConnectOptions::with_credentials_file(path)
            .await
            .map_err(|error| JoinError::Credentials { path: path.display().to_string(), reason: error.to_string() })?,
    })
}

/// The pause before a try to connect: the first is made at once, then each waits twice as long.
fn pause(attempt: usize) -> Duration {
    match u32::try_from(attempt).unwrap_or(u32::MAX).min(10) {
        0 | 1 => Duration::ZERO,
        attempt => Duration::from_millis(50).saturating_mul(1 << attempt.saturating_sub(2)).min(LONGEST_PAUSE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound() {
        let pauses: Vec<u128> = [1, 2, 3, 4, 9, 10, 1_000].map(|attempt| pause(attempt).as_millis()).to_vec();
        assert_eq!(pauses, [0, 50, 100, 200, 5_000, 5_000, 5_000]);
    }
}
