//! The way to a server's standard input.
//!
//! A line is written where it is sent, without waiting, as long as the pipe takes it: that saves a change of task for
//! each call. What does not fit is written by the returned future, and everything after it waits in line.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio_util::sync::CancellationToken;

/// A pipe that whole lines are written to. `None` inside once it is closed.
pub(crate) struct Outgoing<W> {
    pipe: Arc<Mutex<Option<W>>>,
    closed: CancellationToken,
}

enum Begun<W> {
    Done(io::Result<()>),
    /// Written so far; the pipe is kept, since the rest must follow.
    Partly(OwnedMutexGuard<Option<W>>, usize),
    Waiting(Arc<Mutex<Option<W>>>),
}

impl<W: AsyncWrite + Unpin + Send + 'static> Outgoing<W> {
    pub(crate) fn new(pipe: W) -> Self {
        Self { pipe: Arc::new(Mutex::new(Some(pipe))), closed: CancellationToken::new() }
    }

    /// Writes a line, which must end with a line break. Ends early, with an error, when the pipe is closed.
    pub(crate) fn send(&self, line: Vec<u8>) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let begun = match Arc::clone(&self.pipe).try_lock_owned() {
            Ok(pipe) => begin(pipe, &line),
            Err(_) => Begun::Waiting(Arc::clone(&self.pipe)),
        };
        let closed = self.closed.clone();
        async move {
            let (mut pipe, written) = match begun {
                Begun::Done(result) => return result,
                Begun::Partly(pipe, written) => (pipe, written),
                Begun::Waiting(pipe) => (pipe.lock_owned().await, 0),
            };
            let Some(pipe) = pipe.as_mut() else { return Err(closed_pipe()) };
            let rest = line.get(written..).unwrap_or_default();
            tokio::select! {
                biased;
                written = pipe.write_all(rest) => written,
                () = closed.cancelled() => Err(closed_pipe()),
            }
        }
    }

    /// Closes the pipe: the other side sees its end. Does not wait for a server that has stopped reading.
    pub(crate) async fn close(&self) {
        self.closed.cancel();
        self.pipe.lock().await.take();
    }
}

fn begin<W: AsyncWrite + Unpin>(mut guard: OwnedMutexGuard<Option<W>>, line: &[u8]) -> Begun<W> {
    let Some(pipe) = guard.as_mut() else { return Begun::Done(Err(closed_pipe())) };
    // Without a waker: who waits asks again, with its own.
    match Pin::new(pipe).poll_write(&mut Context::from_waker(Waker::noop()), line) {
        Poll::Ready(Ok(written)) if written == line.len() => Begun::Done(Ok(())),
        Poll::Ready(Ok(written)) => Begun::Partly(guard, written),
        Poll::Ready(Err(error)) => Begun::Done(Err(error)),
        Poll::Pending => Begun::Partly(guard, 0),
    }
}

fn closed_pipe() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the server's input is closed")
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn lines_that_do_not_fit_arrive_whole_and_in_order() {
        let (near, mut far) = tokio::io::duplex(8);
        let outgoing = Outgoing::new(near);
        let sends = [outgoing.send(b"first, long line\n".to_vec()), outgoing.send(b"second\n".to_vec())];
        let mut text = [0; 24];
        let (sent, read) = tokio::join!(futures_util::future::join_all(sends), far.read_exact(&mut text));
        assert_eq!((sent.into_iter().all(|sent| sent.is_ok()), read.unwrap()), (true, 24));
        assert_eq!(&text, b"first, long line\nsecond\n");
    }

    #[tokio::test]
    async fn closing_does_not_wait_for_who_does_not_read() {
        let (near, mut far) = tokio::io::duplex(8);
        let outgoing = Outgoing::new(near);
        let stuck = outgoing.send(b"longer than the pipe\n".to_vec());
        let (sent, ()) = tokio::join!(stuck, outgoing.close());
        assert_eq!(sent.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        let mut text = Vec::new();
        far.read_to_end(&mut text).await.unwrap();
        assert_eq!(text, b"longer t");
    }
}
