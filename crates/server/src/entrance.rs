//! How many requests come in at once.
//!
//! What a request needs until its answer begins is half as much again as what its stream needs after that. Where many come together,
//! as after a restart, the next come in once those before them are answered: that is needed a few times then, and not for each of
//! them. One that takes longer waits for something else than this process, and keeps nobody out.

use std::collections::VecDeque;
use std::future::pending;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until};

/// How many come in at once, for each processor.
const PLACES: usize = 16;
/// For how long one keeps its place at most.
const TIME: Duration = Duration::from_millis(10);

/// Where requests come in.
#[derive(Debug)]
pub(crate) struct Entrance {
    places: Arc<Semaphore>,
    /// Who came in, and until when each keeps its place; the first came first.
    inside: Mutex<VecDeque<(Instant, Weak<Held>)>>,
    /// Held by who comes in, or is the first of those that wait: it alone looks who is to leave.
    first: tokio::sync::Mutex<()>,
}

/// The place of a request that is not answered. Cheap to clone; once the last is dropped there is room for the next, as where it is left.
#[derive(Debug, Clone)]
pub(crate) struct Place(Arc<Held>);

#[derive(Debug)]
struct Held(Mutex<Option<OwnedSemaphorePermit>>);

impl Held {
    fn leave(&self) {
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn is_left(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }
}

impl Place {
    /// Its answer begins, or waits for what happens.
    pub(crate) fn leave(&self) {
        self.0.leave();
    }
}

/// As wide as this machine has processors.
impl Default for Entrance {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self::of(PLACES.saturating_mul(processors))
    }
}

impl Entrance {
    fn of(places: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(places)), inside: Mutex::default(), first: tokio::sync::Mutex::default() }
    }

    /// A place, where there is one and nobody waits.
    pub(crate) fn try_enter(&self) -> Option<Place> {
        let _first = self.first.try_lock().ok()?;
        self.let_out();
        Some(self.place(Arc::clone(&self.places).try_acquire_owned().ok()?))
    }

    /// Waits for a place behind those who wait already.
    pub(crate) async fn enter(&self) -> Place {
        let _first = self.first.lock().await;
        loop {
            let next = self.let_out();
            let late = async {
                match next {
                    Some(at) => sleep_until(at).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                Ok(permit) = Arc::clone(&self.places).acquire_owned() => return self.place(permit),
                () = late => {}
            }
        }
    }

    fn place(&self, permit: OwnedSemaphorePermit) -> Place {
        let held = Arc::new(Held(Mutex::new(Some(permit))));
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        inside.push_back((Instant::now() + TIME, Arc::downgrade(&held)));
        Place(held)
    }

    /// Takes the places of those that had theirs for long enough; when the next is to be taken.
    fn let_out(&self) -> Option<Instant> {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some((until, held)) = inside.front() {
            let held = held.upgrade().filter(|held| !held.is_left());
            if held.is_some() && *until > Instant::now() {
                return Some(*until);
            }
            if let Some(held) = held {
                held.leave();
            }
            inside.pop_front();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_next_comes_in_once_one_is_answered_gone_or_takes_long() {
        let entrance = Entrance::of(2);
        let (first, second) = (entrance.enter().await, entrance.enter().await);
        assert!(entrance.try_enter().is_none(), "there are two places");

        first.leave();
        let third = entrance.try_enter().unwrap();
        assert!(entrance.try_enter().is_none());
        drop(first);
        assert!(entrance.try_enter().is_none(), "a place is left once");

        drop(second);
        let fourth = entrance.try_enter().unwrap();
        assert!(entrance.try_enter().is_none());

        let began = Instant::now();
        let (fifth, sixth) = (entrance.enter().await, entrance.enter().await);
        assert_eq!(began.elapsed(), TIME, "the third and the fourth take long");
        third.leave();
        fourth.leave();
        assert!(entrance.try_enter().is_none(), "and have no place any more");
        drop((fifth, sixth));
    }
}
