//! One client, over standard input and output.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rmcp::ServiceExt;
use rmcp::transport::io::stdio_pipes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::backing::Backing;
use super::handler::Handler;

/// How long a client may take to read its last answers.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

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

/// Serves until the client closes its end or `stop` is ready; then no call runs any more. What is called once `stop` is ready is
/// refused, and the calls that run are stopped: the client is told both.
pub async fn stdio(backing: Arc<dyn Backing>, stop: impl Future<Output = ()> + Send) -> StdioEnd {
    let (input, output) = stdio_pipes();
    over(backing, (input, output), stop).await
}

async fn over<R, W>(backing: Arc<dyn Backing>, (input, output): (R, W), stop: impl Future<Output = ()> + Send) -> StdioEnd
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let handler = Handler::new(backing);
    let (tasks, calls, ending) = (handler.tasks.clone(), handler.calls.clone(), handler.stop.clone());
    let enough = CancellationToken::new();
    let input = UntilItsEnd { input, ended: handler.is_deaf.clone(), enough: Box::pin(enough.clone().cancelled_owned()) };
    let serving = async {
        match handler.serve((input, output)).await {
            Ok(service) => match service.waiting().await {
                Ok(_) | Err(_) => StdioEnd::Closed,
            },
            Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => StdioEnd::Closed,
            Err(error) => StdioEnd::NotUnderstood(error.to_string()),
        }
    };
    let mut serving = Box::pin(serving);
    let end = tokio::select! {
        end = &mut serving => end,
        () = stop => {
            ending.cancel();
            calls.close();
            let is_closed = tokio::select! {
                _ = &mut serving => true,
                () = calls.wait() => false,
            };
            if !is_closed {
                // What was asked for up to here is answered, and nothing more is read.
                enough.cancel();
                let _ = tokio::time::timeout(LAST_ANSWERS, &mut serving).await;
            }
            StdioEnd::Stopped
        }
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
    /// Ready when nothing more is to be read.
    enough: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl<R: AsyncRead + Unpin> AsyncRead for UntilItsEnd<R> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, read: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.enough.as_mut().poll(context).is_ready() {
            self.ended.cancel();
            return Poll::Ready(Ok(()));
        }
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    use tokio::sync::{Semaphore, watch};
    use turnwright_engine::{Reply, ToolOutput};

    use super::super::backing::{Happened, OfferedCall, OfferedTool, Refused, RunningCall};
    use super::*;

    #[derive(Debug)]
    struct State {
        changes: watch::Sender<u64>,
        begun: AtomicUsize,
        /// A permit for each call that runs.
        running: Semaphore,
        /// A permit for each call that is stopped.
        stopping: Semaphore,
        /// A permit for each that may end then.
        may_end: Semaphore,
    }

    /// A tool whose calls run until they are stopped.
    #[derive(Debug, Clone)]
    struct Slow(Arc<State>);

    #[async_trait]
    impl Backing for Slow {
        async fn tools(&self) -> Vec<OfferedTool> {
            Vec::new()
        }

        fn changes(&self) -> watch::Receiver<u64> {
            self.0.changes.subscribe()
        }

        async fn begin(&self, _call: OfferedCall) -> Result<Box<dyn RunningCall>, Refused> {
            self.0.begun.fetch_add(1, Ordering::Relaxed);
            Ok(Box::new(self.clone()))
        }

        async fn find(&self, _handle: &str, call: OfferedCall) -> Result<Box<dyn RunningCall>, Refused> {
            self.begin(call).await
        }

        async fn join(&self, _handle: &str, _client: &str) -> Result<Box<dyn RunningCall>, Refused> {
            Err(Refused::Other("nobody joins".into()))
        }

        async fn lost(&self, _client: &str, _digest: &str, _since_ms: u64) -> Option<(String, OfferedCall)> {
            None
        }
    }

    #[async_trait]
    impl RunningCall for Slow {
        fn handle(&self) -> &'static str {
            "slow"
        }

        async fn next(&mut self) -> Happened {
            self.0.running.add_permits(1);
            std::future::pending().await
        }

        async fn decide(&mut self, _may_run: bool) -> Result<(), String> {
            Ok(())
        }

        async fn answer(&mut self, _inquiry: &str, _reply: Reply) -> Result<(), String> {
            Ok(())
        }

        async fn cancel(&mut self) {
            self.0.stopping.add_permits(1);
            self.0.may_end.acquire().await.unwrap().forget();
        }

        async fn put_down(&mut self) -> ToolOutput {
            ToolOutput::default()
        }

        async fn leave(self: Box<Self>) {}
    }

    #[tokio::test]
    async fn what_is_called_while_it_shuts_down_is_refused_and_what_runs_is_stopped_and_both_are_told() {
        let none = || Semaphore::new(0);
        let (changes, begun) = (watch::Sender::new(0), AtomicUsize::new(0));
        let slow = Slow(Arc::new(State { changes, begun, running: none(), stopping: none(), may_end: none() }));
        let (client, server) = tokio::io::duplex(1 << 16);
        let stop = CancellationToken::new();
        let serving = over(Arc::new(slow.clone()), tokio::io::split(server), stop.clone().cancelled_owned());
        let talking = async {
            let (read, mut write) = tokio::io::split(client);
            let mut lines = BufReader::new(read).lines();
            let mut say = async |message: Value| write.write_all(format!("{message}\n").as_bytes()).await.unwrap();
            let call =
                |id| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "slow", "arguments": {}}});
            let mut answer = async || match lines.next_line().await.unwrap() {
                Some(line) => serde_json::from_str::<Value>(&line).unwrap(),
                None => Value::Null,
            };
            let hello =
                json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "tester", "version": "1"}});
            say(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})).await;
            assert_eq!(answer().await["id"], 1);
            say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
            say(call(2)).await;
            slow.0.running.acquire().await.unwrap().forget();
            stop.cancel();
            slow.0.stopping.acquire().await.unwrap().forget();
            say(call(3)).await;
            let refused = answer().await;
            assert_eq!(refused["id"], 3, "{refused}");
            assert!(refused["error"]["message"].as_str().unwrap().contains("shutting down"), "{refused}");
            slow.0.may_end.add_permits(1);
            let stopped = answer().await;
            assert_eq!((&stopped["id"], &stopped["error"]["message"]), (&json!(2), &json!("the call was cancelled")));
            assert_eq!(answer().await, Value::Null);
        };
        let (end, ()) = tokio::join!(serving, talking);
        assert_eq!((end, slow.0.begun.load(Ordering::Relaxed)), (StdioEnd::Stopped, 1));
    }
}
