//! HTTP APIs of the configuration as tool sources.

use std::path::PathBuf;
use std::time::Duration;

use reqwest::ClientBuilder;
use turnwright_network::Network;
use turnwright_tools::Hidden;
use turnwright_tools::http::{Choice, Declaration, DescriptionPlace, FieldPath, HttpApi, HttpAuth, HttpSource, OperationGlob};
use turnwright_tools::net::{Clients, Way};

use crate::config::{HttpAuthentication, HttpOperations, HttpTools, Loaded, Secret};

/// The source of an API; its description is read when it is first waited for.
pub(crate) fn source(name: &str, tools: &HttpTools, loaded: &Loaded) -> HttpSource {
    let mut api = HttpApi::new(name, place_of(&tools.description));
    api.base_url.clone_from(&tools.base_url);
    api.choice = choice(tools);
    api.auth = tools.auth.as_ref().and_then(auth);
    api.headers = tools.headers.iter().map(|(name, value)| (name.clone(), hidden(value))).collect();
    api.timeout = tools.timeout_ms.map_or(api.timeout, Duration::from_millis);
    api.max_bytes = tools.max_bytes.and_then(|most| usize::try_from(most).ok()).unwrap_or(api.max_bytes);
    api.clients = clients(&loaded.network, Network::client);
    // As for pages of the web: a proxy that the configuration names is trusted with what names lead to.
    if loaded.config.network.proxy.is_some() {
        api.way = Way::Proxy;
        api.foreign_clients = clients(&loaded.network, of_proxy);
    } else {
        api.foreign_clients = clients(&loaded.network, Network::client);
    }
    HttpSource::new(api)
}

/// Where a description is.
pub(crate) fn place_of(description: &str) -> DescriptionPlace {
    if description.starts_with("http://") || description.starts_with("https://") {
        DescriptionPlace::Address(description.to_owned())
    } else {
        DescriptionPlace::File(PathBuf::from(description))
    }
}

/// Clients of a network, each begun by `begin`.
pub(crate) fn clients(network: &Network, begin: fn(&Network) -> ClientBuilder) -> Clients {
    let (begins, tells) = (network.clone(), network.clone());
    Clients::new(move || begin(&begins), move |error| tells.reason(error).to_string())
}

/// Begins a client that a proxy alone shows what names lead to, where there is one for everything.
pub(crate) fn of_proxy(network: &Network) -> ClientBuilder {
    network.client_of_proxy().unwrap_or_else(|| network.client())
}

/// Each text was looked at as it was read.
fn choice(tools: &HttpTools) -> Choice {
    let globs = |texts: &[String]| texts.iter().filter_map(|text| OperationGlob::new(text).ok()).collect();
    let declared = |(glob, said): (&String, &HttpOperations)| {
        let HttpOperations { read_only, replayable, serial, polled } = *said;
        Some((OperationGlob::new(glob).ok()?, Declaration { read_only, replayable, serial, polled }))
    };
    let fields = |(glob, fields): (&String, &Vec<String>)| {
        let fields = fields.iter().filter_map(|field| FieldPath::new(field).ok()).collect();
        Some((OperationGlob::new(glob).ok()?, fields))
    };
    Choice {
        operations: globs(&tools.operations),
        except: globs(&tools.except),
        declared: tools.tools.iter().filter_map(declared).collect(),
        fields: tools.fields.iter().filter_map(fields).collect(),
    }
}

/// A secret that is empty, as that of a variable that is not set, is none.
fn auth(given: &HttpAuthentication) -> Option<HttpAuth> {
    let HttpAuthentication { bearer, basic, header, query } = given;
    let is_there = |secret: &Secret| !secret.is_empty();
    let bearer = bearer.as_ref().filter(|token| is_there(token)).map(|token| HttpAuth::Bearer(hidden(token)));
    let basic = basic
        .as_ref()
        .filter(|basic| is_there(&basic.password))
        .map(|basic| HttpAuth::Basic { user: basic.user.clone(), password: hidden(&basic.password) });
    let header = header
        .as_ref()
        .filter(|header| is_there(&header.value))
        .map(|header| HttpAuth::Header { name: header.name.clone(), value: hidden(&header.value) });
    let query = query
        .as_ref()
        .filter(|query| is_there(&query.value))
        .map(|query| HttpAuth::Query { name: query.name.clone(), value: hidden(&query.value) });
    bearer.or(basic).or(header).or(query)
}

fn hidden(secret: &Secret) -> Hidden {
    Hidden::new(secret.expose())
}
