//! `[server.limits]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use turnwright_engine::Limits;

/// How much the server takes at once, and how large.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsConfig {
    /// How many turns run at once; a message that would begin one more is refused.
    #[schemars(range(min = 1))]
    pub turns: usize,
    /// How many turns of one user run at once, over all nodes.
    #[schemars(range(min = 1))]
    pub turns_per_user: usize,
    /// How many event streams are open at once at this process, which it protects: each node has its own.
    #[schemars(range(min = 1))]
    pub streams: usize,
    /// How many event streams one user has open at once, over all nodes.
    #[schemars(range(min = 1))]
    pub streams_per_user: usize,
    /// The largest request body, in bytes; uploads have `attachment_bytes`.
    #[schemars(range(min = 1024))]
    pub body_bytes: usize,
    /// How many bytes of a request body must come in each second, counted over all of it after its first minute.
    #[schemars(range(min = 1))]
    pub body_bytes_per_second: u64,
    /// The most text of one message, in bytes.
    #[schemars(range(min = 1))]
    pub message_bytes: usize,
    /// The most images and files of one message.
    #[schemars(range(min = 0))]
    pub attachments: usize,
    /// The largest image or file, in bytes.
    #[schemars(range(min = 1))]
    pub attachment_bytes: usize,
    /// How many rules of approval are remembered for one user, and how many for everyone.
    #[schemars(range(min = 1))]
    pub rules_per_user: usize,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self {
            turns: 1024,
            turns_per_user: 256,
            streams: 8192,
            streams_per_user: 2048,
            body_bytes: 32 << 20,
            body_bytes_per_second: 1 << 10,
            message_bytes: 4 << 20,
            attachments: 32,
            attachment_bytes: 20 << 20,
            rules_per_user: 1_000,
        }
    }
}

impl LimitsConfig {
    /// Those that the engine keeps.
    pub fn of_engine(&self) -> Limits {
        let Self { turns, turns_per_user, message_bytes, attachments, attachment_bytes, rules_per_user, .. } = *self;
        Limits { turns, turns_per_user, message_bytes, attachments, attachment_bytes, rules_per_user }
    }
}
