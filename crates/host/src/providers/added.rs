//! Providers that people add while a host runs, by a key or an address: asked once before anything is stored, kept with their keys
//! sealed, and the default where the configuration names no model.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use turnwright_core::{ModelRef, ProviderFailureKind};
use turnwright_engine::{Document, Documents, Engine, Provider, StoreError, SystemClock};
use turnwright_mcp::TokenStore;
use turnwright_network::Network;
use turnwright_providers::HttpProvider;
use turnwright_store::Storage;
use turnwright_tools::PracticeForm;

use super::{PRACTICE, ProviderSet, endpoint_config, made};
use crate::Environment;
use crate::config::{self, Dialect, Endpoint, EndpointOrigin, Loaded, Secret};
use crate::mcp_endpoint::caller;
use crate::servers::sealed::{self, Unopened};

/// The kind of its documents; the key is the provider's name.
const KIND: &str = "model_provider";
const VERSION: u32 = 1;
/// How long a provider may take to answer before it is taken over.
const TEST_LIMIT: Duration = Duration::from_secs(20);
/// How often it is looked at most whether another process added one.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long it is waited until what could not be read is read again.
const READ_AGAIN: Duration = Duration::from_secs(10);
const MAX_NAME_BYTES: usize = 64;
const MAX_KEY_BYTES: usize = 8_192;

/// What is stored of a provider. The key is a reference to where it is sealed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Stored {
    version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dialect: Option<Dialect>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    api_key: Option<String>,
    /// The model that answers by default.
    model: String,
    /// When it was added; the newest answers by default.
    added_ms: u64,
}

/// A provider that was added.
#[derive(Debug, Clone)]
pub(crate) struct Added {
    pub(crate) endpoint: Endpoint,
    pub(crate) model: ModelRef,
    at_ms: u64,
}

/// What somebody wants to add.
#[derive(Debug, Clone, Default)]
pub struct NewProvider {
    /// Its name: one that is known, or any with an address.
    pub name: String,
    /// Its key.
    pub api_key: Option<Secret>,
    /// Where it is, where that is not known by its name.
    pub base_url: Option<String>,
    /// What it speaks, where that is not known by its name.
    pub dialect: Option<Dialect>,
}

/// A provider that was added and answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestedProvider {
    /// Its name.
    pub name: String,
    /// What it speaks.
    pub dialect: Dialect,
    /// The model that is asked where nobody names another of it.
    pub model: ModelRef,
    /// How many models it has.
    pub models: usize,
    /// Whether its key was tried.
    pub key: KeyCheck,
}

/// What is known of the key of a provider that answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyCheck {
    /// It has none.
    NoKey,
    /// It answered what it answers to a right key alone.
    Taken,
    /// It was asked for nothing that needs the key: its list of models is everybody's, and more is not asked for free.
    Untried,
}

/// Why a provider is not added or removed.
#[derive(Debug, thiserror::Error)]
pub enum ProviderChangeError {
    /// It was not added by anybody.
    #[error("there is no provider `{0}` that was added here")]
    NotFound(String),
    /// The configuration names it, or the program that has the host in it.
    #[error("the provider `{0}` is the configuration's, or of the program itself; change it there")]
    Configured(String),
    /// What is wrong with what was asked for.
    #[error("{0}")]
    Invalid(String),
    /// It was asked, and refused or did not answer.
    #[error("{0}")]
    Failed(String),
    /// It is not what whoever wants to change it saw.
    #[error("the provider `{0}` was changed since; read it again")]
    Changed(String),
    /// Its key cannot be kept.
    #[error("the key cannot be kept: {0}")]
    Unkept(#[source] std::io::Error),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The providers of a host, as they are added and removed while it runs. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ModelProviders {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    set: Arc<ProviderSet>,
    store: Arc<dyn Storage>,
    engine: Engine,
    loaded: Loaded,
    environment: Environment,
    tokens: Arc<dyn TokenStore>,
    /// Withdrawn with the first model.
    practice: Option<PracticeForm>,
    /// The default without those that were added; `None` where the configuration names it.
    otherwise: Option<ModelRef>,
    /// What was taken over last; held while that is changed.
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// What was stored; `None` where it is not taken over, or not all of it could be read.
    documents: Option<Vec<Document>>,
    /// What is wrong with it, as it was told.
    problems: Vec<String>,
}

/// What a host answers with where nobody adds a provider.
#[derive(Debug)]
pub(crate) struct Unadded {
    /// The form that is offered until a model is there.
    pub(crate) practice: Option<PracticeForm>,
    /// The default model; `None` where the configuration names it, and nobody changes it.
    pub(crate) otherwise: Option<ModelRef>,
}

impl ModelProviders {
    pub(crate) fn new(
        (loaded, environment): (&Loaded, &Environment),
        set: Arc<ProviderSet>,
        (store, tokens): (Arc<dyn Storage>, Arc<dyn TokenStore>),
        engine: Engine,
        Unadded { practice, otherwise }: Unadded,
    ) -> Self {
        let known = Mutex::default();
        let (loaded, environment) = (loaded.clone(), environment.clone());
        let shared = Shared { set, store, engine, loaded, environment, tokens, practice, otherwise, known };
        Self { shared: Arc::new(shared) }
    }

