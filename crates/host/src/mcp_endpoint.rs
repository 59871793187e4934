//! Every enabled tool for MCP clients: `turnwright mcp serve` and `/mcp`.
//!
//! A client's call is a turn like any other: the client is its model, which asks for one tool and is content with the
//! result. So it is stored, limited, asked about and shown like every call, and there is no second way to run a tool.
//! [`caller`] is that model, [`backing`] turns calls into turns, [`running`] tells what becomes of one, and [`earlier`] finds those
//! that were begun before and not told.

mod backing;
pub(crate) mod caller;
mod earlier;
mod pool;
mod running;
mod shared;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value};
use turnwright_core::{AnswerAction, ApproveMode, UserId};
use turnwright_engine::{Documents, Engine, KeptBy, Reply, SystemClock, ToolOutput};
use turnwright_mcp::serve::{FixtureTools, Happened, HttpEndpoint, OfferedCall, RunningCall, SessionKeeping, StdioEnd, stdio};

use crate::{Host, HostBuilder};
use backing::EngineBacking;

/// How the tools are offered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct McpServing {
    /// What happens to calls for which no rule decides; the configuration's where `None`.
    pub approve: Option<ApproveMode>,
    /// A source whose tools are called by their own names, not by qualified ones.
    pub unqualified: Option<String>,
    /// What a tool hears that asks people something.
    pub questions: Questions,
    /// The flags, each after a space, with which a command that clients are told reaches the same data.
    pub command_flags: String,
}

/// What a tool hears that asks people something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Questions {
    /// What the person at the client says, where the client can ask; else no.
    #[default]
    AskClient,
    /// What its forms say where nothing is filled in. It is not told that an address was opened.
    AcceptDefaults,
}

/// The endpoint for clients over HTTP, see [`Host::mcp_endpoint`]. Cheap to clone.
#[derive(Debug, Clone)]
pub struct McpEndpoint {
    http: HttpEndpoint,
    backing: Arc<EngineBacking>,
    of_users: Arc<OfUsers>,
}

/// The endpoints of single users: a session of one is none of another's.
#[derive(Debug)]
struct OfUsers {
    serving: McpServing,
    body_limit_bytes: usize,
    documents: Arc<dyn Documents>,
    made: Mutex<HashMap<(UserId, bool), McpEndpoint>>,
}

impl Host {
    /// Offers the tools to MCP clients over HTTP. A request's body may have `body_limit_bytes`.
    pub fn mcp_endpoint(&self, serving: McpServing, body_limit_bytes: usize) -> McpEndpoint {
        let backing = Arc::new(self.mcp_backing(KeptBy::Servers, serving.clone()));
        let http =
            HttpEndpoint::new(backing.clone(), body_limit_bytes).keeping_sessions(keeping(&self.documents, &self.engine));
        McpEndpoint { http, backing, of_users: Arc::new(self.of_users(serving, body_limit_bytes)) }
    }

    fn mcp_backing(&self, kept_by: KeptBy, serving: McpServing) -> EngineBacking {
        EngineBacking::new(self.engine.clone(), kept_by, serving, self.documents.clone())
    }

    fn of_users(&self, serving: McpServing, body_limit_bytes: usize) -> OfUsers {
        OfUsers { serving, body_limit_bytes, documents: self.documents.clone(), made: Mutex::default() }
    }

    /// The same for the conformance suite: with what it looks for, where the host was made with
    /// [`HostBuilder::conformance_fixtures`].
    pub fn mcp_endpoint_with_fixtures(&self, body_limit_bytes: usize) -> McpEndpoint {
        let serving = McpServing { unqualified: Some(FixtureTools::NAME.to_owned()), ..McpServing::default() };
        let backing = Arc::new(self.mcp_backing(KeptBy::Servers, serving.clone()));
        let http = HttpEndpoint::with_fixtures(backing.clone(), body_limit_bytes);
        McpEndpoint { http, backing, of_users: Arc::new(self.of_users(serving, body_limit_bytes)) }
    }

