//! The calls of sessions that run in this process, and how one is stopped whose client says so at another.
//!
//! There it is written down, and whoever has the call looks every second: a call that goes on for less has ended before anybody
//! could act.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::RequestId;
use rmcp::service::RequestContext;
use tokio::time::{Interval, MissedTickBehavior};

use super::Kept;

/// How often it is looked whether a call was stopped at another process.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Debug, Default)]
pub(in crate::serve) struct Calls {
    running: Mutex<HashSet<String>>,
    kept: OnceLock<Arc<Kept>>,
}

impl Calls {
    /// Looks there for what is said at other processes.
    pub(in crate::serve) fn keep(&self, kept: Arc<Kept>) {
        // The first stays: it is given once, before the first request.
        drop(self.kept.set(kept));
    }

    /// A call begins; `None` where it belongs to no session, or nobody else can know of it.
    pub(in crate::serve) fn begin(self: &Arc<Self>, context: &RequestContext<RoleServer>) -> Option<Call> {
        let kept = self.kept.get()?.clone();
        let head = context.extensions.get::<http::request::Parts>()?;
        let session = head.headers.get("mcp-session-id")?.to_str().ok()?;
        let name = name(session, &context.id);
        self.running().insert(name.clone());
        let mut every = tokio::time::interval_at(tokio::time::Instant::now() + LOOK_EVERY, LOOK_EVERY);
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Some(Call { name, calls: Arc::clone(self), kept, every: tokio::sync::Mutex::new(every) })
    }

    /// The client of a session does not want the result of a call any more.
    pub(super) async fn cancel(&self, session: &str, request: &RequestId) {
        let name = name(session, request);
        if self.running().contains(&name) {
            return;
        }
        if let Some(kept) = self.kept.get() {
            kept.cancel(&name).await;
        }
    }

    fn running(&self) -> MutexGuard<'_, HashSet<String>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call while it runs.
#[derive(Debug)]
pub(in crate::serve) struct Call {
    name: String,
    calls: Arc<Calls>,
    kept: Arc<Kept>,
    every: tokio::sync::Mutex<Interval>,
}

impl Call {
    /// Waits until its client says at another process that it does not want the result.
    pub(in crate::serve) async fn cancelled_elsewhere(&self) {
        let mut every = self.every.lock().await;
        loop {
            every.tick().await;
            if self.kept.is_cancelled(&self.name).await {
                return;
            }
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.calls.running().remove(&self.name);
    }
}

/// A call as all processes name it.
fn name(session: &str, request: &RequestId) -> String {
    match request {
        RequestId::Number(number) => format!("{session}/{number}"),
        // `7` and `"7"` are two.
        RequestId::String(text) => format!("{session}/\"{text}\""),
    }
}
