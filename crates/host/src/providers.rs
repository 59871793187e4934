//! The providers of an installation: the program's own, configured, added by people, found in the environment, on this machine, and
//! practice.

mod added;

use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use indexmap::IndexMap;
use turnwright_core::{ConversationId, ModelRef, ProviderFailure, ProviderFailureKind};
use turnwright_engine::{Provider, Providers, SystemClock};
use turnwright_network::Network;
use turnwright_providers::{EndpointConfig, HttpProvider, Practice, ProfileChoice, Secret, dialect_named};

pub use added::{KeyCheck, ModelProviders, NewProvider, ProviderChangeError, TestedProvider};
pub(crate) use added::{Unadded, read as read_added};

use crate::config::{Endpoint, EndpointOrigin, fallback, key_names};
use crate::mcp_endpoint::caller::{self, Caller};

/// The provider that is always there.
pub(crate) const PRACTICE: &str = "practice";

/// The providers by name; each is made when it is asked for first.
#[derive(Debug)]
pub(crate) struct ProviderSet {
    /// Those of the program that has the host in it.
    own: Vec<OwnProvider>,
    /// Those that nobody added.
    found: Vec<Endpoint>,
    network: Network,
    entries: RwLock<IndexMap<String, Arc<Entry>>>,
}

/// A provider of the program that has the host in it, by its name.
pub(crate) type OwnProvider = (String, Arc<dyn Provider>);

/// What a name stands for.
#[derive(Debug)]
enum Behind {
    /// A provider of the program that has the host in it.
    Own(Arc<dyn Provider>),
    Endpoint(Box<Endpoint>),
    Practice,
}

#[derive(Debug)]
pub(crate) struct Entry {
    behind: Behind,
    /// How it is reached.
    network: Network,
    made: OnceLock<Result<Arc<dyn Provider>, ProviderFailure>>,
}

impl ProviderSet {
    /// The program's own, these endpoints, in this order, with those that were added behind the configured ones, and practice at the
    /// end. The first of a name counts.
    pub(crate) fn new(
        own: Vec<OwnProvider>,
        found: impl IntoIterator<Item = Endpoint>,
        added: Vec<Endpoint>,
        network: &Network,
    ) -> Self {
        let set = Self { own, found: found.into_iter().collect(), network: network.clone(), entries: RwLock::default() };
        set.add(added);
        set
    }

    /// Has these in place of those that were added before. Whoever holds a provider that is gone keeps it.
    pub(crate) fn add(&self, added: Vec<Endpoint>) {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::take(&mut *entries);
        for (name, provider) in &self.own {
            entries.entry(name.clone()).or_insert_with(|| self.entry(Behind::Own(Arc::clone(provider))));
        }
        for endpoint in arranged(&self.found, added) {
            let same = before.get(&endpoint.name).filter(|entry| entry.endpoint() == Some(&endpoint));
            let entry = same.cloned().unwrap_or_else(|| self.entry(Behind::Endpoint(Box::new(endpoint.clone()))));
            entries.entry(endpoint.name).or_insert(entry);
        }
        entries.entry(PRACTICE.to_owned()).or_insert_with(|| self.entry(Behind::Practice));
    }

    fn entry(&self, behind: Behind) -> Arc<Entry> {
        Arc::new(Entry { behind, network: self.network.clone(), made: OnceLock::new() })
    }

    /// The name of the program's own provider that was named first.
    pub(crate) fn first_own(&self) -> Option<&str> {
        self.own.first().map(|(name, _)| name.as_str())
    }

    /// All of them, as they are at this moment.
    pub(crate) fn entries(&self) -> Vec<(String, Arc<Entry>)> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.iter().map(|(name, entry)| (name.clone(), Arc::clone(entry))).collect()
    }

    fn known(&self, name: &str) -> Option<Arc<Entry>> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }
}

/// What somebody added counts before what was found, and after what the configuration says.
fn arranged(found: &[Endpoint], added: Vec<Endpoint>) -> Vec<Endpoint> {
    let (configured, other): (Vec<_>, Vec<_>) =
        found.iter().cloned().partition(|endpoint| endpoint.origin == EndpointOrigin::Configured);
    configured.into_iter().chain(added).chain(other).collect()
}

impl Entry {
    /// The endpoint, where it is one.
    pub(crate) fn endpoint(&self) -> Option<&Endpoint> {
        match &self.behind {
            Behind::Endpoint(endpoint) => Some(endpoint),
            Behind::Own(_) | Behind::Practice => None,
        }
    }

    /// The wire format, without making it.
    pub(crate) fn dialect(&self) -> String {
        match &self.behind {
            Behind::Own(provider) => provider.dialect().to_owned(),
            Behind::Endpoint(endpoint) => endpoint.dialect.to_string(),
            Behind::Practice => PRACTICE.to_owned(),
        }
    }

    /// Whether nobody who is at a door can put another in its place: it is the configuration's or the program's.
    pub(crate) fn is_given(&self) -> bool {
        match &self.behind {
            Behind::Own(_) => true,
            Behind::Endpoint(endpoint) => endpoint.origin == EndpointOrigin::Configured,
            Behind::Practice => false,
        }
    }

