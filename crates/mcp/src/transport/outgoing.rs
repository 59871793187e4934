//! The way to a server's standard input.
//!
//! Lines that are sent at the same moment are written together, by the first of their senders: a system call for each would cost
//! more than the lines do, and would hand a server its calls one by one. What a pipe does not take waits; nothing is ever written
//! in between, also where who writes is dropped.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

/// A pipe that whole lines are written to.
#[derive(Debug)]
pub(crate) struct Outgoing<W> {
    gathered: Arc<Mutex<Gathered>>,
    pipe: Arc<tokio::sync::Mutex<Pipe<W>>>,
    closed: CancellationToken,
}

/// Lines that nobody has begun to write.
#[derive(Debug, Default)]
struct Gathered {
    bytes: BytesMut,
    /// How many bytes were sent so far, those that are written among them.
    total: u64,
}

#[derive(Debug)]
struct Pipe<W> {
    /// `None` once it is closed.
    writer: Option<W>,
    /// What is being written.
    rest: BytesMut,
    /// How many bytes are written once `rest` is.
    through: u64,
    /// How many bytes are written.
    written: u64,
    /// Why nothing can be written any more.
    failure: Option<io::ErrorKind>,
}

impl<W: AsyncWrite + Unpin + Send + 'static> Outgoing<W> {
    pub(crate) fn new(writer: W) -> Self {
        let pipe = Pipe { writer: Some(writer), rest: BytesMut::new(), through: 0, written: 0, failure: None };
        Self { gathered: Arc::default(), pipe: Arc::new(tokio::sync::Mutex::new(pipe)), closed: CancellationToken::new() }
    }

    /// Writes a line, which must end with a line break, after those that were sent before; those that are sent with it are not
    /// waited for. Ends early, with an error, when the pipe is closed. A line whose sender is dropped before it ends may be written
    /// all the same.
    pub(crate) fn send(&self, line: &[u8]) -> impl Future<Output = io::Result<()>> + Send + use<W> {
        let end = {
            let mut gathered = self.gathered.lock().unwrap_or_else(PoisonError::into_inner);
            gathered.bytes.extend_from_slice(line);
            gathered.total += line.len() as u64;
            gathered.total
        };
        let (gathered, pipe, closed) = (self.gathered.clone(), self.pipe.clone(), self.closed.clone());
        async move {
            // Who else has something to send now does so.
            tokio::task::yield_now().await;
            let mut pipe = pipe.lock().await;
            if pipe.through < end {
                let mut gathered = gathered.lock().unwrap_or_else(PoisonError::into_inner);
                let lines = gathered.bytes.split();
                if pipe.rest.is_empty() {
                    pipe.rest = lines;
                } else {
                    pipe.rest.extend_from_slice(&lines);
                }
                pipe.through = gathered.total;
            }
            tokio::select! {
                biased;
                written = pipe.write(end) => written,
                () = closed.cancelled() => Err(closed_pipe()),
            }
        }
    }

    /// Closes the pipe: the other side sees its end. Does not wait for a server that has stopped reading.
    pub(crate) async fn close(&self) {
        self.closed.cancel();
        self.pipe.lock().await.writer.take();
    }
}

impl<W: AsyncWrite + Unpin> Pipe<W> {
    /// Writes until so many bytes are written. May be dropped: whoever writes next goes on.
    async fn write(&mut self, until: u64) -> io::Result<()> {
        while self.written < until {
            let Some(writer) = self.writer.as_mut() else { return Err(closed_pipe()) };
            let written = match self.failure {
                Some(kind) => Err(kind.into()),
                None => writer.write(&self.rest).await,
            };
            match written {
                Ok(0) => self.failure = Some(io::ErrorKind::WriteZero),
                Ok(count) => {
                    self.rest.advance(count);
                    self.written += count as u64;
                }
                Err(error) => {
                    self.failure = Some(error.kind());
                    return Err(error);
                }
            }
        }
        Ok(())
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
        let sends = [outgoing.send(b"first, long line\n"), outgoing.send(b"second\n")];
        let mut text = [0; 24];
        let (sent, read) = tokio::join!(futures_util::future::join_all(sends), far.read_exact(&mut text));
        assert_eq!((sent.into_iter().all(|sent| sent.is_ok()), read.unwrap()), (true, 24));
        assert_eq!(&text, b"first, long line\nsecond\n");
    }

