//! One client, over standard input and output.

use std::sync::Arc;

use rmcp::ServiceExt;
use rmcp::transport::io::stdio_pipes;

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
    let serving = async {
        match handler.serve(stdio_pipes()).await {
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
