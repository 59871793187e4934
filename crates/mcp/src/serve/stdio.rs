//! One client, over standard input and output.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rmcp::ServiceExt;
use rmcp::transport::io::stdio_pipes;
use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::sync::CancellationToken;

use super::backing::Backing;
use super::handler::Handler;

/// Why the serving ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StdioEnd {
    /// The client closed its end, or there never was one that spoke.
    Closed,
    /// `stop` was ready.
    Stopped,
    /// The client said something before it opened the connection that nobody understands.
    NotUnderstood(String),
}

/// Serves until the client closes its end or `stop` is ready; then no call runs any more.
pub async fn stdio(backing: Arc<dyn Backing>, stop: impl Future<Output = ()> + Send) -> StdioEnd {
    let handler = Handler::new(backing);
    let (tasks, calls, ending) = (handler.tasks.clone(), handler.calls.clone(), handler.stop.clone());
    let (input, output) = stdio_pipes();
    let input = UntilItsEnd { input, ended: handler.is_deaf.clone() };
    let serving = async {
        match handler.serve((input, output)).await {
            Ok(service) => match service.waiting().await {
                Ok(_) | Err(_) => StdioEnd::Closed,
            },
            Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => StdioEnd::Closed,
            Err(error) => StdioEnd::NotUnderstood(error.to_string()),
        }
    };
    let end = tokio::select! {
        end = serving => end,
        () = stop => StdioEnd::Stopped,
    };
    ending.cancel();
    for tracked in [calls, tasks] {
        tracked.close();
        tracked.wait().await;
    }
    end
}

/// What the client writes. Its end is told at once: what was asked for before it is answered still, but nobody answers any more.
struct UntilItsEnd<R> {
    input: R,
    ended: CancellationToken,
}

impl<R: AsyncRead + Unpin> AsyncRead for UntilItsEnd<R> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, read: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = read.filled().len();
        let polled = Pin::new(&mut self.input).poll_read(context, read);
        let has_room = read.remaining() > 0;
        match &polled {
            Poll::Ready(Ok(())) if has_room && read.filled().len() == before => self.ended.cancel(),
            Poll::Ready(Err(_)) => self.ended.cancel(),
            Poll::Ready(Ok(())) | Poll::Pending => {}
        }
        polled
    }
}
