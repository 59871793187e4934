//! Signing in at an identity provider: `OpenID` Connect, the authorization code flow with PKCE.
//!
//! [`Oidc::begin`] says where to send a browser and what to remember of it, [`Oidc::finish`] takes what it comes back with to the
//! provider and says who it is. Nothing is kept in between: the browser carries it. [`token`] is the part that decides.
//! Not here: cookies, sessions, and what a user may do.

mod fetch;
mod known;
mod token;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tokio::sync::Mutex;
use turnwright_engine::accounts::{AccountSecret, Identity};
use turnwright_network::Network;

use crate::config::OidcConfig;
pub(crate) use fetch::encoded;
use fetch::{Fetch, Unanswered};
use known::{About, InSignIn, Known};
use token::{Expected, Unread};

/// An identity provider.
#[derive(Debug)]
pub struct Oidc {
    config: OidcConfig,
    /// Where the provider sends browsers back to.
    redirect_uri: String,
    fetch: Fetch,
    known: Mutex<Option<Known>>,
}

/// A browser that was sent away.
#[derive(Debug)]
pub struct OidcBegun {
    /// Where to.
    pub url: String,
    /// What it must come back with.
    pub state: String,
    /// What its token must hold.
    pub nonce: String,
    /// What proves that whoever began it ends it.
    pub verifier: String,
}

/// Who came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OidcUser {
    /// As the provider knows them.
    pub identity: Identity,
    /// What they are called there.
    pub name: String,
    /// Whether they are an admin, where the provider decides that.
    pub is_admin: Option<bool>,
}

/// Why nobody was signed in.
#[derive(Debug, thiserror::Error)]
pub enum OidcError {
    /// The provider cannot be asked, or does not do as it should.
    #[error("the identity provider {issuer} {why}")]
    Provider {
        /// Which.
        issuer: String,
        /// What is the case.
        why: String,
    },
    /// Who came back is in none of the groups that are let in.
    #[error("you are not in the group that may use this server")]
    NotInGroup {
        /// As the provider knows them.
        identity: Identity,
        /// Whether they are an admin, where the provider decides that.
        is_admin: Option<bool>,
    },
}

#[derive(Deserialize)]
struct Tokens {
    id_token: Option<String>,
    access_token: Option<String>,
}

impl Oidc {
    /// The provider of a configuration. Nothing is asked yet.
    pub fn new(config: &OidcConfig, redirect_uri: String, network: Network) -> Self {
        Self { config: config.clone(), redirect_uri, fetch: Fetch::new(network), known: Mutex::default() }
    }

    /// What people call it.
    pub fn name(&self) -> &str {
        let host = || self.config.issuer.split("://").nth(1).and_then(|rest| rest.split('/').next());
        self.config.name.as_deref().or_else(host).unwrap_or("OpenID")
    }

    /// The name by which the provider knows itself.
    pub fn issuer(&self) -> &str {
        &self.config.issuer
    }

    /// Where it sends browsers back to.
    pub fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    /// Reads what the provider says of itself, as a sign-in does. `now_s` is in seconds since 1970 UTC.
    ///
    /// # Errors
    /// [`OidcError::Provider`].
    pub async fn check(&self, now_s: u64) -> Result<(), OidcError> {
        self.learn(now_s).await.map(drop)
    }

    /// Begins to sign a browser in. `now_s` is in seconds since 1970 UTC.
    ///
    /// # Errors
    /// [`OidcError::Provider`].
    pub async fn begin(&self, now_s: u64) -> Result<OidcBegun, OidcError> {
        let about = self.known(now_s).await?.about;
        let random = || AccountSecret::new("").map(|secret| secret.expose().to_owned());
        let random = || random().ok_or_else(|| self.failed("cannot be asked: the system has no random numbers"));
        let (state, nonce, verifier) = (random()?, random()?, random()?);
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
        let scopes = self.config.scopes.join(" ");
        let query = fetch::form(&[
            ("response_type", "code"),
            ("client_id", &self.config.client_id),
            ("redirect_uri", &self.redirect_uri),
            ("scope", &scopes),
            ("state", &state),
            ("nonce", &nonce),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ]);
        let endpoint = &about.authorization_endpoint;
        let url = format!("{endpoint}{}{query}", if endpoint.contains('?') { '&' } else { '?' });
        Ok(OidcBegun { url, state, nonce, verifier })
    }

