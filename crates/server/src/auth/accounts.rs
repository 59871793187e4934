//! Tokens, sessions and links: how they are made, and how one is told from another.

use std::sync::Arc;

use turnwright_core::UserId;
use turnwright_engine::StoreError;
use turnwright_engine::accounts::{
    AccountSecret, Accounts, Credential, CredentialKind, Identity, Role, Scopes, SecretHash, User,
};

use super::caller::{Caller, How};
use super::first_admin;
use crate::error::ApiError;

/// What every token begins with, so that people and scanners know one when they see it.
pub const TOKEN_PREFIX: &str = "tw_";
/// How long a browser stays signed in: 30 days.
const SESSION_MS: u64 = 30 * 24 * 3_600_000;
/// How long a link can be used: 15 minutes.
pub const LINK_MS: u64 = 15 * 60_000;
/// What people call a link.
const LINK_NAME: &str = "sign-in link";
/// How exactly it is known when a credential was used: a minute.
const USED_EVERY_MS: u64 = 60_000;

/// A credential to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCredential {
    /// Whose.
    pub user: UserId,
    /// What it is.
    pub kind: CredentialKind,
    /// What people call it.
    pub name: String,
    /// What may be done with it.
    pub scopes: Scopes,
    /// The credential with which it goes.
    pub parent: Option<String>,
    /// When it stops being one, in milliseconds since 1970 UTC.
    pub expires_at_ms: Option<u64>,
}

/// Makes a credential; the secret is known to nobody else from here on.
///
/// # Errors
/// [`StoreError::Missing`] where there is no such user, [`StoreError`] where the store or the system's randomness fails.
pub async fn issue(
    accounts: &dyn Accounts,
    new: NewCredential,
    now_ms: u64,
) -> Result<(AccountSecret, Credential), StoreError> {
    let prefix = match new.kind {
        CredentialKind::Token => TOKEN_PREFIX,
        CredentialKind::Session | CredentialKind::Link => "",
    };
    let random = || StoreError::Unusable { reason: "the system has no random numbers".to_owned() };
    let secret = AccountSecret::new(prefix).ok_or_else(random)?;
    let name = AccountSecret::new("").ok_or_else(random)?;
    let id = format!("{}_{}", new.kind.as_str(), name.expose().chars().take(16).collect::<String>());
    let credential = Credential {
        id,
        hash: secret.hash(),
        user: new.user,
        kind: new.kind,
        name: new.name,
        scopes: new.scopes,
        parent: new.parent,
        created_at_ms: now_ms,
        expires_at_ms: new.expires_at_ms,
        used_at_ms: None,
    };
    accounts.add_credential(credential.clone()).await?;
    Ok((secret, credential))
}

