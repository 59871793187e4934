//! `[tools.…]`: the built-in tools.

use std::path::{Path, PathBuf};
use std::time::Duration;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use turnwright_engine::LargeResults;

use super::{HttpTools, Secret, WebTools};

/// The built-in tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Tools {
    /// The most calls of tools that run at once, over all sources and conversations; 256 unless said otherwise.
    #[schemars(range(min = 1))]
    pub max_concurrent_calls: Option<u32>,
    /// Reading and writing files.
    pub filesystem: FilesystemTools,
    /// Running programs.
    pub command: CommandTools,
    /// Pages of the web.
    pub web: WebTools,
    /// Results that are too large for a model.
    pub artifact: ArtifactTools,
    /// Finding tools where there are many.
    pub search: ToolSearch,
    /// Programs that are tools, by name: `executable__NAME`.
    #[schemars(extend("propertyNames" = { "format": "server-name" }))]
    pub executable: IndexMap<String, ExecutableTool>,
    /// HTTP APIs whose operations are tools, by name: `NAME__operation`.
    #[schemars(extend("propertyNames" = { "format": "server-name" }))]
    pub http: IndexMap<String, HttpTools>,
}

impl Tools {
    /// The most calls that run at once where nothing is said.
    const MAX_CONCURRENT_CALLS: usize = 256;

    /// The most calls that run at once, over all sources and conversations.
    pub fn max_concurrent_calls(&self) -> usize {
        let given = self.max_concurrent_calls.and_then(|most| usize::try_from(most).ok());
        given.unwrap_or(Self::MAX_CONCURRENT_CALLS)
    }

    /// The folders in which commands work: those of files where none are named for them, and that of the process where none are at all.
    pub(crate) fn command_roots(&self, process: &Path) -> Vec<PathBuf> {
        let named = [&self.command.roots, &self.filesystem.roots].into_iter().find(|roots| !roots.is_empty());
        named.cloned().unwrap_or_else(|| vec![process.to_owned()])
    }

    /// The folder of the process, where files or commands are those of it, as where nothing names another.
    pub(crate) fn folder_of(&self, process: &Path) -> Option<String> {
        let is_it = |roots: &[PathBuf]| roots.iter().all(|root| root == process);
        let is_used =
            (self.filesystem.enabled && is_it(&self.filesystem.roots)) || (self.command.enabled && is_it(&self.command.roots));
        is_used.then(|| process.display().to_string())
    }
}

/// Results that are too large for a model: kept as artifacts, and read in parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ArtifactTools {
    /// Whether the tools are offered by which a model reads on. Large results are kept all the same.
    pub enabled: bool,
    /// The most text of a result that a model is shown, in bytes; of a longer one it is shown beginning and end. 64 KiB unless
    /// said otherwise.
    #[schemars(range(min = 4096))]
    pub shown_bytes: Option<u32>,
    /// The most that is kept of what a command prints, in bytes; 512 MiB unless said otherwise.
    #[schemars(range(min = 1))]
    pub max_bytes: Option<u64>,
}

impl Default for ArtifactTools {
    fn default() -> Self {
        Self { enabled: true, shown_bytes: None, max_bytes: None }
    }
}

impl ArtifactTools {
    /// What is done with large results.
    pub fn large_results(&self) -> LargeResults {
        let usual = LargeResults::default();
        LargeResults {
            shown_bytes: self.shown_bytes.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(usual.shown_bytes),
            most_bytes: self.max_bytes.unwrap_or(usual.most_bytes),
            can_be_read: self.enabled,
        }
    }
}

/// Finding tools where there are many: their definitions are held back, and the model searches for those that it needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ToolSearch {
    /// How much of the model's context window all definitions may take before they are held back, in hundredths; 100 never
    /// holds them back, 0 always.
    #[schemars(range(min = 0, max = 100))]
    pub above_percent: u32,
    /// Tools that are offered all the same: globs over qualified names.
    #[schemars(extend("format" = "glob"))]
    pub always: Vec<String>,
    /// How many tools a search gives.
    #[schemars(range(min = 1, max = 50))]
    pub results: u32,
}

impl Default for ToolSearch {
    fn default() -> Self {
        Self { above_percent: 10, always: Vec::new(), results: 5 }
    }
}

