//! The port to who may use an installation: users, and by what they are known.
//!
//! A credential is 256 random bits in the hands of whoever is known by it. What is stored is their SHA-256: nothing slower is
//! needed where there is nothing to guess. Not here: what a user may do, and how a credential travels.

use std::collections::BTreeSet;
use std::fmt::{self, Debug, Write};
use std::str::FromStr;

use async_trait::async_trait;
use sha2::{Digest, Sha256};
use turnwright_core::UserId;

use crate::StoreError;

/// Somebody who may use the installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// By which all that belongs to the user is known.
    pub id: UserId,
    /// What people call the user; no other has it, also not in other case.
    pub name: String,
    /// What the user may do.
    pub role: Role,
    /// Whether the user may come in.
    pub is_enabled: bool,
    /// When the user was made, in milliseconds since 1970 UTC.
    pub created_at_ms: u64,
    /// Whose word the user is known by, where that is an identity provider's.
    pub identity: Option<Identity>,
}

/// What a user may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Everything that concerns the whole installation too.
    Admin,
    /// What concerns the user alone.
    Member,
}

impl Role {
    /// The role in one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Member => "member",
        }
    }
}

impl FromStr for Role {
    type Err = String;
    fn from_str(word: &str) -> Result<Self, String> {
        [Self::Admin, Self::Member]
            .into_iter()
            .find(|role| role.as_str() == word)
            .ok_or_else(|| format!("`{word}` is no role; it must be admin or member"))
    }
}

impl User {
    /// Whether the user is an admin who may come in.
    pub fn is_admin(&self) -> bool {
        self.role == Role::Admin && self.is_enabled
    }

    /// What is wrong where a change `of` the user was not made: as they are `now`, it could have been but for the last admin.
    pub fn unchanged(&self, now: Option<&Self>) -> StoreError {
        let what = || format!("user `{}`", self.id);
        match now {
            None => StoreError::Missing { what: what() },
            Some(now) if (now.role, now.is_enabled) != (self.role, self.is_enabled) => StoreError::Altered { what: what() },
            Some(now) => StoreError::LastAdmin { name: now.name.clone() },
        }
    }
}

/// A user as an identity provider knows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The provider: the `iss` of its tokens.
    pub issuer: String,
    /// The user there, for ever: the `sub`.
    pub subject: String,
}

/// Who counts as an admin that stays where another goes: those who may come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Staying {
    /// [`UserId::LOCAL`] among them: it is `local` who asks.
    WithLocal,
    /// [`UserId::LOCAL`] among them where a token or a session of it counts at this time, in milliseconds since 1970 UTC: else
    /// nobody is known as it, except at the server's machine.
    SignedIn(u64),
}

impl Staying {
    /// Whether `local` counts anyhow, and the time at which something must make it count else.
    pub fn local(self) -> (bool, u64) {
        match self {
            Self::WithLocal => (true, 0),
            Self::SignedIn(now_ms) => (false, now_ms),
        }
    }
}

/// What may be done with a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Look at what is one's own.
    Read,
    /// Change what is one's own: say something, stop, delete.
    Chat,
    /// Decide about calls that wait, and answer what tools ask.
    Approve,
    /// What concerns the whole installation; for the role `admin` alone.
    Admin,
}

impl Scope {
    /// All there are.
    pub const ALL: [Self; 4] = [Self::Read, Self::Chat, Self::Approve, Self::Admin];

    /// The scope in one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Chat => "chat",
            Self::Approve => "approve",
            Self::Admin => "admin",
        }
    }
}

impl FromStr for Scope {
    type Err = String;
    fn from_str(word: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|scope| scope.as_str() == word)
            .ok_or_else(|| format!("`{word}` is no scope; it must be read, chat, approve or admin"))
    }
}

/// A set of scopes. Written as their words with spaces between.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scopes(BTreeSet<Scope>);

impl Scopes {
    /// All that a role may have.
    pub fn of_role(role: Role) -> Self {
        match role {
            Role::Admin => Self::from_iter(Scope::ALL),
            Role::Member => Self::own(),
        }
    }

    /// What concerns the user alone.
    pub fn own() -> Self {
        Self::from_iter([Scope::Read, Scope::Chat, Scope::Approve])
    }

    /// Whether `scope` is among them.
    pub fn has(&self, scope: Scope) -> bool {
        self.0.contains(&scope)
    }

    /// Those that are in both.
    #[must_use]
    pub fn within(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).copied().collect())
    }

    /// The words.
    pub fn words(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|scope| scope.as_str())
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<T: IntoIterator<Item = Scope>>(scopes: T) -> Self {
        Self(scopes.into_iter().collect())
    }
}

impl FromStr for Scopes {
    type Err = String;
    fn from_str(words: &str) -> Result<Self, String> {
        words.split_ascii_whitespace().map(str::parse).collect()
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.words().collect();
        f.write_str(&words.join(" "))
    }
}

/// By what somebody is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// Names it among all; no secret.
    pub id: String,
    /// The SHA-256 of the secret.
    pub hash: SecretHash,
    /// Whose.
    pub user: UserId,
    /// What it is.
    pub kind: CredentialKind,
    /// What people call it.
    pub name: String,
    /// What may be done with it, as far as the user's role allows.
    pub scopes: Scopes,
    /// The credential that it goes with.
    pub parent: Option<String>,
    /// When it was made, in milliseconds since 1970 UTC.
    pub created_at_ms: u64,
    /// When it stops being one, in milliseconds since 1970 UTC.
    pub expires_at_ms: Option<u64>,
    /// When it was used last, about, in milliseconds since 1970 UTC.
    pub used_at_ms: Option<u64>,
}

