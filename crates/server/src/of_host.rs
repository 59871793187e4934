//! A server over all that a host has.

use std::net::SocketAddr;
use std::sync::Arc;

use turnwright_host::{Host, McpEndpoint, Oidc, config};

use crate::{Apps, Hosts, ServerOptions, ServerState, Site, StreamLimits, ToolActivity};

impl ServerOptions {
    /// What the configuration says. Nobody has to sign in, see [`ServerOptions::auth`], and commands have no flags.
    pub fn of(config: &config::Config) -> Self {
        let limits = &config.server.limits;
        Self {
            body_limit_bytes: limits.body_bytes,
            body_bytes_per_second: limits.body_bytes_per_second,
            streams: StreamLimits { all: limits.streams, per_user: limits.streams_per_user },
            tool_activity: match config.server.tool_activity {
                config::ToolActivity::Hidden => ToolActivity::Hidden,
                config::ToolActivity::Reasoning => ToolActivity::Reasoning,
                config::ToolActivity::Content => ToolActivity::Content,
                config::ToolActivity::Details => ToolActivity::Details,
            },
            ..Self::default()
        }
    }
}

impl Site {
    /// As the configuration says, for a server that listens at this address.
    pub fn of(config: &config::Config, address: SocketAddr) -> Self {
        let server = &config.server;
        let host = match server.origin().and_then(|origin| origin.split_once("://")) {
            Some((_, authority)) => Some(Hosts::Named(authority.into())),
            // By what names a proxy is asked only the proxy knows.
            None => (address.ip().is_loopback() && server.trusted_proxies.is_empty()).then_some(Hosts::Loopback),
        };
        Self {
            host,
            origin: server.origin().map(str::to_owned),
            is_tls: server.tls.is_some(),
            path: server.path().to_owned(),
            apps: match (&config.apps, &config.apps.sandbox_origin) {
                (config::AppsConfig { enabled: false, .. }, _) => Apps::Off,
                (_, Some(origin)) => Apps::At(origin.clone()),
                (_, None) => Apps::OnThisMachine,
            },
            allowed_origins: server.allowed_origins.iter().map(|origin| origin.to_ascii_lowercase()).collect(),
            // Looked at when the configuration was read.
            trusted_proxies: server.trusted_proxies.iter().filter_map(|range| range.parse().ok()).collect(),
        }
    }
}

impl ServerState {
    /// The state of a server that listens at `address` and offers all that `host` has: its conversations, files, MCP servers, models,
    /// documents, memories and users, and its tools to MCP clients by `mcp`.
    #[must_use]
    pub fn of_host(host: &Host, mcp: McpEndpoint, options: ServerOptions, address: SocketAddr) -> Self {
        let config = host.config();
        let state = Self::with_mcp(host.engine().clone(), options, mcp, host.mcp().clone())
            .with_resources(host.resources().clone())
            .with_model_providers(host.model_providers().clone())
            .with_artifacts(host.artifacts().clone())
            .with_documents(host.documents().clone())
            .with_search(host.texts().clone())
            .with_knowledge(host.knowledge(), host.memory())
            .with_upkeep(host.upkeep().clone())
            .with_accounts(host.accounts().clone(), Site::of(config, address));
        let Some(oidc) = &config.server.oidc else { return state };
        let back = format!("{}/login/callback", config.server.address(&address.to_string()));
        state.with_identity_provider(Arc::new(Oidc::new(oidc, back, host.loaded().network.clone())))
    }
}
