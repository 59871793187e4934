//! The token that goes with the requests to one server, and its renewal.

use std::fmt::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rmcp::transport::auth::{AuthError, AuthorizationMetadataSource, CredentialStore, OAuthClientConfig, StoredCredentials};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::sync::Mutex;
use turnwright_engine::Clock;
use turnwright_network::Network;

use super::TokenStore;
use super::asks;
use super::flow;
use super::machine::Machine;
use crate::{HttpConfig, Surroundings};

/// A token that ends sooner is renewed before it is used, and one that lasts short in its last quarter.
const LEAST_LEFT: Duration = Duration::from_secs(30);
/// A token that cannot be renewed is still sent where it lasts this long.
const A_REQUEST: Duration = Duration::from_secs(2);

/// What is kept of a sign-in.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) credentials: StoredCredentials,
    #[serde(flatten)]
    pub(super) beside: Beside,
}

impl Record {
    /// The token to send.
    pub(super) fn token(&self) -> Option<String> {
        Token::of(self).map(|token| token.text)
    }
}

/// What is kept beside `rmcp`'s part.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Beside {
    /// The client's own secret, where it has one.
    pub(super) client_secret: Option<String>,
    /// What the server asked for beyond what it was granted; the next sign-in asks for it too.
    pub(super) wanted: Vec<String>,
    /// Where tokens are given back, at the origin that gave them.
    pub(super) revocation: Option<Revocation>,
}

/// How an authorization server takes tokens back.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Revocation {
    pub(super) url: String,
    /// Whether it wants a client's secret in the form, not in a header.
    pub(super) secret_in_form: bool,
}

/// Where the record of one server is.
#[derive(Debug, Clone)]
pub(super) struct Place {
    store: Arc<dyn TokenStore>,
    name: String,
}

impl Place {
    /// Of the server with this name at this address: another address is another account.
    pub(super) fn new(store: &Arc<dyn TokenStore>, server: &str, url: &str) -> Self {
        let digest = Sha256::digest(format!("{server}\0{url}"));
        let name = digest.iter().fold(String::new(), |mut name, byte| {
            let _ = write!(name, "{byte:02x}");
            name
        });
        Self { store: Arc::clone(store), name }
    }

    pub(super) async fn load(&self) -> Result<Option<Record>, AuthError> {
        let text = self.store.load(&self.name).await.map_err(|error| failed(&error))?;
        text.map(|text| serde_json::from_str(&text).map_err(|error| failed(&error))).transpose()
    }

    pub(super) async fn save(&self, record: &Record) -> Result<(), AuthError> {
        let text = serde_json::to_string(record).map_err(|error| failed(&error))?;
        self.store.save(&self.name, &text).await.map_err(|error| failed(&error))
    }

    pub(super) async fn remove(&self) -> Result<bool, AuthError> {
        self.store.remove(&self.name).await.map_err(|error| failed(&error))
    }

    /// Waits for the lock that holds over all who use the same store.
    pub(super) async fn lock(&self) -> Result<Box<dyn Send + Sync>, AuthError> {
        self.store.lock(&self.name).await.map_err(|error| failed(&error))
    }
}

fn failed(error: &dyn fmt::Display) -> AuthError {
    AuthError::CredentialStoreError(error.to_string())
}

/// A record as `rmcp` keeps its part of it.
pub(super) struct Kept {
    pub(super) place: Place,
    pub(super) beside: Beside,
}

#[async_trait]
impl CredentialStore for Kept {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        Ok(self.place.load().await?.map(|record| record.credentials))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        self.place.save(&Record { credentials, beside: self.beside.clone() }).await
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.place.remove().await.map(|_| ())
    }

    /// What is refused once is not sent again: a server that sees it twice may take it for stolen.
    async fn on_refresh_token_rejected(&self, rejected: &StoredCredentials) -> Result<(), AuthError> {
        let mut credentials = rejected.clone();
        credentials.token_response = None;
        self.save(credentials).await
    }
}

