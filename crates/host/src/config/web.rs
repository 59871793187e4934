//! `[tools.web]`: pages of the web.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use turnwright_tools::net::Allow;
use turnwright_tools::{FetchConfig, Hidden, Manners, SearchConfig, SearchEngine, WebConfig};

use super::Secret;

/// Pages of the web: nothing is offered that is not named here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WebTools {
    /// Addresses and ranges that may be reached although they are not public, each with a port or without: `127.0.0.1:8080`,
    /// `10.1.0.0/16`, `[fd00::1]:443`.
    #[schemars(extend("format" = "reached-address"))]
    pub allow: Vec<String>,
    /// What sites are told of who asks.
    pub user_agent: Option<String>,
    /// Reading pages.
    pub fetch: Option<WebFetch>,
    /// Searching.
    pub search: Option<WebSearch>,
}

/// Reading pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WebFetch {
    /// Whether the tool is offered.
    pub enabled: bool,
    /// Whether what a site's `robots.txt` asks of programs is honoured.
    pub robots: bool,
    /// How long a page may take with its redirects, in milliseconds.
    #[schemars(range(min = 1, max = 600_000))]
    pub timeout_ms: Option<u64>,
    /// The most that is read of a page, in bytes.
    #[schemars(range(min = 1, max = 104_857_600))]
    pub max_bytes: Option<u64>,
    /// The most characters that are given at once.
    #[schemars(range(min = 1))]
    pub max_chars: Option<u64>,
    /// How long a page is given again without asking for it anew, in milliseconds; 0 for never.
    #[schemars(range(min = 0))]
    pub cache_ttl_ms: Option<u64>,
}

impl Default for WebFetch {
    fn default() -> Self {
        Self { enabled: true, robots: true, timeout_ms: None, max_bytes: None, max_chars: None, cache_ttl_ms: None }
    }
}

/// Searching.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WebSearch {
    /// Whether the tool is offered.
    pub enabled: bool,
    /// Who is asked.
    pub engine: Engine,
    /// The key of Brave or Tavily.
    pub api_key: Option<Secret>,
    /// Where the service is, instead of where it usually is; that of the `SearXNG` server.
    #[schemars(extend("format" = "http-url"))]
    pub base_url: Option<String>,
    /// How long an answer may take, in milliseconds.
    #[schemars(range(min = 1, max = 600_000))]
    pub timeout_ms: Option<u64>,
    /// The most searches of any 60 seconds, by all processes that use one database.
    #[schemars(range(min = 1))]
    pub per_minute: Option<u32>,
}

impl Default for WebSearch {
    fn default() -> Self {
        Self { enabled: true, engine: Engine::default(), api_key: None, base_url: None, timeout_ms: None, per_minute: None }
    }
}

/// A search service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// `DuckDuckGo`, without a key.
    #[default]
    DuckDuckGo,
    /// Brave.
    Brave,
    /// Tavily.
    Tavily,
    /// A server of `SearXNG`.
    SearXng,
}

impl WebSearch {
    /// The key that is missing, and what it would be.
    pub(crate) fn missing(&self) -> Option<(&'static str, &'static str)> {
        match self.engine {
            Engine::DuckDuckGo => None,
            Engine::Brave | Engine::Tavily => {
                self.api_key.as_ref().is_none_or(Secret::is_empty).then_some(("api_key", "the key that the service gave you"))
            }
            Engine::SearXng => self.base_url.is_none().then_some(("base_url", "the address of the server")),
        }
    }
}

impl WebTools {
    /// What the tools work with; nothing where none is offered.
    pub(crate) fn working(&self) -> Option<WebConfig> {
        let fetch = self.fetch.as_ref().filter(|fetch| fetch.enabled).map(WebFetch::working);
        let search = self.search.as_ref().filter(|search| search.enabled).map(WebSearch::working);
        if fetch.is_none() && search.is_none() {
            return None;
        }
        let mut config = WebConfig { fetch, search, ..WebConfig::new() };
        // Each was looked at as it was read.
        config.allow = Allow::new(self.allow.iter().map(String::as_str)).unwrap_or_default();
        config.user_agent = self.user_agent.clone().unwrap_or(config.user_agent);
        Some(config)
    }
}

impl WebFetch {
    fn working(&self) -> FetchConfig {
        let usual = FetchConfig::default();
        let size = |given: Option<u64>, usual| given.map_or(usual, |given| usize::try_from(given).unwrap_or(usize::MAX));
        FetchConfig {
            timeout: self.timeout_ms.map_or(usual.timeout, Duration::from_millis),
            max_bytes: size(self.max_bytes, usual.max_bytes),
            max_chars: size(self.max_chars, usual.max_chars),
            cache_ttl: self.cache_ttl_ms.map_or(usual.cache_ttl, Duration::from_millis),
            robots: if self.robots { Manners::Honoured } else { Manners::Ignored },
            ..usual
        }
    }
}

impl WebSearch {
    fn working(&self) -> SearchConfig {
        let usual = SearchConfig::new(match self.engine {
            Engine::DuckDuckGo => SearchEngine::DuckDuckGo,
            Engine::Brave => SearchEngine::Brave,
            Engine::Tavily => SearchEngine::Tavily,
            Engine::SearXng => SearchEngine::SearXng,
        });
        SearchConfig {
            base_url: self.base_url.clone(),
            api_key: self.api_key.as_ref().map(|key| Hidden::new(key.expose())),
            timeout: self.timeout_ms.map_or(usual.timeout, Duration::from_millis),
            per_minute: self.per_minute.unwrap_or(usual.per_minute),
            ..usual
        }
    }
}