    #[tokio::test]
    async fn closing_does_not_wait_for_who_does_not_read() {
        let (near, mut far) = tokio::io::duplex(8);
        let outgoing = Outgoing::new(near);
        let mut stuck = Box::pin(outgoing.send(b"longer than the pipe\n"));
        for _ in 0..2 {
            assert!(futures_util::poll!(stuck.as_mut()).is_pending());
        }
        let (sent, ()) = tokio::join!(stuck, outgoing.close());
        assert_eq!(sent.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        let mut text = Vec::new();
        far.read_to_end(&mut text).await.unwrap();
        assert_eq!(text, b"longer t");
    }

    #[tokio::test]
    async fn lines_of_one_moment_are_written_at_once() {
        let (near, mut far) = tokio::io::duplex(1024);
        let outgoing = Outgoing::new(near);
        let sends = [outgoing.send(b"first\n"), outgoing.send(b"second\n"), outgoing.send(b"third\n")];
        let [first, second, third] = sends;
        first.await.unwrap();
        let mut text = [0; 64];
        let count = far.read(&mut text).await.unwrap();
        assert_eq!(&text[..count], b"first\nsecond\nthird\n");
        assert!(second.await.is_ok() && third.await.is_ok());
        outgoing.send(b"fourth\n").await.unwrap();
        let count = far.read(&mut text).await.unwrap();
        assert_eq!(&text[..count], b"fourth\n");
    }

    #[tokio::test]
    async fn a_line_whose_sender_is_dropped_half_way_is_ended_before_another_begins() {
        let (near, mut far) = tokio::io::duplex(8);
        let outgoing = Outgoing::new(near);
        let mut dropped = Box::pin(outgoing.send(b"a line that is long\n"));
        for _ in 0..3 {
            assert!(futures_util::poll!(dropped.as_mut()).is_pending());
        }
        drop(dropped);
        let mut text = [0; 27];
        let (sent, read) = tokio::join!(outgoing.send(b"second\n"), far.read_exact(&mut text));
        assert_eq!((sent.is_ok(), read.unwrap()), (true, 27));
        assert_eq!(&text, b"a line that is long\nsecond\n");
    }

    #[tokio::test]
    async fn nobody_waits_for_a_line_that_is_sent_with_theirs_and_does_not_fit() {
        let (near, mut far) = tokio::io::duplex(8);
        let outgoing = Outgoing::new(near);
        let (short, mut long) = (outgoing.send(b"short\n"), Box::pin(outgoing.send(b"a line that is long\n")));
        short.await.unwrap();
        assert!(futures_util::poll!(long.as_mut()).is_pending());
        let mut text = [0; 26];
        let (sent, read) = tokio::join!(long, far.read_exact(&mut text));
        assert_eq!((sent.is_ok(), read.unwrap()), (true, 26));
        assert_eq!(&text, b"short\na line that is long\n");
    }

    #[tokio::test]
    async fn who_sends_together_fails_together() {
        let (near, far) = tokio::io::duplex(8);
        let outgoing = Outgoing::new(near);
        drop(far);
        let sends = [outgoing.send(b"first\n"), outgoing.send(b"second\n")];
        let sent = futures_util::future::join_all(sends).await;
        assert!(
            sent.iter().all(|sent| sent.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe)),
            "{sent:?}"
        );
        assert!(outgoing.send(b"third\n").await.is_err());
    }
}
