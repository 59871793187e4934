//! The HTTP server: routes, event streams, problem documents.
//!
//! [`router`] makes the routes over a [`turnwright_engine::Engine`], [`serve`] listens. [`report`] turns a journal into what
//! the API promises, [`ui`] folds engine events into the AI SDK UI message stream; both are pure. No turn belongs to a
//! connection: a response that is dropped drops its watch and nothing else (law 5). Not here: what happens in a turn, and
//! who may listen where.

mod agui;
mod apps;
mod arguments;
mod attached;
pub mod auth;
mod base_path;
mod body;
mod budgets;
mod byte_range;
mod cors;
mod door;
mod entrance;
mod error;
mod extract;
mod feed;
mod file_type;
mod forwarded;
mod guard;
mod heard;
mod hidden;
mod html;
mod metrics;
mod named;
mod of_host;
mod offered;
mod open_stream;
mod openai;
mod openapi;
mod pace;
mod refused;
mod repeat;
pub mod report;
mod routes;
mod rules;
mod serve;
mod settings;
mod socket;
mod sse;
mod state;
mod stopping;
mod tag;
mod timestamp;
mod tls;
pub mod ui;
mod waiting;

pub use apps::Apps;
pub use auth::{Auth, Hosts, Site};
pub use error::ApiError;
pub use metrics::Metrics;
pub use openai::activity::ToolActivity;
pub use report::turn_report;
pub use routes::{openapi, router};
pub use rules::{configured_rule, explanation, remembered_rule, rule_text};
pub use serve::{ServeError, serve, serve_anyone, serve_over_tls, while_starting};
pub use state::{ServerOptions, ServerState, StreamLimits};
pub use timestamp::timestamp;
pub use tls::{Tls, TlsError, connect_to_this_machine};
pub use waiting::{waiting_call, waiting_question};