    /// Says who came back with `code`. `now_s` is in seconds since 1970 UTC.
    ///
    /// # Errors
    /// [`OidcError`].
    pub async fn finish(&self, code: &str, verifier: &str, nonce: &str, now_s: u64) -> Result<OidcUser, OidcError> {
        let mut sign_in = InSignIn::begin(self, now_s).await?;
        let (id_token, access_token) = self.tokens(&mut sign_in, code, verifier).await?;
        let read = |known: &Known| {
            let expected = Expected { issuer: &known.about.issuer, client_id: &self.config.client_id, nonce, now_s };
            token::read(&id_token, &known.keys, &expected)
        };
        let mut claims = read(sign_in.known());
        // The provider may have new keys, by whatever name.
        if let Err(Unread::NoKey | Unread::NotSigned) = claims
            && sign_in.ask_again().await
        {
            claims = read(sign_in.known());
        }
        let mut claims = claims.map_err(|why| self.failed(format!("gave a token that does not count: {why}")))?;
        let subject = text(&claims, "sub").ok_or_else(|| self.failed("gave a token without `sub`"))?;
        // Core 2 has it of ASCII. What a database cannot store as it is would be somebody else's there.
        if subject.chars().any(char::is_control) {
            return Err(self.failed("gave a token with a control character in `sub`"));
        }
        if let Some(token) = access_token {
            let more = self.more(&mut sign_in, &token).await?;
            if more.as_ref().is_some_and(|more| text(more, "sub").as_ref() != Some(&subject)) {
                return Err(self.failed("tells of somebody else than its token does"));
            }
            for (claim, value) in more.into_iter().flatten() {
                claims.entry(claim).or_insert(value);
            }
        }
        let has_groups = self.config.admin_group.is_some() || self.config.member_group.is_some();
        if has_groups && !claims.contains_key(&self.config.groups_claim) {
            let (claim, known) = (&self.config.groups_claim, claims.keys().cloned().collect::<Vec<_>>().join(", "));
            tracing::warn!(
                claim,
                known,
                "the identity provider does not say in which groups somebody is; they count as in none"
            );
        }
        let identity = Identity { issuer: self.config.issuer.clone(), subject };
        self.user(identity, &claims)
    }

    fn user(&self, identity: Identity, claims: &Map<String, Value>) -> Result<OidcUser, OidcError> {
        let groups: Vec<&str> = match claims.get(&self.config.groups_claim) {
            Some(Value::String(group)) => vec![group],
            Some(Value::Array(groups)) => groups.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let is_in = |group: &String| groups.contains(&group.as_str());
        let is_admin = self.config.admin_group.as_ref().map(is_in);
        let is_member = self.config.member_group.as_ref().is_none_or(is_in) || is_admin == Some(true);
        if !is_member {
            return Err(OidcError::NotInGroup { identity, is_admin });
        }
        let name = ["preferred_username", "email", "name"].into_iter().find_map(|claim| text(claims, claim));
        let name = name.unwrap_or_else(|| identity.subject.clone());
        Ok(OidcUser { identity, name, is_admin })
    }

    /// What the code is good for: an ID token, and one to ask for more with.
    async fn tokens(
        &self,
        sign_in: &mut InSignIn<'_>,
        code: &str,
        verifier: &str,
    ) -> Result<(String, Option<String>), OidcError> {
        let asked = sign_in.known().about.token_endpoint.clone();
        let mut tokens = self.exchange(&sign_in.known().about, code, verifier).await;
        if let Err(Unanswered { is_refusal: false, .. }) = tokens
            && sign_in.ask_again().await
            && sign_in.known().about.token_endpoint != asked
        {
            tokens = self.exchange(&sign_in.known().about, code, verifier).await;
        }
        let Tokens { id_token, access_token } = tokens.map_err(|why| self.failed(why))?;
        let id_token = id_token.ok_or_else(|| self.failed("gave no ID token; is `openid` among the scopes?"))?;
        Ok((id_token, access_token))
    }

    /// What the provider says of a user besides their token, where it says more.
    async fn more(&self, sign_in: &mut InSignIn<'_>, token: &str) -> Result<Option<Map<String, Value>>, OidcError> {
        let Some(asked) = sign_in.known().about.userinfo_endpoint.clone() else { return Ok(None) };
        let mut more = self.fetch.get(&asked, Some(token)).await;
        if let Err(Unanswered { is_refusal: false, .. }) = more
            && sign_in.ask_again().await
        {
            match &sign_in.known().about.userinfo_endpoint {
                None => return Ok(None),
                Some(moved) if *moved != asked => more = self.fetch.get(moved, Some(token)).await,
                Some(_) => {}
            }
        }
        more.map(Some).map_err(|why| self.failed(why))
    }

    /// Changes the code for tokens.
    async fn exchange(&self, about: &About, code: &str, verifier: &str) -> Result<Tokens, Unanswered> {
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &self.redirect_uri),
            ("code_verifier", verifier),
        ];
        let secret = self.config.client_secret.as_ref().map(crate::config::Secret::expose).filter(|secret| !secret.is_empty());
        let methods = about.token_endpoint_auth_methods_supported.as_deref();
        let takes_basic = methods.is_none_or(|methods| methods.iter().any(|method| method == "client_secret_basic"));
        let basic = match secret {
            Some(secret) if takes_basic => {
                let pair = format!("{}:{}", encoded(&self.config.client_id), encoded(secret));
                Some(format!("Basic {}", STANDARD.encode(pair)))
            }
            Some(secret) => {
                fields.extend([("client_id", self.config.client_id.as_str()), ("client_secret", secret)]);
                None
            }
            None => {
                fields.push(("client_id", &self.config.client_id));
                None
            }
        };
        self.fetch.post(&about.token_endpoint, &fetch::form(&fields), basic.as_deref()).await
    }

    fn failed(&self, why: impl Into<String>) -> OidcError {
        OidcError::Provider { issuer: self.config.issuer.clone(), why: why.into() }
    }
}

fn text(claims: &Map<String, Value>, claim: &str) -> Option<String> {
    claims.get(claim).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}
