//! What the schema cannot say: keys that need or exclude one another, and names that must lead somewhere.

use std::net::IpAddr;
use std::path::Path;

use indexmap::IndexMap;
use serde_json::{Map, Value};
use turnwright_core::policy::Policy;
use turnwright_core::{ModelRef, nearest};
use turnwright_network::Network;
use turnwright_providers::{ProfileChoice, UnknownProfile, catalogue_facts};

use super::document::{Node, NodeValue};
use super::endpoint::{self, Endpoint};
use super::format::base_path;
use super::key_path::KeyPath;
use super::listed::listed;
use super::root::path_of;
use super::{Auth, Config, Dialect, McpServer, Place, Problem, Profile, fallback};
use crate::Environment;

/// A configuration with the tree that it was made of, where the places are.
#[derive(Clone, Copy)]
pub(crate) struct Meaning<'a> {
    pub(crate) config: &'a Config,
    pub(crate) root: &'a Node,
}

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

    /// What is said of the server's address goes together.
    pub(crate) fn server(self, problems: &mut Vec<Problem>, warnings: &mut Vec<Problem>) {
        let server = &self.config.server;
        if server.auth == Some(Auth::Local) && server.oidc.is_some() {
            let text = "`server.auth` is \"local\", where nobody signs in, and [server.oidc] says at whom; it must be \"tokens\" or left \
                        out beside that, or [server.oidc] left out";
            problems.push(Problem::new(place_of(self.root, ["server", "auth"]), text));
        }
        self.identity_provider(problems, warnings);
        let wrong = server.public_url.as_deref().and_then(|url| {
            let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
            let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
            // What it holds is not repeated here either.
            if authority.contains('@') {
                Some("has a user or a password, which all would see who are sent there; it must be without")
            } else if rest.contains(['?', '#']) {
                Some("has a query or a fragment, behind which there are no paths; it must end with its path")
            } else {
                None
            }
        });
        if let Some(wrong) = wrong {
            let keys = ["server", "public_url"];
            problems.push(Problem::new(place_of(self.root, keys), format!("`{}` {wrong}", KeyPath::of(keys))));
            return;
        }
        let below = server.public_url.as_deref().map(path_of).unwrap_or_default().trim_end_matches('/');
        if below.is_empty() {
            return;
        }
        let wrong = match &server.base_path {
            Some(base) if below == base => return,
            Some(base) => format!("`{below}`, and `server.base_path` is `{base}`; one of them is enough"),
            None => match base_path(below) {
                Ok(_) => return,
                Err(right) => format!("`{below}`; it must be {right}"),
            },
        };
        let text = format!("the path of `server.public_url` is {wrong}");
        problems.push(Problem::new(place_of(self.root, ["server", "public_url"]), text));
    }

    /// What the identity provider is asked for has a name, and is asked in secret.
    fn identity_provider(self, problems: &mut Vec<Problem>, warnings: &mut Vec<Problem>) {
        let Some(oidc) = &self.config.server.oidc else { return };
        let is_empty = |name: &Option<String>| name.as_deref().is_some_and(|name| name.trim().is_empty());
        let of_group = "the name of a group, or left out";
        let names = [
            ("client_id", oidc.client_id.trim().is_empty(), "the name by which the provider knows this server"),
            ("groups_claim", oidc.groups_claim.trim().is_empty(), "the name of a claim, or left out"),
            ("admin_group", is_empty(&oidc.admin_group), of_group),
            ("member_group", is_empty(&oidc.member_group), of_group),
        ];
        for (key, _, right) in names.into_iter().filter(|(_, is_wrong, _)| *is_wrong) {
            let keys = ["server", "oidc", key];
            let text = format!("`{}` is empty; it must be {right}", KeyPath::of(keys));
            problems.push(Problem::new(place_of(self.root, keys), text));
        }
        // They are sent with a space between them.
        if !oidc.scopes.iter().flat_map(|scopes| scopes.split(' ')).any(|scope| scope == "openid") {
            let keys = ["server", "oidc", "scopes"];
            let text = format!(
                "`{}` is without \"openid\", and so no provider says who signed in; it must be there",
                KeyPath::of(keys)
            );
            problems.push(Problem::new(place_of(self.root, keys), text));
        }
        if is_open(&oidc.issuer) {
            let keys = ["server", "oidc", "issuer"];
            let text = format!(
                "`{}` is `{}`: by http:// all on the way there see the client's secret, and can sign in as anybody; it should begin \
                 with https://",
                KeyPath::of(keys),
                oidc.issuer
            );
            warnings.push(Problem::new(place_of(self.root, keys), text));
        }
    }

    /// The frames of apps are of another origin than the page, and the page's is known.
    pub(crate) fn apps(self, problems: &mut Vec<Problem>) {
        let Some(frames) = &self.config.apps.sandbox_origin else { return };
        let wrong = match self.config.server.origin().map(str::to_ascii_lowercase) {
            None => "needs `server.public_url`, the address of the page that the frames are in".to_owned(),
            Some(page) if without_default_port(&page) == without_default_port(frames) => {
                format!("is `{frames}`, where the page is too; it must be another host name or port")
            }
            Some(page) if page.starts_with("https://") && !frames.starts_with("https://") => {
                format!("is `{frames}`; it must begin with https:// as `server.public_url` does, or browsers do not load it")
            }
            Some(_) => return,
        };
        let keys = ["apps", "sandbox_origin"];
        problems.push(Problem::new(place_of(self.root, keys), format!("`{}` {wrong}", KeyPath::of(keys))));
    }

    /// Whoever is told of waiting turns can be told.
    pub(crate) fn notify(self, problems: &mut Vec<Problem>) {
        let notify = &self.config.notify;
        let mut tell = |keys: &[&str], text: &str| {
            let keys = ["notify"].into_iter().chain(keys.iter().copied());
            problems.push(Problem::new(place_of(self.root, keys.clone()), format!("`{}` {text}", KeyPath::of(keys))));
        };
        if notify.command.first().is_some_and(|program| program.trim().is_empty()) {
            tell(&["command"], "begins with an empty text; it must begin with the name or path of a program");
        }
        let Some(webhook) = &notify.webhook else { return };
        if webhook.signing_key().is_none() {
            tell(
                &["webhook", "secret"],
                "is no signing secret; it must be 24 to 64 bytes in base64, with `whsec_` before them or not; `openssl rand \
                 -base64 32` makes one",
            );
        }
        for (name, _) in webhook.headers.iter().filter(|(_, value)| !is_header_value(value.expose())) {
            let text = "holds a line break or another control character; it must be one line of text";
            tell(&["webhook", "headers", name], text);
        }
    }

    /// A server is known to NATS in one way, by a whole name.
    pub(crate) fn nats(self, problems: &mut Vec<Problem>) {
        let nats = &self.config.nats;
        let mut tell = |key: &str, text: &str| {
            let keys = ["nats", key];
            problems.push(Problem::new(place_of(self.root, keys), format!("`{}` {text}", KeyPath::of(keys))));
        };
        if !matches!(nats.replicas, 1 | 3 | 5) {
            tell("replicas", &format!("is {}; it must be 1, 3 or 5", nats.replicas));
        }
        match (&nats.user, &nats.password) {
            (Some(_), None) => tell("user", "has no `password` beside it"),
            (None, Some(_)) => tell("password", "has no `user` beside it"),
            (Some(_), Some(_)) | (None, None) => {}
        }
        let ways =
            [("credentials", nats.credentials.is_some()), ("token", nats.token.is_some()), ("user", nats.user.is_some())];
        let mut given = ways.iter().filter(|(_, is_given)| *is_given).map(|(key, _)| *key);
        if let (Some(first), Some(second)) = (given.next(), given.next()) {
            tell(second, &format!("stands beside `{first}`; a server is known to NATS in one way"));
        }
        // Where nobody is called nobody reads them.
        if nats.url.is_none() {
            return;
        }
        let read = |file: &Path| std::fs::read(file).map_err(|error| error.to_string());
        let trusted = |pem: Vec<u8>| Network::default().trusting(&pem).map(drop).map_err(|error| error.to_string());
        let files = [
            ("ca_file", &nats.ca_file, nats.ca_file.as_deref().map(|file| read(file).and_then(trusted))),
            ("credentials", &nats.credentials, nats.credentials.as_deref().map(|file| read(file).map(drop))),
        ];
        for (key, file, found) in files {
            if let (Some(file), Some(Err(why))) = (file, found) {
                tell(key, &format!("is `{}`, which cannot be used: {why}", file.display()));
            }
        }
    }

    /// Nothing repeats before it comes twice.
    pub(crate) fn loops(self, problems: &mut Vec<Problem>) {
        for key in self.config.loops.wrong() {
            let keys = ["loops", key];
            let text = format!("`{}` is 1; it must be at least 2, or 0 for never", KeyPath::of(keys));
            problems.push(Problem::new(place_of(self.root, keys), text));
        }
    }

    /// A budget is a limit above nothing.
    pub(crate) fn budgets(self, problems: &mut Vec<Problem>) {
        for (keys, text) in self.config.budgets.wrong() {
            let keys: Vec<&str> = std::iter::once("budgets").chain(keys.iter().map(String::as_str)).collect();
            let text = format!("`{}` {text}", KeyPath::of(keys.iter().copied()));
            problems.push(Problem::new(place_of(self.root, keys), text));
        }
    }

    /// A command may take the time that it is given.
    pub(crate) fn command(self, problems: &mut Vec<Problem>) {
        let Some((given, longest)) = self.config.tools.command.is_above_longest() else { return };
        let keys = ["tools", "command", "timeout_ms"];
        let text = format!(
            "`{}` is {given}, above the {longest} of `tools.command.max_timeout_ms`, so that no command would run; it must be at most \
             that",
            KeyPath::of(keys)
        );
        problems.push(Problem::new(place_of(self.root, keys), text));
    }

    /// Whoever searches the web can be asked.
    pub(crate) fn web(self, problems: &mut Vec<Problem>) {
        let Some(search) = self.config.tools.web.search.as_ref().filter(|search| search.enabled) else { return };
        let keys = ["tools", "web", "search"];
        if let Some((key, right)) = search.missing() {
            let text = format!("{} has no `{key}`; it must be {right}", KeyPath::of(keys).section());
            problems.push(Problem::new(place_of(self.root, keys), text));
        }
        if search.api_key.as_ref().is_some_and(|key| !is_header_value(key.expose())) {
            let keys = keys.into_iter().chain(["api_key"]);
            let text = format!(
                "`{}` holds a line break or another control character; it must be one line of text",
                KeyPath::of(keys.clone())
            );
            problems.push(Problem::new(place_of(self.root, keys), text));
        }
    }

    /// Each API has a name of its own, and what it is sent can be sent.
    pub(crate) fn apis(self, problems: &mut Vec<Problem>) {
        const BUILT_IN: [&str; 9] =
            ["filesystem", "command", "web", "executable", "resources", "artifact", "memory", "knowledge", "tools"];
        for (name, api) in &self.config.tools.http {
            let keys = ["tools", "http", name];
            let mut tell = |more: &[&str], text: &str| {
                let keys = keys.into_iter().chain(more.iter().copied());
                problems.push(Problem::new(place_of(self.root, keys.clone()), format!("`{}` {text}", KeyPath::of(keys))));
            };
            if BUILT_IN.contains(&name.as_str()) {
                tell(&[], "has the name of built-in tools; it must be another one");
            } else if self.config.mcp.servers.contains_key(name) {
                tell(&[], "has the name of an MCP server; one of them must have another");
            }
            for (more, text) in api.wrong() {
                tell(&more, text);
            }
        }
    }

    /// Less of a piece than all of it is repeated in the next. What nobody wrote gives way by itself.
    pub(crate) fn pieces(self, problems: &mut Vec<Problem>) {
        let (piece, overlap) = (self.config.knowledge.piece_tokens, self.config.knowledge.overlap_tokens);
        let is_written = self.root.get("knowledge").is_some_and(|knowledge| knowledge.get("overlap_tokens").is_some());
        if is_written && overlap >= piece {
            let place = place_of(self.root, ["knowledge", "overlap_tokens"]);
            let text = format!(
                "`knowledge.overlap_tokens` is {overlap}; it must be less than `knowledge.piece_tokens`, which is {piece}"
            );
            problems.push(Problem::new(place, text));
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

    /// Each rule is one that the policy can use.
    pub(crate) fn rules(self, problems: &mut Vec<Problem>) {
        let written = self.root.at(["approval", "rules"]).map(|rules| &rules.value);
        for (index, rule) in self.config.approval.rules.iter().enumerate() {
            let Err(error) = Policy::new([rule.clone()]) else { continue };
            let path = KeyPath::of(["approval", "rules"]).index(index);
            let node = match written {
                Some(NodeValue::Array(rules)) => rules.get(index),
                _ => None,
            };
            let place =
                node.map_or_else(|| place_of(self.root, ["approval", "rules"]), |rule| place_of(rule, error.at.split('.')));
            problems.push(Problem::new(place, format!("`{path}.{}` {}", error.at, error.reason)));
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

    /// Each MCP server says exactly once how it is reached.
    pub(crate) fn servers(self, problems: &mut Vec<Problem>, warnings: &mut Vec<Problem>) {
        for (name, server) in &self.config.mcp.servers {
            let keys = ["mcp", "servers", name];
            let (place, section) = (place_of(self.root, keys), KeyPath::of(keys).section());
            match transport(server, |key| self.root.at(keys.into_iter().chain([key])).is_some()) {
                Ok(None) => {}
                Ok(Some(warning)) => warnings.push(Problem::new(place, format!("{section} {warning}"))),
                Err(problem) => problems.push(Problem::new(place, format!("{section} {problem}"))),
            }
            for (header, value) in &server.headers {
                // RFC 9110, section 5.5: a value is one line.
                if value.expose().chars().any(|letter| letter.is_ascii_control() && letter != '\t') {
                    let place = place_of(self.root, keys.into_iter().chain(["headers", header.as_str()]));
                    let text = format!(
                        "{section} `headers.{header}` holds a line break or another control character, which cannot be sent"
                    );
                    problems.push(Problem::new(place, text));
                }
            }
        }
    }

    /// A server with the name of a built-in source is left out where that is offered. Other programs' files call theirs so too.
    /// One that is switched off hinders nobody, but could not be switched on either.
    pub(crate) fn names(self, warnings: &mut Vec<Problem>, left_out: &mut IndexMap<String, String>) {
        let built_in = self.config.built_in_sources();
        let servers = self.config.mcp.servers.iter();
        for (name, server) in servers.filter(|(name, _)| built_in.contains(&name.as_str())) {
            let keys = ["mcp", "servers", name];
            let what = if server.enabled { "is left out" } else { "is left out, also once it is enabled" };
            let text = format!(
                "{} has the name of built-in tools and {what}; it must have another, or they be turned off",
                KeyPath::of(keys).section()
            );
            let problem = Problem::new(place_of(self.root, keys), text);
            if server.enabled {
                left_out.insert(name.clone(), problem.to_string());
            }
            warnings.push(problem);
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
}

/// Whether the models of a provider are this one alone.
fn is_all(models: &[String], model: &ModelRef) -> bool {
    matches!(models, [only] if only == model.model())
}

/// Whether others see what is sent to this address: it is of another machine, and not over TLS.
fn is_open(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next(),
        None => authority.split(':').next(),
    };
    let host = host.unwrap_or_default();
    !host.eq_ignore_ascii_case("localhost") && !host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// An origin as browsers write it.
fn without_default_port(origin: &str) -> &str {
    let port = if origin.starts_with("https://") { ":443" } else { ":80" };
    origin.strip_suffix(port).unwrap_or(origin)
}

/// Whether HTTP can carry it.
fn is_header_value(text: &str) -> bool {
    !text.chars().any(|c| c.is_ascii_control() && c != '\t')
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

/// Whether a server says exactly once how it is reached: a warning about keys that mean nothing there, or what is wrong.
/// `written` counts a key whose value is broken too.
fn transport(server: &McpServer, written: impl Fn(&str) -> bool) -> Result<Option<String>, String> {
    const TRANSPORTS: [&str; 3] = ["command", "url", "image"];
    let given: Vec<_> = TRANSPORTS.into_iter().filter(|key| written(key)).collect();
    let only = match given.as_slice() {
        [] => return Err("has no `command`, `url` or `image`; it must have exactly one of them".to_owned()),
        [only] => *only,
        more => return Err(format!("has {}; it must have exactly one of them", listed(more.iter().copied()))),
    };
    let value = match only {
        "command" => &server.command,
        "url" => &server.url,
        _ => &server.image,
    };
    if value.as_deref().is_some_and(|value| value.trim().is_empty()) {
        return Err(format!("has `{only}`, which is empty; it must say what is started or reached"));
    }
    let idle = [
        ("args", !server.args.is_empty() && only == "url"),
        ("env", !server.env.is_empty() && only == "url"),
        ("cwd", server.cwd.is_some() && only != "command"),
        ("env_file", server.env_file.is_some() && only == "url"),
        ("headers", !server.headers.is_empty() && only != "url"),
        ("oauth", server.oauth.is_some() && only != "url"),
        ("docker", server.docker.is_some() && only != "image"),
    ];
    let idle: Vec<_> = idle.into_iter().filter(|(_, is_idle)| *is_idle).map(|(key, _)| key).collect();
    Ok((!idle.is_empty()).then(|| format!("is reached by `{only}`; {} has no effect there", listed(idle))))
}

/// Where a value was written, or the table that should hold it.
pub(crate) fn place_of<'a>(root: &Node, keys: impl IntoIterator<Item = &'a str>) -> Place {
    let mut node = root;
    for key in keys {
        match node.get(key) {
            Some(child) => node = child,
            None => break,
        }
    }
    node.place.clone()
}
