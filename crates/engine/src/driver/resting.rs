//! Calls that go on while their driver waits for the store, and that come to rest.

use futures_util::FutureExt;
use futures_util::stream::StreamExt;
use tokio::time::Instant;
use turnwright_core::Entry;

use super::call::Rest;
use super::{Course, Driver, Halt, Job, asked};

impl Driver {
    /// As [`Driver::advance`], while the calls that run go on: the store may take long, and their limits and what stops them must
    /// not wait for it.
    pub(super) async fn advance_beside_calls(&mut self, first: Vec<Entry>) -> Result<Course, Halt> {
        if self.calls.is_empty() {
            return self.advance(first).await;
        }
        let mut calls = std::mem::take(&mut self.calls);
        let mut rested = Vec::new();
        let course = {
            let mut advancing = std::pin::pin!(self.advance(first));
            loop {
                tokio::select! {
                    biased;
                    course = &mut advancing => break course,
                    Some(rest) = calls.next(), if !calls.is_empty() => rested.push(rest),
                }
            }
        };
        // They come out newest first.
        let begun: Vec<Job> = std::mem::take(&mut self.calls).into_iter().collect();
        calls.extend(begun.into_iter().rev());
        self.calls = calls;
        self.rested.append(&mut rested);
        course
    }

    /// A call came to rest; takes those that did with it.
    pub(super) fn hear_rests(&mut self, first: Rest) -> Vec<Entry> {
        let mut rests = vec![first];
        rests.append(&mut self.rested);
        while let Some(Some(rest)) = self.calls.next().now_or_never() {
            rests.push(rest);
        }
        rests.sort_by_key(Rest::call);
        for rest in &rests {
            self.running.remove(&rest.call());
            self.slots.writing.retain(|call| call != rest.call());
        }
        rests.into_iter().flat_map(|rest| self.entries_of(rest)).collect()
    }

    pub(super) fn entries_of(&self, rest: Rest) -> Vec<Entry> {
        match (rest, self.live.lock().journal.turn()) {
            (Rest::Asks(elicited), Some(turn)) => asked::parked(&self.inner, &self.live, turn, elicited),
            (Rest::Asks(elicited), None) => vec![Entry::Elicited(elicited)],
            (Rest::Result(result), _) => vec![Entry::Result(result)],
        }
    }
}

/// Waits until then, where a time is given.
pub(super) async fn until(at: Option<Instant>) {
    if let Some(at) = at {
        tokio::time::sleep_until(at).await;
    }
}