/// Whether a sign is none that is seen: two names that differ in it alone look the same, or one like another's.
pub(crate) fn is_unseen(sign: char) -> bool {
    sign.is_control()
        || matches!(sign, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(sign, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// A user to add, with an id that nobody had before.
///
/// # Errors
/// What is wrong with the name, in words.
pub fn new_user(name: &str, role: Role, identity: Option<Identity>, now_ms: u64) -> Result<User, String> {
    let fits = (1..=64).contains(&name.chars().count()) && name.trim() == name && !name.chars().any(is_unseen);
    if !fits {
        return Err(
            "a name is 1 to 64 characters, none of them a control or another invisible character, or a space at an end"
                .to_owned(),
        );
    }
    // Who is called as another's id could be taken for them.
    if name.starts_with("user_") {
        return Err("a name does not begin with `user_`, as ids do".to_owned());
    }
    let random = AccountSecret::new("").ok_or("the system has no random numbers")?;
    let id = format!("user_{}", random.expose().chars().take(16).collect::<String>());
    let id = id.parse().map_err(|error: turnwright_core::IdError| error.to_string())?;
    Ok(User { id, name: name.to_owned(), role, is_enabled: true, created_at_ms: now_ms, identity })
}

/// Why what was shown lets nobody in. Who shows it is told no more than this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotKnown {
    /// It never was one, or was revoked.
    Unknown,
    /// Its time is over.
    Expired,
    /// The user may not come in.
    Disabled,
}

/// The caller who shows this secret, and notes that it was used.
pub(crate) async fn known(
    accounts: &dyn Accounts,
    secret: &str,
    kind: CredentialKind,
    now_ms: u64,
) -> Result<Result<Caller, NotKnown>, StoreError> {
    let found = accounts.credential(&SecretHash::of(secret)).await?;
    let (credential, user) = match counting(found, kind, now_ms) {
        Ok(counting) => counting,
        Err(why) => return Ok(Err(why)),
    };
    let is_noted = credential.used_at_ms.is_some_and(|used| used.saturating_add(USED_EVERY_MS) > now_ms);
    if !is_noted && let Err(error) = accounts.credential_used(&credential.id, now_ms).await {
        // Whoever only reads is let in where nothing can be written.
        tracing::warn!(%error, credential = credential.id, "when a credential was used cannot be noted");
    }
    Ok(Ok(Caller::known(user, credential)))
}

/// What was found for a secret, where it lets its user in.
pub(super) fn counting(
    found: Option<(Credential, User)>,
    kind: CredentialKind,
    now_ms: u64,
) -> Result<(Credential, User), NotKnown> {
    let (credential, user) = found.filter(|(credential, _)| credential.kind == kind).ok_or(NotKnown::Unknown)?;
    if credential.expires_at_ms.is_some_and(|end| end <= now_ms) {
        return Err(NotKnown::Expired);
    }
    if user.is_enabled { Ok((credential, user)) } else { Err(NotKnown::Disabled) }
}

/// What may be done with what a caller makes for themselves: no more than they may, and no longer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// What they may do.
    pub(crate) scopes: Scopes,
    /// The token by which they are known, and with which it is revoked.
    pub(crate) parent: Option<String>,
    /// When that token ends, in milliseconds since 1970 UTC.
    pub(crate) end_ms: Option<u64>,
}

impl Bounds {
    /// Those of a caller.
    ///
    /// # Errors
    /// 404 where the token by which a browser was signed in is gone, and those of the store.
    pub(crate) async fn of(caller: &Caller, accounts: &dyn Accounts) -> Result<Self, ApiError> {
        let scopes = caller.scopes().clone();
        let (parent, end_ms) = match caller.how() {
            How::Token(used) => (Some(used.id.clone()), used.expires_at_ms),
            // A browser that was signed in with a token can do no more than that.
            How::Session(used) => match &used.parent {
                Some(parent) => {
                    let missing = || ApiError::not_found(format_args!("token `{parent}`"));
                    let token = accounts.credential_named(parent).await?.ok_or_else(missing)?;
                    (Some(token.id), token.expires_at_ms)
                }
                None => (None, None),
            },
            How::Nobody | How::Local => (None, None),
        };
        Ok(Self { scopes, parent, end_ms })
    }
}

/// Signs a browser in for whoever holds a token, or a link: a link is used up by it.
pub(crate) async fn begin_session(
    accounts: &dyn Accounts,
    shown: &Credential,
    user: &User,
    now_ms: u64,
) -> Result<AccountSecret, StoreError> {
    let (parent, last_ms) = match shown.kind {
        CredentialKind::Token => (Some(shown.id.clone()), shown.expires_at_ms),
        CredentialKind::Link => {
            // Of two who use it at once, one gets past this.
            first_admin::use_up(accounts, shown).await?;
            let made_with = match &shown.parent {
                Some(parent) => accounts.credential_named(parent).await?,
                None => None,
            };
            (shown.parent.clone(), made_with.and_then(|token| token.expires_at_ms))
        }
        CredentialKind::Session => (None, None),
    };
    let end = now_ms.saturating_add(SESSION_MS);
    let new = NewCredential {
        user: user.id.clone(),
        kind: CredentialKind::Session,
        name: "browser".to_owned(),
        scopes: shown.scopes.clone(),
        expires_at_ms: Some(last_ms.map_or(end, |last| last.min(end))),
        parent,
    };
    accounts.remove_expired(now_ms).await?;
    Ok(issue(accounts, new, now_ms).await?.0)
}

/// Signs a browser in for a user whom somebody else vouches for.
pub(crate) async fn open_session(accounts: &dyn Accounts, user: &User, now_ms: u64) -> Result<AccountSecret, StoreError> {
    let new = NewCredential {
        user: user.id.clone(),
        kind: CredentialKind::Session,
        name: "browser".to_owned(),
        // As far as the role allows at each request.
        scopes: Scopes::of_role(Role::Admin),
        parent: None,
        expires_at_ms: Some(now_ms.saturating_add(SESSION_MS)),
    };
    accounts.remove_expired(now_ms).await?;
    Ok(issue(accounts, new, now_ms).await?.0)
}

/// A link that signs a browser in as this user, once: its secret.
///
/// # Errors
/// As [`issue`].
pub async fn issue_link(accounts: &Arc<dyn Accounts>, user: &User, now_ms: u64) -> Result<AccountSecret, StoreError> {
    issue_link_called(accounts, LINK_NAME, user, now_ms).await
}

/// The same for whoever makes one for themselves: the browser can do no more than they may.
///
/// # Errors
/// As [`issue`].
pub(crate) async fn issue_link_within(
    accounts: &dyn Accounts,
    user: &User,
    bounds: Bounds,
    now_ms: u64,
) -> Result<AccountSecret, StoreError> {
    let end = now_ms.saturating_add(LINK_MS);
    let new = NewCredential {
        user: user.id.clone(),
        kind: CredentialKind::Link,
        name: LINK_NAME.to_owned(),
        scopes: bounds.scopes,
        parent: bounds.parent,
        expires_at_ms: Some(bounds.end_ms.map_or(end, |last| last.min(end))),
    };
    Ok(issue(accounts, new, now_ms).await?.0)
}

pub(super) async fn issue_link_called(
    accounts: &Arc<dyn Accounts>,
    name: &str,
    user: &User,
    now_ms: u64,
) -> Result<AccountSecret, StoreError> {
    let new = NewCredential {
        user: user.id.clone(),
        kind: CredentialKind::Link,
        name: name.to_owned(),
        scopes: Scopes::of_role(user.role),
        parent: None,
        expires_at_ms: Some(now_ms.saturating_add(LINK_MS)),
    };
    Ok(issue(&**accounts, new, now_ms).await?.0)
}

#[cfg(test)]
mod tests;
