//! What models are shown besides what was said.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One part of what a model was shown besides a message: where it comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ContextPart {
    /// What it is.
    pub kind: ContextKind,
    /// The knowledge's name, or the folder of an instructions file.
    pub source: String,
    /// Which document: a path below its folder.
    pub document: String,
    /// Where in the document; absent for all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<ContextPlace>,
    /// A hash of what was read; absent where what was shown before does not hold any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// What a part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContextKind {
    /// A file of instructions, such as `AGENTS.md`.
    Instructions,
    /// What the user had remembered.
    Memory,
    /// Found in documents.
    Knowledge,
}

/// A place in a document: lines or pages, the first being 1, both ends in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContextPlace {
    /// Lines.
    Lines {
        /// The first.
        first: u32,
        /// The last.
        last: u32,
    },
    /// Pages.
    Pages {
        /// The first.
        first: u32,
        /// The last.
        last: u32,
    },
}
