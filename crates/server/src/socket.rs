//! The socket of a connection whose client may have stopped sending.
//!
//! Who has sent a whole request may close that direction and read the answer by the other one (RFC 9293, section 3.6): it is answered. Nobody can tell
//! that apart from a client that has gone altogether before something is written to it. What would be kept for such a client meanwhile
//! ends with its sending: a stream, which it can take up again, and what its going cancels.

use std::io::{self, Error, ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Whether what is answered now ends where the client sends no more. Cheap to clone; one for each connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct EndsWithSending(Arc<AtomicBool>);

impl EndsWithSending {
    /// Says so of what is answered from now on.
    pub(crate) fn set(&self, ends: bool) {
        self.0.store(ends, Ordering::Relaxed);
    }

    fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A socket that breaks off where [`EndsWithSending`] says so and its client sends no more.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: TcpStream,
    ends: EndsWithSending,
}

impl Socket {
    pub(crate) fn new(stream: TcpStream, ends: EndsWithSending) -> Self {
        Self { stream, ends }
    }

    /// Whether nothing more can come. Where that is not known yet the task is woken once it is.
    fn is_silent(&self, context: &mut Context<'_>) -> bool {
        let mut byte = [0];
        match self.stream.poll_peek(context, &mut ReadBuf::new(&mut byte)) {
            Poll::Ready(Ok(read)) => read == 0,
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Whoever serves the connection flushes it each time that it looks at it, also where it has nothing to write.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.ends.get() && self.is_silent(context) {
            return Poll::Ready(Err(Error::new(ErrorKind::ConnectionAborted, "the client sends no more")));
        }
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
