//! Documents that are looked up, and what is remembered of users.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ContextPlace;

/// A folder of documents that is looked into for each message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Knowledge {
    /// Its name.
    pub id: String,
    /// How many documents are indexed.
    pub files: u64,
    /// How many were passed over.
    pub skipped: u64,
    /// How many pieces they have.
    pub pieces: u64,
    /// How many of these have a vector.
    pub vectors: u64,
}

/// A piece of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KnowledgePiece {
    /// Its name in the index, until its document changes.
    pub id: String,
    /// The knowledge that it is of.
    pub knowledge: String,
    /// The document: a path below its folder.
    pub document: String,
    /// Where in the document.
    pub place: ContextPlace,
    /// The headings that it stands under, outermost first; may be empty.
    pub heading: String,
    /// Its words.
    pub text: String,
    /// A hash of the document.
    pub version: String,
}

/// What documents say to a question, the best first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KnowledgeAnswer {
    /// The pieces that a message would be shown with.
    pub data: Vec<KnowledgePiece>,
    /// Always null: there is one page.
    pub next_cursor: Option<String>,
    /// Always false.
    pub has_more: bool,
    /// What did not work, a sentence each.
    pub notices: Vec<String>,
}

/// A document beside a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KnowledgeDocument {
    /// Its name.
    pub id: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// A hash of what it holds.
    pub version: String,
}

/// What is remembered of the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// The text, at most 8,192 bytes; empty where nothing is remembered.
    pub text: String,
}
