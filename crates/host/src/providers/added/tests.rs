//! What becomes of providers whose keys cannot be read for a while.

use turnwright_core::TurnSettings;
use turnwright_core::policy::Policy;
use turnwright_engine::EngineParts;
use turnwright_store::{SqliteOptions, SqliteStore};

use super::*;
use crate::config::{Overrides, load};
use crate::servers::tokens_fixture::{REFERENCE, Tokens};

#[tokio::test]
async fn a_provider_whose_key_cannot_be_read_for_a_while_stays_as_it_was_and_is_taken_over_then() {
    let folder = tempfile::tempdir().unwrap();
    let store: Arc<dyn Storage> = Arc::new(SqliteStore::open(&SqliteOptions::in_directory(folder.path())).unwrap());
    let environment = Environment::new(folder.path());
    let loaded = load(None, &environment, &Overrides::default()).unwrap();
    let set = Arc::new(ProviderSet::new(Vec::new(), Vec::new(), Vec::new(), &loaded.network));
    let otherwise = ModelRef::new(PRACTICE, "none");
    let engine = Engine::new(EngineParts {
        providers: set.clone(),
        sources: Vec::new(),
        store: store.clone(),
        clock: Arc::new(SystemClock),
        policy: Policy::new(Vec::new()).unwrap(),
        defaults: TurnSettings::new(otherwise.clone()),
    });
    let tokens = Arc::new(Tokens::default());
    let unadded = Unadded { practice: None, otherwise: Some(otherwise) };
    let providers =
        ModelProviders::new((&loaded, &environment), set.clone(), (store.clone(), tokens.clone()), engine.clone(), unadded);
    let put = async |name: &str, address: &str, added_ms: u64| {
        let stored = Stored {
            version: VERSION,
            base_url: Some(format!("http://127.0.0.1:9/{address}")),
            dialect: None,
            api_key: Some(REFERENCE.to_owned()),
            model: "m".to_owned(),
            added_ms,
        };
        let body = serde_json::to_string(&stored).unwrap();
        store.put_document(KIND, Document { key: name.to_owned(), body }).await.unwrap();
        providers.take_over_news().await.unwrap();
    };
    let address = |name: &str| Some(set.known(name)?.endpoint()?.base_url.clone());
    put("far", "old", 2).await;
    tokens.fail(true);
    put("late", "late", 1).await;
    put("far", "new", 2).await;
    assert_eq!((address("far").as_deref(), address("late")), (Some("http://127.0.0.1:9/old"), None));
    assert_eq!(engine.defaults().model, ModelRef::new("far", "m"));
    tokens.fail(false);
    providers.take_over_news().await.unwrap();
    let all = ["far", "late"].map(|name| address(name).unwrap());
    assert_eq!(all, ["http://127.0.0.1:9/new", "http://127.0.0.1:9/late"]);
    assert_eq!(engine.defaults().model, ModelRef::new("far", "m"));
    store.close().await;
}
