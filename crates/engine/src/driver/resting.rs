//! Calls that go on while their driver waits for the store, and that come to rest.

use std::pin::pin;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::time::{Instant, sleep};
use turnwright_core::{ApproveMode, Entry, Question, QuestionReason, Turn};

use super::call::Rest;
use super::{Course, Driver, Halt, Job, asked};

/// How long what a call came to waits for the calls beside it before it is stored, where those run. The model is asked once all of
/// them are over, and a server that answers them does so one by one: each would be a transaction of its own.
const TOGETHER: Duration = Duration::from_millis(1);

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

    /// A call came to rest; takes those that do with it.
    pub(super) async fn hear_rests(&mut self, first: Rest) -> Vec<Entry> {
        let mut rests = vec![first];
        rests.append(&mut self.rested);
        while let Some(Some(rest)) = self.calls.next().now_or_never() {
            rests.push(rest);
        }
        if !self.calls.is_empty() && self.is_for_the_model_alone(&rests) {
            // In a box: a timer within would make this future, and all that hold it, one of 128 bytes' alignment.
            rests.append(&mut Box::pin(rested_within(&mut self.calls, TOGETHER)).await);
        }
        rests.sort_by_key(Rest::call);
        for rest in &rests {
            self.running.remove(&rest.call());
            self.slots.writing.retain(|call| call != rest.call());
        }
        rests.into_iter().flat_map(|rest| self.entries_of(rest)).collect()
    }

    /// Whether what came is for nobody before the other calls that run are over: no call waits to start after it, and nobody is asked.
    fn is_for_the_model_alone(&self, rests: &[Rest]) -> bool {
        let state = self.live.lock();
        let all_run = |turn: &Turn| turn.calls().all(|call| call.is_answered || self.running.contains_key(&call.id));
        rests.iter().all(|rest| matches!(rest, Rest::Result(_))) && state.journal.turn().is_some_and(all_run)
    }

    pub(super) fn entries_of(&self, rest: Rest) -> Vec<Entry> {
        match (rest, self.live.lock().journal.turn()) {
            (Rest::Asks(elicited), Some(turn)) => asked::parked(&self.inner, &self.live, turn, elicited),
            (Rest::Asks(elicited), None) => vec![Entry::Elicited(elicited)],
            (Rest::Changed(result), Some(turn)) if turn.settings().approve == ApproveMode::Ask => {
                let name = turn.call(result.call).map_or("", |call| call.name);
                let catalog = self.inner.catalogs.of(&self.live.owner);
                let definition_hash = catalog.get_changed_too(name).map(|tool| tool.hash.to_string());
                let asked = Question::new(result.call, QuestionReason::DefinitionChanged);
                vec![Entry::Question(Question { definition_hash, ..asked })]
            }
            (Rest::Result(result) | Rest::Changed(result), _) => vec![Entry::Result(result)],
        }
    }
}

/// The calls that come to rest within this time: fewer where none is left before it is over.
async fn rested_within(calls: &mut FuturesUnordered<Job>, time: Duration) -> Vec<Rest> {
    let mut rests = Vec::new();
    let mut over = pin!(sleep(time));
    while !calls.is_empty() {
        tokio::select! {
            biased;
            Some(rest) = calls.next() => rests.push(rest),
            () = &mut over => break,
        }
    }
    rests
}

/// Waits until then, where a time is given.
pub(super) async fn until(at: Option<Instant>) {
    if let Some(at) = at {
        tokio::time::sleep_until(at).await;
    }
}
