//! How slowly a request body may come: who sends a byte now and then would hold its connection, and what was read of the body,
//! for ever.

use std::error::Error;
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use http::StatusCode;
use tokio::time::Instant;

use crate::error::ApiError;

/// How long a client may be silent in the middle of a body.
const IDLE_LIMIT: Duration = Duration::from_mins(1);
/// For how long a body is waited for before it is counted how fast it comes.
const GRACE: Duration = Duration::from_mins(1);

/// A body that does not come, or not fast enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TooSlow {
    /// Nothing came.
    #[error("no more of the request body came for {} s", IDLE_LIMIT.as_secs())]
    Silent,
    /// Too little came.
    #[error("after {} s of waiting there are {bytes} bytes of the request body, fewer than {bytes_per_second} a second", waited.as_secs())]
    Trickling {
        /// How much came.
        bytes: u64,
        /// How long it was waited for.
        waited: Duration,
        /// How much must come.
        bytes_per_second: u64,
    },
}

impl From<TooSlow> for ApiError {
    fn from(slow: TooSlow) -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "body_timeout", slow.to_string()).ending_connection()
    }
}

impl TooSlow {
    /// What is behind a failure, where it is this.
    pub(crate) fn behind(error: &(dyn Error + 'static)) -> Option<Self> {
        let mut behind = Some(error);
        while let Some(error) = behind {
            if let Some(slow) = error.downcast_ref() {
                return Some(*slow);
            }
            behind = error.source();
        }
        None
    }
}

/// Why a piece of a body is not there.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unread {
    /// It does not come.
    #[error("{0}")]
    Slow(#[from] TooSlow),
    /// It broke off.
    #[error(transparent)]
    Broken(#[from] axum::Error),
}

/// The pieces of a body, as long as they come fast enough. Only what is waited for counts, not how long a piece is dealt with.
pub(crate) fn paced(body: Body, bytes_per_second: u64) -> impl Stream<Item = Result<Bytes, Unread>> + Send + Unpin {
    let begun = Some(Paced { stream: body.into_data_stream(), bytes: 0, waited: Duration::ZERO, bytes_per_second });
    let pieces = stream::unfold(begun, async |paced| {
        let mut paced = paced?;
        match paced.next().await? {
            Ok(piece) => Some((Ok(piece), Some(paced))),
            Err(unread) => Some((Err(unread), None)),
        }
    });
    // Who refuses a body reads on to its end, which may have come.
    Box::pin(pieces.fuse())
}

/// A body that is read, and what came of it so far.
struct Paced {
    stream: BodyDataStream,
    bytes: u64,
    waited: Duration,
    bytes_per_second: u64,
}

impl Paced {
    async fn next(&mut self) -> Option<Result<Bytes, Unread>> {
        let allowed = GRACE.saturating_add(Duration::from_secs(self.bytes / self.bytes_per_second.max(1)));
        let limit = allowed.saturating_sub(self.waited).min(IDLE_LIMIT);
        let since = Instant::now();
        let next = tokio::time::timeout(limit, self.stream.next()).await;
        self.waited = self.waited.saturating_add(since.elapsed());
        let Ok(next) = next else {
            let (bytes, waited, bytes_per_second) = (self.bytes, self.waited, self.bytes_per_second);
            let trickling = TooSlow::Trickling { bytes, waited, bytes_per_second };
            return Some(Err(if limit == IDLE_LIMIT { TooSlow::Silent } else { trickling }.into()));
        };
        let piece = next?;
        if let Ok(piece) = &piece {
            self.bytes = self.bytes.saturating_add(u64::try_from(piece.len()).unwrap_or(u64::MAX));
        }
        Some(piece.map_err(Unread::Broken))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A body of which a piece of this size comes each so many seconds, and how much of it was read.
    async fn read(piece_bytes: usize, every: u64, pieces: usize) -> (usize, Result<(), TooSlow>) {
        let sent = stream::iter(0..pieces).then(move |_| async move {
            tokio::time::sleep(Duration::from_secs(every)).await;
            Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; piece_bytes]))
        });
        let mut read = 0;
        let mut pieces = paced(Body::from_stream(sent), 1024);
        while let Some(piece) = pieces.next().await {
            match piece {
                Ok(piece) => read += piece.len(),
                Err(unread) => return (read, Err(TooSlow::behind(&unread).unwrap())),
            }
        }
        (read, Ok(()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_comes_as_slowly_as_it_may_and_no_slower() {
        let trickling =
            |bytes, seconds| Err(TooSlow::Trickling { bytes, waited: Duration::from_secs(seconds), bytes_per_second: 1024 });
        // A byte each 59 seconds is heard for a minute.
        assert_eq!(read(1, 59, 1_000).await, (1, trickling(1, 60)));
        // Half of what must come is heard for about as long again as the minute at the beginning.
        assert_eq!(read(512, 1, 1_000).await, (60_928, trickling(60_928, 119)));
        assert_eq!(read(1024, 1, 1_000).await, (1_024_000, Ok(())));
        assert_eq!(read(30 * 1024, 30, 20).await, (600 * 1024, Ok(())));
        assert_eq!(read(1, 61, 1).await, (0, Err(TooSlow::Silent)));
    }
}
