//! Two futures of one task, each polled only after it was woken itself.
//!
//! A model's answer wakes its driver with every piece; the dozen other things that a driver waits for are not looked at for that.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::future::Either;

/// What wakes each of two futures. To be kept from one wait to the next.
#[derive(Debug, Default)]
pub(super) struct Apart {
    left: Arc<Side>,
    right: Arc<Side>,
}

#[derive(Debug, Default)]
struct Side {
    is_woken: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl Wake for Side {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::SeqCst);
        if let Some(task) = &*self.task.lock().unwrap_or_else(PoisonError::into_inner) {
            task.wake_by_ref();
        }
    }
}

impl Side {
    /// What wakes this side wakes `task` from now on.
    fn belongs_to(&self, task: &Waker) {
        *self.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(task.clone());
    }

    /// Polls what this side wakes, where it was woken since the last time.
    fn poll<F: Future>(&self, waker: &Waker, future: Pin<&mut F>) -> Poll<F::Output> {
        if !self.is_woken.swap(false, Ordering::SeqCst) {
            return Poll::Pending;
        }
        future.poll(&mut Context::from_waker(waker))
    }
}

impl Apart {
    /// Waits for what is done first; the left one where both are.
    pub(super) async fn first<L: Future, R: Future>(
        &self,
        mut left: Pin<&mut L>,
        mut right: Pin<&mut R>,
    ) -> Either<L::Output, R::Output> {
        let wakers = [&self.left, &self.right].map(|side| {
            // Nothing woke what was not polled yet.
            side.is_woken.store(true, Ordering::SeqCst);
            Waker::from(Arc::clone(side))
        });
        let [wakes_left, wakes_right] = &wakers;
        let mut task: Option<Waker> = None;
        poll_fn(|context| {
            if task.as_ref().is_none_or(|task| !task.will_wake(context.waker())) {
                self.left.belongs_to(context.waker());
                self.right.belongs_to(context.waker());
                task = Some(context.waker().clone());
            }
            if let Poll::Ready(done) = self.left.poll(wakes_left, left.as_mut()) {
                return Poll::Ready(Either::Left(done));
            }
            self.right.poll(wakes_right, right.as_mut()).map(Either::Right)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::pin::pin;

    use futures_channel::oneshot;
    use futures_util::FutureExt;

    use super::*;

    /// Counts how often `future` is polled.
    fn counted<F: Future + Unpin>(mut future: F, polls: &Cell<u32>) -> impl Future<Output = F::Output> {
        poll_fn(move |context| {
            polls.set(polls.get() + 1);
            future.poll_unpin(context)
        })
    }

    #[tokio::test]
    async fn only_what_was_woken_is_polled() {
        let apart = Apart::default();
        let (left_polls, right_polls) = (Cell::new(0), Cell::new(0));
        let ((first, left), (second, right)) = (oneshot::channel::<u8>(), oneshot::channel::<u8>());
        let mut left = pin!(counted(left, &left_polls));
        {
            let right = pin!(counted(right, &right_polls));
            let mut waiting = pin!(apart.first(left.as_mut(), right));
            assert!(futures_util::poll!(waiting.as_mut()).is_pending());
            assert!(futures_util::poll!(waiting.as_mut()).is_pending(), "neither was woken");
            assert_eq!((left_polls.get(), right_polls.get()), (1, 1));
            second.send(7).unwrap();
            assert!(matches!(waiting.await, Either::Right(Ok(7))));
            assert_eq!((left_polls.get(), right_polls.get()), (1, 2));
        }
        first.send(8).unwrap();
        let right = pin!(std::future::ready(9));
        assert!(matches!(apart.first(left, right).await, Either::Left(Ok(8))), "the left one counts where both are done");
    }

    #[tokio::test]
    async fn what_is_woken_from_another_task_is_heard() {
        let apart = Apart::default();
        let mut others = tokio::task::JoinSet::new();
        for round in 0..1_000 {
            let (send, receive) = oneshot::channel();
            others.spawn(async move { send.send(round) });
            let never = pin!(std::future::pending::<()>());
            assert!(matches!(apart.first(never, pin!(receive)).await, Either::Right(Ok(heard)) if heard == round));
        }
    }
}
