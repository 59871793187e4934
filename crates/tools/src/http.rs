//! Any HTTP API as tools, from its OpenAPI 3 description.
//!
//! [`import()`] makes [`Operation`]s of a description, and [`Operation::request`] a request of arguments: both are decisions of values.
//! [`HttpSource`] reads the description, sends the requests and judges the answers. What a request is told of who asks goes to the API
//! alone: `auth`, `send`. *Not here:* signing in (OAuth), descriptions in several documents, whether a call may run.

mod answer;
mod auth;
mod body;
mod description;
mod fields;
mod globs;
mod import;
mod operation;
mod pages;
mod parameter;
mod request;
mod schema;
mod send;
mod server;
mod source;
mod style;
mod text;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use self::auth::HttpAuth;
pub use self::description::DescriptionError;
pub use self::fields::FieldPath;
pub use self::globs::OperationGlob;
pub use self::import::{Choice, Declaration, Imported, LeftOut, import};
pub use self::operation::Operation;
pub use self::request::HttpRequest;
pub use self::source::HttpSource;
use crate::hidden::Hidden;
use crate::net::{Clients, Lookup, SystemLookup, Way};

/// An API, and how it is asked.
#[derive(Clone)]
pub struct HttpApi {
    /// The source's name: the first half of its tools' qualified names.
    pub name: String,
    /// Where its description is.
    pub description: DescriptionPlace,
    /// Where the API is; the description says it where `None`.
    pub base_url: Option<String>,
    /// Which operations are offered, and what is declared of them.
    pub choice: Choice,
    /// How it is told who asks.
    pub auth: Option<HttpAuth>,
    /// Headers of every request.
    pub headers: Vec<(String, Hidden)>,
    /// How long an answer may take with its redirects.
    pub timeout: Duration,
    /// The most that is read of an answer, in bytes.
    pub max_bytes: usize,
    /// What it is told of the program that asks.
    pub user_agent: String,
    /// Who looks names up that the operator did not name.
    pub lookup: Arc<dyn Lookup>,
    /// Who connects to them.
    pub way: Way,
    /// What clients begin with for what the operator named.
    pub clients: Clients,
    /// What clients begin with for what others named.
    pub foreign_clients: Clients,
}

/// Where a description is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DescriptionPlace {
    /// A file.
    File(PathBuf),
    /// An address that the operator named, wherever it is.
    Address(String),
}

impl HttpApi {
    /// All operations of a description, with 30 seconds and 4 MiB for an answer.
    pub fn new(name: impl Into<String>, description: DescriptionPlace) -> Self {
        Self {
            name: name.into(),
            description,
            base_url: None,
            choice: Choice::default(),
            auth: None,
            headers: Vec::new(),
            timeout: Duration::from_secs(30),
            max_bytes: 4 << 20,
            user_agent: concat!("Turnwright/", env!("CARGO_PKG_VERSION")).to_owned(),
            lookup: Arc::new(SystemLookup),
            way: Way::Direct,
            clients: Clients::default(),
            foreign_clients: Clients::default(),
        }
    }
}

impl fmt::Debug for HttpApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, description, choice, .. } = self;
        f.debug_struct("HttpApi")
            .field("name", name)
            .field("description", description)
            .field("choice", choice)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for DescriptionPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            // A key may stand in its query.
            Self::Address(address) => f.write_str(address.split(['?', '#']).next().unwrap_or_default()),
        }
    }
}
