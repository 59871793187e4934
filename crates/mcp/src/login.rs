//! Signing in to servers with an address, by OAuth 2.1 as the protocol wants it.
//!
//! What `rmcp` does is `rmcp`'s: discovery, registration, PKCE, the checks of the issuer. Ours: `flow` leads a person through
//! it, `listener` is where the browser comes back, `store` keeps what it brought, `seal`ed, and `account` sends it along and
//! renews it once for all processes; `asks` is how it asks where the operator says how requests leave the machine; `machine` signs in where no person does, and `revoke` signs out.

mod account;
mod asks;
mod flow;
mod known;
mod listener;
mod machine;
mod revoke;
mod seal;
mod store;

pub(crate) use account::{Account, mark, too_little};
pub(crate) use known::KnownTokens;
pub use revoke::{Removed, SignedOut};
pub use seal::SealKey;
pub use store::{FileTokens, NoTokens, TokenStore};
