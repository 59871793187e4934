//! A request on its way, and what is done where nobody waits for its answer any more.

use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{RequestId, ServerResult};
use rmcp::service::{RequestHandle, ServiceError};
use tokio_util::task::TaskTracker;

/// How long a server may take to read that a request is cancelled.
pub(crate) const CANCEL_WRITTEN: Duration = Duration::from_secs(2);

/// A request whose answer is waited for. Dropping it tells the server that nobody does any more, and forgets it here.
pub(crate) struct Pending<'a> {
    handle: Option<RequestHandle<RoleClient>>,
    tracker: &'a TaskTracker,
}

impl<'a> Pending<'a> {
    /// This request, which was sent; what is left of it is the tracker's.
    pub(crate) fn new(handle: RequestHandle<RoleClient>, tracker: &'a TaskTracker) -> Self {
        Self { handle: Some(handle), tracker }
    }
}

impl Pending<'_> {
    /// Its id; `None` where it is over.
    pub(crate) fn id(&self) -> Option<&RequestId> {
        self.handle.as_ref().map(|handle| &handle.id)
    }

    /// Waits for its answer. It may be waited for again where that was given up.
    pub(crate) async fn answer(&mut self) -> Result<ServerResult, ServiceError> {
        match &mut self.handle {
            Some(handle) => (&mut handle.rx).await.unwrap_or(Err(ServiceError::TransportClosed)),
            None => Err(ServiceError::TransportClosed),
        }
    }

    /// Its answer is there: nobody has to be told anything.
    pub(crate) fn over(&mut self) {
        self.handle = None;
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if let (Some(handle), Ok(runtime)) = (self.handle.take(), tokio::runtime::Handle::try_current()) {
            let reason = Some("nobody waits for the result any more".to_owned());
            self.tracker.spawn_on(
                async move {
                    // A server that does not read is found by its next call.
                    let _ = tokio::time::timeout(CANCEL_WRITTEN, handle.cancel(reason)).await;
                },
                &runtime,
            );
        }
    }
}
