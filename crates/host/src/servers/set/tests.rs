//! What becomes of servers whose secrets cannot be read for a while.

use serde_json::{Value, json};
use turnwright_engine::SystemClock;
use turnwright_engine::accounts::{Role, User};
use turnwright_mcp::TransportConfig;
use turnwright_store::{SqliteOptions, SqliteStore};

use super::*;
use crate::servers::stored::Owner;
use crate::servers::tokens_fixture::{REFERENCE, Tokens};

struct World {
    set: ServerSet,
    tokens: Arc<Tokens>,
    folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        Self::needing(Needs::OnDemand)
    }

    fn needing(needs: Needs) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store: Arc<dyn Storage> = Arc::new(SqliteStore::open(&SqliteOptions::in_directory(folder.path())).unwrap());
        let tokens = Arc::new(Tokens::default());
        let mut surroundings = Surroundings::new(Arc::new(SystemClock));
        surroundings.tokens = tokens.clone();
        let environment = Environment::new(folder.path());
        let set = ServerSet::new(store, environment, surroundings, needs, Vec::new(), Vec::new());
        Self { set, tokens, folder }
    }

    /// Stores a server, as another process may.
    async fn store(&self, name: &str, path: &str, more: Value) {
        let mut config = json!({"url": format!("http://127.0.0.1:9/{path}"), "headers": {"X-Key": REFERENCE}});
        let (Value::Object(keys), Value::Object(more)) = (&mut config, more) else { panic!("two objects") };
        keys.extend(more);
        let stored = Stored::new(Owner::Everyone, keys.clone(), self.folder.path().to_owned(), None);
        self.set.store.put_document(KIND, stored.document(name).unwrap()).await.unwrap();
        self.set.refresh().await.unwrap();
    }

    /// Where the server is, or why there is none.
    fn address(&self, name: &str) -> Result<String, String> {
        self.set.entry(name).unwrap().server.map(|server| match &server.config().transport {
            TransportConfig::Http(http) => http.url.clone(),
            other @ (TransportConfig::Stdio(_) | TransportConfig::Docker(_)) => panic!("{other} has no address"),
        })
    }
}

#[tokio::test]
async fn a_server_whose_secret_cannot_be_read_for_a_while_stays_as_it_was_and_is_taken_over_then() {
    let world = World::new();
    world.store("far", "old", json!({})).await;
    let old = world.set.entry("far").unwrap().server.unwrap();
    world.tokens.fail(true);
    world.store("far", "new", json!({})).await;
    world.store("late", "late", json!({})).await;
    assert!(Arc::ptr_eq(&old, &world.set.entry("far").unwrap().server.unwrap()), "it goes on");
    let why = "its secret `headers.X-Key` cannot be read: the disk does not answer";
    assert_eq!(world.address("late"), Err(why.to_owned()));
    let news = *world.set.news().unwrap().borrow();
    assert_eq!(world.set.sources().await.len(), 1);
    assert_eq!(*world.set.news().unwrap().borrow(), news, "nothing is new while it fails");
    let (entry, document) = world.set.with_document("far").unwrap();
    let Origin::Added(Some(stored)) = entry.origin else { panic!("it was added") };
    assert_eq!(stored.document("far").unwrap(), document, "what is shown of it is what is stored");
    world.tokens.fail(false);
    assert_eq!(world.set.sources().await.len(), 2);
    let addresses = ["far", "late"].map(|name| world.address(name).unwrap());
    assert_eq!(addresses, ["http://127.0.0.1:9/new", "http://127.0.0.1:9/late"]);
    world.set.settle().await;
}

