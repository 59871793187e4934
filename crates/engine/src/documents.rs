//! The port to what an installation remembers beside its conversations: servers that were added while it ran, what a person
//! agreed to. Small texts by kind and key; what they mean is their owner's.

use std::fmt::Debug;

use async_trait::async_trait;

use crate::StoreError;

/// The kind of the documents that remember requests which were carried out once for their idempotency key. Their bodies are JSON
/// objects whose `at_ms` says when that was, in milliseconds since 1970 UTC.
pub const REPEATABLE_REQUESTS: &str = "idempotent_request";

/// A stored text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Names it among those of its kind.
    pub key: String,
    /// The text; usually JSON with a version of its own.
    pub body: String,
}

impl Document {
    /// Somebody else changed it meanwhile.
    pub fn altered(&self) -> StoreError {
        StoreError::Altered { what: format!("`{}`", self.key) }
    }
}

/// Where documents are kept. Every method may be called from any number of tasks and processes at once.
#[async_trait]
pub trait Documents: Send + Sync + Debug {
    /// The document of this kind and key.
    ///
    /// # Errors
    /// Where the store fails.
    async fn document(&self, kind: &str, key: &str) -> Result<Option<Document>, StoreError>;

    /// All documents of a kind, by key.
    ///
    /// # Errors
    /// Where the store fails.
    async fn documents(&self, kind: &str) -> Result<Vec<Document>, StoreError>;

    /// Those of a kind with at most one `/` in their keys, by key.
    ///
    /// # Errors
    /// Where the store fails.
    async fn upper_documents(&self, kind: &str) -> Result<Vec<Document>, StoreError> {
        let mut found = self.documents(kind).await?;
        found.retain(|document| document.key.split('/').count() <= 2);
        Ok(found)
    }

    /// Stores a document, in place of the one with its key. Durable when it returns.
    ///
    /// # Errors
    /// Where the store fails.
    async fn put_document(&self, kind: &str, document: Document) -> Result<(), StoreError>;

    /// Stores a document where there is none with its key; nothing happens otherwise. Of many who do so at once one is first, for
    /// all of them.
    ///
    /// # Errors
    /// Where the store fails.
    async fn add_document(&self, kind: &str, document: Document) -> Result<(), StoreError>;

    /// Stores a document where there is none with its key. Of many who do so at once one succeeds.
    ///
    /// # Errors
    /// [`StoreError::Altered`], where there is another.
    async fn add_new_document(&self, kind: &str, document: Document) -> Result<(), StoreError> {
        self.add_document(kind, document.clone()).await?;
        let found = self.document(kind, &document.key).await?;
        if found.as_ref() == Some(&document) { Ok(()) } else { Err(document.altered()) }
    }

    /// Stores a text in the place of a document's, or removes it where there is none, where it still is `of`. Of many who do so at
    /// once one succeeds.
    ///
    /// # Errors
    /// [`StoreError::Altered`], where it is another, or is not there.
    async fn change_document(&self, kind: &str, of: &Document, body: Option<String>) -> Result<(), StoreError>;

    /// Removes a document; nothing happens where there is none.
    ///
    /// # Errors
    /// Where the store fails.
    async fn remove_document(&self, kind: &str, key: &str) -> Result<(), StoreError>;
}
