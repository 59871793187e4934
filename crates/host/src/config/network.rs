//! `[network]`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use turnwright_network::{Network, Proxies, ProxyAddress};

use super::document::Node;
use super::key_path::KeyPath;
use super::{Place, Problem, Secret, schema};
use crate::Environment;

/// How requests leave this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkConfig {
    /// The proxy through which everything is asked but what runs on this machine, such as `http://proxy.example.org:3128`; what
    /// `HTTP_PROXY`, `HTTPS_PROXY` and `ALL_PROXY` of the environment say where not given.
    #[schemars(extend("format" = "proxy"))]
    pub proxy: Option<String>,
    /// The name by which the proxy knows who asks.
    pub proxy_user: Option<String>,
    /// The password that belongs to it.
    pub proxy_password: Option<Secret>,
    /// What is asked past `proxy`: hosts, domains with all that is below them, addresses and ranges such as `10.0.0.0/8`.
    #[schemars(schema_with = "schema::past_proxy")]
    pub no_proxy: Vec<String>,
    /// Certificates of authorities, as PEM, that are trusted besides those of the system.
    #[schemars(extend("format" = "path"))]
    pub ca_file: Option<PathBuf>,
}

/// What collects what is wrong.
pub(crate) struct Reading<'a> {
    pub(crate) root: &'a Node,
    pub(crate) environment: &'a Environment,
    pub(crate) problems: &'a mut Vec<Problem>,
    pub(crate) warnings: &'a mut Vec<Problem>,
}

impl Reading<'_> {
    /// How requests leave this machine, by the configuration and the environment.
    pub(crate) fn network(mut self, config: &NetworkConfig) -> Network {
        let proxies = self.proxies(config);
        let mut network = Network::default();
        match network.clone().through(&proxies) {
            Ok(through) => network = through,
            Err(right) => self.tell("proxy", &format!("must be {right}")),
        }
        let Some(file) = &config.ca_file else { return network };
        let read = std::fs::read(file).map_err(|error| error.to_string());
        match read.and_then(|pem| network.clone().trusting(&pem).map_err(|error| error.to_string())) {
            Ok(network) => network,
            Err(why) => {
                self.tell("ca_file", &format!("is `{}`, which cannot be used: {why}", file.display()));
                network
            }
        }
    }

    fn proxies(&mut self, config: &NetworkConfig) -> Proxies {
        let Some(proxy) = &config.proxy else {
            let beside = [
                ("proxy_user", config.proxy_user.is_some()),
                ("proxy_password", config.proxy_password.is_some()),
                ("no_proxy", !config.no_proxy.is_empty()),
            ];
            for (key, _) in beside.into_iter().filter(|(_, is_there)| *is_there) {
                self.tell(key, "counts beside `network.proxy` alone, which is not there");
            }
            return self.of_environment();
        };
        // Its form was looked at before.
        let Ok(mut address) = ProxyAddress::read(proxy) else { return Proxies::default() };
        match (&config.proxy_user, &config.proxy_password) {
            (None, None) => {}
            (None, Some(_)) => self.tell("proxy_password", "needs `network.proxy_user` beside it"),
            (Some(user), password) => {
                let password = password.as_ref().map(Secret::expose).unwrap_or_default();
                match address.clone().with_login(user, password) {
                    Ok(with) => address = with,
                    Err(right) => self.tell("proxy", &format!("must be {right}")),
                }
            }
        }
        Proxies::all(address, config.no_proxy.clone())
    }

    /// The proxies that the environment names, as other programs read it.
    fn of_environment(&mut self) -> Proxies {
        let is_cgi = self.environment.get("REQUEST_METHOD").is_some();
        let all = self.variable(&["ALL_PROXY", "all_proxy"]);
        // For a CGI program this one is a header of its client (https://httpoxy.org).
        let http = if is_cgi { None } else { self.variable(&["HTTP_PROXY", "http_proxy"]) };
        let https = self.variable(&["HTTPS_PROXY", "https_proxy"]);
        let past = ["NO_PROXY", "no_proxy"].iter().find_map(|name| self.environment.filled(name)).unwrap_or_default();
        let past = past.split(',').map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect();
        Proxies { http: http.or_else(|| all.clone()), https: https.or(all), past }
    }

    fn variable(&mut self, names: &[&str]) -> Option<ProxyAddress> {
        let (name, text) = names.iter().find_map(|name| Some((*name, self.environment.filled(name)?)))?;
        match ProxyAddress::read(text) {
            Ok(proxy) => Some(proxy),
            Err(right) => {
                let text = format!("it is not {right}; no proxy is used for it");
                self.warnings.push(Problem::new(Place::Variable(name.to_owned()), text));
                None
            }
        }
    }

    fn tell(&mut self, key: &str, text: &str) {
        let keys = ["network", key];
        let place = super::meaning::place_of(self.root, keys);
        self.problems.push(Problem::new(place, format!("`{}` {text}", KeyPath::of(keys))));
    }
}
