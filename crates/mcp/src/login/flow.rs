//! Signing in: found out where, asked of a person in the browser, kept.

use std::error::Error;
use std::fmt::Write;
use std::time::Duration;

use reqwest::Url;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, AuthorizationMetadataSource, AuthorizationRequest,
    AuthorizationSession,
};

use super::account::{Beside, Kept, Place};
use super::asks;
use super::listener::{Listener, query};
use super::revoke;
use crate::transport::http::Endpoint;
use crate::{HttpConfig, McpError, McpServer, OauthConfig, OauthGrant, TransportConfig};

const CLIENT_NAME: &str = "Turnwright";
/// How long a person may take in the browser.
const PERSON_LIMIT: Duration = Duration::from_mins(5);
/// Characters of what an authorization server says that are repeated.
const MAX_WORDS: usize = 300;

impl McpServer {
    /// Signs in at the server and keeps what that brings, so that the next connection to it uses it. `show` is given the
    /// address that a person must open; the browser comes back to a port of this machine.
    ///
    /// # Errors
    ///
    /// [`McpError::SignIn`], where somebody or something said no, or took longer than five minutes.
    pub async fn sign_in(&self, show: impl FnOnce(&str) + Send) -> Result<(), McpError> {
        let (config, place) = self.place()?;
        let signed_in = self.signed_in(config, place, show).await;
        signed_in.map_err(|error| McpError::SignIn { message: self.shared().without_secrets(words(&error).as_str()) })
    }

    pub(super) fn place(&self) -> Result<(&HttpConfig, Place), McpError> {
        let TransportConfig::Http(config) = &self.config().transport else {
            return Err(McpError::SignIn { message: "only servers with an address (url) have one".to_owned() });
        };
        Ok((config, Place::new(self.tokens(), self.config(), &config.url)))
    }

    async fn signed_in(&self, config: &HttpConfig, place: Place, show: impl FnOnce(&str) + Send) -> Result<(), AuthError> {
        if config.oauth.grant == OauthGrant::ClientCredentials {
            return Err(failed(&"it is signed in to with the client's own secret (`grant`), by nobody in a browser"));
        }
        let network = self.network().await;
        let asked = Endpoint::new(config, usize::MAX, None, &network).await.map_err(|error| failed(&error))?;
        let challenge = asked.challenge().await.map_err(|error| failed(&error))?;
        let before = place.load().await.ok().flatten();
        let listener = Listener::bind(config.oauth.redirect_port).await;
        let listener = listener.map_err(|error| failed(&format!("no port to come back to: {error}")))?;

        let mut manager = asks::manager(&config.url, &network).await?;
        let resolution = manager.resolve_metadata_from_challenge(challenge.as_deref()).await?;
        if challenge.is_none() && resolution.source == AuthorizationMetadataSource::LegacyEndpointFallback {
            return Err(failed(&"it does not ask for a sign-in, and says nowhere how to"));
        }
        check(&resolution.metadata, resolution.source)?;
        let metadata = resolution.metadata.clone();
        manager.set_metadata(resolution.metadata);

        let mut scopes = manager.select_initial_scopes(&[]).await;
        if scopes.is_empty() {
            scopes.clone_from(&config.oauth.scopes);
        }
        // What was allowed before is not lost by asking for more.
        if let Some(before) = before.filter(|before| !before.beside.wanted.is_empty()) {
            for scope in before.credentials.granted_scopes.into_iter().chain(before.beside.wanted) {
                if !scopes.contains(&scope) {
                    scopes.push(scope);
                }
            }
        }
        let (request, client_secret) = client(&mut manager, &metadata, &config.oauth, &listener.address(), &scopes).await?;
        let beside = Beside { client_secret, wanted: Vec::new(), revocation: revoke::offered(&metadata) };
        manager.set_credential_store(Kept { place: place.clone(), beside });
        let session = AuthorizationSession::new(manager, request).await.map_err(|(_, error)| error)?;
        let address = session.get_authorization_url();
        let state = Url::parse(address).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let state = state.and_then(|url| query(&url, "state"));
        let state = state.ok_or_else(|| failed(&"its authorization server has no address that a browser opens"))?;
        show(address);
        let visit = tokio::time::timeout(PERSON_LIMIT, listener.visit(&state)).await;
        let visit = visit.map_err(|_| failed(&"nobody came back from the browser within five minutes"))?;
        let visit = visit.map_err(|error| failed(&error))?;
        refusal(&visit, metadata.issuer.as_deref())?;
        let _lock = place.lock().await?;
        session.handle_callback_url(visit.as_str()).await?;
        let token = place.load().await?.and_then(|record| record.token());
        if let Some(token) = token
            && !asked.takes(&token).await.map_err(|error| failed(&error))?
        {
            place.remove().await?;
            let text = "it does not take the token that its authorization server gave, which may be for another resource";
            return Err(failed(&text));
        }
        Ok(())
    }
}

