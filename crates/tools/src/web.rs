//! Pages of the web: reading them, and finding them.
//!
//! Reading goes where a model says, and so through [`crate::net::Reach`]; a search asks the one service that is configured. *Not here:*
//! acting on pages; other APIs.

pub(crate) mod fetch;
mod search;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use turnwright_engine::Rates;
use turnwright_engine::rates::RatesHere;

use self::fetch::Fetcher;
pub use self::fetch::{FetchConfig, Manners};
use self::search::Searcher;
pub use self::search::{SearchConfig, SearchEngine};
use crate::net::{Allow, Clients, Lookup, Reach, SystemLookup, Way};
use crate::{ToolSpec, TypedSource};

/// What the web tools may do, and how they connect.
#[derive(Clone)]
pub struct WebConfig {
    /// Reading pages, where that is offered.
    pub fetch: Option<FetchConfig>,
    /// Searching, where that is offered.
    pub search: Option<SearchConfig>,
    /// What may be reached besides the public internet.
    pub allow: Allow,
    /// Who looks names up.
    pub lookup: Arc<dyn Lookup>,
    /// Who connects.
    pub way: Way,
    /// What every client begins with.
    pub clients: Clients,
    /// What pages are told of who asks.
    pub user_agent: String,
    /// Who counts searches: a store, for all processes that use it.
    pub rates: Arc<dyn Rates>,
}

impl WebConfig {
    /// Nothing offered, nothing but public addresses, connected to directly; searches of this process are counted alone.
    pub fn new() -> Self {
        Self {
            fetch: None,
            search: None,
            allow: Allow::nothing(),
            lookup: Arc::new(SystemLookup),
            way: Way::Direct,
            clients: Clients::default(),
            user_agent: concat!("Turnwright/", env!("CARGO_PKG_VERSION")).to_owned(),
            rates: Arc::new(RatesHere::default()),
        }
    }
}

impl Default for WebConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for WebConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fetch, search, allow, way, .. } = self;
        f.debug_struct("WebConfig")
            .field("fetch", fetch)
            .field("search", search)
            .field("allow", allow)
            .field("way", way)
            .finish_non_exhaustive()
    }
}

/// The tool source `web`: `search` and `fetch`, as far as they are configured.
pub fn web(config: WebConfig) -> TypedSource {
    let mut source = TypedSource::new("web");
    if let Some(search) = config.search {
        let limits = turnwright_engine::CallLimits { idle: search.timeout + SPARE, total: search.timeout + SPARE };
        let searcher =
            Arc::new(Searcher::new(search, config.clients.clone(), config.user_agent.clone(), Arc::clone(&config.rates)));
        let spec = ToolSpec::new("search", search::DESCRIPTION).title("Search the web").read_only().limits(limits);
        source = source.tool(spec, move |arguments, _| Arc::clone(&searcher).search(arguments));
    }
    if let Some(fetch) = config.fetch {
        let limits = turnwright_engine::CallLimits { idle: fetch.timeout + SPARE, total: fetch.timeout + SPARE };
        let reach = Reach::new(config.allow.clone(), Arc::clone(&config.lookup), config.clients.clone(), config.way);
        let fetcher = Arc::new(Fetcher::new(reach, fetch, config.user_agent.clone(), source.tracker().clone()));
        let spec = ToolSpec::new("fetch", fetch::DESCRIPTION).title("Read a page").read_only().limits(limits);
        source = source.tool(spec, move |arguments, _| Arc::clone(&fetcher).fetch(arguments));
    }
    source
}

/// What a call may take longer than its own limit: reading what came.
const SPARE: Duration = Duration::from_secs(30);
