//! The token that goes with the requests to one server, and its renewal.

use std::fmt::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rmcp::transport::auth::{AuthError, AuthorizationMetadataSource, CredentialStore, OAuthClientConfig, StoredCredentials};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnwright_engine::Clock;
use turnwright_network::Network;

use super::TokenStore;
use super::asks;
use super::flow::{self, words};
use super::machine::Machine;
use crate::connection::Opening;
use crate::kept::digest;
use crate::{HttpConfig, ServerConfig, TransportConfig};

/// A token that ends sooner is renewed before it is used, and one that lasts short in its last quarter.
const LEAST_LEFT: Duration = Duration::from_secs(30);
/// A token that cannot be renewed is still sent where it lasts this long.
const A_REQUEST: Duration = Duration::from_secs(2);
/// How long a renewal may still take once its server is to end: what it brings is the only way in from then on.
const LAST_RENEWAL: Duration = Duration::from_secs(5);

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

    /// The server asks for these scopes too.
    fn want(&mut self, scopes: &str) {
        for scope in scopes.split_whitespace() {
            if !self.beside.wanted.iter().any(|known| known == scope) {
                self.beside.wanted.push(scope.to_owned());
            }
        }
    }

    /// Whether its token allows all of these scopes, as far as its giver said.
    fn allows(&self, scopes: &str) -> bool {
        let granted = &self.credentials.granted_scopes;
        scopes.split_whitespace().all(|scope| granted.iter().any(|known| known == scope))
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
    /// Of this server at its address: another address is another account, and so is another user's server of this name.
    pub(super) fn new(store: &Arc<dyn TokenStore>, server: &ServerConfig, url: &str) -> Self {
        let owner = server.owner.as_ref().map(|owner| format!("\0{}", owner.as_str())).unwrap_or_default();
        let digest = Sha256::digest(format!("{}\0{url}{owner}", server.name));
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

/// What tells one sign-in at a server from another, and is not secret; `None` where nobody is signed in.
pub(crate) async fn mark(server: &ServerConfig, tokens: &Arc<dyn TokenStore>) -> Option<String> {
    let TransportConfig::Http(http) = &server.transport else { return None };
    let record = Place::new(tokens, server, &http.url).load().await.ok()??;
    record.token().map(|token| digest(&token))
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
    /// Owns the renewals, which go on where nobody waits for them any more.
    tracker: TaskTracker,
    /// The server is to end.
    stop: CancellationToken,
}

/// For what a token is wanted.
#[derive(Debug)]
enum Need {
    /// For the next request.
    Next,
    /// This one was refused.
    InsteadOf(String),
    /// This one allows too little: the server wants these scopes to be allowed too.
    More { than: String, scopes: String },
}

impl Account {
    /// The account of this server; `None` where the operator gave a key of their own.
    pub(crate) async fn of(
        config: &HttpConfig,
        network: &Network,
        opening: &Opening<'_>,
    ) -> Result<Option<Arc<Self>>, AuthError> {
        if config.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
            return Ok(None);
        }
        let place = Place::new(&opening.surroundings.tokens, opening.config, &config.url);
        let machine = Machine::of(config)?;
        let record = place.load().await?.filter(|record| machine.as_ref().is_none_or(|machine| machine.is_whose(record)));
        let token = Mutex::new(record.as_ref().and_then(Token::of));
        Ok(Some(Arc::new(Self {
            place,
            url: config.url.clone(),
            machine,
            token,
            clock: Arc::clone(&opening.surroundings.clock),
            network: network.clone(),
            tracker: opening.tracker.clone(),
            stop: opening.stop.clone(),
        })))
    }

    /// The token to send, renewed where it is about to end; `None` where somebody must sign in first.
    pub(crate) async fn token(self: &Arc<Self>) -> Result<Option<String>, AuthError> {
        self.given(Need::Next).await
    }

    /// Another token than the one that was refused; `None` where there is none.
    pub(crate) async fn instead_of(self: &Arc<Self>, refused: &str) -> Result<Option<String>, AuthError> {
        Ok(self.given(Need::InsteadOf(refused.to_owned())).await?.filter(|new| new != refused))
    }

    /// The server wants more to be allowed than this token allows. Another token where there is one, or where nobody has to be asked
    /// for it; else the next sign-in asks for that too.
    ///
    /// # Errors
    ///
    /// [`AuthError::InsufficientScope`] where nobody signs in, and the client is given no more.
    pub(crate) async fn wants(self: &Arc<Self>, scopes: &str, than: &str) -> Result<Option<String>, AuthError> {
        let given = self.given(Need::More { than: than.to_owned(), scopes: scopes.to_owned() }).await;
        match (self.signs_in_by_itself(), given) {
            (_, Ok(Some(new))) if new != than => Ok(Some(new)),
            (false, given) => given.map(|_| None),
            (true, Ok(_)) => Err(too_little(scopes)),
            (true, Err(error)) => Err(too_little(&format!("{scopes} ({})", words(&error)))),
        }
    }

    /// Whether nobody signs in: its client has a secret for that.
    pub(crate) fn signs_in_by_itself(&self) -> bool {
        self.machine.is_some()
    }

    /// Whether what is there is what is needed, as far as there may be better.
    fn suffices(&self, token: Option<&Token>, need: &Need) -> bool {
        match (need, token) {
            (Need::Next, Some(now)) => now.is_fresh(self.clock.now_ms()),
            (Need::Next, None) => self.machine.is_none(),
            (Need::InsteadOf(than) | Need::More { than, .. }, now) => now.is_none_or(|now| now.text != *than),
        }
    }

    /// A token for what is needed. A renewal is a task of its own, which is only waited for here: whoever asks may leave while the
    /// authorization server has given the new token already, and takes the old one no more.
    async fn given(self: &Arc<Self>, need: Need) -> Result<Option<String>, AuthError> {
        let token = self.token.lock().await;
        if self.suffices(token.as_ref(), &need) {
            return Ok(text(token.as_ref()));
        }
        drop(token);
        let account = Arc::clone(self);
        let renewal = self.tracker.spawn(async move {
            let is_too_late = async {
                account.stop.cancelled().await;
                tokio::time::sleep(LAST_RENEWAL).await;
            };
            tokio::select! {
                renewed = account.renewed(&need) => renewed,
                () = is_too_late => Err(AuthError::TokenRefreshFailed("the server was stopped meanwhile".to_owned())),
            }
        });
        renewal.await.unwrap_or_else(|error| Err(AuthError::InternalError(error.to_string())))
    }

    async fn renewed(&self, need: &Need) -> Result<Option<String>, AuthError> {
        let mut token = self.token.lock().await;
        if self.suffices(token.as_ref(), need) {
            return Ok(text(token.as_ref()));
        }
        self.renew(&mut token, need).await
    }

    /// One renewal serves all, in whatever process: who waited for it finds the new token.
    async fn renew(&self, token: &mut Option<Token>, need: &Need) -> Result<Option<String>, AuthError> {
        let _lock = self.place.lock().await?;
        let mut record =
            self.place.load().await?.filter(|record| self.machine.as_ref().is_none_or(|machine| machine.is_whose(record)));
        let mut is_all_there_is = false;
        if let (Need::More { scopes, .. }, Some(record)) = (need, &mut record) {
            is_all_there_is = self.machine.is_none() || record.allows(scopes);
            record.want(scopes);
            if self.machine.is_none() {
                self.place.save(record).await?;
            }
        }
        let kept = record.as_ref().and_then(Token::of);
        let now_ms = self.clock.now_ms();
        let is_other = |kept: &Token| token.as_ref().is_none_or(|before| before.text != kept.text);
        if kept.as_ref().is_some_and(|kept| kept.is_fresh(now_ms) && is_other(kept)) {
            *token = kept;
            return Ok(text(token.as_ref()));
        }
        if is_all_there_is {
            return Ok(text(token.as_ref()));
        }
        let asked = self.asked(record).await;
        match (asked, need) {
            (Ok(record), _) => *token = Token::of(&record),
            // It is good still, and the next request tries again.
            (Err(_), Need::Next) if token.as_ref().is_some_and(|now| now.lasts(now_ms, A_REQUEST)) => {}
            (Err(error), Need::More { .. }) => return Err(error),
            (Err(AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_)), _) => *token = None,
            (Err(error), _) => return Err(error),
        }
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

/// A client that signs in by itself is given less than its server wants for a request.
pub(crate) fn too_little(scopes: &str) -> AuthError {
    AuthError::InsufficientScope { required_scope: scopes.to_owned(), upgrade_url: None }
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
