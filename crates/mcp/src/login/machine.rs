//! A machine's own sign-in: the client's id and secret are exchanged for a token, and nobody opens a browser.

use rmcp::transport::auth::{AuthError, AuthorizationMetadataSource, ClientCredentialsConfig};

use turnwright_network::Network;

use super::account::{Beside, Kept, Place, Record};
use super::asks;
use super::flow::failed;
use super::revoke;
use crate::{HttpConfig, OauthGrant};

/// A client that signs in by itself.
pub(super) struct Machine {
    client_id: String,
    client_secret: String,
    scopes: Vec<String>,
}

impl Machine {
    /// Where the operator said that no person signs in.
    pub(super) fn of(config: &HttpConfig) -> Result<Option<Self>, AuthError> {
        let oauth = &config.oauth;
        match (oauth.grant, &oauth.client_id, &oauth.client_secret) {
            (OauthGrant::Person, ..) => Ok(None),
            (OauthGrant::ClientCredentials, Some(id), Some(secret)) => {
                let (client_id, client_secret) = (id.clone(), secret.clone());
                Ok(Some(Self { client_id, client_secret, scopes: oauth.scopes.clone() }))
            }
            (OauthGrant::ClientCredentials, ..) => {
                Err(failed(&"its `oauth` needs `client_id` and `client_secret` for its `grant`"))
            }
        }
    }

    /// Whether what is kept was given to this client.
    pub(super) fn is_whose(&self, record: &Record) -> bool {
        record.credentials.client_id == self.client_id
    }

    /// Asks for a token and keeps it; the lock is held.
    pub(super) async fn asked(
        &self,
        (url, network): (&str, &Network),
        place: &Place,
        record: Option<Record>,
    ) -> Result<(), AuthError> {
        let mut manager = asks::manager(url, network).await?;
        let resolution = manager.resolve_metadata().await?;
        if resolution.source == AuthorizationMetadataSource::LegacyEndpointFallback {
            // The secret goes to no address that was only guessed.
            return Err(failed(&"it says nowhere which authorization server is its own"));
        }
        let wanted = record.map(|record| record.beside.wanted).unwrap_or_default();
        let revocation = revoke::offered(&resolution.metadata);
        manager.set_metadata(resolution.metadata);
        let mut scopes = if self.scopes.is_empty() { manager.select_initial_scopes(&[]).await } else { self.scopes.clone() };
        for scope in &wanted {
            if !scopes.contains(scope) {
                scopes.push(scope.clone());
            }
        }
        let config = ClientCredentialsConfig::ClientSecret {
            client_id: self.client_id.clone(),
            client_secret: self.client_secret.clone(),
            scopes,
            resource: Some(url.to_owned()),
        };
        let client_secret = Some(self.client_secret.clone());
        manager.set_credential_store(Kept { place: place.clone(), beside: Beside { client_secret, wanted, revocation } });
        manager.configure_client_credentials(&config)?;
        manager.exchange_client_credentials(&config).await.map(|_| ())
    }
}
