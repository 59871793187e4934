//! `[tools.…]`: the built-in tools.

use std::path::PathBuf;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Secret;

/// The built-in tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Tools {
    /// Reading and writing files.
    pub filesystem: FilesystemTools,
    /// Running programs.
    pub command: CommandTools,
}

/// Reading and writing files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FilesystemTools {
    /// Whether the tools are offered.
    pub enabled: bool,
    /// The folders that the tools may look into; relative names of a call start at the first. The working directory unless
    /// said otherwise; never empty once loaded.
    #[schemars(extend("format" = "path"), length(min = 1))]
    pub roots: Vec<PathBuf>,
    /// What is not touched below the roots, beside what looks like a secret (`.env`, private keys and the like): patterns as in
    /// `.gitignore`. One that begins with `!` takes back what an earlier one, or one of ours, denies.
    pub deny: Vec<String>,
    /// Whether files that have several names (hard links) may be read; their other names may be outside of the roots.
    pub hard_links: bool,
    /// The largest file or part of a file that is read at once, in bytes.
    #[schemars(range(min = 1))]
    pub max_read_bytes: Option<u64>,
    /// The largest image that is read, in bytes.
    #[schemars(range(min = 1))]
    pub max_image_bytes: Option<u64>,
    /// The largest file that is written, in bytes.
    #[schemars(range(min = 1))]
    pub max_write_bytes: Option<u64>,
    /// The most entries of a listing and the most matches of a search.
    #[schemars(range(min = 1))]
    pub max_entries: Option<u32>,
}

impl Default for FilesystemTools {
    fn default() -> Self {
        Self {
            enabled: true,
            roots: Vec::new(),
            deny: Vec::new(),
            hard_links: false,
            max_read_bytes: None,
            max_image_bytes: None,
            max_write_bytes: None,
            max_entries: None,
        }
    }
}

/// Running programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CommandTools {
    /// Whether the tool is offered.
    pub enabled: bool,
    /// The folders in which a command may begin, the first being the default; those of `[tools.filesystem]` unless said
    /// otherwise. Never empty once loaded.
    #[schemars(extend("format" = "path"), length(min = 1))]
    pub roots: Vec<PathBuf>,
    /// Variables that are added to a small inherited set.
    #[schemars(extend("propertyNames" = { "format": "variable-name" }))]
    pub env: IndexMap<String, Secret>,
    /// What reads shell lines, given `-c` and the line.
    #[schemars(extend("format" = "program"))]
    pub shell: Option<String>,
    /// How long a command may take where the call does not say, in milliseconds.
    #[schemars(range(min = 1))]
    pub timeout_ms: Option<u64>,
    /// The longest time that a call may ask for, in milliseconds.
    #[schemars(range(min = 1))]
    pub max_timeout_ms: Option<u64>,
    /// The most bytes that are kept of each output of a command.
    #[schemars(range(min = 1))]
    pub max_output_bytes: Option<u64>,
}

impl Default for CommandTools {
    fn default() -> Self {
        Self {
            enabled: true,
            roots: Vec::new(),
            env: IndexMap::new(),
            shell: None,
            timeout_ms: None,
            max_timeout_ms: None,
            max_output_bytes: None,
        }
    }
}