    /// Where it comes from, for people.
    pub(crate) fn origin(&self) -> String {
        match &self.behind {
            Behind::Own(_) => "program".to_owned(),
            Behind::Practice => "built in".to_owned(),
            Behind::Endpoint(endpoint) => match &endpoint.origin {
                EndpointOrigin::Configured => "configuration".to_owned(),
                EndpointOrigin::Added => "added".to_owned(),
                EndpointOrigin::Variable(name) => name.clone(),
                EndpointOrigin::Local => "local server".to_owned(),
            },
        }
    }

    pub(crate) fn provider(&self) -> Result<Arc<dyn Provider>, ProviderFailure> {
        self.made
            .get_or_init(|| match &self.behind {
                Behind::Own(provider) => Ok(Arc::clone(provider)),
                Behind::Practice => Ok(Arc::new(Practice) as Arc<dyn Provider>),
                Behind::Endpoint(endpoint) => made(endpoint, &self.network),
            })
            .clone()
    }
}

pub(crate) fn made(endpoint: &Endpoint, network: &Network) -> Result<Arc<dyn Provider>, ProviderFailure> {
    let provider = HttpProvider::new(endpoint_config(endpoint, network)?, Arc::new(SystemClock));
    Ok(Arc::new(provider))
}

pub(crate) fn endpoint_config(endpoint: &Endpoint, network: &Network) -> Result<EndpointConfig, ProviderFailure> {
    let unavailable = |text| ProviderFailure::new(ProviderFailureKind::Unavailable, text);
    let Some(dialect) = dialect_named(endpoint.dialect.as_str()) else {
        let (name, dialect) = (&endpoint.name, endpoint.dialect);
        return Err(unavailable(format!("provider `{name}` speaks {dialect}, which this version cannot")));
    };
    let mut config = EndpointConfig::new(&endpoint.name, dialect, &endpoint.base_url);
    config.network = network.clone();
    config.api_key = endpoint.api_key.as_ref().map(|key| Secret::from(key.expose().to_owned()));
    if matches!(endpoint.origin, EndpointOrigin::Variable(_)) {
        config.key_variable = key_names(&endpoint.name);
    }
    config.models.clone_from(&endpoint.models);
    config.model_facts = endpoint.model_facts.iter().map(|(name, facts)| (name.clone(), *facts)).collect();
    config.headers =
        endpoint.headers.iter().map(|(name, value)| (name.clone(), Secret::from(value.expose().to_owned()))).collect();
    config.max_retries = endpoint.max_retries;
    if let Some(profile) = &endpoint.profile {
        let choice: Result<ProfileChoice, _> = serde_json::to_value(profile).and_then(serde_json::from_value);
        let resolved = choice.map_err(|error| error.to_string());
        let resolved = resolved.and_then(|choice| choice.resolve(&endpoint.base_url).map_err(|error| error.to_string()));
        config.profile = resolved
            .map_err(|why| unavailable(format!("the profile of provider `{}` cannot be used: {why}", endpoint.name)))?;
    }
    if let Some(connect) = endpoint.connect {
        config.timeouts.connect = connect;
    }
    if let Some(start) = endpoint.start {
        config.timeouts.headers = start;
    }
    if let Some(idle) = endpoint.idle {
        config.timeouts.idle = idle;
    }
    Ok(config)
}

impl Providers for ProviderSet {
    fn get(&self, name: &str) -> Result<Arc<dyn Provider>, ProviderFailure> {
        if name == caller::NAME {
            return Ok(Arc::new(Caller));
        }
        if let Some(entry) = self.known(name) {
            return entry.provider();
        }
        let known = self.names();
        let text = format!("there is no provider `{name}`; there are {}", known.join(", "));
        Err(ProviderFailure::new(ProviderFailureKind::Unavailable, text))
    }

    fn forget(&self, conversation: &ConversationId) {
        // Those that were never asked keep nothing, and are not made for this.
        for provider in self.entries().iter().filter_map(|(_, entry)| entry.made.get()?.as_ref().ok()) {
            provider.forget(conversation);
        }
    }

    fn kept(&self) -> Vec<ConversationId> {
        let entries = self.entries();
        let made = entries.iter().filter_map(|(_, entry)| entry.made.get()?.as_ref().ok());
        made.flat_map(|provider| provider.kept()).collect()
    }

    fn hinted(&self, hints: &[String], current: &ModelRef) -> Option<ModelRef> {
        let models: Vec<ModelRef> = std::iter::once(current.clone()).chain(self.listed()).collect();
        hints.iter().find_map(|hint| models.iter().find(|model| model.model().contains(hint.as_str())).cloned())
    }

    fn listed(&self) -> Vec<ModelRef> {
        let entries = self.entries();
        let configured = entries.iter().filter_map(|(name, entry)| Some((name, entry.endpoint()?)));
        configured.flat_map(|(name, endpoint)| endpoint.models.iter().map(move |model| ModelRef::new(name, model))).collect()
    }

    fn fallback(&self, model: &ModelRef) -> Vec<ModelRef> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        let endpoint = |name: &str| entries.get(name).and_then(|entry| entry.endpoint());
        fallback::chain(model, |name| endpoint(name).map_or(&[], |endpoint| &endpoint.fallback))
    }

    fn names(&self) -> Vec<String> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }
}