/// Whether codes can be exchanged safely: without S256 somebody else could use ours.
fn check(metadata: &AuthorizationMetadata, source: AuthorizationMetadataSource) -> Result<(), AuthError> {
    let methods = metadata.code_challenge_methods_supported.as_deref().unwrap_or_default();
    // Servers of 2025-03-26 without any metadata have to take it by that revision.
    let is_old = source == AuthorizationMetadataSource::LegacyEndpointFallback;
    if is_old || methods.iter().any(|method| method == "S256") { Ok(()) } else { Err(AuthError::PkceUnsupported) }
}

/// The request with who we are: as configured, by the address of our own description, or by registration now.
async fn client(
    manager: &mut AuthorizationManager,
    metadata: &AuthorizationMetadata,
    config: &OauthConfig,
    back: &str,
    scopes: &[String],
) -> Result<(AuthorizationRequest, Option<String>), AuthError> {
    let request = AuthorizationRequest::new(back).with_application_type("native").with_client_name(CLIENT_NAME);
    let request =
        if scopes.is_empty() { request.with_initial_scope_selection() } else { request.with_scopes(scopes.iter().cloned()) };
    let takes_addresses = metadata.additional_fields.get("client_id_metadata_document_supported");
    let takes_addresses = takes_addresses.and_then(serde_json::Value::as_bool) == Some(true);
    let (id, secret) = match (&config.client_id, &config.client_metadata_url) {
        (Some(id), _) => (id.clone(), config.client_secret.clone()),
        (None, Some(url)) if takes_addresses => return Ok((request.with_client_metadata_url(url), None)),
        (None, _) if metadata.registration_endpoint.is_none() => {
            let text = "its authorization server registers nobody by itself: register a client there and name it as `client_id` \
                        in the server's table `oauth`";
            return Err(failed(&text));
        }
        (None, _) => {
            let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
            let registered = manager.register_client(CLIENT_NAME, back, &scopes).await?;
            (registered.client_id, registered.client_secret)
        }
    };
    let request = request.with_preregistered_client(id);
    Ok(match &secret {
        Some(text) => (request.with_client_secret(text), secret),
        None => (request, None),
    })
}

/// What the browser brought instead of a code. Words that may be another server's are not repeated.
fn refusal(visit: &Url, issuer: Option<&str>) -> Result<(), AuthError> {
    let Some(error) = query(visit, "error") else { return Ok(()) };
    if query(visit, "iss").is_some_and(|iss| Some(iss.as_str()) != issuer) {
        return Err(failed(&"the browser came back from another authorization server than it was sent to"));
    }
    let said = query(visit, "error_description").map(|text| format!(" ({text})")).unwrap_or_default();
    Err(failed(&format!("the authorization server said {error}{said}")))
}

pub(super) fn failed(what: &dyn std::fmt::Display) -> AuthError {
    AuthError::AuthorizationFailed(what.to_string())
}

/// An error with what is below it, without what may act on a terminal.
pub(super) fn words(error: &AuthError) -> String {
    let mut words = match error {
        AuthError::AuthorizationFailed(own) => own.clone(),
        other => other.to_string(),
    };
    let mut cause = error.source();
    while let Some(now) = cause {
        let _ = write!(words, ": {now}");
        cause = now.source();
    }
    words.chars().filter(|character| !character.is_control()).take(MAX_WORDS).collect()
}
