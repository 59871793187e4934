//! Results on their way into storage, piece by piece: however long one is, no more than a piece of it is in memory.

use std::sync::Arc;

use turnwright_core::UserId;

use crate::artifacts::{Artifact, ArtifactHasher, Artifacts, Draft, PIECE_BYTES};
use crate::{Clock, StoreError};

/// What is done with results that are too large for a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LargeResults {
    /// The most text of a result that a model is shown, in bytes. Of a longer one it is shown beginning and end, half of this
    /// together.
    pub shown_bytes: usize,
    /// The most of one result that is kept, in bytes.
    pub most_bytes: u64,
    /// Whether the tools of the source `artifact` are offered, by which a model reads on.
    pub can_be_read: bool,
}

impl LargeResults {
    /// How a model that is shown a part gets at the rest, in words.
    pub fn whereabouts(&self, artifact: &Artifact) -> String {
        let id = &artifact.id;
        if !self.can_be_read {
            return format!("the whole is kept as `{id}`");
        }
        let query =
            if artifact.media_type == "application/json" { ", artifact__query takes values out of its JSON" } else { "" };
        format!("the whole is artifact `{id}`; artifact__page gives any part of it, artifact__search finds lines in it{query}")
    }
}

impl Default for LargeResults {
    /// 64 KiB shown, 512 MiB kept, tools offered.
    fn default() -> Self {
        Self { shown_bytes: 64 * 1024, most_bytes: 512 << 20, can_be_read: true }
    }
}

/// Where a call puts results that are too large to be held: files that belong to the conversation's owner. What no result
/// links to by [`Artifact::link`] is removed after a while.
#[derive(Debug, Clone)]
pub struct Spool {
    artifacts: Arc<dyn Artifacts>,
    clock: Arc<dyn Clock>,
    owner: UserId,
    how: LargeResults,
}

impl Spool {
    /// A spool for results that this user may see.
    pub fn new(artifacts: Arc<dyn Artifacts>, clock: Arc<dyn Clock>, owner: UserId, how: LargeResults) -> Self {
        Self { artifacts, clock, owner, how }
    }

    /// What is shown of results, and how much is kept.
    pub fn how(&self) -> LargeResults {
        self.how
    }

    /// Begins a file.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn begin(&self) -> Result<Spooling, StoreError> {
        let draft = self.artifacts.begin_artifact(self.clock.now_ms()).await?;
        let (held, spool) = (Vec::new(), self.clone());
        Ok(Spooling { spool, draft, hasher: ArtifactHasher::default(), held, index: 0, bytes: 0, left_out: 0 })
    }

    /// Keeps all of `bytes`, whatever the limit of a spooled file is: they are in memory, and bounded by whoever took them.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn keep(&self, bytes: &[u8], name: &str, media_type: &str) -> Result<Artifact, StoreError> {
        let mut spooling = self.begin().await?;
        spooling.spool.how.most_bytes = u64::MAX;
        for piece in bytes.chunks(PIECE_BYTES) {
            spooling.write(piece).await?;
        }
        spooling.finish(name, media_type).await
    }
}

/// A file that is being written.
#[derive(Debug)]
pub struct Spooling {
    spool: Spool,
    draft: Draft,
    hasher: ArtifactHasher,
    /// What is not stored yet, less than two pieces.
    held: Vec<u8>,
    /// The next piece.
    index: u32,
    bytes: u64,
    left_out: u64,
}

impl Spooling {
    /// Adds bytes. What is over [`LargeResults::most_bytes`] is counted and left out. Where this is dropped on the way, all of
    /// them are in.
    ///
    /// # Errors
    /// Where the store fails. What was given is held, and tried again with the next bytes: whoever goes on writing although
    /// nothing can be stored fills the memory.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let room = usize::try_from(self.spool.how.most_bytes.saturating_sub(self.bytes)).unwrap_or(usize::MAX);
        let (kept, rest) = bytes.split_at(bytes.len().min(room));
        self.left_out = self.left_out.saturating_add(rest.len() as u64);
        self.bytes = self.bytes.saturating_add(kept.len() as u64);
        self.hasher.update(kept);
        self.held.extend_from_slice(kept);
        while self.held.len() >= PIECE_BYTES {
            self.put_held().await?;
        }
        Ok(())
    }

    /// How many bytes were over the limit.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Makes an artifact of what was written.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn finish(mut self, name: &str, media_type: &str) -> Result<Artifact, StoreError> {
        while !self.held.is_empty() {
            self.put_held().await?;
        }
        let Self { spool, draft, hasher, bytes, .. } = self;
        let (owner, name, media_type) = (spool.owner, name.to_owned(), media_type.to_owned());
        let id = hasher.id(&owner, &name, &media_type);
        let artifact = Artifact { id, owner, name, media_type, bytes, created_at_ms: spool.clock.now_ms() };
        spool.artifacts.finish_artifact(draft, artifact.clone()).await?;
        Ok(artifact)
    }

    /// Throws it away.
    pub async fn abandon(self) {
        if let Err(error) = self.spool.artifacts.drop_draft(self.draft).await {
            tracing::debug!(%error, "a result that nobody needs is removed later");
        }
    }

    /// Stores one piece. A piece that was stored and not counted, since this was dropped between, is stored again.
    async fn put_held(&mut self) -> Result<(), StoreError> {
        let piece = self.held.get(..PIECE_BYTES).unwrap_or(&self.held).to_vec();
        let count = piece.len();
        self.spool.artifacts.put_piece(self.draft, self.index, piece).await?;
        self.index = self.index.saturating_add(1);
        self.held.drain(..count);
        Ok(())
    }
}
