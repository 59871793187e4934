//! Standing back without leaving the runtime.

use std::future::poll_fn;
use std::task::Poll;

/// Lets the tasks that are ready run before the caller goes on. Unlike tokio's `yield_now` it does not ask the system for
/// events first, which would cost a system call each time.
pub async fn let_others_run() {
    let mut has_waited = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_waited, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
