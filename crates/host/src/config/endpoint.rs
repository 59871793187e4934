//! The providers that there are: configured ones with what they left out, then those that variables stand for.

use std::time::Duration;

use indexmap::IndexMap;
use turnwright_core::{ModelFacts, ModelRef, nearest};

use super::listed::listed;
use super::well_known::{VENDORS, Vendor, local_candidates, local_names};
use super::{Config, Dialect, Profile, ProviderConfig, Secret};
use crate::Environment;

/// The retries of an endpoint that says nothing about them.
pub(crate) const DEFAULT_MAX_RETRIES: u32 = 2;

/// The provider that is always there.
const PRACTICE: &str = "practice";

/// A provider with everything that is needed to ask it.
#[derive(Debug, Clone, PartialEq)]
pub struct Endpoint {
    /// The first half of its models' names.
    pub name: String,
    /// Who says that it is there.
    pub origin: EndpointOrigin,
    /// The wire format that it speaks.
    pub dialect: Dialect,
    /// What comes before the API's own path, without a slash at its end.
    pub base_url: String,
    /// The key that is sent.
    pub api_key: Option<Secret>,
    /// The models that it offers; asked from it where empty.
    pub models: Vec<String>,
    /// The model that answers where only the provider is known; `None` where it has to be asked for its models.
    pub default_model: Option<String>,
    /// HTTP headers that are sent with each request.
    pub headers: IndexMap<String, Secret>,
    /// How often a request is sent again that failed before the first byte of content.
    pub max_retries: u32,
    /// Models that are asked in turn where it is not available.
    pub fallback: Vec<ModelRef>,
    /// What the configuration says of its models, by their names.
    pub model_facts: IndexMap<String, ModelFacts>,
    /// How it differs from its dialect.
    pub profile: Option<Profile>,
    /// The most time to connect; the provider layer's own where `None`.
    pub connect: Option<Duration>,
    /// The most time until an answer begins; the provider layer's own where `None`.
    pub start: Option<Duration>,
    /// The most time without any byte of an answer that has begun; the provider layer's own where `None`.
    pub idle: Option<Duration>,
}

/// Who says that a provider is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndpointOrigin {
    /// The configuration.
    Configured,
    /// A person, while a host ran.
    Added,
    /// A variable, by name.
    Variable(String),
    /// Nobody yet: it is a server that may be running on this machine.
    Local,
}

/// The model that answers where nobody names one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DefaultModel {
    /// This one.
    Model(ModelRef),
    /// The first one that this provider offers when it is asked.
    FirstOf(String),
}

/// The configured providers in file order, then those found in the environment that no configured one is called like.
/// `missing_dialect` is told the names of those that cannot be asked.
pub(crate) fn endpoints(config: &Config, environment: &Environment, mut missing_dialect: impl FnMut(&str)) -> Vec<Endpoint> {
    let mut endpoints: Vec<Endpoint> = Vec::with_capacity(config.providers.len());
    for (name, provider) in &config.providers {
        match configured(name, provider, environment) {
            Some(endpoint) => endpoints.push(endpoint),
            None => missing_dialect(name),
        }
    }
    let found = VENDORS.iter().filter(|vendor| !config.providers.contains_key(vendor.name));
    endpoints.extend(found.filter_map(|vendor| vendor.found(environment)));
    for endpoint in &mut endpoints {
        endpoint.model_facts = model_facts(config, &endpoint.name);
    }
    endpoints
}

/// What the configuration says of a provider's models, by their names.
pub(crate) fn model_facts(config: &Config, provider: &str) -> IndexMap<String, ModelFacts> {
    let facts = config.models.iter().filter_map(|(name, model)| {
        let (known, name) = name.split_once('/')?;
        (known == provider).then(|| (name.to_owned(), model.facts()))
    });
    facts.collect()
}

