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
}

impl Default for FilesystemTools {
    fn default() -> Self {
        Self { enabled: true, roots: Vec::new() }
    }
}

/// Running programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CommandTools {
    /// Whether the tool is offered.
    pub enabled: bool,
    /// Where programs are started; the working directory unless said otherwise.
    #[schemars(extend("format" = "path"))]
    pub cwd: Option<PathBuf>,
    /// Variables that are added to a small inherited set.
    #[schemars(extend("propertyNames" = { "format": "variable-name" }))]
    pub env: IndexMap<String, Secret>,
    /// The most time of a command, in milliseconds.
    #[schemars(range(min = 1))]
    pub timeout_ms: Option<u64>,
    /// The most bytes that are kept of each output of a command.
    #[schemars(range(min = 1))]
    pub max_output_bytes: Option<u64>,
}

impl Default for CommandTools {
    fn default() -> Self {
        Self { enabled: true, cwd: None, env: IndexMap::new(), timeout_ms: None, max_output_bytes: None }
    }
}