#[tokio::test]
async fn a_server_that_takes_anothers_place_is_waited_for_and_starts_once_that_has_ended() {
    let world = World::needing(Needs::Everything);
    let log = world.folder.path().join("log");
    let begins = |word: &str| {
        let script = format!("echo {word} begins >> \"$1\"; cat > /dev/null; sleep 0.2; echo {word} ends >> \"$1\"");
        let Value::Object(keys) = json!({"command": "sh", "args": ["-c", script, "sh", log]}) else { panic!("an object") };
        Stored::new(Owner::Everyone, keys, world.folder.path().to_owned(), None)
    };
    let has_said = async |said: &str| {
        while std::fs::read_to_string(&log).unwrap_or_default() != said {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    let put = async |stored: Stored| {
        world.set.store.put_document(KIND, stored.document("near").unwrap()).await.unwrap();
        world.set.refresh().await.unwrap();
    };
    put(begins("old")).await;
    has_said("old begins\n").await;
    put(begins("new")).await;
    let server = world.set.entry("near").unwrap().server.unwrap();
    assert!(server.is_awaited(), "{:?}", server.state());
    // As a turn that begins does.
    {
        let mut settled = std::pin::pin!(server.settled());
        assert!(futures_util::poll!(&mut settled).is_pending());
    }
    world.set.settle().await;
    has_said("old begins\nold ends\nnew begins\n").await;
    server.stop().await;
}

#[tokio::test]
async fn files_with_secrets_of_a_server_that_is_added_are_kept_from_then_on() {
    let world = World::new();
    let loaded = config::load(None, &world.set.environment, &config::Overrides::default()).unwrap();
    // What the tools were given when they were made.
    let kept = crate::kept::files(&loaded, &world.set.environment);
    let in_folder = |name: &str| world.folder.path().join(name);
    std::fs::write(in_folder("secret.txt"), "sesame-open-1234\n").unwrap();
    let keys = json!({"command": "c", "env": {"TOKEN": "${file:secret.txt}"}, "env_file": "my.vars"});
    let Value::Object(keys) = keys else { panic!("an object") };
    let stored = Stored::new(Owner::Everyone, keys, world.folder.path().to_owned(), None);
    world.set.store.put_document(KIND, stored.document("near").unwrap()).await.unwrap();
    world.set.refresh().await.unwrap();
    for name in ["secret.txt", "my.vars"] {
        assert!(kept.known().contains(&in_folder(name)), "{name}: {kept:?}");
    }
}

#[tokio::test]
async fn a_server_that_is_switched_off_does_not_stay_because_its_secret_cannot_be_read() {
    let world = World::new();
    world.store("far", "old", json!({})).await;
    world.tokens.fail(true);
    world.store("far", "old", json!({"enabled": false})).await;
    assert!(world.address("far").is_err());
    assert_eq!(world.set.sources().await.len(), 0);
    world.set.settle().await;
}

#[tokio::test]
async fn nothing_of_this_machine_is_put_into_a_members_server_however_it_was_stored() {
    let world = World::new();
    std::fs::write(world.folder.path().join("secret"), "of the machine").unwrap();
    let member = Owner::User("u_0000000000000001".parse().unwrap());
    for value in
        [json!({"file": "secret"}), json!({"file": "secret", "env": null}), json!("${file:secret}"), json!("${X:-word}")]
    {
        for owner in [Owner::Everyone, member.clone()] {
            let Value::Object(config) = json!({"url": "http://127.0.0.1:9/", "headers": {"X-Leak": value}}) else { panic!() };
            let stored = Stored::new(owner.clone(), config, world.folder.path().to_owned(), None);
            world.set.store.put_document(KIND, stored.document("leak").unwrap()).await.unwrap();
            world.set.refresh().await.unwrap();
            match (world.address("leak"), owner.user()) {
                (Ok(_), None) => {}
                (Err(why), Some(_)) => assert!(why.contains("what this machine has is its own"), "{why}"),
                (other, _) => panic!("{value} of {owner:?}: {other:?}"),
            }
        }
    }
    world.set.settle().await;
}

#[tokio::test]
async fn what_an_admin_gave_to_a_server_is_taken_from_it_once_they_are_a_member() {
    let world = World::new();
    std::fs::write(world.folder.path().join("secret"), "of the machine").unwrap();
    let adam: UserId = "u_0000000000000001".parse().unwrap();
    let user = User {
        id: adam.clone(),
        name: "adam".to_owned(),
        role: Role::Admin,
        is_enabled: true,
        created_at_ms: 0,
        identity: None,
    };
    world.set.store.add_user(user).await.unwrap();
    let Value::Object(config) = json!({"url": "http://127.0.0.1:9/", "headers": {"X-Key": {"file": "secret"}}}) else {
        panic!()
    };
    let stored = Stored::new(Owner::User(adam.clone()), config, world.folder.path().to_owned(), None);
    world.set.store.put_document(KIND, stored.document("far").unwrap()).await.unwrap();
    world.set.refresh().await.unwrap();
    assert_eq!(world.set.sources().await.len(), 1);
    world.set.store.change_role(&adam, Role::Member).await.unwrap();
    assert_eq!(world.set.sources().await.len(), 0);
    let why = world.address("far").unwrap_err();
    assert!(why.contains("what this machine has is its own"), "{why}");
    world.set.store.change_role(&adam, Role::Admin).await.unwrap();
    assert_eq!(world.set.sources().await.len(), 1);
    world.set.settle().await;
}