/// A token as it is sent.
struct Token {
    text: String,
    /// In milliseconds since 1970.
    ends_ms: Option<u64>,
    /// How much of its time must be left for it to be used as it is.
    least_left: Duration,
}

impl Token {
    fn of(record: &Record) -> Option<Self> {
        // The types of its parts are not `rmcp`'s own.
        let token = serde_json::to_value(record.credentials.token_response.as_ref()?).ok()?;
        let text = token.get("access_token")?.as_str()?.to_owned();
        let lasts = token.get("expires_in").and_then(serde_json::Value::as_u64);
        let ends = lasts.zip(record.credentials.token_received_at).map(|(lasts, from)| from.saturating_add(lasts));
        let least_left = lasts.map_or(LEAST_LEFT, |seconds| LEAST_LEFT.min(Duration::from_secs(seconds) / 4));
        Some(Self { text, ends_ms: ends.map(|seconds| seconds.saturating_mul(1000)), least_left })
    }

    fn is_fresh(&self, now_ms: u64) -> bool {
        self.lasts(now_ms, self.least_left)
    }

    /// Whether it lasts longer than this.
    fn lasts(&self, now_ms: u64, long: Duration) -> bool {
        self.ends_ms.is_none_or(|ends| u128::from(ends.saturating_sub(now_ms)) > long.as_millis())
    }
}

/// Who we are at one server, while a connection to it is open.
pub(crate) struct Account {
    place: Place,
    url: String,
    /// Where no person signs in.
    machine: Option<Machine>,
    token: Mutex<Option<Token>>,
    clock: Arc<dyn Clock>,
    network: Network,
}

/// Why another token is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reason {
    /// The one that is there ends soon.
    EndsSoon,
    /// The one that is there was refused, or there is none.
    Unusable,
}

