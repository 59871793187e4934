//! Model providers over HTTP, one implementation parameterised by dialect, and the practice model.
//!
//! [`HttpProvider`] holds one endpoint's key, client and retries; what is said on the wire is its dialect's. Nothing here
//! knows a format or a host.

mod answer;
mod client;
mod config;
mod embeddings;
mod explain;
mod http;
mod kept;
mod mended;
mod practice;
mod probe;
mod reading;
mod retry;
mod secret;
mod unseen;

pub use config::{EndpointConfig, Timeouts};
pub use embeddings::HttpEmbedder;
pub use http::HttpProvider;
pub use practice::Practice;
pub use probe::{Probe, ProbeFinding, Verdict, probe, reach};
pub use reading::{SchemaReading, SchemaStrictness, schema_readings};
pub use secret::Secret;
/// What a configuration says about a dialect and how an endpoint differs from it, and what is known of models, with its date.
pub use turnwright_dialects::{ProfileChoice, UnknownProfile, by_name as dialect_named, catalogue_date, catalogue_facts};
/// Conversations in the forms of others, out and in.
pub use turnwright_dialects::{export, import};
