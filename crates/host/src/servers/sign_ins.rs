//! Sign-ins at MCP servers that somebody has begun in a browser and not ended, one for each server.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use turnwright_mcp::McpError;

/// What a sign-in comes to. It ends where nobody has it any more.
pub(crate) type SignIn = AbortOnDropHandle<Result<(), McpError>>;

/// Those that wait for a person.
#[derive(Debug, Default)]
pub(crate) struct SignIns {
    tasks: TaskTracker,
    open: Mutex<HashMap<String, SignIn>>,
}

impl SignIns {
    pub(crate) fn begin(&self, work: impl Future<Output = Result<(), McpError>> + Send + 'static) -> SignIn {
        AbortOnDropHandle::new(self.tasks.spawn(work))
    }

    /// Has it go on without whoever began it.
    pub(crate) fn keep(&self, server: &str, begun: SignIn) {
        self.open().insert(server.to_owned(), begun);
    }

    /// Ends the one at this server; the port to which it would come back is free when this returns.
    pub(crate) async fn give_up(&self, server: &str) {
        let before = self.open().remove(server);
        if let Some(before) = before {
            before.abort();
            drop(before.await);
        }
    }

    /// Ends all of them.
    pub(crate) async fn end(&self) {
        self.open().clear();
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, SignIn>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