    /// What names a provider: `configuration`, `added`, a variable, `local server`, `built in`.
    pub fn origin(&self, name: &str) -> Option<String> {
        self.shared.set.known(name).map(|entry| entry.origin())
    }

    /// What is stored of a provider that was added, as a word that is another after each change.
    ///
    /// # Errors
    /// [`ProviderChangeError::Store`].
    pub async fn version(&self, name: &str) -> Result<Option<String>, ProviderChangeError> {
        Ok(self.shared.store.document(KIND, name).await?.map(|stored| stored.body))
    }

    /// Asks a provider for its models, and keeps it where it answers: in place of what was added or found under its name. It
    /// answers by default from then on, where the configuration names no model.
    ///
    /// # Errors
    /// [`ProviderChangeError`]: nothing is stored then.
    pub async fn add(&self, new: NewProvider) -> Result<TestedProvider, ProviderChangeError> {
        self.add_where(new, |_| true).await
    }

    /// The same where `may` says so of the [`ModelProviders::version`] that there is.
    ///
    /// # Errors
    /// As [`ModelProviders::add`]; [`ProviderChangeError::Changed`].
    pub async fn add_where(
        &self,
        new: NewProvider,
        may: impl Fn(Option<&str>) -> bool + Send,
    ) -> Result<TestedProvider, ProviderChangeError> {
        let shared = &*self.shared;
        let endpoint = wanted(&new, &shared.environment)?;
        if let Some(key) = &endpoint.api_key {
            // Before it is sent, so that no answer repeats it.
            shared.environment.secrets().learn([key.expose()]);
        }
        let mut known = shared.known.lock().await;
        if shared.set.known(&endpoint.name).is_some_and(|found| found.is_given()) {
            return Err(ProviderChangeError::Configured(endpoint.name));
        }
        let mut before = shared.store.document(KIND, &endpoint.name).await?;
        if !may(before.as_ref().map(|before| before.body.as_str())) {
            return Err(ProviderChangeError::Changed(endpoint.name));
        }
        let (model, models) = tested(&endpoint, &shared.loaded.network).await?;
        let key = key_check(&endpoint, &shared.loaded.network).await?;
        let kept = match &endpoint.api_key {
            Some(key) => Some(sealed::keep(key.expose(), &*shared.tokens).await.map_err(ProviderChangeError::Unkept)?),
            None => None,
        };
        let has_address = new.base_url.is_some_and(|address| !address.trim().is_empty());
        let stored = Stored {
            version: VERSION,
            base_url: has_address.then(|| endpoint.base_url.clone()),
            dialect: new.dialect,
            api_key: kept,
            model,
            added_ms: shared.engine.clock().now_ms(),
        };
        let body = serde_json::to_string(&stored).map_err(|error| ProviderChangeError::Invalid(error.to_string()))?;
        while let Err(error) = put(&*shared.store, &endpoint.name, before.as_ref(), body.clone()).await {
            // Another process was first: it is asked again whether what that did is replaced.
            let is_other = matches!(error, StoreError::Altered { .. });
            let seen = if is_other { shared.store.document(KIND, &endpoint.name).await } else { Err(error) };
            let refused = match seen {
                Ok(now) if may(now.as_ref().map(|now| now.body.as_str())) => {
                    before = now;
                    continue;
                }
                Ok(_) => ProviderChangeError::Changed(endpoint.name),
                Err(error) => error.into(),
            };
            forget(stored.api_key.as_deref(), &*shared.tokens).await;
            return Err(refused);
        }
        forget(before.and_then(|before| Stored::read(&before).ok()?.api_key).as_deref(), &*shared.tokens).await;
        self.take_over(&mut known).await?;
        let model = ModelRef::new(&endpoint.name, &stored.model);
        Ok(TestedProvider { dialect: endpoint.dialect, name: endpoint.name, model, models, key })
    }