fn configured(name: &str, provider: &ProviderConfig, environment: &Environment) -> Option<Endpoint> {
    let vendor = Vendor::named(name);
    let dialect = provider.dialect.or(vendor.map(|vendor| vendor.dialect))?;
    // A vendor's address and key go together, and neither goes with another dialect's.
    let vendor = vendor.filter(|vendor| provider.base_url.is_none() && vendor.speaks(dialect));
    let base_url = match (&provider.base_url, vendor) {
        (Some(base_url), _) => base_url,
        (None, Some(vendor)) => vendor.base_url,
        (None, None) => dialect.default_base_url(),
    };
    let api_key = provider.api_key.clone().or_else(|| Some(Secret::new(vendor?.key(environment)?.1)));
    Some(Endpoint {
        name: name.to_owned(),
        origin: EndpointOrigin::Configured,
        dialect,
        base_url: base_url.to_owned(),
        api_key: api_key.filter(|key| !key.is_empty()),
        models: provider.models.clone(),
        default_model: provider.models.first().cloned().or_else(|| Some(vendor?.default_model.to_owned())),
        headers: provider.headers.clone(),
        max_retries: provider.max_retries.unwrap_or(DEFAULT_MAX_RETRIES),
        fallback: provider.fallback.clone(),
        model_facts: IndexMap::new(),
        profile: provider.profile.clone(),
        connect: provider.connect_ms.map(Duration::from_millis),
        start: provider.start_ms.map(Duration::from_millis),
        idle: provider.idle_ms.map(Duration::from_millis),
    })
}

/// A provider that a person added by its key or its address: one that is known by its name, or one that speaks Chat Completions
/// where nothing else is said.
///
/// # Errors
/// What is missing, in words for people.
pub(crate) fn added(
    name: &str,
    environment: &Environment,
    (base_url, dialect): (Option<&str>, Option<Dialect>),
    api_key: Option<Secret>,
) -> Result<Endpoint, String> {
    let blank = Endpoint { name: name.to_owned(), origin: EndpointOrigin::Added, api_key, ..Endpoint::blank() };
    let (vendor, local) = (Vendor::named(name), local_candidates(environment).into_iter().find(|local| local.name == name));
    Ok(match (base_url, vendor, local) {
        (Some(base_url), vendor, _) => {
            let dialect = dialect.or(vendor.map(|vendor| vendor.dialect_elsewhere));
            Endpoint { base_url: base_url.to_owned(), dialect: dialect.unwrap_or(Dialect::OpenaiChat), ..blank }
        }
        (None, Some(vendor), _) => Endpoint {
            base_url: vendor.base_url.to_owned(),
            dialect: dialect.unwrap_or(vendor.dialect),
            default_model: Some(vendor.default_model.to_owned()),
            ..blank
        },
        (None, None, Some(local)) => Endpoint { base_url: local.base_url, dialect: local.dialect, ..blank },
        (None, None, None) => return Err(format!("`{name}` is no provider that is known by its name; say its address")),
    })
}

/// The top-level `model`, else the first provider's first; `None` where only local servers and practice are left. Nobody
/// asked for a found provider, so one that cannot be used is passed over; a configured one is not.
pub(crate) fn default_model(
    config: &Config,
    endpoints: &[Endpoint],
    is_built: impl Fn(Dialect) -> bool,
) -> Option<DefaultModel> {
    if let Some(model) = &config.model {
        return Some(DefaultModel::Model(model.clone()));
    }
    let first =
        endpoints.iter().find(|endpoint| endpoint.origin == EndpointOrigin::Configured || is_built(endpoint.dialect))?;
    Some(match &first.default_model {
        Some(model) => DefaultModel::Model(ModelRef::new(&first.name, model)),
        None => DefaultModel::FirstOf(first.name.clone()),
    })
}

/// The variables in which people keep the key of the vendor with this name.
pub(crate) fn key_names(name: &str) -> Option<String> {
    Vendor::named(name).map(Vendor::key_names)
}

/// What answers to a right key alone at the vendor with this name, where its list of models does not tell.
pub(crate) fn key_path(name: &str) -> Option<&'static str> {
    Vendor::named(name)?.key_path
}

/// Whether this is the name of a provider that is found by its key, where that is there.
pub(crate) fn is_well_known(name: &str) -> bool {
    Vendor::named(name).is_some()
}

/// Why there is no provider with this name and what would be right; `None` where there is one, or where a local server
/// may turn out to be it.
pub(crate) fn missing(name: &str, endpoints: &[Endpoint]) -> Option<String> {
    let mut names: Vec<&str> = endpoints.iter().map(|endpoint| endpoint.name.as_str()).collect();
    names.push(PRACTICE);
    for local in local_names() {
        if !names.contains(&local) {
            names.push(local);
        }
    }
    if names.contains(&name) {
        return None;
    }
    let hint = match (Vendor::named(name), nearest(name, names.iter().copied())) {
        (Some(vendor), _) => format!("set {}, or write [providers.{name}]", vendor.key_names()),
        (None, Some(near)) => format!("did you mean `{near}`?"),
        (None, None) => format!("known: {}", listed(names)),
    };
    Some(format!("there is no provider `{name}`; {hint}"))
}
