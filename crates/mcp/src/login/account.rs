//! The token that goes with the requests to one server, and its renewal.

use std::fmt::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rmcp::transport::auth::{AuthError, AuthorizationManager, CredentialStore, OAuthClientConfig, StoredCredentials};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::sync::Mutex;
use turnwright_engine::Clock;

use super::TokenStore;
use crate::{HttpConfig, Surroundings};

/// A token that ends sooner is renewed before it is used.
const LEAST_LEFT: Duration = Duration::from_secs(30);

/// What is kept of a sign-in.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) credentials: StoredCredentials,
    /// The client's own secret, where it has one.
    #[serde(default)]
    pub(super) client_secret: Option<String>,
    /// What the server asked for beyond what it was granted; the next sign-in asks for it too.
    #[serde(default)]
    pub(super) wanted: Vec<String>,
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

    pub(super) fn load(&self) -> Result<Option<Record>, AuthError> {
        let text = self.store.load(&self.name).map_err(|error| failed(&error))?;
        text.map(|text| serde_json::from_str(&text).map_err(|error| failed(&error))).transpose()
    }

    pub(super) fn save(&self, record: &Record) -> Result<(), AuthError> {
        let text = serde_json::to_string(record).map_err(|error| failed(&error))?;
        self.store.save(&self.name, &text).map_err(|error| failed(&error))
    }

    pub(super) fn remove(&self) -> Result<bool, AuthError> {
        self.store.remove(&self.name).map_err(|error| failed(&error))
    }

    /// Waits for the lock that holds across processes.
    pub(super) async fn lock(&self) -> Result<Box<dyn Send>, AuthError> {
        let (store, name) = (Arc::clone(&self.store), self.name.clone());
        let locked = tokio::task::spawn_blocking(move || store.lock(&name)).await;
        locked.map_err(|error| failed(&error))?.map_err(|error| failed(&error))
    }
}

fn failed(error: &dyn fmt::Display) -> AuthError {
    AuthError::CredentialStoreError(error.to_string())
}

/// A record as `rmcp` keeps its part of it.
pub(super) struct Kept {
    pub(super) place: Place,
    /// What is kept beside `rmcp`'s part.
    pub(super) client_secret: Option<String>,
}

#[async_trait]
impl CredentialStore for Kept {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        Ok(self.place.load()?.map(|record| record.credentials))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        self.place.save(&Record { credentials, client_secret: self.client_secret.clone(), wanted: Vec::new() })
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.place.remove().map(|_| ())
    }
}

/// A token as it is sent.
struct Token {
    text: String,
    /// In milliseconds since 1970.
    ends_ms: Option<u64>,
}

impl Token {
    fn of(record: &Record) -> Option<Self> {
        // The types of its parts are not `rmcp`'s own.
        let token = serde_json::to_value(record.credentials.token_response.as_ref()?).ok()?;
        let text = token.get("access_token")?.as_str()?.to_owned();
        let lasts = token.get("expires_in").and_then(serde_json::Value::as_u64);
        let ends = lasts.zip(record.credentials.token_received_at).map(|(lasts, from)| from.saturating_add(lasts));
        Some(Self { text, ends_ms: ends.map(|seconds| seconds.saturating_mul(1000)) })
    }

    fn is_fresh(&self, now_ms: u64) -> bool {
        self.ends_ms.is_none_or(|ends| u128::from(ends.saturating_sub(now_ms)) >= LEAST_LEFT.as_millis())
    }
}

/// Who we are at one server, while a connection to it is open.
pub(crate) struct Account {
    place: Place,
    url: String,
    token: Mutex<Option<Token>>,
    clock: Arc<dyn Clock>,
}

impl Account {
    /// The account of this server; `None` where the operator gave a key of their own.
    pub(crate) fn of(server: &str, config: &HttpConfig, surroundings: &Surroundings) -> Result<Option<Self>, AuthError> {
        if config.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
            return Ok(None);
        }
        let place = Place::new(&surroundings.tokens, server, &config.url);
        let token = place.load()?.as_ref().and_then(Token::of);
        Ok(Some(Self { place, url: config.url.clone(), token: Mutex::new(token), clock: Arc::clone(&surroundings.clock) }))
    }

    /// The token to send, renewed where it is about to end; `None` where somebody must sign in first.
    pub(crate) async fn token(&self) -> Result<Option<String>, AuthError> {
        let mut token = self.token.lock().await;
        match &*token {
            Some(now) if !now.is_fresh(self.clock.now_ms()) => self.renew(&mut token).await,
            now => Ok(now.as_ref().map(|now| now.text.clone())),
        }
    }

    /// Another token than the one that was refused; `None` where there is none.
    pub(crate) async fn instead_of(&self, refused: &str) -> Result<Option<String>, AuthError> {
        let mut token = self.token.lock().await;
        match &*token {
            Some(now) if now.text == refused => self.renew(&mut token).await,
            now => Ok(now.as_ref().map(|now| now.text.clone())),
        }
    }

    /// The server wants more to be allowed than it is: the next sign-in asks for that too.
    pub(crate) async fn wants(&self, scopes: &str) -> Result<(), AuthError> {
        let _lock = self.place.lock().await?;
        let Some(mut record) = self.place.load()? else { return Ok(()) };
        for scope in scopes.split_whitespace() {
            if !record.wanted.iter().any(|known| known == scope) {
                record.wanted.push(scope.to_owned());
            }
        }
        self.place.save(&record)
    }

    /// One renewal serves all, in whatever process: who waited for it finds the new token.
    async fn renew(&self, token: &mut Option<Token>) -> Result<Option<String>, AuthError> {
        let before = token.take();
        let _lock = self.place.lock().await?;
        let Some(record) = self.place.load()? else { return Ok(None) };
        *token = Token::of(&record);
        let now_ms = self.clock.now_ms();
        let is_other = |now: &Token| before.as_ref().is_none_or(|before| before.text != now.text);
        let is_new = token.as_ref().is_some_and(|now| now.is_fresh(now_ms) && is_other(now));
        if !is_new {
            *token = match self.refreshed(record).await {
                Ok(record) => Token::of(&record),
                Err(AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_)) => None,
                Err(error) => return Err(error),
            };
        }
        Ok(token.as_ref().map(|now| now.text.clone()))
    }

    /// Asks the authorization server for a new token; the lock is held.
    async fn refreshed(&self, record: Record) -> Result<Record, AuthError> {
        let mut manager = AuthorizationManager::new(self.url.as_str()).await?;
        let Record { credentials, client_secret, .. } = record;
        manager.set_credential_store(Kept { place: self.place.clone(), client_secret: client_secret.clone() });
        if !manager.initialize_from_store().await? {
            return Err(AuthError::AuthorizationRequired);
        }
        if let Some(secret) = client_secret {
            let client = OAuthClientConfig::new(credentials.client_id, self.url.as_str());
            manager.configure_client(client.with_client_secret(secret))?;
        }
        manager.refresh_token().await?;
        self.place.load()?.ok_or(AuthError::AuthorizationRequired)
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Account").field("url", &self.url).finish_non_exhaustive()
    }
}
