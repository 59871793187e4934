//! What a driver waits for, and what comes of each.

use std::pin::pin;

use futures_util::future::Either;
use futures_util::stream::StreamExt;
use tokio::sync::{OwnedSemaphorePermit, watch};
use turnwright_core::Entry;

use super::asked::News;
use super::call::Rest;
use super::gathering::next_gathered;
use super::model::{Said, next_said};
use super::resting::until;
use super::summary::next_summary;
use super::{Driver, Halt};
use crate::StoreError;

/// What happened.
enum Occurrence {
    /// The engine ends, or the right to drive is lost.
    Ends,
    /// What the driver before it began has ended.
    IsQuiet,
    /// The process is to end.
    Drains,
    /// Somebody else appended.
    Changed,
    Said(Said),
    /// A call that began ahead is done.
    Ahead,
    Summary(Entry),
    Gathered(Vec<Entry>),
    Reserved(Result<Vec<Entry>, StoreError>),
    Sampled(Entry),
    Rested(Rest),
    News(News),
    /// A source has room for a call.
    Slot(String, OwnedSemaphorePermit),
    /// Another process wrote.
    Foreign(Result<(), watch::error::RecvError>),
}

impl Driver {
    /// Waits until something happens that the plan must know, and gives its entries.
    pub(super) async fn next_occurrence(&mut self) -> Result<Vec<Entry>, Halt> {
        loop {
            if self.fence.has_lost() {
                return Err(Halt::Quietly);
            }
            if let Some(rest) = self.rested.pop() {
                return Ok(self.hear_rests(rest).await);
            }
            match self.occurrence().await {
                Occurrence::Ends | Occurrence::Foreign(Err(_)) => return Err(Halt::Quietly),
                Occurrence::IsQuiet => {
                    self.unquiet_until = None;
                    return Ok(Vec::new());
                }
                Occurrence::Drains => {
                    self.is_draining = true;
                    return Ok(Vec::new());
                }
                Occurrence::Changed => return Ok(self.hear_of_others()),
                Occurrence::Said(said) => match self.hear_model(said) {
                    Some(entry) => return Ok(vec![entry]),
                    None => self.begin_ahead(),
                },
                Occurrence::Ahead => self.begin_ahead(),
                Occurrence::Summary(entry) => {
                    self.summary_saw = self.summary.take().and_then(|summary| summary.seen());
                    return Ok(vec![entry]);
                }
                Occurrence::Gathered(gathered) => {
                    self.gathering = None;
                    return Ok(gathered);
                }
                Occurrence::Reserved(reserved) => return reserved.map_err(Halt::Store),
                Occurrence::Sampled(sampled) => return Ok(vec![sampled]),
                Occurrence::Rested(rest) => return Ok(self.hear_rests(rest).await),
                Occurrence::News(news) => {
                    if let Some(entries) = self.hear_news(news) {
                        return Ok(entries);
                    }
                }
                Occurrence::Slot(source, permit) => {
                    self.slots.granted.entry(source).or_default().push(permit);
                    return Ok(Vec::new());
                }
                Occurrence::Foreign(Ok(())) => match self.inner.catch_up(&self.live).await {
                    Ok(()) => {}
                    Err(StoreError::Gone { .. }) => return Err(Halt::Quietly),
                    // What runs goes on; the next append tells what was missed.
                    Err(error) => {
                        tracing::warn!(%error, "cannot see what other processes stored");
                    }
                },
            }
        }
    }

    async fn occurrence(&mut self) -> Occurrence {
        let is_draining = self.is_draining;
        let said = pin!(next_said(&mut self.model, &self.live));
        let others = pin!(async {
            tokio::select! {
                biased;
                () = self.inner.shutdown.cancelled() => Occurrence::Ends,
                () = &mut self.lost => Occurrence::Ends,
                () = until(self.unquiet_until), if self.unquiet_until.is_some() => Occurrence::IsQuiet,
                () = self.inner.draining.cancelled(), if !is_draining => Occurrence::Drains,
                () = self.live.changed.notified() => Occurrence::Changed,
                () = self.ahead.next(), if !self.ahead.is_empty() => Occurrence::Ahead,
                entry = next_summary(&mut self.summary), if self.summary.is_some() => Occurrence::Summary(entry),
                gathered = next_gathered(&mut self.gathering), if self.gathering.is_some() => Occurrence::Gathered(gathered),
                reserved = self.reserving.next(), if !self.reserving.is_empty() => Occurrence::Reserved(reserved),
                sampled = self.samplings.next(), if !self.samplings.is_empty() => Occurrence::Sampled(sampled),
                Some(rest) = self.calls.next(), if !self.calls.is_empty() => Occurrence::Rested(rest),
                // What begins ahead may ask once its message is stored.
                news = self.asked.next(), if self.ahead.is_empty() => Occurrence::News(news),
                (source, permit) = self.slot_waits.next(), if !self.slot_waits.is_empty() => Occurrence::Slot(source, permit),
                changed = self.foreign.changed() => Occurrence::Foreign(changed),
            }
        });
        match self.apart.first(others, said).await {
            Either::Left(occurrence) => occurrence,
            Either::Right(said) => Occurrence::Said(said),
        }
    }

    /// The entries of what was asked, answered or taken over within a call.
    fn hear_news(&mut self, news: News) -> Option<Vec<Entry>> {
        match news {
            News::Over(id, answer) => self.hear_over(id, *answer).map(|entry| vec![entry]),
            News::Accepted(accepted) => self.hear_accepted(accepted).map(|entry| vec![entry]),
            News::Asked(question) => self.hear_question(question),
        }
    }

    /// The entry that the model's answer came to, once it is over.
    fn hear_model(&mut self, said: Said) -> Option<Entry> {
        let mut state = self.live.lock();
        let entry = self.model.as_mut().and_then(|model| model.hear(said, &mut state));
        if entry.is_some() {
            drop(state);
            self.model = None;
        }
        entry
    }
}
