//! Which values of a configuration are secrets (docs/secrets.md).

use indexmap::IndexMap;
use turnwright_core::secrets::{given, is_filler, of_address};

use super::key_path::KeyPath;
use super::{Config, Endpoint, Secret};
use crate::Environment;

/// A secret, and the key that holds it.
pub(crate) struct Known {
    pub(crate) key: KeyPath,
    pub(crate) value: String,
}

/// The secrets of a configuration and of the environment that it is read in.
pub(crate) fn of(config: &Config, endpoints: &[Endpoint]) -> Vec<Known> {
    let mut known = Finder(Vec::new());
    for endpoint in endpoints {
        known.one(&["providers", &endpoint.name, "api_key"], endpoint.api_key.as_ref());
        known.named(&["providers", &endpoint.name, "headers"], &endpoint.headers);
        known.address(&["providers", &endpoint.name, "base_url"], &endpoint.base_url);
    }
    for (name, server) in &config.mcp.servers {
        known.named(&["mcp", "servers", name, "env"], &server.env);
        known.named(&["mcp", "servers", name, "headers"], &server.headers);
        let secret = server.oauth.as_ref().and_then(|oauth| oauth.client_secret.as_ref());
        known.one(&["mcp", "servers", name, "oauth", "client_secret"], secret);
    }
    known.named(&["tools", "command", "env"], &config.tools.command.env);
    for (name, tool) in &config.tools.executable {
        known.named(&["tools", "executable", name, "env"], &tool.env);
    }
    let search = config.tools.web.search.as_ref().and_then(|search| search.api_key.as_ref());
    known.one(&["tools", "web", "search", "api_key"], search);
    known.named(&["notify", "env"], &config.notify.env);
    if let Some(webhook) = &config.notify.webhook {
        known.one(&["notify", "webhook", "secret"], Some(&webhook.secret));
        known.named(&["notify", "webhook", "headers"], &webhook.headers);
        known.address(&["notify", "webhook", "url"], &webhook.url);
    }
    known.one(&["network", "proxy_password"], config.network.proxy_password.as_ref());
    known.one(&["server", "oidc", "client_secret"], config.server.oidc.as_ref().and_then(|oidc| oidc.client_secret.as_ref()));
    known.named(&["telemetry", "otlp_headers"], &config.telemetry.otlp_headers);
    known.one(&["nats", "token"], config.nats.token.as_ref());
    known.one(&["nats", "password"], config.nats.password.as_ref());
    known.one(&["storage", "seal_key"], config.storage.seal_key.as_ref());
    if let Some(database) = &config.storage.database {
        known.address(&["storage", "database"], database.expose());
    }
    known.0
}

/// The secrets among the variables of a process.
pub(crate) fn of_environment(environment: &Environment) -> Vec<String> {
    let variables = environment.names().filter_map(|name| Some((name, environment.get(name)?)));
    variables.flat_map(|(name, value)| given(name, value)).collect()
}

struct Finder(Vec<Known>);

impl Finder {
    fn add(&mut self, keys: &[&str], value: String) {
        if !value.is_empty() {
            self.0.push(Known { key: KeyPath::of(keys.iter().copied()), value });
        }
    }

    /// A key that is there for a secret.
    fn one(&mut self, keys: &[&str], secret: Option<&Secret>) {
        let Some(value) = secret.map(|secret| secret.expose().trim()) else { return };
        if !is_filler(value) {
            self.add(keys, value.to_owned());
        }
    }

    /// A table of variables or headers, some of which are secrets.
    fn named(&mut self, keys: &[&str], table: &IndexMap<String, Secret>) {
        for (name, value) in table {
            let keys: Vec<&str> = keys.iter().copied().chain([name.as_str()]).collect();
            for value in given(name, value.expose()) {
                self.add(&keys, value);
            }
        }
    }

    fn address(&mut self, keys: &[&str], address: &str) {
        for value in of_address(address) {
            self.add(keys, value);
        }
    }
}
