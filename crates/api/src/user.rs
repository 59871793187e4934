//! Users, and the tokens by which programs are known.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Approve;

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Caller {
    /// The user's id; `local` where nobody has to sign in.
    pub id: String,
    /// What people call the user.
    pub name: String,
    /// `admin` or `member`.
    pub role: String,
    /// What may be done: of `read`, `chat`, `approve`, `admin`.
    pub scopes: Vec<String>,
    /// By what the caller is known: `local`, `token` or `session`.
    pub how: String,
    /// The token that this came with, or with which the browser was signed in; null where there is none.
    pub token_id: Option<String>,
    /// What happens to calls for which no rule decides, where nothing was chosen for the conversation: the installation's.
    pub approve: Approve,
}

/// Somebody who may use the installation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct User {
    /// By which all that belongs to the user is known.
    pub id: String,
    /// What people call the user.
    pub name: String,
    /// `admin` or `member`.
    pub role: String,
    /// Whether the user may come in.
    pub enabled: bool,
    /// The identity provider by which the user is known; null where it is none.
    pub issuer: Option<String>,
    /// When the user was made.
    pub created_at: String,
}

/// A user to add.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UserRequest {
    /// What people call the user: 1 to 64 characters, none of them a control or another invisible character, or a space at an end.
    pub name: String,
    /// `admin` or `member`; `member` where absent.
    #[serde(default)]
    pub role: Option<String>,
}

/// What to change of a user; what is absent stays.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UserPatch {
    /// `admin` or `member`.
    #[serde(default)]
    pub role: Option<String>,
    /// Whether the user may come in.
    #[serde(default)]
    pub enabled: Option<bool>,
}

/// A token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Token {
    /// Names it.
    pub id: String,
    /// Whose it is: the user's id.
    pub user: String,
    /// What people call it.
    pub name: String,
    /// What may be done with it.
    pub scopes: Vec<String>,
    /// When it was made.
    pub created_at: String,
    /// When it stops counting; null where it does not.
    pub expires_at: Option<String>,
    /// When it was used last, to about a minute; null where it never was.
    pub last_used_at: Option<String>,
}

/// A token to make.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenRequest {
    /// What people call it.
    #[serde(default)]
    pub name: Option<String>,
    /// What may be done with it: of `read`, `chat`, `approve`, `admin`; the first three where absent.
    #[serde(default)]
    pub scopes: Option<Vec<String>>,
    /// After how many days it stops counting; never where absent.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 3650)]
    pub expires_in_days: Option<u32>,
}

/// A token that was made, with its secret, which is shown this once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewToken {
    /// The secret.
    pub secret: String,
    /// The token.
    #[serde(flatten)]
    pub token: Token,
}

/// A link that signs a browser in, once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SignInLink {
    /// Its path on this server, with the code.
    pub path: String,
    /// When it stops working.
    pub expires_at: String,
}
