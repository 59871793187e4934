//! `[notify]`.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Secret;
use super::format::duration;

/// Who is told that a turn waits for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NotifyConfig {
    /// A program and its arguments, run without a shell; it reads the event as JSON.
    pub command: Vec<String>,
    /// Variables that are added to a small inherited set, for the command.
    #[schemars(extend("propertyNames" = { "format": "variable-name" }))]
    pub env: IndexMap<String, Secret>,
    /// An address that the event is sent to.
    pub webhook: Option<WebhookConfig>,
    /// How long the command or an answer of the webhook may take, in milliseconds.
    #[schemars(range(min = 1, max = 600_000))]
    pub timeout_ms: u64,
    /// Tells only of what waits longer than this, such as `30s`.
    #[schemars(extend("format" = "duration"))]
    pub after: Option<String>,
    /// Whether arguments, the texts of questions and titles are told too.
    pub content: bool,
}

impl NotifyConfig {
    /// How long is waited before anybody is told.
    pub fn after(&self) -> Duration {
        self.after.as_deref().and_then(duration).unwrap_or_default()
    }
}

impl Default for NotifyConfig {
    fn default() -> Self {
        Self { command: Vec::new(), env: IndexMap::new(), webhook: None, timeout_ms: 10_000, after: None, content: false }
    }
}

/// An address that events are sent to, signed as Standard Webhooks says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebhookConfig {
    /// The address.
    #[schemars(extend("format" = "http-url"))]
    pub url: String,
    /// What events are signed with: 24 to 64 bytes in base64, `whsec_` before them or not.
    pub secret: Secret,
    /// Headers that are sent with them.
    #[serde(default)]
    #[schemars(extend("propertyNames" = { "format": "header-name" }))]
    pub headers: IndexMap<String, Secret>,
}

impl WebhookConfig {
    /// The key of the signatures, where the secret is one.
    pub(crate) fn signing_key(&self) -> Option<Vec<u8>> {
        let text = self.secret.expose().trim();
        let key = STANDARD.decode(text.strip_prefix("whsec_").unwrap_or(text)).ok()?;
        (24..=64).contains(&key.len()).then_some(key)
    }
}