    /// Forgets a provider that was added, with its key.
    ///
    /// # Errors
    /// [`ProviderChangeError::NotFound`], [`ProviderChangeError::Store`].
    pub async fn remove(&self, name: &str) -> Result<(), ProviderChangeError> {
        self.remove_where(name, |_| true).await
    }

    /// The same where `may` says so of the [`ModelProviders::version`] that there is.
    ///
    /// # Errors
    /// As [`ModelProviders::remove`]; [`ProviderChangeError::Changed`].
    pub async fn remove_where(&self, name: &str, may: impl Fn(Option<&str>) -> bool + Send) -> Result<(), ProviderChangeError> {
        let shared = &*self.shared;
        let mut known = shared.known.lock().await;
        let before = loop {
            let before = shared.store.document(KIND, name).await?;
            let before = before.ok_or_else(|| ProviderChangeError::NotFound(name.to_owned()))?;
            if !may(Some(&before.body)) {
                return Err(ProviderChangeError::Changed(name.to_owned()));
            }
            match shared.store.change_document(KIND, &before, None).await {
                Err(StoreError::Altered { .. }) => {}
                removed => {
                    removed?;
                    break before;
                }
            }
        };
        forget(Stored::read(&before).ok().and_then(|stored| stored.api_key).as_deref(), &*shared.tokens).await;
        self.take_over(&mut known).await
    }

    /// Takes over what other processes add and remove, within about a second; again and again, for as long as it is polled.
    pub async fn follow(&self) -> Infallible {
        let shared = &*self.shared;
        let mut foreign = shared.store.foreign_writes();
        loop {
            let is_known = match self.take_over_news().await {
                Ok(()) => shared.known.lock().await.documents.is_some(),
                Err(error) => {
                    tracing::warn!(%error, "the providers that were added cannot be read");
                    false
                }
            };
            // Whoever is told of everything need not look each time.
            tokio::time::sleep(LOOK_EVERY).await;
            let told = async {
                if is_known {
                    return foreign.changed().await;
                }
                // Nobody tells that it can be read again.
                tokio::time::timeout(READ_AGAIN, foreign.changed()).await.unwrap_or(Ok(()))
            };
            if told.await.is_err() {
                // The store is closed.
                std::future::pending::<()>().await;
            }
        }
    }

    async fn take_over_news(&self) -> Result<(), ProviderChangeError> {
        let mut known = self.shared.known.lock().await;
        let stored = self.shared.store.documents(KIND).await?;
        if known.documents.as_ref() == Some(&stored) { Ok(()) } else { self.take_over(&mut known).await }
    }

    /// Has what is stored now. One whose key cannot be read at this moment stays as it was, and is read again.
    async fn take_over(&self, known: &mut Known) -> Result<(), ProviderChangeError> {
        let shared = &*self.shared;
        known.documents = None;
        let stored = shared.store.documents(KIND).await?;
        let Opened { mut added, problems, unread } =
            opened(&shared.loaded, &stored, &*shared.tokens, &shared.environment).await;
        for problem in problems.iter().filter(|problem| !known.problems.contains(problem)) {
            tracing::warn!("{problem}");
        }
        *known = Known { documents: unread.is_empty().then_some(stored), problems };
        added.extend(unread.into_iter().filter_map(|(name, stored)| {
            let entry = shared.set.known(&name)?;
            let endpoint = entry.endpoint().filter(|endpoint| endpoint.origin == EndpointOrigin::Added)?.clone();
            Some(Added { endpoint, model: ModelRef::new(&name, &stored.model), at_ms: stored.added_ms })
        }));
        added.sort_by_key(|one| one.at_ms);
        let newest = added.last().map(|newest| newest.model.clone());
        shared.set.add(added.into_iter().map(|added| added.endpoint).collect());
        if let Some(model) = shared.otherwise.clone().map(|otherwise| newest.unwrap_or(otherwise)) {
            if let Some(practice) = shared.practice.as_ref().filter(|_| model.provider() != PRACTICE) {
                practice.withdraw();
            }
            shared.engine.answer_by_default(model);
        }
        Ok(())
    }
}

impl Stored {
    fn read(document: &Document) -> Result<Self, String> {
        let stored: Self =
            serde_json::from_str(&document.body).map_err(|error| format!("what is stored of it is damaged: {error}"))?;
        if stored.version > VERSION {
            return Err("a newer version of Turnwright stored it".to_owned());
        }
        Ok(stored)
    }

