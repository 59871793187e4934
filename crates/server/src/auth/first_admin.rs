//! The link for the first admin: it is good for as long as there is none.

use std::sync::Arc;

use turnwright_core::UserId;
use turnwright_engine::StoreError;
use turnwright_engine::accounts::{AccountSecret, Accounts, Credential, CredentialKind, Role};

use super::accounts::issue_link_called;

/// By what such a link is known among the others.
const NAME: &str = "link for the first admin";

/// A link that signs a browser in as `local`, once, while no admin has ever had a way in; `None` where one had, or `local` may not
/// come in.
///
/// # Errors
/// Where the store or the system's randomness fails.
pub async fn first_link(accounts: &Arc<dyn Accounts>, now_ms: u64) -> Result<Option<AccountSecret>, StoreError> {
    if has_admin(&**accounts).await? {
        return Ok(None);
    }
    match accounts.user(&UserId::local()).await?.filter(|local| local.is_enabled) {
        Some(local) => issue_link_called(accounts, NAME, &local, now_ms).await.map(Some),
        None => Ok(None),
    }
}

/// Whether an admin has ever had a way in.
async fn has_admin(accounts: &dyn Accounts) -> Result<bool, StoreError> {
    for admin in accounts.users().await?.into_iter().filter(|user| user.role == Role::Admin) {
        let known = accounts.credentials(&admin.id).await?;
        if admin.identity.is_some() || known.iter().any(|known| known.kind != CredentialKind::Link) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Uses a link up; one for the first admin with all others of its kind.
///
/// Of several such links that are used at once one succeeds: each takes all of them in one order, and whoever misses one has lost.
///
/// # Errors
/// [`StoreError::Missing`], where it is used up, or is for the first admin and there is one.
pub(super) async fn use_up(accounts: &dyn Accounts, link: &Credential) -> Result<(), StoreError> {
    if link.name != NAME {
        return accounts.remove_credential(&link.id).await;
    }
    let missing = || StoreError::Missing { what: format!("credential `{}`", link.id) };
    let mut links = accounts.credentials(&link.user).await?;
    links.retain(|known| known.kind == CredentialKind::Link && known.name == NAME);
    links.sort_by(|one, other| one.id.cmp(&other.id));
    if !links.iter().any(|known| known.id == link.id) || has_admin(accounts).await? {
        return Err(missing());
    }
    for known in links {
        accounts.remove_credential(&known.id).await?;
    }
    Ok(())
}