/// A program that is a tool: it reads its arguments as JSON from its input, and prints its result as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of the file")]
pub struct ExecutableTool {
    /// The program; a path is meant from the folder of the configuration file.
    #[schemars(extend("format" = "program"))]
    pub command: String,
    /// Its arguments; no shell reads them.
    #[serde(default)]
    pub args: Vec<String>,
    /// What it does, for the model. Where this or `schema` is missing, the program is asked by `--schema`.
    #[serde(default)]
    pub description: Option<String>,
    /// The JSON Schema of its arguments.
    #[serde(default)]
    pub schema: Option<serde_json::Map<String, serde_json::Value>>,
    /// Whether the tool is offered.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Whether it changes nothing: it runs without being asked about, and may be run again.
    #[serde(default)]
    pub read_only: bool,
    /// Whether running it twice is the same as running it once.
    #[serde(default)]
    pub replayable: bool,
    /// Whether its calls run one after another.
    #[serde(default)]
    pub serial: bool,
    /// Whether it is asked again and again for how far something is: its calls are no loop.
    #[serde(default)]
    pub polled: bool,
    /// How long a result is kept and given again, in milliseconds; never where not given.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub cache_ttl_ms: Option<u64>,
    /// How long a call may take, in milliseconds; a minute unless said otherwise.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub timeout_ms: Option<u64>,
    /// Variables that are added to a small inherited set.
    #[serde(default)]
    #[schemars(extend("propertyNames" = { "format": "variable-name" }))]
    pub env: IndexMap<String, Secret>,
    /// Where it begins; the working directory unless said otherwise. In a sandbox it writes there alone.
    #[serde(default)]
    #[schemars(extend("format" = "path"))]
    pub cwd: Option<PathBuf>,
    /// The largest result, in bytes; 1 MiB unless said otherwise.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub max_result_bytes: Option<u64>,
    /// Whether it runs in a sandbox, as commands do; it does not unless said otherwise.
    #[serde(default)]
    pub sandbox: Option<Sandbox>,
    /// Whether it reaches the network in the sandbox.
    #[serde(default)]
    pub network: bool,
}

fn yes() -> bool {
    true
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
    /// `.gitignore`. One that begins with `!` takes back what an earlier one, or one of ours, denies. They are meant from each root;
    /// one that begins with `~/` or with the path of a root, from that one.
    #[schemars(extend("format" = "denied-pattern"))]
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
    /// Whether commands run where the system cannot confine them.
    pub sandbox: Sandbox,
    /// Whether commands in the sandbox reach the network, and sockets of this machine.
    pub network: bool,
    /// What commands in the sandbox may write to beside the roots.
    #[schemars(extend("format" = "path"))]
    pub writable: Vec<PathBuf>,
    /// The most memory for data of each process, in mebibytes.
    #[schemars(range(min = 1))]
    pub max_memory_mb: Option<u32>,
    /// The most processes and threads that may be added to those that run; the system does not count those of root.
    #[schemars(range(min = 1))]
    pub max_processes: Option<u32>,
    /// The most time on the processor of each process, in seconds.
    #[schemars(range(min = 1))]
    pub max_cpu_seconds: Option<u32>,
    /// How many commands of a conversation may go on in the background at once; 0 takes the tools for that away.
    pub max_background: Option<u32>,
    /// The longest time that a command goes on in the background, in milliseconds.
    #[schemars(range(min = 1))]
    pub background_ms: Option<u64>,
}

impl CommandTools {
    /// In milliseconds, where nothing is said: how long a command may take, and how long a call may ask for.
    const USUAL_MS: u64 = 30_000;
    const LONGEST_MS: u64 = 600_000;

    /// The longest time that a call may ask for.
    pub fn longest(&self) -> Duration {
        Duration::from_millis(self.max_timeout_ms.unwrap_or(Self::LONGEST_MS))
    }

    /// How long a command may take where the call does not say; where nothing is said here either, no longer than a call may ask for.
    pub fn usual(&self) -> Duration {
        self.timeout_ms.map_or_else(|| Duration::from_millis(Self::USUAL_MS).min(self.longest()), Duration::from_millis)
    }

    /// The time that is given, and the longest, where it is above that: every command would be refused.
    pub(crate) fn is_above_longest(&self) -> Option<(u64, u64)> {
        let longest = self.max_timeout_ms.unwrap_or(Self::LONGEST_MS);
        self.timeout_ms.filter(|given| *given > longest).map(|given| (given, longest))
    }
}

/// Whether commands are confined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Sandbox {
    /// Where the system cannot confine them, none runs.
    Required,
    /// They are confined where the system can.
    #[default]
    Preferred,
    /// They never are.
    Off,
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
            sandbox: Sandbox::default(),
            network: false,
            writable: Vec::new(),
            max_memory_mb: None,
            max_processes: None,
            max_cpu_seconds: None,
            max_background: None,
            background_ms: None,
        }
    }
}
