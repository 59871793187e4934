//! One tool call: runs it within its limits and gives its result, whatever happens.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use sha2::{Digest, Sha256};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use turnwright_core::{CallId, ConversationId, Outcome, ToolErrorKind, ToolResult};

use crate::live::Live;
use crate::names::hex;
use crate::ruler::Ready;
use crate::{CallContext, Event, Progress, ProgressSink, SourceCall, ToolError, ToolOutput};

/// How long a call that is told to end may take to give its real result.
const GRACE: Duration = Duration::from_secs(5);

/// A call that was started.
pub(super) struct CallJob {
    pub(super) id: CallId,
    pub(super) attempt: u32,
    pub(super) ready: Ready,
    pub(super) cancel: CancellationToken,
    pub(super) live: Arc<Live>,
}

/// How the waiting for a call ended.
enum Ending {
    Returned(Result<ToolOutput, ToolError>),
    Panicked,
    IdleTooLong(Duration),
    TooLong(Duration),
    Cancelled,
}

impl CallJob {
    /// Runs the call to its one result.
    pub(super) async fn run(self) -> ToolResult {
        let begun = Instant::now();
        let Ready { tool, arguments, permit } = self.ready;
        let signs = Arc::new(Notify::new());
        let progress = Arc::new(Reporter { id: self.id, live: self.live.clone(), signs: signs.clone() });
        let limits = tool.source.limits(&tool.definition.tool);
        let idempotency_key = idempotency_key(&self.live.id, self.id, &arguments, self.attempt);
        let call = SourceCall { tool: tool.definition.tool.clone(), arguments, idempotency_key };
        let context = CallContext { cancel: self.cancel.clone(), progress };
        let source = tool.source.clone();
        let work = AssertUnwindSafe(async move { source.call(call, context).await }).catch_unwind();
        tokio::pin!(work);
        let ended = |joined: Result<Result<ToolOutput, ToolError>, _>| joined.map_or(Ending::Panicked, Ending::Returned);
        let total = tokio::time::sleep(limits.total);
        tokio::pin!(total);
        let idle = tokio::time::sleep(limits.idle);
        tokio::pin!(idle);
        let ending = loop {
            tokio::select! {
                biased;
                done = &mut work => break ended(done),
                () = self.cancel.cancelled() => break Ending::Cancelled,
                () = signs.notified() => idle.as_mut().reset(Instant::now() + limits.idle),
                () = &mut total => break Ending::TooLong(limits.total),
                () = &mut idle => break Ending::IdleTooLong(limits.idle),
            }
        };
        let ending = match ending {
            Ending::Returned(_) | Ending::Panicked => ending,
            Ending::Cancelled | Ending::TooLong(_) | Ending::IdleTooLong(_) => {
                self.cancel.cancel();
                let late = tokio::time::timeout(GRACE, &mut work).await;
                match (late, &ending) {
                    // A real result counts also when it comes late; what a tool says of its own cancellation does not.
                    (Ok(done @ Ok(Ok(_))), _) => ended(done),
                    (_, _) => ending,
                }
            }
        };
        drop(permit);
        let mut result = result_of(self.id, &tool.definition.name, ending);
        result.duration_ms = u64::try_from(begun.elapsed().as_millis()).ok();
        result
    }
}

fn result_of(id: CallId, name: &str, ending: Ending) -> ToolResult {
    match ending {
        Ending::Returned(Ok(output)) => ToolResult {
            call: id,
            outcome: if output.is_error { Outcome::Error(ToolErrorKind::ExecutionFailed) } else { Outcome::Success },
            content: output.content,
            structured_content: output.structured_content,
            diagnostic: output.diagnostic,
            duration_ms: None,
        },
        Ending::Returned(Err(error)) => {
            let mut result = ToolResult::failed(id, error.kind, error.model_text);
            result.diagnostic = error.diagnostic;
            result
        }
        Ending::Panicked => ToolResult::failed(
            id,
            ToolErrorKind::ExecutionFailed,
            format!("`{name}` failed inside; this is a fault of the tool."),
        ),
        Ending::IdleTooLong(limit) => ToolResult::failed(
            id,
            ToolErrorKind::Timeout,
            format!(
                "`{name}` gave no sign of life for {} s and was stopped. It may or may not have happened.",
                limit.as_secs_f64()
            ),
        ),
        Ending::TooLong(limit) => ToolResult::failed(
            id,
            ToolErrorKind::Timeout,
            format!("`{name}` was not done after {} s and was stopped. It may or may not have happened.", limit.as_secs_f64()),
        ),
        Ending::Cancelled => ToolResult::failed(
            id,
            ToolErrorKind::Interrupted,
            format!("The user stopped the turn while `{name}` ran. It may or may not have happened."),
        ),
    }
}

/// The same for every attempt that the same decision allowed.
fn idempotency_key(
    conversation: &ConversationId,
    call: CallId,
    arguments: &serde_json::Map<String, serde_json::Value>,
    attempt: u32,
) -> String {
    let mut hasher = Sha256::new();
    hasher.update(conversation.as_str().as_bytes());
    hasher.update(call.message.get().to_le_bytes());
    hasher.update(call.index.to_le_bytes());
    hasher.update(attempt.to_le_bytes());
    hasher.update(serde_json::to_vec(arguments).unwrap_or_default());
    hex(&hasher.finalize())
}

/// Tells watchers how far a call is, and that it lives.
#[derive(Debug)]
struct Reporter {
    id: CallId,
    live: Arc<Live>,
    signs: Arc<Notify>,
}

impl ProgressSink for Reporter {
    fn report(&self, progress: Progress) {
        self.signs.notify_one();
        let Progress { progress, total, message } = progress;
        self.live.lock().tell(vec![Event::ToolProgress { call_id: self.id, progress, total, message }]);
    }
}
