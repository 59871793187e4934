//! `[providers.NAME]`.

use std::fmt;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use turnwright_core::ModelRef;

use super::{Secret, schema};

/// An endpoint that answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProviderConfig {
    /// The wire format that it speaks. May be left out for a provider that is called like a well-known one.
    pub dialect: Option<Dialect>,
    /// What comes before the API's own path, such as `http://127.0.0.1:8080/v1`.
    #[schemars(extend("format" = "base-url"))]
    pub base_url: Option<String>,
    /// The key that is sent; none where empty.
    pub api_key: Option<Secret>,
    /// The models that it offers, the default one first; asked from the endpoint where empty.
    pub models: Vec<String>,
    /// HTTP headers that are sent with each request.
    #[schemars(extend("propertyNames" = { "format": "header-name" }))]
    pub headers: IndexMap<String, Secret>,
    /// How often a request is sent again that failed before the first byte of content; 2 unless said otherwise.
    pub max_retries: Option<u32>,
    /// Models (PROVIDER/MODEL) that are asked in turn where this endpoint is not available.
    #[schemars(schema_with = "schema::models")]
    pub fallback: Vec<ModelRef>,
    /// How the endpoint differs from its dialect: the name of a known server, or single switches.
    pub profile: Option<Profile>,
    /// The most time to connect, in milliseconds.
    #[schemars(range(min = 1))]
    pub connect_ms: Option<u64>,
    /// The most time until an answer begins with its headers, in milliseconds; 300,000 unless said otherwise.
    #[schemars(range(min = 1))]
    pub start_ms: Option<u64>,
    /// The most time without any byte of an answer that has begun, in milliseconds; 120,000 unless said otherwise.
    #[schemars(range(min = 1))]
    pub idle_ms: Option<u64>,
}

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names of the wire formats")]
pub enum Dialect {
    OpenaiChat,
    OpenaiResponses,
    Anthropic,
    Gemini,
    Ollama,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::OpenaiChat, Self::OpenaiResponses, Self::Anthropic, Self::Gemini, Self::Ollama];

    /// Its name in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai-chat",
            Self::OpenaiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    /// Where the dialect's own vendor answers.
    pub fn default_base_url(self) -> &'static str {
        match self {
            Self::OpenaiChat | Self::OpenaiResponses => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta",
            Self::Ollama => "http://127.0.0.1:11434",
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How an endpoint differs from its dialect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Profile {
    /// As a known server does.
    Named(String),
    /// In single switches, by name.
    Switches(Map<String, Value>),
}
