use turnwright_core::UserId;
use turnwright_engine::StoreError;
use turnwright_engine::accounts::{
    AccountSecret, Accounts, Credential, CredentialKind, Identity, Role, Scopes, SecretHash, Staying, User,
};

use super::known;

/// Accounts that can only be read: a member with one token.
#[derive(Debug)]
struct OnFullDisk {
    secret: AccountSecret,
    user: UserId,
}

fn full<T>() -> Result<T, StoreError> {
    Err(StoreError::Unusable { reason: "the disk is full".to_owned() })
}

#[async_trait::async_trait]
impl Accounts for OnFullDisk {
    async fn credential(&self, hash: &SecretHash) -> Result<Option<(Credential, User)>, StoreError> {
        let credential = Credential {
            id: "token_1".to_owned(),
            hash: self.secret.hash(),
            user: self.user.clone(),
            kind: CredentialKind::Token,
            name: "laptop".to_owned(),
            scopes: Scopes::of_role(Role::Member),
            parent: None,
            created_at_ms: 0,
            expires_at_ms: None,
            used_at_ms: None,
        };
        let user = self.user(&self.user).await?.filter(|_| *hash == credential.hash);
        Ok(user.map(|user| (credential, user)))
    }

    async fn user(&self, id: &UserId) -> Result<Option<User>, StoreError> {
        let (id, name) = (id.clone(), "anna".to_owned());
        Ok(Some(User { id, name, role: Role::Member, is_enabled: true, created_at_ms: 0, identity: None }))
    }

    async fn add_user(&self, _user: User) -> Result<(), StoreError> {
        full()
    }

    async fn users(&self) -> Result<Vec<User>, StoreError> {
        full()
    }

    async fn user_named(&self, _name: &str) -> Result<Option<User>, StoreError> {
        full()
    }

    async fn user_known_as(&self, _identity: &Identity) -> Result<Option<User>, StoreError> {
        full()
    }

    async fn change_user(&self, _of: &User, _role: Role, _is_enabled: bool, _staying: Staying) -> Result<(), StoreError> {
        full()
    }

    async fn change_role(&self, _id: &UserId, _role: Role) -> Result<(), StoreError> {
        full()
    }

    async fn remove_user(&self, _of: &User, _staying: Staying) -> Result<(), StoreError> {
        full()
    }

    async fn add_credential(&self, _credential: Credential) -> Result<(), StoreError> {
        full()
    }

    async fn credentials(&self, _user: &UserId) -> Result<Vec<Credential>, StoreError> {
        full()
    }

    async fn credential_named(&self, _id: &str) -> Result<Option<Credential>, StoreError> {
        full()
    }

    async fn credential_used(&self, _id: &str, _at_ms: u64) -> Result<(), StoreError> {
        full()
    }

    async fn remove_credential(&self, _id: &str) -> Result<(), StoreError> {
        full()
    }

    async fn remove_expired(&self, _before_ms: u64) -> Result<(), StoreError> {
        full()
    }
}

#[tokio::test]
async fn a_token_counts_where_nothing_can_be_written() {
    let secret = AccountSecret::new("tw_").unwrap();
    let shown = secret.expose().to_owned();
    let accounts = OnFullDisk { secret, user: "user_1".parse().unwrap() };
    let caller = known(&accounts, &shown, CredentialKind::Token, 1).await.unwrap();
    assert_eq!(caller.unwrap().user().as_str(), "user_1");
}
