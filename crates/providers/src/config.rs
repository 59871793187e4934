//! What an endpoint is configured with.

use std::collections::HashMap;
use std::time::Duration;

use turnwright_core::ModelFacts;
use turnwright_dialects::{Dialect, Profile, catalogue_facts};
use turnwright_network::Network;

use crate::Secret;

/// An endpoint that speaks a dialect.
#[derive(Debug, Clone)]
pub struct EndpointConfig {
    /// The provider's name in the configuration; any characters.
    pub name: String,
    /// The wire format.
    pub dialect: &'static dyn Dialect,
    /// What comes before the format's own path, such as `https://api.openai.com/v1`.
    pub base_url: String,
    /// The key; nothing is sent where there is none.
    pub api_key: Option<Secret>,
    /// The variable of the environment that holds the key, or would; `None` where the configuration does.
    pub key_variable: Option<String>,
    /// The models, where they are configured.
    pub models: Vec<String>,
    /// What the configuration says of models, by their names; it comes before the catalogue.
    pub model_facts: HashMap<String, ModelFacts>,
    /// Headers that are sent with every request.
    pub headers: Vec<(String, Secret)>,
    /// How often a failed call is tried again before its first content.
    pub max_retries: u32,
    /// How the endpoint differs from its format.
    pub profile: Profile,
    /// How long is waited.
    pub timeouts: Timeouts,
    /// How it is reached.
    pub network: Network,
}

impl EndpointConfig {
    /// An endpoint with the defaults of an address: no key, two retries, the profile that the address suggests.
    pub fn new(name: impl Into<String>, dialect: &'static dyn Dialect, base_url: impl Into<String>) -> Self {
        let base_url = base_url.into();
        let profile = Profile::for_base_url(&base_url);
        Self {
            name: name.into(),
            dialect,
            base_url,
            api_key: None,
            key_variable: None,
            models: Vec::new(),
            model_facts: HashMap::new(),
            headers: Vec::new(),
            max_retries: 2,
            profile,
            timeouts: Timeouts::default(),
            network: Network::default(),
        }
    }

    /// What is known of a model: what the configuration says, and what the catalogue knows besides.
    pub fn facts(&self, model: &str) -> ModelFacts {
        let configured = self.model_facts.get(model).copied().unwrap_or_default();
        configured.or(catalogue_facts(&self.base_url, model))
    }
}

/// How long is waited. A stream has no limit in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For a connection.
    pub connect: Duration,
    /// For the headers of the response, once the request is sent: models that reason or are being loaded can be silent for
    /// minutes.
    pub headers: Duration,
    /// Between two reads of the body, from the headers on; comments count.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(10), headers: Duration::from_mins(5), idle: Duration::from_mins(2) }
    }
}
