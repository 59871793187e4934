//! What every store of accounts must do, whatever it keeps them in.

use turnwright_core::UserId;
use turnwright_engine::StoreError;
use turnwright_engine::accounts::{Accounts, Credential, CredentialKind, Identity, Role, Scope, Scopes, SecretHash, User};

use super::Full;

fn user(name: &str) -> User {
    User {
        id: format!("user_{name}").parse().unwrap(),
        name: name.to_owned(),
        role: Role::Member,
        is_enabled: true,
        created_at_ms: 5,
        identity: None,
    }
}

fn credential(id: &str, user: &User, kind: CredentialKind) -> Credential {
    Credential {
        id: id.to_owned(),
        hash: SecretHash::of(id),
        user: user.id.clone(),
        kind,
        name: format!("for {id}"),
        scopes: Scopes::from_iter([Scope::Read, Scope::Approve]),
        parent: None,
        created_at_ms: 7,
        expires_at_ms: Some(9),
        used_at_ms: None,
    }
}

async fn names(accounts: &dyn Accounts) -> Vec<String> {
    accounts.users().await.unwrap().into_iter().map(|user| user.name).collect()
}

pub(crate) async fn whoever_sits_at_the_machine_is_there(full: &dyn Full) {
    let store = full.open_all().await;
    let accounts: &dyn Accounts = &*store;
    let local = accounts.user(&UserId::local()).await.unwrap().unwrap();
    assert_eq!((local.name.as_str(), local.role, local.is_enabled), ("local", Role::Admin, true));
}

pub(crate) async fn no_two_users_have_one_name(full: &dyn Full) {
    let store = full.open_all().await;
    let accounts: &dyn Accounts = &*store;
    accounts.add_user(user("anna")).await.unwrap();
    let other = User { name: "Anna".to_owned(), ..user("other") };
    assert_eq!(accounts.add_user(other).await, Err(StoreError::Taken { what: "Anna".to_owned() }));
    assert_eq!(accounts.user_named("ANNA").await.unwrap(), Some(user("anna")));
    assert_eq!(names(accounts).await, ["anna", "local"]);
}

pub(crate) async fn an_identity_is_one_user(full: &dyn Full) {
    let store = full.open_all().await;
    let accounts: &dyn Accounts = &*store;
    let identity = |subject: &str| Identity { issuer: "https://id.example".to_owned(), subject: subject.to_owned() };
    let known = User { identity: Some(identity("1")), ..user("anna") };
    accounts.add_user(known.clone()).await.unwrap();
    let again = User { identity: Some(identity("1")), ..user("ben") };
    assert_eq!(accounts.add_user(again).await, Err(StoreError::Taken { what: "ben".to_owned() }));
    assert_eq!(accounts.user_known_as(&identity("1")).await.unwrap(), Some(known));
    assert_eq!(accounts.user_known_as(&identity("2")).await.unwrap(), None);
}

pub(crate) async fn a_credential_comes_with_its_user_and_goes_with_it(full: &dyn Full) {
    let store = full.open_all().await;
    let accounts: &dyn Accounts = &*store;
    let (anna, ben) = (user("anna"), user("ben"));
    accounts.add_user(anna.clone()).await.unwrap();
    accounts.add_user(ben.clone()).await.unwrap();
    let token = credential("t1", &anna, CredentialKind::Token);
    let bens = credential("t2", &ben, CredentialKind::Session);
    accounts.add_credential(token.clone()).await.unwrap();
    accounts.add_credential(bens.clone()).await.unwrap();
    accounts.change_user(&anna.id, Role::Admin, false).await.unwrap();
    accounts.change_role(&anna.id, Role::Member).await.unwrap();
    let changed = User { role: Role::Member, is_enabled: false, ..anna.clone() };
    assert_eq!(accounts.credential(&token.hash).await.unwrap(), Some((token.clone(), changed)));
    accounts.credential_used("t1", 8).await.unwrap();
    let used = Credential { used_at_ms: Some(8), ..token.clone() };
    assert_eq!(accounts.credentials(&anna.id).await.unwrap(), std::slice::from_ref(&used));
    assert_eq!(accounts.credential_named("t1").await.unwrap(), Some(used));

    accounts.remove_user(&anna.id).await.unwrap();

    assert_eq!(accounts.credential(&token.hash).await.unwrap(), None);
    assert_eq!(accounts.credentials(&ben.id).await.unwrap(), [bens]);
    let gone = StoreError::Missing { what: "user `user_anna`".to_owned() };
    assert_eq!(accounts.add_credential(token).await, Err(gone.clone()));
    assert_eq!(accounts.remove_user(&anna.id).await, Err(gone.clone()));
    assert_eq!(accounts.change_user(&anna.id, Role::Member, true).await, Err(gone.clone()));
    assert_eq!(accounts.change_role(&anna.id, Role::Member).await, Err(gone));
}

pub(crate) async fn what_goes_with_a_credential_is_removed_with_it_and_once(full: &dyn Full) {
    let store = full.open_all().await;
    let accounts: &dyn Accounts = &*store;
    let anna = user("anna");
    accounts.add_user(anna.clone()).await.unwrap();
    accounts.add_credential(credential("t1", &anna, CredentialKind::Token)).await.unwrap();
    let session = Credential { parent: Some("t1".to_owned()), ..credential("s1", &anna, CredentialKind::Session) };
    accounts.add_credential(session).await.unwrap();
    let grandchild = Credential { parent: Some("s1".to_owned()), ..credential("s2", &anna, CredentialKind::Session) };
    accounts.add_credential(grandchild).await.unwrap();
    let other = Credential { expires_at_ms: None, ..credential("t2", &anna, CredentialKind::Link) };
    accounts.add_credential(other.clone()).await.unwrap();

    let (first, second) = tokio::join!(accounts.remove_credential("t1"), accounts.remove_credential("t1"));

    let gone = Err(StoreError::Missing { what: "credential `t1`".to_owned() });
    let removed = [first, second].into_iter().filter(|said| *said != gone).inspect(|said| assert_eq!(*said, Ok(()))).count();
    // Where nobody heard who removed it, nobody counts as the one: what it opens is not opened twice.
    let least = usize::from(!full.loses_answers());
    assert!((least..=1).contains(&removed), "{removed} removed it");
    assert_eq!(accounts.credentials(&anna.id).await.unwrap(), [other]);
}

pub(crate) async fn what_expired_is_removed(full: &dyn Full) {
    let store = full.open_all().await;
    let accounts: &dyn Accounts = &*store;
    let anna = user("anna");
    accounts.add_user(anna.clone()).await.unwrap();
    for (id, expires_at_ms) in [("a", Some(9)), ("b", Some(10)), ("c", None)] {
        let credential = Credential { expires_at_ms, ..credential(id, &anna, CredentialKind::Session) };
        accounts.add_credential(credential).await.unwrap();
    }
    accounts.remove_expired(10).await.unwrap();
    let left: Vec<String> = accounts.credentials(&anna.id).await.unwrap().into_iter().map(|known| known.id).collect();
    assert_eq!(left, ["b", "c"]);
}
