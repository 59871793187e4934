//! The bytes of an artifact: a part of them, or all of them one piece after another.

use std::io::{self, Read};
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use turnwright_core::UserId;
use turnwright_engine::StoreError;
use turnwright_engine::artifacts::{Artifact, Artifacts, PIECE_BYTES};
use turnwright_engine::source::ToolError;

use super::Shared;
use crate::error::{failed, invalid, not_found};

/// An artifact that the caller may see.
#[derive(Debug, Clone)]
pub(super) struct Whole {
    artifacts: Arc<dyn Artifacts>,
    pub(super) artifact: Arc<Artifact>,
}

impl Whole {
    /// The artifact that a model names, also by its address.
    pub(super) async fn open(shared: &Shared, owner: &UserId, named: &str) -> Result<Self, ToolError> {
        let id = named.trim().trim_start_matches("artifact:");
        if id.is_empty() {
            return Err(invalid("artifact is empty: give the id that a result names, such as `art_…`"));
        }
        let found = shared.artifacts.artifact(owner, id).await.map_err(|error| unreadable(&error))?;
        let shown: String = id.chars().take(80).collect();
        let missing = || not_found(format!("there is no artifact `{shown}`; it may have gone with its conversation"));
        Ok(Self { artifacts: shared.artifacts.clone(), artifact: Arc::new(found.ok_or_else(missing)?) })
    }

    /// How large it is, in bytes.
    pub(super) fn len(&self) -> u64 {
        self.artifact.bytes
    }

    /// The piece `index`; empty behind the last.
    pub(super) async fn piece(&self, index: u64) -> Result<Vec<u8>, ToolError> {
        let Ok(index) = u32::try_from(index) else { return Ok(Vec::new()) };
        let piece = self.artifacts.piece(&self.artifact.owner, &self.artifact.id, index).await;
        Ok(piece.map_err(|error| unreadable(&error))?.unwrap_or_default())
    }

    /// The bytes from `from` up to `to`, as far as there are some.
    pub(super) async fn bytes(&self, from: u64, to: u64) -> Result<Vec<u8>, ToolError> {
        let to = to.min(self.len());
        let mut bytes = Vec::with_capacity(usize::try_from(to.saturating_sub(from)).unwrap_or_default());
        let mut at = from;
        while at < to {
            let (index, skip) = place(at);
            let piece = self.piece(index).await?;
            let rest = piece.get(skip..).unwrap_or_default();
            let most = usize::try_from(to - at).unwrap_or(usize::MAX);
            let taken = rest.get(..most).unwrap_or(rest);
            if taken.is_empty() {
                return Err(failed("a part of the artifact is missing; it may have been removed just now"));
            }
            bytes.extend_from_slice(taken);
            at = at.saturating_add(taken.len() as u64);
        }
        Ok(bytes)
    }

    /// All of it, for the blocking pool of this runtime.
    pub(super) fn pieces(self, cancel: CancellationToken) -> Pieces {
        Pieces { whole: self, cancel, runtime: Handle::current(), held: Vec::new(), at: 0, index: 0 }
    }
}

/// The piece in which a byte is, and its place there.
pub(super) fn place(at: u64) -> (u64, usize) {
    let size = PIECE_BYTES as u64;
    (at / size, usize::try_from(at % size).unwrap_or_default())
}

fn unreadable(error: &StoreError) -> ToolError {
    failed(format!("the artifact cannot be read: {error}"))
}

/// Reads an artifact from its beginning, a piece at a time. Blocks.
#[derive(Debug)]
pub(super) struct Pieces {
    whole: Whole,
    cancel: CancellationToken,
    runtime: Handle,
    held: Vec<u8>,
    /// What of the held is read.
    at: usize,
    index: u64,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() {
            return Err(io::Error::other("the call was given up"));
        }
        if self.at >= self.held.len() {
            self.held = self.runtime.block_on(self.whole.piece(self.index)).map_err(io::Error::other)?;
            self.index = self.index.saturating_add(1);
            self.at = 0;
        }
        let rest = self.held.get(self.at..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        for (to, from) in buffer.iter_mut().zip(rest) {
            *to = *from;
        }
        self.at = self.at.saturating_add(count);
        Ok(count)
    }
}
