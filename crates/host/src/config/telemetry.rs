//! `[telemetry]`.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Secret;

/// What is told of this process to whoever watches over it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TelemetryConfig {
    /// Where traces are sent, by OTLP over HTTP: an address such as `http://127.0.0.1:4318`, to which `/v1/traces` is added;
    /// `OTEL_EXPORTER_OTLP_ENDPOINT` where not given.
    #[schemars(extend("format" = "http-url"))]
    pub otlp_endpoint: Option<String>,
    /// Headers that are sent with them.
    #[schemars(extend("propertyNames" = { "format": "header-name" }))]
    pub otlp_headers: IndexMap<String, Secret>,
    /// The share of turns that are traced.
    #[schemars(range(min = 0, max = 1))]
    pub sample: f64,
    /// Whether prompts, answers, arguments and results are in the traces.
    pub content: bool,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self { otlp_endpoint: None, otlp_headers: IndexMap::new(), sample: 1.0, content: false }
    }
}

/// How a line of the log is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// A JSON object, for programs.
    Json,
}
