//! The port to files: those that people bring, and results that are too large to be shown. Stored in pieces, named by what
//! they hold, each with an owner.

use std::fmt::Debug;
use std::fmt::Write as _;

use async_trait::async_trait;
use sha2::{Digest, Sha256};
use turnwright_core::{ContentBlock, ConversationId, Entry, UserId};

use crate::{SideRecord, StoreError};

/// How large a piece is at most, in bytes: no more than some of them are in memory at once.
pub const PIECE_BYTES: usize = 256 * 1024;

/// What is known of a stored file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// Its name among all: made from its owner, its name, its type and its bytes, see [`ArtifactHasher`].
    pub id: String,
    /// To whom it belongs.
    pub owner: UserId,
    /// What people call it.
    pub name: String,
    /// What it is, such as `image/png`.
    pub media_type: String,
    /// How large it is, in bytes.
    pub bytes: u64,
    /// When it was stored, the last time, in milliseconds since 1970 UTC.
    pub created_at_ms: u64,
}

/// What addresses of stored files begin with in content: `artifact:` and the id.
const SCHEME: &str = "artifact:";

impl Artifact {
    /// What content says for it: a link, by which it is found again.
    pub fn link(&self) -> ContentBlock {
        ContentBlock::ResourceLink {
            uri: format!("{SCHEME}{}", self.id),
            name: self.name.clone(),
            title: None,
            description: None,
            mime_type: Some(self.media_type.clone()),
            size: Some(self.bytes),
        }
    }
}

/// Whether this can be the id of an artifact.
pub fn is_artifact_id(id: &str) -> bool {
    id.strip_prefix("art_").is_some_and(|rest| rest.len() == 32 && rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// The artifact that an address in content names, where it names one as [`Artifact::link`] does.
pub fn linked_artifact(uri: &str) -> Option<&str> {
    uri.strip_prefix(SCHEME).filter(|id| is_artifact_id(id))
}

/// The artifacts that results among these entries link to: the conversation that has the entries holds them.
pub(crate) fn held_by<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Vec<SideRecord> {
    artifacts_of(entries).into_iter().map(|artifact| SideRecord::Holds { artifact }).collect()
}

/// The same, by their names.
pub(crate) fn artifacts_of<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Vec<String> {
    let mut held: Vec<String> = Vec::new();
    for entry in entries {
        let Entry::Result(result) = entry else { continue };
        for block in &result.content {
            let ContentBlock::ResourceLink { uri, .. } = block else { continue };
            if let Some(id) = linked_artifact(uri).filter(|id| !held.iter().any(|held| held == id)) {
                held.push(id.to_owned());
            }
        }
    }
    held
}

/// A file that is being stored; see [`Artifacts::begin_artifact`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draft(pub i64);

/// Where files are kept. Every method may be called from any number of tasks and processes at once.
#[async_trait]
pub trait Artifacts: Send + Sync + Debug {
    /// Begins a file. Nobody sees it before [`Artifacts::finish_artifact`]; one that is not finished goes with
    /// [`Artifacts::sweep_artifacts`].
    ///
    /// # Errors
    /// Where the store fails.
    async fn begin_artifact(&self, at_ms: u64) -> Result<Draft, StoreError>;

    /// Stores the piece `index`, counted from 0: of [`PIECE_BYTES`], the last of at most so many. One that was stored before
    /// is replaced.
    ///
    /// # Errors
    /// Where the store fails.
    async fn put_piece(&self, draft: Draft, index: u32, bytes: Vec<u8>) -> Result<(), StoreError>;

    /// Makes a draft an artifact. Where there is one with its id, that one stays and is as young as the draft, which goes.
    ///
    /// # Errors
    /// Where the store fails.
    async fn finish_artifact(&self, draft: Draft, artifact: Artifact) -> Result<(), StoreError>;

    /// Throws a draft away.
    ///
    /// # Errors
    /// Where the store fails.
    async fn drop_draft(&self, draft: Draft) -> Result<(), StoreError>;

    /// The artifact with this id, where it belongs to this user.
    ///
    /// # Errors
    /// Where the store fails.
    async fn artifact(&self, owner: &UserId, id: &str) -> Result<Option<Artifact>, StoreError>;

    /// The piece `index` of an artifact; `None` behind the last.
    ///
    /// # Errors
    /// Where the store fails.
    async fn piece(&self, owner: &UserId, id: &str, index: u32) -> Result<Option<Vec<u8>>, StoreError>;

    /// Notes that a conversation holds an artifact: it goes with the last conversation that does.
    ///
    /// # Errors
    /// [`StoreError::Gone`], where one of them is not there for this user.
    async fn use_artifact(&self, owner: &UserId, id: &str, conversation: &ConversationId) -> Result<(), StoreError>;

    /// Removes an artifact that no conversation holds; whether it did.
    ///
    /// # Errors
    /// Where the store fails.
    async fn remove_artifact(&self, owner: &UserId, id: &str) -> Result<Removal, StoreError>;

    /// Removes what no conversation holds and what was never finished, where it is older than this.
    ///
    /// # Errors
    /// Where the store fails.
    async fn sweep_artifacts(&self, before_ms: u64) -> Result<(), StoreError>;
}

/// What came of removing an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// It is gone.
    Removed,
    /// There is none.
    Missing,
    /// A conversation holds it.
    InUse,
}

/// Makes an artifact's id from what it holds, piece by piece.
#[derive(Debug, Clone, Default)]
pub struct ArtifactHasher(Sha256);

impl ArtifactHasher {
    /// Takes the next bytes in.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The id of these bytes with this name and type, as this owner's: another owner's is another one, so that nobody learns
    /// what somebody else has.
    pub fn id(self, owner: &UserId, name: &str, media_type: &str) -> String {
        let mut whole = Sha256::new();
        for part in [owner.as_str().as_bytes(), name.as_bytes(), media_type.as_bytes()] {
            whole.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            whole.update(part);
        }
        whole.update(self.0.finalize());
        let mut id = "art_".to_owned();
        for byte in whole.finalize().iter().take(16) {
            // Writing to memory does not fail.
            let _ = write!(id, "{byte:02x}");
        }
        id
    }
}
