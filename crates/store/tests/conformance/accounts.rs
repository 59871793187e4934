//! What every store of accounts must do, whatever it keeps them in.

use turnwright_core::UserId;
use turnwright_engine::StoreError;
use turnwright_engine::accounts::{
    Accounts, Credential, CredentialKind, Identity, Role, Scope, Scopes, SecretHash, Staying, User,
};

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
    accounts.change_user(&anna, Role::Admin, false, Staying::WithLocal).await.unwrap();
    accounts.change_role(&anna.id, Role::Member).await.unwrap();
    let changed = User { role: Role::Member, is_enabled: false, ..anna.clone() };
    assert_eq!(accounts.credential(&token.hash).await.unwrap(), Some((token.clone(), changed)));
    accounts.credential_used("t1", 8).await.unwrap();
    let used = Credential { used_at_ms: Some(8), ..token.clone() };
    assert_eq!(accounts.credentials(&anna.id).await.unwrap(), std::slice::from_ref(&used));
    assert_eq!(accounts.credential_named("t1").await.unwrap(), Some(used));

    let seen = User { is_enabled: false, ..anna.clone() };
    accounts.remove_user(&seen, Staying::WithLocal).await.unwrap();

    assert_eq!(accounts.credential(&token.hash).await.unwrap(), None);
    assert_eq!(accounts.credentials(&ben.id).await.unwrap(), [bens]);
    let gone = StoreError::Missing { what: "user `user_anna`".to_owned() };
    assert_eq!(accounts.add_credential(token).await, Err(gone.clone()));
    assert_eq!(accounts.remove_user(&anna, Staying::WithLocal).await, Err(gone.clone()));
    let late = accounts.change_user(&anna, Role::Member, true, Staying::WithLocal).await;
    assert_eq!(late, Err(gone.clone()));
    assert_eq!(accounts.change_role(&anna.id, Role::Member).await, Err(gone));
}

pub(crate) async fn a_user_is_changed_by_whoever_saw_what_they_are(full: &dyn Full) {
    let (one, other) = (full.open_all().await, full.open_all().await);
    let (one, other): (&dyn Accounts, &dyn Accounts) = (&*one, &*other);
    let anna = user("anna");
    one.add_user(anna.clone()).await.unwrap();
    one.change_user(&anna, Role::Admin, true, Staying::WithLocal).await.unwrap();

    let altered = Err(StoreError::Altered { what: "user `user_anna`".to_owned() });
    assert_eq!(other.change_user(&anna, Role::Member, false, Staying::WithLocal).await, altered);
    assert_eq!(other.remove_user(&anna, Staying::WithLocal).await, altered);
    let seen = other.user(&anna.id).await.unwrap().unwrap();
    assert_eq!(seen, User { role: Role::Admin, ..anna });
    other.remove_user(&seen, Staying::WithLocal).await.unwrap();
    assert_eq!(one.user(&seen.id).await.unwrap(), None);
}

pub(crate) async fn the_last_admin_stays_also_where_two_take_the_role_of_each_other(full: &dyn Full) {
    let stores = [full.open_all().await, full.open_all().await];
    let [one, other]: [&dyn Accounts; 2] = [&*stores[0], &*stores[1]];
    let admin = |name: &str| User { role: Role::Admin, ..user(name) };
    let (anna, ben) = (admin("anna"), admin("ben"));
    one.add_user(anna.clone()).await.unwrap();
    let last = |user: &User| Err(StoreError::LastAdmin { name: user.name.clone() });

    // Nobody is known as `local` but at the machine.
    let from_afar = Staying::SignedIn(5);
    assert_eq!(one.change_user(&anna, Role::Member, true, from_afar).await, last(&anna));
    assert_eq!(one.change_user(&anna, Role::Admin, false, from_afar).await, last(&anna));
    assert_eq!(one.remove_user(&anna, from_afar).await, last(&anna));
    let local = one.user(&UserId::local()).await.unwrap().unwrap();
    one.add_credential(credential("l1", &local, CredentialKind::Link)).await.unwrap();
    assert_eq!(one.remove_user(&anna, from_afar).await, last(&anna), "whoever has a link is not known yet");
    one.add_credential(credential("t1", &local, CredentialKind::Token)).await.unwrap();
    assert_eq!(one.remove_user(&anna, Staying::SignedIn(9)).await, last(&anna), "the token has expired");
    one.change_user(&anna, Role::Member, true, from_afar).await.unwrap();
    let member = User { role: Role::Member, ..anna.clone() };
    one.change_user(&member, Role::Admin, true, from_afar).await.unwrap();
    one.change_user(&anna, Role::Admin, false, Staying::WithLocal).await.unwrap();
    assert_eq!(one.change_user(&local, Role::Admin, false, Staying::WithLocal).await, last(&local));
    let kept_out = User { is_enabled: false, ..anna.clone() };
    one.change_user(&kept_out, Role::Admin, true, Staying::WithLocal).await.unwrap();
    // Whoever does not hear whether it is gone is told that it was not there.
    let gone = one.remove_credential("t1").await;
    assert!(gone.is_ok() || full.loses_answers(), "{gone:?}");

    one.add_user(ben.clone()).await.unwrap();
    for round in 0..12 {
        let goes = async |store: &dyn Accounts, user: &User| match round % 3 {
            0 => store.change_user(user, Role::Member, true, from_afar).await,
            1 => store.change_user(user, Role::Admin, false, from_afar).await,
            _ => store.remove_user(user, from_afar).await,
        };
        let done = tokio::join!(goes(one, &anna), goes(other, &ben));
        let stay = [(&anna, done.0), (&ben, done.1)].map(|(user, done)| {
            assert!(done == Ok(()) || done == last(user), "round {round}: {done:?}");
            done.is_err()
        });
        assert_ne!(stay[0], stay[1], "round {round}");
        for user in [&anna, &ben] {
            match one.user(&user.id).await.unwrap() {
                None => one.add_user(user.clone()).await.unwrap(),
                Some(now) => one.change_user(&now, Role::Admin, true, from_afar).await.unwrap(),
            }
        }
    }
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
    let late = Credential { parent: Some("t1".to_owned()), ..credential("s3", &anna, CredentialKind::Session) };
    let gone = StoreError::Missing { what: "user `user_anna` with a credential `t1`".to_owned() };
    assert_eq!(accounts.add_credential(late).await, Err(gone));
}

pub(crate) async fn what_is_made_with_a_credential_while_it_is_removed_goes_with_it(full: &dyn Full) {
    let (one, other) = (full.open_all().await, full.open_all().await);
    let (one, other): (&dyn Accounts, &dyn Accounts) = (&*one, &*other);
    let anna = user("anna");
    one.add_user(anna.clone()).await.unwrap();
    for turn in 0..10 {
        let first = format!("t{turn}");
        one.add_credential(credential(&first, &anna, CredentialKind::Token)).await.unwrap();
        let made =
            Credential { parent: Some(first.clone()), ..credential(&format!("s{turn}"), &anna, CredentialKind::Session) };
        let (_, _) = tokio::join!(one.add_credential(made), other.remove_credential(&first));
        assert_eq!(one.credentials(&anna.id).await.unwrap(), []);
    }
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
