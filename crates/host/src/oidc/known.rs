//! What an identity provider says of itself, and when that is read again.
//!
//! It is kept for an hour, and less where it does not hold: a provider may have new keys, or be asked elsewhere. Anybody may begin
//! to sign in, so one sign-in has it read once more at most.

use serde::Deserialize;

use super::token::Keys;
use super::{Oidc, OidcError};

/// For how long it is taken for what is so, in seconds.
const MAX_AGE_S: u64 = 3_600;

/// What the provider says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) about: About,
    pub(super) keys: Keys,
    /// When it said so, in seconds since 1970 UTC.
    read_at_s: u64,
}

/// Its description (`OpenID` Connect Discovery 3).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct About {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: String,
    pub(super) token_endpoint: String,
    jwks_uri: String,
    pub(super) userinfo_endpoint: Option<String>,
    pub(super) token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

/// What is known of the provider in one sign-in.
#[derive(Debug)]
pub(super) struct InSignIn<'a> {
    oidc: &'a Oidc,
    known: Known,
    now_s: u64,
    may_ask: bool,
}

impl<'a> InSignIn<'a> {
    /// One that comes to its end.
    pub(super) async fn begin(oidc: &'a Oidc, now_s: u64) -> Result<Self, OidcError> {
        let known = oidc.known(now_s).await?;
        Ok(Self { oidc, known, now_s, may_ask: true })
    }

    pub(super) fn known(&self) -> &Known {
        &self.known
    }

    /// Has the provider describe itself again, where that was not done before, and says whether it does so otherwise.
    pub(super) async fn ask_again(&mut self) -> bool {
        if !std::mem::take(&mut self.may_ask) {
            return false;
        }
        match self.oidc.learn(self.now_s).await {
            Ok(known) => {
                let is_other = known.about != self.known.about || known.keys != self.known.keys;
                self.known = known;
                is_other
            }
            Err(error) => {
                tracing::warn!(%error, "what the identity provider says of itself does not hold, and cannot be read again");
                false
            }
        }
    }
}

impl Oidc {
    /// What the provider says of itself, read again where that is old.
    pub(super) async fn known(&self, now_s: u64) -> Result<Known, OidcError> {
        let known = self.known.lock().await.clone();
        match known {
            None => self.learn(now_s).await,
            Some(known) if now_s.saturating_sub(known.read_at_s) < MAX_AGE_S => Ok(known),
            Some(known) => Ok(self.learn(now_s).await.unwrap_or_else(|error| {
                tracing::warn!(%error, "what the identity provider says of itself is old, and cannot be read again");
                known
            })),
        }
    }

    /// Asks the provider about itself.
    pub(super) async fn learn(&self, now_s: u64) -> Result<Known, OidcError> {
        let address = format!("{}/.well-known/openid-configuration", self.config.issuer.trim_end_matches('/'));
        let about: About = self.fetch.get(&address, None).await.map_err(|why| self.failed(why))?;
        if about.issuer != self.config.issuer {
            return Err(self.failed(format!("calls itself {}; write that as `issuer`", about.issuer)));
        }
        let is_secret = |address: &String| self.config.issuer.starts_with("http://") || address.starts_with("https://");
        let all = [&about.authorization_endpoint, &about.token_endpoint, &about.jwks_uri];
        if let Some(open) = all.into_iter().chain(&about.userinfo_endpoint).find(|address| !is_secret(address)) {
            return Err(self.failed(format!("names an address that is not https: {open}")));
        }
        let keys: Keys = self.fetch.get(&about.jwks_uri, None).await.map_err(|why| self.failed(why))?;
        let known = Known { about, keys, read_at_s: now_s };
        *self.known.lock().await = Some(known.clone());
        Ok(known)
    }
}
