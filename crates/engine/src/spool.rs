//! Results on their way into storage, piece by piece: however long one is, no more than a piece of it is in memory.

use std::sync::Arc;

use turnwright_core::UserId;
use turnwright_core::secrets::{SecretStream, Secrets};

use crate::artifacts::{Artifact, ArtifactHasher, Artifacts, Draft, PIECE_BYTES};
use crate::{Clock, StoreError};

/// The tool by which a model reads any part of a large result.
pub(crate) const PAGE_TOOL: &str = "artifact__page";

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
            return format!("the whole is kept as `{id}`, which no tool of this conversation reads");
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
    secrets: Arc<Secrets>,
}

impl Spool {
    /// A spool for results that this user may see.
    pub fn new(artifacts: Arc<dyn Artifacts>, clock: Arc<dyn Clock>, owner: UserId, how: LargeResults) -> Self {
        Self { artifacts, clock, owner, how, secrets: Arc::default() }
    }

    /// The same hiding these secrets in what is written.
    #[must_use]
    pub fn hiding(self, secrets: Arc<Secrets>) -> Self {
        Self { secrets, ..self }
    }

    /// The same for a turn that has no tools to read what is kept.
    #[must_use]
    pub(crate) fn unread(self) -> Self {
        Self { how: LargeResults { can_be_read: false, ..self.how }, ..self }
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
        let (held, spool, veil) = (Vec::new(), self.clone(), Veil::default());
        Ok(Spooling { spool, draft, hasher: ArtifactHasher::default(), veil, held, index: 0, bytes: 0, left_out: 0 })
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
    veil: Veil,
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
        if self.spool.secrets.is_empty() {
            return self.take(bytes).await;
        }
        let shown = self.veil.push(&self.spool.secrets, bytes);
        self.take(&shown).await
    }

    async fn take(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
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
        let rest = self.veil.finish(&self.spool.secrets);
        self.take(&rest).await?;
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

/// Hides secrets in bytes that come in pieces, whatever stands between characters.
#[derive(Debug, Default)]
struct Veil {
    stream: SecretStream,
    /// The beginning of a character.
    begun: Vec<u8>,
}

impl Veil {
    fn push(&mut self, secrets: &Secrets, bytes: &[u8]) -> Vec<u8> {
        let mut whole = std::mem::take(&mut self.begun);
        whole.extend_from_slice(bytes);
        let mut shown = Vec::with_capacity(whole.len());
        let mut chunks = whole.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            shown.extend(self.stream.push(secrets, chunk.valid()).into_bytes());
            if chunks.peek().is_none() && is_begun(chunk.invalid()) {
                self.begun = chunk.invalid().to_vec();
            } else if !chunk.invalid().is_empty() {
                shown.extend(self.stream.finish(secrets).into_bytes());
                shown.extend_from_slice(chunk.invalid());
            }
        }
        shown
    }

    fn finish(&mut self, secrets: &Secrets) -> Vec<u8> {
        let mut shown = self.stream.finish(secrets).into_bytes();
        shown.append(&mut self.begun);
        shown
    }
}

/// Whether more bytes could make a character of these.
fn is_begun(bytes: &[u8]) -> bool {
    !bytes.is_empty() && std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_in_bytes_wherever_they_are_cut() {
        let secrets = Secrets::new(["correct-horse-battery"]);
        let mut text = "ä before ".as_bytes().to_vec();
        text.extend_from_slice(b"\xff\xfe correct-horse-battery \xc3");
        text.extend_from_slice("漢 after \u{1f600}".as_bytes());
        text.push(0xe6);
        let expected = {
            let mut expected = "ä before ".as_bytes().to_vec();
            expected.extend_from_slice(b"\xff\xfe [secret] \xc3");
            expected.extend_from_slice("漢 after \u{1f600}".as_bytes());
            expected.push(0xe6);
            expected
        };
        for size in 1..=text.len() {
            let mut veil = Veil::default();
            let mut shown: Vec<u8> = text.chunks(size).flat_map(|piece| veil.push(&secrets, piece)).collect();
            shown.extend(veil.finish(&secrets));
            assert_eq!(String::from_utf8_lossy(&shown), String::from_utf8_lossy(&expected), "in pieces of {size}");
            assert_eq!(shown, expected);
        }
    }
}