impl Account {
    /// The account of this server; `None` where the operator gave a key of their own.
    pub(crate) async fn of(
        (server, config): (&str, &HttpConfig),
        network: &Network,
        surroundings: &Surroundings,
    ) -> Result<Option<Self>, AuthError> {
        if config.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
            return Ok(None);
        }
        let place = Place::new(&surroundings.tokens, server, &config.url);
        let machine = Machine::of(config)?;
        let record = place.load().await?.filter(|record| machine.as_ref().is_none_or(|machine| machine.is_whose(record)));
        let token = Mutex::new(record.as_ref().and_then(Token::of));
        Ok(Some(Self {
            place,
            url: config.url.clone(),
            machine,
            token,
            clock: Arc::clone(&surroundings.clock),
            network: network.clone(),
        }))
    }

    /// The token to send, renewed where it is about to end; `None` where somebody must sign in first.
    pub(crate) async fn token(&self) -> Result<Option<String>, AuthError> {
        let mut token = self.token.lock().await;
        match &*token {
            Some(now) if !now.is_fresh(self.clock.now_ms()) => self.renew(&mut token, Reason::EndsSoon).await,
            None if self.machine.is_some() => self.renew(&mut token, Reason::Unusable).await,
            now => Ok(text(now.as_ref())),
        }
    }

    /// Another token than the one that was refused; `None` where there is none.
    pub(crate) async fn instead_of(&self, refused: &str) -> Result<Option<String>, AuthError> {
        let mut token = self.token.lock().await;
        match &*token {
            Some(now) if now.text == refused => self.renew(&mut token, Reason::Unusable).await,
            now => Ok(text(now.as_ref())),
        }
    }

    /// The server wants more to be allowed than it is: the next sign-in asks for that too.
    pub(crate) async fn wants(&self, scopes: &str) -> Result<(), AuthError> {
        let _lock = self.place.lock().await?;
        let Some(mut record) = self.place.load().await? else { return Ok(()) };
        for scope in scopes.split_whitespace() {
            if !record.beside.wanted.iter().any(|known| known == scope) {
                record.beside.wanted.push(scope.to_owned());
            }
        }
        self.place.save(&record).await
    }

    /// One renewal serves all, in whatever process: who waited for it finds the new token.
    async fn renew(&self, token: &mut Option<Token>, reason: Reason) -> Result<Option<String>, AuthError> {
        let _lock = self.place.lock().await?;
        let record =
            self.place.load().await?.filter(|record| self.machine.as_ref().is_none_or(|machine| machine.is_whose(record)));
        let kept = record.as_ref().and_then(Token::of);
        let now_ms = self.clock.now_ms();
        let is_other = |kept: &Token| token.as_ref().is_none_or(|before| before.text != kept.text);
        if kept.as_ref().is_some_and(|kept| kept.is_fresh(now_ms) && is_other(kept)) {
            *token = kept;
            return Ok(text(token.as_ref()));
        }
        let asked = self.asked(record).await;
        if asked.is_err() && reason == Reason::EndsSoon && token.as_ref().is_some_and(|now| now.lasts(now_ms, A_REQUEST)) {
            // It is good still, and the next request tries again.
            return Ok(text(token.as_ref()));
        }
        *token = match asked {
            Ok(record) => Token::of(&record),
            Err(AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_)) => None,
            Err(error) => return Err(error),
        };
        Ok(text(token.as_ref()))
    }

    /// Asks the authorization server for a new token; the lock is held.
    async fn asked(&self, record: Option<Record>) -> Result<Record, AuthError> {
        match (&self.machine, record) {
            (Some(machine), record) => machine.asked((&self.url, &self.network), &self.place, record).await?,
            (None, Some(record)) => self.refreshed(record).await?,
            (None, None) => return Err(AuthError::AuthorizationRequired),
        }
        self.place.load().await?.ok_or(AuthError::AuthorizationRequired)
    }

    async fn refreshed(&self, record: Record) -> Result<(), AuthError> {
        let token = serde_json::to_value(&record.credentials.token_response).unwrap_or_default();
        if token.get("refresh_token").is_none() {
            return Err(AuthError::AuthorizationRequired);
        }
        let mut manager = asks::manager(&self.url, &self.network).await?;
        let Record { credentials, beside } = record;
        let resolution = manager.resolve_metadata().await?;
        if resolution.metadata.issuer != credentials.issuer {
            // What is sent is for who gave it, and for no address that was only guessed; the server may name it again later.
            return Err(match resolution.source {
                AuthorizationMetadataSource::LegacyEndpointFallback => {
                    flow::failed(&"it says nowhere now which authorization server is its own")
                }
                _ => AuthError::AuthorizationRequired,
            });
        }
        manager.set_metadata(resolution.metadata);
        manager.set_credential_store(Kept { place: self.place.clone(), beside: beside.clone() });
        if !manager.initialize_from_store().await? {
            return Err(AuthError::AuthorizationRequired);
        }
        if let Some(secret) = beside.client_secret {
            let client = OAuthClientConfig::new(credentials.client_id, self.url.as_str());
            manager.configure_client(client.with_client_secret(secret))?;
        }
        manager.refresh_token().await.map(|_| ())
    }
}

fn text(token: Option<&Token>) -> Option<String> {
    token.map(|token| token.text.clone())
}

impl fmt::Debug for Account {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Account").field("url", &self.url).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_used_until_shortly_before_its_end_and_a_short_one_for_most_of_its_time() {
        let token = |lasts_s: u64| {
            let token = serde_json::json!({"access_token": "a", "token_type": "Bearer", "expires_in": lasts_s});
            let token = serde_json::from_value(token).unwrap();
            let credentials = StoredCredentials::new("client".into(), Some(token), Vec::new(), Some(1_000));
            Token::of(&Record { credentials, beside: Beside::default() }).unwrap()
        };
        let fresh_for = |lasts_s| (0..=lasts_s).take_while(|after| token(lasts_s).is_fresh((1_000 + after) * 1000)).count();
        assert_eq!([3600, 60, 20, 0].map(fresh_for), [3570, 45, 15, 0]);
    }
}