    async fn opened(&self, name: &str, tokens: &dyn TokenStore, environment: &Environment) -> Result<Added, Unopened> {
        let wrong = |why: &str| Unopened::Wrong(why.to_owned());
        let key = match &self.api_key {
            None => None,
            Some(kept) => {
                let place = sealed::reference(kept).ok_or_else(|| wrong("its key is not kept as it should be"))?;
                let unread = |error| Unopened::unread(&error, format!("its key cannot be read: {error}"));
                let key = tokens.load(place).await.map_err(unread)?;
                Some(key.map(Secret::new).ok_or_else(|| wrong("its key is not kept here; add it again"))?)
            }
        };
        let endpoint = config::added(name, environment, (self.base_url.as_deref(), self.dialect), key);
        let endpoint = endpoint.map_err(Unopened::Wrong)?;
        Ok(Added { endpoint, model: ModelRef::new(name, &self.model), at_ms: self.added_ms })
    }
}

/// The providers that were added, the newest last, and what is wrong with others. Their keys are known as secrets from then on.
pub(crate) async fn read(
    loaded: &Loaded,
    (documents, tokens): (&dyn Documents, &dyn TokenStore),
    environment: &Environment,
) -> Result<(Vec<Added>, Vec<String>), StoreError> {
    let Opened { added, problems, unread: _ } = opened(loaded, &documents.documents(KIND).await?, tokens, environment).await;
    Ok((added, problems))
}

/// What could be made of what is stored.
struct Opened {
    added: Vec<Added>,
    /// What is wrong with others.
    problems: Vec<String>,
    /// Those of the others whose keys cannot be read at this moment.
    unread: Vec<(String, Stored)>,
}

async fn opened(loaded: &Loaded, documents: &[Document], tokens: &dyn TokenStore, environment: &Environment) -> Opened {
    let (mut added, mut problems, mut unread) = (Vec::new(), Vec::new(), Vec::new());
    for document in documents {
        let name = &document.key;
        let mut fail = |why: &str| problems.push(format!("the provider `{name}` that was added cannot be used: {why}"));
        let stored = match Stored::read(document) {
            Ok(stored) => stored,
            Err(why) => {
                fail(&why);
                continue;
            }
        };
        match stored.opened(name, tokens, environment).await {
            Ok(one) => added.push(one),
            Err(Unopened::Wrong(why)) => fail(&why),
            Err(Unopened::NotNow(why)) => {
                fail(&why);
                unread.push((name.clone(), stored));
            }
        }
    }
    for one in &mut added {
        one.endpoint.model_facts = config::model_facts(&loaded.config, &one.endpoint.name);
    }
    added.sort_by_key(|one| one.at_ms);
    environment.secrets().learn(added.iter().filter_map(|one| one.endpoint.api_key.as_ref()).map(Secret::expose));
    Opened { added, problems, unread }
}

/// Stores a provider where what is stored of it still is what it was.
async fn put(store: &dyn Storage, name: &str, before: Option<&Document>, body: String) -> Result<(), StoreError> {
    match before {
        Some(of) => store.change_document(KIND, of, Some(body)).await,
        None => store.add_new_document(KIND, Document { key: name.to_owned(), body }).await,
    }
}

async fn forget(kept: Option<&str>, tokens: &dyn TokenStore) {
    if let Some(name) = kept.and_then(sealed::reference)
        && let Err(error) = tokens.remove(name).await
    {
        tracing::warn!(%error, "a key that is not needed any more stays where it is, sealed");
    }
}

/// What was asked for as an endpoint.
fn wanted(new: &NewProvider, environment: &Environment) -> Result<Endpoint, ProviderChangeError> {
    let invalid = ProviderChangeError::Invalid;
    let is_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.' | ':');
    // Browsers take `.` and `..` out of an address, however they are written.
    let is_step = matches!(new.name.as_str(), "." | "..");
    if is_step || new.name.is_empty() || new.name.len() > MAX_NAME_BYTES || !new.name.chars().all(is_name) {
        let most = format!("at most {MAX_NAME_BYTES} bytes, not `.` or `..`");
        return Err(invalid(format!("a provider is called by letters, digits and `-_.:`, {most}")));
    }
    if new.name == PRACTICE || new.name == caller::NAME {
        return Err(invalid(format!("`{}` is the name of a provider that is always there; choose another", new.name)));
    }
    let key = new.api_key.as_ref().map(|key| key.expose().trim()).filter(|key| !key.is_empty());
    if key.is_some_and(|key| key.len() > MAX_KEY_BYTES || !key.bytes().all(|byte| byte.is_ascii_graphic())) {
        return Err(invalid(format!("a key is one word of ASCII, at most {MAX_KEY_BYTES} bytes; this is something else")));
    }
    let address = new.base_url.as_deref().map(str::trim).filter(|address| !address.is_empty());
    let address = address.map(config::base_url).transpose();
    let address = address.map_err(|expected| invalid(format!("the address must be {expected}")))?;
    config::added(&new.name, environment, (address.as_deref(), new.dialect), key.map(Secret::new)).map_err(invalid)
}

/// Asks an endpoint for its models: the one that answers by default, and how many there are.
async fn tested(endpoint: &Endpoint, network: &Network) -> Result<(String, usize), ProviderChangeError> {
    let failed = ProviderChangeError::Failed;
    let provider: Arc<dyn Provider> = made(endpoint, network).map_err(|failure| failed(failure.message))?;
    let name = &endpoint.name;
    let models = match tokio::time::timeout(TEST_LIMIT, provider.models()).await {
        Ok(models) => models.map_err(|failure| failed(failure.to_string()))?,
        Err(_) => return Err(failed(format!("`{name}` did not list its models within {} s", TEST_LIMIT.as_secs()))),
    };
    let known = endpoint.default_model.as_ref().filter(|known| models.iter().any(|model| model.id == **known));
    let model = known.cloned().or_else(|| Some(models.first()?.id.clone()));
    model.map(|model| (model, models.len())).ok_or_else(|| failed(format!("`{name}` answers, and offers no models")))
}

/// Finds out whether an endpoint that lists its models takes its key. Many list them to everybody.
async fn key_check(endpoint: &Endpoint, network: &Network) -> Result<KeyCheck, ProviderChangeError> {
    let failed = ProviderChangeError::Failed;
    if endpoint.api_key.is_none() {
        return Ok(KeyCheck::NoKey);
    }
    if let Some(path) = config::key_path(&endpoint.name) {
        let config = endpoint_config(endpoint, network).map_err(|failure| failed(failure.message))?;
        let provider = HttpProvider::new(config, Arc::new(SystemClock));
        match tokio::time::timeout(TEST_LIMIT, provider.answers_at(path)).await {
            Ok(Ok(())) => return Ok(KeyCheck::Taken),
            Ok(Err(failure)) if failure.kind == ProviderFailureKind::Auth => return Err(failed(failure.to_string())),
            // Another server may stand in for it, which does not have this.
            Ok(Err(_)) | Err(_) => {}
        }
    }
    let keyless = made(&Endpoint { api_key: None, ..endpoint.clone() }, network).map_err(|failure| failed(failure.message))?;
    let listed = tokio::time::timeout(TEST_LIMIT, keyless.models()).await;
    let is_closed = |failure: &turnwright_core::ProviderFailure| {
        matches!(failure.kind, ProviderFailureKind::Auth | ProviderFailureKind::Permission)
    };
    Ok(match listed {
        Ok(Err(failure)) if is_closed(&failure) => KeyCheck::Taken,
        Ok(Ok(_) | Err(_)) | Err(_) => KeyCheck::Untried,
    })
}

#[cfg(test)]
mod tests;