    /// Offers the tools to the MCP client at standard input and output, until it closes its end or `stop` is ready.
    pub async fn serve_mcp(&self, serving: McpServing, stop: impl Future<Output = ()> + Send) -> StdioEnd {
        let backing = Arc::new(self.mcp_backing(KeptBy::Chat, serving));
        let end = stdio(backing.clone(), stop).await;
        backing.end().await;
        end
    }

    /// Runs one tool as an MCP client's call is run: as a turn that is stored. Where a person has to allow it, it does not run.
    pub async fn run_tool(&self, serving: McpServing, tool: &str, arguments: Map<String, Value>) -> ToolOutput {
        let backing = self.mcp_backing(KeptBy::Chat, serving);
        let call = OfferedCall { client: "turnwright".to_owned(), tool: tool.to_owned(), arguments };
        // Who runs a tool by hand wants it run, whatever became of it before.
        let output = match backing.begin_anew(&call).await {
            Ok(running) => to_its_end(running).await,
            Err(refused) => failed(refused.to_string()),
        };
        backing.end().await;
        output
    }
}

/// What a call comes to where nobody can be asked.
async fn to_its_end(mut running: Box<dyn RunningCall>) -> ToolOutput {
    loop {
        match running.next().await {
            Happened::Ended(output) => return output,
            Happened::Asked(question) => {
                running.cancel().await;
                return failed(question.elsewhere);
            }
            Happened::Inquired(inquiry) => {
                if let Err(why) = running.answer(&inquiry.id, Reply::of(AnswerAction::Decline)).await {
                    return failed(why);
                }
            }
            Happened::Progress(_) | Happened::Decided | Happened::Answered(_) => {}
        }
    }
}

fn failed(text: String) -> ToolOutput {
    ToolOutput { is_error: true, ..ToolOutput::text(text) }
}

/// Where the sessions of the user for whom `engine` acts are kept. One that began without the right to decide stays without.
fn keeping(documents: &Arc<dyn Documents>, engine: &Engine) -> SessionKeeping {
    let owner = if engine.may_decide() { engine.user().to_string() } else { format!("{} without decisions", engine.user()) };
    SessionKeeping { documents: documents.clone(), clock: Arc::new(SystemClock), owner }
}

impl HostBuilder {
    /// Adds the tools that the conformance suite calls by name.
    #[must_use]
    pub fn conformance_fixtures(self) -> Self {
        self.source(Arc::new(FixtureTools::new()))
    }
}

impl McpEndpoint {
    /// What answers requests.
    pub fn http(&self) -> &HttpEndpoint {
        &self.http
    }

    /// The endpoint of the user for whom `engine` acts.
    pub fn acting_for(&self, engine: &Engine) -> Self {
        if engine.user().is_local() && engine.may_decide() {
            return self.clone();
        }
        let of_users = self.of_users.clone();
        let mut endpoints = of_users.made.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || {
            let (serving, documents) = (of_users.serving.clone(), of_users.documents.clone());
            let backing = Arc::new(EngineBacking::new(engine.clone(), KeptBy::Servers, serving, documents));
            let http = HttpEndpoint::new(backing.clone(), of_users.body_limit_bytes);
            let http = http.keeping_sessions(keeping(&of_users.documents, engine));
            let of_users = OfUsers {
                serving: of_users.serving.clone(),
                body_limit_bytes: of_users.body_limit_bytes,
                documents: of_users.documents.clone(),
                made: Mutex::default(),
            };
            Self { http, backing, of_users: Arc::new(of_users) }
        };
        endpoints.entry((engine.user().clone(), engine.may_decide())).or_insert_with(make).clone()
    }

    /// Ends all sessions and stops their calls. Call it before the engine is shut down.
    pub async fn end(&self) {
        let of_users: Vec<Self> =
            self.of_users.made.lock().unwrap_or_else(PoisonError::into_inner).drain().map(|(_, endpoint)| endpoint).collect();
        for endpoint in of_users.iter().chain([self]) {
            endpoint.http.end().await;
            endpoint.backing.end().await;
        }
    }
}

#[cfg(test)]
mod tests;
