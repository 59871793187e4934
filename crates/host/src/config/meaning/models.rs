//! What is said of providers and of their models.

use serde_json::{Map, Value};
use turnwright_core::{ModelRef, nearest};
use turnwright_providers::{ProfileChoice, UnknownProfile, catalogue_facts};

use super::{Meaning, is_header_value, place_of};
use crate::Environment;
use crate::config::endpoint::{self, Endpoint};
use crate::config::key_path::KeyPath;
use crate::config::listed::listed;
use crate::config::{Dialect, Place, Problem, Profile, fallback};

impl Meaning<'_> {
    /// All providers that can be asked; one without a dialect cannot.
    pub(crate) fn endpoints(self, environment: &Environment, problems: &mut Vec<Problem>) -> Vec<Endpoint> {
        endpoint::endpoints(self.config, environment, |name| {
            let keys = ["providers", name];
            if self.root.at(keys.into_iter().chain(["dialect"])).is_none() {
                let (section, dialects) = (KeyPath::of(keys).section(), listed(Dialect::ALL.map(Dialect::as_str)));
                let text = format!("{section} has no `dialect`; it must be one of {dialects}");
                problems.push(Problem::new(place_of(self.root, keys), text));
            }
        })
    }

    /// What is sent to a provider can be sent as it is written.
    pub(crate) fn providers(self, problems: &mut Vec<Problem>) {
        for (name, provider) in &self.config.providers {
            let mut tell = |keys: &[&str], text: String| {
                let keys = ["providers", name].into_iter().chain(keys.iter().copied());
                problems.push(Problem::new(place_of(self.root, keys.clone()), format!("`{}` {text}", KeyPath::of(keys))));
            };
            for (index, model) in provider.models.iter().enumerate() {
                if model.trim().is_empty() {
                    tell(&["models"], format!("holds {model:?}; each must be the name of a model"));
                } else if provider.models.iter().position(|known| known == model) != Some(index) {
                    tell(&["models"], format!("holds {model:?} twice; each must be there once"));
                }
            }
            let key = provider.api_key.iter().map(|key| (vec!["api_key"], key));
            let headers = provider.headers.iter().map(|(name, value)| (vec!["headers", name.as_str()], value));
            for (keys, _) in key.chain(headers).filter(|(_, value)| !is_header_value(value.expose())) {
                let text = "holds a line break or another control character; it must be one line of text";
                tell(&keys, text.to_owned());
            }
        }
    }

    /// Each provider's profile is one that there is, and so are its switches.
    pub(crate) fn profiles(self, problems: &mut Vec<Problem>) {
        for (name, provider) in &self.config.providers {
            let keys = ["providers", name, "profile"];
            let path = KeyPath::of(keys);
            match &provider.profile {
                None => {}
                Some(Profile::Named(preset)) => {
                    if let Err(why) = chosen(Value::from(preset.as_str())) {
                        problems.push(Problem::new(place_of(self.root, keys), format!("`{path}` is {preset:?}; {why}")));
                    }
                }
                // One by one, so that each is told at its place.
                Some(Profile::Switches(switches)) => {
                    for (key, value) in switches {
                        if let Err(why) = chosen(Value::Object(Map::from_iter([(key.clone(), value.clone())]))) {
                            let place = place_of(self.root, keys.into_iter().chain([key.as_str()]));
                            problems.push(Problem::new(place, format!("`{}` is {value}; {why}", path.key(key))));
                        }
                    }
                }
            }
        }
    }

    /// Models should have a provider. It is no problem yet: the provider may matter to nobody who runs.
    pub(crate) fn models(self, endpoints: &[Endpoint], warnings: &mut Vec<Problem>) {
        let top = self.config.model.iter().map(|model| (model, place_of(self.root, ["model"])));
        let known: Vec<_> = self
            .config
            .models
            .keys()
            .filter_map(|name| Some((name.parse().ok()?, place_of(self.root, ["models", name]))))
            .collect();
        let missing =
            |(model, place): (&ModelRef, Place)| Some(Problem::new(place, endpoint::missing(model.provider(), endpoints)?));
        warnings.extend(top.chain(known.iter().map(|(model, place)| (model, place.clone()))).filter_map(missing));
    }

    /// Where dollars are limited, the models that the configuration names have a price: others are not asked.
    pub(crate) fn prices(self, endpoints: &[Endpoint], warnings: &mut Vec<Problem>) {
        let Some(keys) = self.config.budgets.in_dollars() else { return };
        let of_endpoints = endpoints.iter().flat_map(|endpoint| {
            let named = endpoint.models.iter().chain(endpoint.default_model.as_ref());
            named.map(|model| ModelRef::new(&endpoint.name, model)).chain(endpoint.fallback.iter().cloned())
        });
        let has_price = |model: &ModelRef| {
            // A provider that is not there is told of elsewhere.
            let Some(endpoint) = endpoints.iter().find(|endpoint| endpoint.name == model.provider()) else { return true };
            let given = endpoint.model_facts.get(model.model()).and_then(|facts| facts.prices);
            given.or(catalogue_facts(&endpoint.base_url, model.model()).prices).is_some()
        };
        let mut unpriced: Vec<String> = Vec::new();
        for model in self.config.model.iter().cloned().chain(of_endpoints).filter(|model| !has_price(model)) {
            let name = model.to_string();
            if !unpriced.contains(&name) {
                unpriced.push(name);
            }
        }
        let Some(first) = unpriced.first() else { return };
        let keys: Vec<&str> = std::iter::once("budgets").chain(keys.iter().map(String::as_str)).collect();
        let text = format!(
            "`{}` limits dollars, and no price is known of {}: no model without one is asked. Write one under [models.\"{first}\"], \
             such as `prices = {{ input = 0, output = 0 }}`, or limit tokens",
            KeyPath::of(keys.iter().copied()),
            listed(unpriced.iter().map(String::as_str)),
        );
        warnings.push(Problem::new(place_of(self.root, keys), text));
    }

    /// Models of a fallback chain exist, and no chain leads back to where it began. A well-known provider whose key is not
    /// there is no problem: it may be, elsewhere.
    pub(crate) fn fallbacks(self, endpoints: &[Endpoint], problems: &mut Vec<Problem>, warnings: &mut Vec<Problem>) {
        let lists = |name: &str| self.config.providers.get(name).map_or(&[][..], |provider| &provider.fallback);
        let mut told: Vec<&str> = Vec::new();
        for (name, provider) in &self.config.providers {
            let keys = ["providers", name, "fallback"];
            let place = place_of(self.root, keys);
            for (index, model) in provider.fallback.iter().enumerate() {
                let path = KeyPath::of(keys).index(index);
                let offers = endpoints.iter().find(|endpoint| endpoint.name == model.provider()).map(|found| &found.models);
                if let Some(missing) = endpoint::missing(model.provider(), endpoints) {
                    let whose = if endpoint::is_well_known(model.provider()) { &mut *warnings } else { &mut *problems };
                    whose.push(Problem::new(place.clone(), format!("`{path}` is \"{model}\": {missing}")));
                } else if let Some(offers) =
                    offers.filter(|models| !models.is_empty() && !models.iter().any(|known| known == model.model()))
                {
                    let (provider, known) = (model.provider(), listed(offers.iter().map(String::as_str)));
                    let text = format!("`{path}` is \"{model}\"; the models of `{provider}` are {known}");
                    problems.push(Problem::new(place.clone(), text));
                } else if model.provider() == name && is_all(&provider.models, model) {
                    let text = format!(
                        "`{path}` is \"{model}\", the one model of `{name}`, which cannot stand in for itself; it must be another \
                         model, or one of another provider"
                    );
                    problems.push(Problem::new(place.clone(), text));
                } else if self.config.model.as_ref() == Some(model) && provider.fallback.iter().all(|other| other == model) {
                    let text = format!("`{path}` is \"{model}\", which is `model` too: nothing stands in for that by it");
                    warnings.push(Problem::new(place.clone(), text));
                }
            }
            if !told.contains(&name.as_str())
                && let Some(way) = fallback::way_back(name, lists)
            {
                let text = format!("`{}` leads back to where it began: {}", KeyPath::of(keys), way.join(" → "));
                problems.push(Problem::new(place, text));
                told.extend(way);
            }
        }
    }

    /// The embedding model is whole, and its provider is there.
    pub(crate) fn embeddings(self, endpoints: &[Endpoint], problems: &mut Vec<Problem>) {
        let embeddings = &self.config.embeddings;
        let mut tell = |key: &str, text: String| problems.push(Problem::new(place_of(self.root, ["embeddings", key]), text));
        match (&embeddings.provider, &embeddings.model) {
            (None, None) => {}
            (Some(_), None) => {
                tell("provider", "[embeddings] has no `model`; it must be the name of a model that makes vectors".to_owned());
            }
            (None, Some(_)) => {
                tell("model", "[embeddings] has no `provider`; it must be a name under `[providers]`".to_owned());
            }
            (Some(name), Some(model)) => {
                if model.trim().is_empty() {
                    tell("model", "`embeddings.model` is empty; it must be the name of a model that makes vectors".to_owned());
                }
                match endpoints.iter().find(|endpoint| endpoint.name == *name) {
                    None => {
                        let known = listed(endpoints.iter().map(|endpoint| endpoint.name.as_str()));
                        let names = endpoints.iter().map(|endpoint| endpoint.name.as_str());
                        let near = nearest(name, names).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                        let there =
                            if endpoints.is_empty() { "none is configured".to_owned() } else { format!("there are {known}") };
                        tell(
                            "provider",
                            format!("`embeddings.provider` is {name:?}; there is no such provider, {there}{near}"),
                        );
                    }
                    Some(endpoint) if endpoint.dialect == Dialect::Anthropic => {
                        let text = format!(
                            "`embeddings.provider` is {name:?}, whose API makes no vectors; it must be a provider with another dialect"
                        );
                        tell("provider", text);
                    }
                    Some(_) => {}
                }
            }
        }
    }
}

/// Whether the models of a provider are this one alone.
fn is_all(models: &[String], model: &ModelRef) -> bool {
    matches!(models, [only] if only == model.model())
}

/// Whether there is such a profile, or why not.
fn chosen(profile: Value) -> Result<(), String> {
    let choice: ProfileChoice = serde_json::from_value(profile).map_err(|error| error.to_string())?;
    // The address chooses the base alone, which is there at any.
    let Err(unknown) = choice.resolve("") else { return Ok(()) };
    let near = nearest(unknown.name(), UnknownProfile::known()).map(|near| format!("did you mean `{near}`? "));
    let (near, known) = (near.unwrap_or_default(), listed(UnknownProfile::known()));
    Err(format!("{near}it must be one of {known}"))
}
