//! `[knowledge]`, `[embeddings]`, `[instructions]` and `[memory]`: what models are shown besides what was said.

use std::path::PathBuf;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Documents that are looked up for each message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct KnowledgeConfig {
    /// Whether documents are looked up.
    pub enabled: bool,
    /// How many tokens of documents a message is shown with, at most; a token counts as four characters.
    #[schemars(range(min = 100, max = 100_000))]
    pub budget_tokens: u32,
    /// How many pieces a message is shown with, at most.
    #[schemars(range(min = 1, max = 50))]
    pub max_pieces: u32,
    /// How large a piece of a document is, in tokens.
    #[schemars(range(min = 32, max = 4_000))]
    pub piece_tokens: u32,
    /// How much of a piece is repeated in the next, in tokens.
    #[schemars(range(min = 0, max = 1_000))]
    pub overlap_tokens: u32,
    /// Folders of documents, by name.
    #[schemars(extend("propertyNames" = { "format": "knowledge-name" }))]
    pub folders: IndexMap<String, KnowledgeFolder>,
}

impl Default for KnowledgeConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            budget_tokens: 2_000,
            max_pieces: 8,
            piece_tokens: 400,
            overlap_tokens: 50,
            folders: IndexMap::new(),
        }
    }
}

/// A folder of documents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KnowledgeFolder {
    /// Where it is.
    #[schemars(extend("format" = "path"))]
    pub path: PathBuf,
    /// Globs over paths below it, such as `*.md` or `docs/**`; all files unless said otherwise.
    #[serde(default)]
    #[schemars(extend("format" = "path-glob"))]
    pub include: Vec<String>,
    /// Globs over paths below it that are left out.
    #[serde(default)]
    #[schemars(extend("format" = "path-glob"))]
    pub exclude: Vec<String>,
    /// What is not touched beside what looks like a secret, as in `[tools.filesystem]`.
    #[serde(default)]
    #[schemars(extend("format" = "denied-pattern"))]
    pub deny: Vec<String>,
    /// The largest file that is read, in bytes; 8 MiB unless said otherwise.
    #[serde(default)]
    #[schemars(range(min = 1, max = 268_435_456))]
    pub max_file_bytes: Option<u64>,
}

/// A model that turns texts into vectors: documents are then found by what they mean, too.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EmbeddingsConfig {
    /// The provider that has it, by its name under `[providers]`.
    pub provider: Option<String>,
    /// Its name there.
    pub model: Option<String>,
    /// How much like a question a piece is at least, in hundredths of the cosine of their vectors; 20 unless said otherwise.
    #[schemars(range(min = 0, max = 99))]
    pub least_likeness_percent: Option<u8>,
}

/// Files of instructions in the folders that are worked with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct InstructionsConfig {
    /// Whether models are shown them.
    pub enabled: bool,
    /// The files' names.
    #[schemars(extend("format" = "file-name"))]
    pub files: Vec<String>,
    /// How many bytes are shown of all of them, at most.
    #[schemars(range(min = 1, max = 400_000))]
    pub max_bytes: u32,
}

impl Default for InstructionsConfig {
    fn default() -> Self {
        Self { enabled: true, files: vec!["AGENTS.md".to_owned()], max_bytes: 32 * 1024 }
    }
}

/// What users had remembered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryConfig {
    /// Whether models are shown it, and have tools to change it.
    pub enabled: bool,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self { enabled: true }
    }
}
