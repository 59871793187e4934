//! Signing out: the tokens are forgotten here, and given back to who gave them where that is possible (RFC 7009).

use std::fmt;
use std::time::Duration;

use reqwest::Url;
use rmcp::transport::auth::AuthorizationMetadata;
use serde_json::Value;
use turnwright_network::Network;

use super::account::{Record, Revocation};
use super::flow::words;
use crate::transport::http::Endpoint;
use crate::{HttpConfig, McpError, McpServer, TransportConfig};

/// How long an authorization server may take to take tokens back.
const LIMIT: Duration = Duration::from_secs(10);

/// What came of signing out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignedOut {
    /// Nobody was signed in.
    WasNot,
    /// The tokens are forgotten, and the authorization server takes them no more.
    Revoked,
    /// The tokens are forgotten here alone, for this reason: who has a copy can use them until they end.
    Forgotten {
        /// Why they were not given back.
        reason: String,
    },
}

/// What signing in brought, where it is forgotten here and not given back yet.
#[must_use]
pub struct Removed(Tokens);

enum Tokens {
    /// Nobody was signed in.
    None,
    /// They cannot be read.
    Unreadable,
    Of(Box<Record>),
}

impl fmt::Debug for Removed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Removed").finish_non_exhaustive()
    }
}

impl McpServer {
    /// Forgets all that is kept of it here, since it is taken away or becomes another's: what it offered, and what signing in brought,
    /// which [`McpServer::give_back`] gives back then. Nobody outside is waited for.
    ///
    /// # Errors
    ///
    /// [`McpError::SignIn`], where what signing in brought could not be removed.
    pub async fn forget(&self) -> Result<Removed, McpError> {
        self.shared().surroundings.definitions.forget(self.config());
        match &self.config().transport {
            TransportConfig::Http(_) => self.removed().await,
            TransportConfig::Stdio(_) | TransportConfig::Docker(_) => Ok(Removed(Tokens::None)),
        }
    }

    /// Gives tokens that were removed here back to the authorization server, where that takes them.
    pub async fn give_back(&self, removed: Removed) -> SignedOut {
        let given_back = match (removed.0, self.place()) {
            (Tokens::None, _) => return SignedOut::WasNot,
            (Tokens::Unreadable, _) => Ok(Err("they could not be read".to_owned())),
            (Tokens::Of(record), Ok((config, _))) => {
                tokio::time::timeout(LIMIT, given_back(config, &self.network().await, *record)).await
            }
            (Tokens::Of(_), Err(error)) => Ok(Err(error.to_string())),
        };
        match given_back.unwrap_or_else(|_| Err("the authorization server did not answer within 10 seconds".to_owned())) {
            Ok(()) => SignedOut::Revoked,
            Err(reason) => SignedOut::Forgotten { reason: self.shared().without_secrets(reason.as_str()) },
        }
    }

    /// Forgets what signing in brought, and gives it back to the authorization server where that takes it.
    ///
    /// # Errors
    ///
    /// [`McpError::SignIn`], where it could not be removed.
    pub async fn sign_out(&self) -> Result<SignedOut, McpError> {
        let removed = self.removed().await?;
        Ok(self.give_back(removed).await)
    }

    async fn removed(&self) -> Result<Removed, McpError> {
        let (_, place) = self.place()?;
        let removed = async {
            let _lock = place.lock().await?;
            // What cannot be read is forgotten as well.
            let record = place.load().await.ok().flatten();
            Ok(match (place.remove().await?, record) {
                (false, _) => Tokens::None,
                (true, None) => Tokens::Unreadable,
                (true, Some(record)) => Tokens::Of(Box::new(record)),
            })
        };
        removed.await.map(Removed).map_err(|error| McpError::SignIn { message: words(&error) })
    }
}

/// Where an authorization server takes tokens back. Only the origin that gave them is told them.
pub(super) fn offered(metadata: &AuthorizationMetadata) -> Option<Revocation> {
    let field = |name: &str| metadata.additional_fields.get(name);
    let url: Url = field("revocation_endpoint")?.as_str()?.parse().ok()?;
    let giver: Url = metadata.token_endpoint.parse().ok()?;
    let methods = field("revocation_endpoint_auth_methods_supported").and_then(Value::as_array);
    let takes = |name| methods.is_none_or(|methods| methods.iter().any(|method| method == name));
    let secret_in_form = !takes("client_secret_basic") && takes("client_secret_post");
    (url.origin() == giver.origin()).then(|| Revocation { url: url.into(), secret_in_form })
}

async fn given_back(config: &HttpConfig, network: &Network, record: Record) -> Result<(), String> {
    let Some(revocation) = &record.beside.revocation else {
        return Err("the authorization server takes none back".to_owned());
    };
    let token = serde_json::to_value(&record.credentials.token_response).map_err(|error| error.to_string())?;
    // With the first, what came of it ends as well, where the server does as it should; some do not.
    for name in ["refresh_token", "access_token"] {
        if let Some(token) = token.get(name).and_then(Value::as_str) {
            give_back((config, network), &record, revocation, (name, token)).await?;
        }
    }
    Ok(())
}

async fn give_back(
    (config, network): (&HttpConfig, &Network),
    record: &Record,
    revocation: &Revocation,
    (kind, token): (&str, &str),
) -> Result<(), String> {
    // The server's own headers go to the server alone.
    let mut bare = HttpConfig::new(&revocation.url);
    bare.oauth.clone_from(&config.oauth);
    let endpoint = Endpoint::new(&bare, usize::MAX, None, network).await.map_err(|error| error.to_string())?;
    let id = record.credentials.client_id.as_str();
    let mut form = vec![("token", token), ("token_type_hint", kind)];
    let mut basic = None;
    match (&record.beside.client_secret, revocation.secret_in_form) {
        (Some(secret), true) => form.extend([("client_id", id), ("client_secret", secret)]),
        (Some(secret), false) => basic = Some((id, secret.as_str())),
        (None, _) => form.push(("client_id", id)),
    }
    let status = endpoint.post_form(&form, basic).await.map_err(|error| error.to_string())?;
    if status.is_success() { Ok(()) } else { Err(format!("the authorization server answered HTTP {status}")) }
}
