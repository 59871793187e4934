//! The port to an index over documents: their pieces, found by words and by vectors.

use std::fmt::Debug;

use async_trait::async_trait;
use sha2::{Digest, Sha256};
use turnwright_core::{ContextPlace, ConversationId};

use crate::StoreError;

mod little;

pub use little::{says_little, says_something};

/// The hash by which versions of a document are told apart: 16 hexadecimal digits.
pub fn version_of(bytes: &[u8]) -> String {
    crate::names::hex(Sha256::digest(bytes).get(..8).unwrap_or_default())
}

/// A model that turns texts into vectors.
#[async_trait]
pub trait Embedder: Send + Sync + Debug {
    /// Its name among all, such as `PROVIDER/MODEL`: vectors of another model mean something else.
    fn name(&self) -> &str;

    /// A vector for each text, in their order, all of one length.
    ///
    /// # Errors
    /// Why there are none.
    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, NotEmbedded>;
}

/// Why a model gave no vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotEmbedded {
    /// In words for people.
    pub why: String,
    /// Whether it is these texts that it does not take, as one that is too long: others may be taken.
    pub is_of_the_texts: bool,
}

impl From<String> for NotEmbedded {
    /// Whatever the texts are.
    fn from(why: String) -> Self {
        Self { why, is_of_the_texts: false }
    }
}

/// A document as the index knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedFile {
    /// Its path below its folder, with `/`.
    pub path: String,
    /// Its size in bytes when it was read.
    pub bytes: u64,
    /// When it was changed, in nanoseconds since 1970 UTC, as its file system said when it was read.
    pub modified_ns: i64,
    /// A hash of what was read; empty while its pieces are being written.
    pub hash: String,
    /// Why it has no pieces, where it was passed over.
    pub skipped: Option<String>,
}

/// A conversation with documents beside it. What has its name after it is deleted is another: told by when it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beside {
    /// Its name.
    pub conversation: ConversationId,
    /// When it was made, in milliseconds since 1970 UTC.
    pub created_at_ms: u64,
}

/// What collections of documents beside conversations are named with; the conversation's name is what follows.
pub const BESIDE: &str = "conversation/";

/// The collection of what is beside a conversation. It goes with it.
pub fn collection_beside(conversation: &ConversationId) -> String {
    format!("{BESIDE}{conversation}")
}

/// A piece of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Where it stands.
    pub place: ContextPlace,
    /// The headings that it stands under, outermost first; may be empty.
    pub heading: String,
    /// Its words.
    pub text: String,
}

/// A piece that was looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundPiece {
    /// Its name in the index.
    pub id: PieceId,
    /// The collection that it is in.
    pub collection: String,
    /// The document's path.
    pub path: String,
    /// The document's hash.
    pub hash: String,
    /// It.
    pub piece: Piece,
}

/// The name of a piece in its index. It ends with its document's version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PieceId(pub i64);

/// A piece that was found, and how well it fits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// It.
    pub piece: PieceId,
    /// By words: how much more the words that it has tell than others (BM25), above 0 and the more the better. By a vector: how much it points the same
    /// way, from -1 to 1 (the cosine).
    pub score: f64,
}

/// How much a collection holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectionSize {
    /// Its name.
    pub collection: String,
    /// Documents that have pieces.
    pub files: u64,
    /// Documents that were passed over.
    pub skipped: u64,
    /// Pieces.
    pub pieces: u64,
    /// Pieces with a vector.
    pub vectors: u64,
}

/// Pieces of documents, in collections. What a collection means, and who may look into it, is its user's affair; a collection
/// comes to be by being claimed; one beside a conversation ([`collection_beside`]) by its first document, and goes with that.
#[async_trait]
pub trait KnowledgeIndex: Send + Sync + Debug {
    /// Takes the right to change a collection until a time, in milliseconds since 1970 UTC; `false` where another holder has
    /// it at `now_ms`. Who has it may take it again.
    ///
    /// # Errors
    /// Where the store fails; so with all others.
    async fn claim(&self, collection: &str, holder: &str, now_ms: u64, until_ms: u64) -> Result<bool, StoreError>;

    /// How much there is, by name.
    async fn sizes(&self) -> Result<Vec<CollectionSize>, StoreError>;

    /// Whether a collection has documents. Asked with every message: it must be quick.
    async fn has_files(&self, collection: &str) -> Result<bool, StoreError>;

    /// The documents of a collection, by path.
    async fn files(&self, collection: &str) -> Result<Vec<IndexedFile>, StoreError>;

    /// Puts a document with its pieces in the place of what its path had.
    async fn put(&self, collection: &str, file: IndexedFile, pieces: Vec<Piece>) -> Result<(), StoreError>;

    /// The same beside a conversation; `false`, and nothing of it, where that is not there any more.
    async fn put_beside(&self, beside: &Beside, file: IndexedFile, pieces: Vec<Piece>) -> Result<bool, StoreError>;

    /// A document is at another path, or has another time: its pieces stay.
    async fn moved(&self, collection: &str, from: &str, file: IndexedFile) -> Result<(), StoreError>;

    /// Removes documents with their pieces.
    async fn remove(&self, collection: &str, paths: Vec<String>) -> Result<(), StoreError>;

    /// Removes a whole collection.
    async fn remove_collection(&self, collection: &str) -> Result<(), StoreError>;

    /// The pieces that say most of the words of a text, the best first (BM25).
    async fn by_words(&self, collections: &[String], text: &str, limit: usize) -> Result<Vec<Hit>, StoreError>;

    /// The pieces whose vectors of a model point most the same way, the best first. Collections with another model's vectors
    /// are passed over.
    async fn by_vector(
        &self,
        collections: &[String],
        model: &str,
        vector: &[f32],
        limit: usize,
    ) -> Result<Vec<Hit>, StoreError>;

    /// These pieces, in this order, without those that are gone.
    async fn pieces(&self, ids: &[PieceId]) -> Result<Vec<FoundPiece>, StoreError>;

    /// Some pieces that have no vector of a model.
    async fn without_vector(&self, collection: &str, model: &str, limit: usize) -> Result<Vec<FoundPiece>, StoreError>;

    /// Gives pieces their vectors. Where the collection has those of another model, they go.
    async fn put_vectors(&self, collection: &str, model: &str, vectors: Vec<(PieceId, Vec<f32>)>) -> Result<(), StoreError>;
}