/// What a credential is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CredentialKind {
    /// A program's: sent with each request.
    Token,
    /// A browser's: its cookie.
    Session,
    /// A link that signs a browser in, once.
    Link,
}

impl CredentialKind {
    /// The kind in one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Session => "session",
            Self::Link => "link",
        }
    }
}

impl FromStr for CredentialKind {
    type Err = String;
    fn from_str(word: &str) -> Result<Self, String> {
        [Self::Token, Self::Session, Self::Link]
            .into_iter()
            .find(|kind| kind.as_str() == word)
            .ok_or_else(|| format!("`{word}` is no kind of credential"))
    }
}

/// 256 random bits as text that nobody but their holder is to see.
#[derive(Clone, PartialEq, Eq)]
pub struct AccountSecret(String);

impl AccountSecret {
    /// A new one that begins with `prefix`; `None` where the system has no random numbers.
    pub fn new(prefix: &str) -> Option<Self> {
        let mut bytes = [0_u8; 32];
        getrandom::fill(&mut bytes).ok()?;
        let mut text = String::with_capacity(prefix.len().saturating_add(64));
        text.push_str(prefix);
        for byte in bytes {
            // Writing to memory does not fail.
            let _ = write!(text, "{byte:02x}");
        }
        Some(Self(text))
    }

    /// The text, for its holder.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// What is stored of it.
    pub fn hash(&self) -> SecretHash {
        SecretHash::of(&self.0)
    }
}

impl Debug for AccountSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// What is stored of a secret.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SecretHash(pub [u8; 32]);

impl SecretHash {
    /// Of a secret that somebody shows.
    pub fn of(secret: &str) -> Self {
        Self(Sha256::digest(secret.as_bytes()).into())
    }
}

impl Debug for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Where users and credentials are kept. Every method may be called from any number of tasks and processes at once. There is
/// always [`UserId::LOCAL`], an admin.
#[async_trait]
pub trait Accounts: Send + Sync + Debug {
    /// Adds a user.
    ///
    /// # Errors
    /// [`StoreError::Taken`], where another has the id, the name or the identity.
    async fn add_user(&self, user: User) -> Result<(), StoreError>;

    /// All users, by name.
    ///
    /// # Errors
    /// Where the store fails.
    async fn users(&self) -> Result<Vec<User>, StoreError>;

    /// The user with this id.
    ///
    /// # Errors
    /// Where the store fails.
    async fn user(&self, id: &UserId) -> Result<Option<User>, StoreError>;

    /// The user with this name, in any case.
    ///
    /// # Errors
    /// Where the store fails.
    async fn user_named(&self, name: &str) -> Result<Option<User>, StoreError>;

    /// The user that an identity provider knows so.
    ///
    /// # Errors
    /// Where the store fails.
    async fn user_known_as(&self, identity: &Identity) -> Result<Option<User>, StoreError>;

    /// Changes a user's role, and whether the user may come in, where both still are those `of` the user. An admin stays, also
    /// where several are changed at once.
    ///
    /// # Errors
    /// [`StoreError::Missing`], where there is none; [`StoreError::Altered`], where they are others; [`StoreError::LastAdmin`].
    async fn change_user(&self, of: &User, role: Role, is_enabled: bool, staying: Staying) -> Result<(), StoreError>;

    /// Changes a user's role alone, because an identity provider says so.
    ///
    /// # Errors
    /// [`StoreError::Missing`], where there is none.
    async fn change_role(&self, id: &UserId, role: Role) -> Result<(), StoreError>;

    /// Removes a user with all credentials, under the same conditions.
    ///
    /// # Errors
    /// As [`Accounts::change_user`].
    async fn remove_user(&self, of: &User, staying: Staying) -> Result<(), StoreError>;

    /// Adds a credential.
    ///
    /// # Errors
    /// [`StoreError::Missing`], where there is no such user.
    async fn add_credential(&self, credential: Credential) -> Result<(), StoreError>;

    /// The credential of this secret and its user, whether or not it still counts.
    ///
    /// # Errors
    /// Where the store fails.
    async fn credential(&self, hash: &SecretHash) -> Result<Option<(Credential, User)>, StoreError>;

    /// A user's credentials, the newest first.
    ///
    /// # Errors
    /// Where the store fails.
    async fn credentials(&self, user: &UserId) -> Result<Vec<Credential>, StoreError>;

    /// The credential of this id.
    ///
    /// # Errors
    /// Where the store fails.
    async fn credential_named(&self, id: &str) -> Result<Option<Credential>, StoreError>;

    /// Notes when a credential was used.
    ///
    /// # Errors
    /// Where the store fails.
    async fn credential_used(&self, id: &str, at_ms: u64) -> Result<(), StoreError>;

    /// Removes a credential with those that go with it. Of several who do so at once, one succeeds.
    ///
    /// # Errors
    /// [`StoreError::Missing`], where there is none.
    async fn remove_credential(&self, id: &str) -> Result<(), StoreError>;

    /// Removes the credentials that expired before this time.
    ///
    /// # Errors
    /// Where the store fails.
    async fn remove_expired(&self, before_ms: u64) -> Result<(), StoreError>;
}
