//! What a model call may come to, reserved before the model is asked: where there are budgets, no call is made that is not.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use turnwright_core::budgets::{Books, Estimate, Purpose, reserve};
use turnwright_core::{
    BudgetStop, Control, Entry, Journal, ModelRef, ProviderFailure, ProviderFailureKind, Reserved, Sampled, SamplingOutcome,
    Seq, StopReason, Turn, TurnId, TurnSettings, TurnStatus, Usage, compaction, prompt,
};

use super::Driver;
use super::model::ModelCall;
use super::summary::Summary;
use crate::StoreError;
use crate::inner::Inner;
use crate::live::Live;
use crate::summary::asking;

/// What is being reserved.
#[derive(Default)]
pub(super) struct Reserving(Vec<(Purpose, Making)>);

type Making = Pin<Box<dyn Future<Output = Result<Vec<Entry>, StoreError>> + Send>>;

/// What a model call may be made with.
pub(super) enum Leave {
    /// There are no budgets.
    Free,
    /// This is reserved, at this place.
    Reserved(Seq, Box<Reserved>),
    /// Nothing yet.
    NotYet,
}

/// Whether a call of `purpose` may be made by the driver of `epoch`, for which the reservation at `used` served already.
pub(super) fn leave(inner: &Inner, books: &Books, purpose: Purpose, epoch: u64, used: Option<Seq>) -> Leave {
    if !inner.has_budgets() {
        return Leave::Free;
    }
    let is_meant = |seq: Seq| Some(seq) != used;
    let open = books.open().iter().find(|open| open.reserved.purpose == purpose && open.epoch == epoch && is_meant(open.seq));
    open.map_or(Leave::NotYet, |open| Leave::Reserved(open.seq, Box::new(open.reserved.clone())))
}

/// A model cannot be asked before what that may come to is reserved.
#[derive(Debug, Clone, Copy)]
struct NotYet;

impl Driver {
    /// Asks the model, once what that may come to is reserved.
    pub(super) fn ask_model(&mut self) {
        if let Ok(reserved) = self.reserved(Purpose::Answer) {
            self.model = ModelCall::start(&self.inner, &self.live, reserved.as_ref());
        }
    }

    pub(super) fn ask_for_summary(&mut self) {
        if let Ok(reserved) = self.reserved(Purpose::Summary) {
            self.summary = Summary::start(&self.inner, &self.live, reserved.as_ref());
        }
    }

    /// Asks models what calls want them to be asked.
    pub(super) fn ask_for_tools(&mut self) {
        let epoch = self.claim.epoch;
        for question in self.samplings.follow(&self.inner, &self.live, epoch) {
            self.reserving.begin(&self.inner, &self.live, Purpose::Sampling(question));
        }
    }

    /// Whether no model answers the turn, but a program.
    fn asks_no_model(&self) -> bool {
        let answers = self.live.lock().journal.open_turn().map(|turn| turn.model().clone());
        let provider = answers.and_then(|model| self.inner.providers.get(model.provider()).ok());
        provider.is_some_and(|provider| provider.asks_no_model())
    }

    /// With what reservation a model is asked now, `None` where it needs none; [`NotYet`], where it is being reserved.
    fn reserved(&mut self, purpose: Purpose) -> Result<Option<Reserved>, NotYet> {
        if self.asks_no_model() {
            return Ok(None);
        }
        let leave = leave(&self.inner, self.live.lock().journal.books(), purpose, self.claim.epoch, self.used);
        match leave {
            Leave::Free => Ok(None),
            Leave::Reserved(seq, reserved) => {
                self.used = Some(seq);
                Ok(Some(*reserved))
            }
            Leave::NotYet => {
                self.reserving.begin(&self.inner, &self.live, purpose);
                Err(NotYet)
            }
        }
    }
}

impl Reserving {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets all that.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Forgets what is for no call that the turn wants.
    pub(super) fn keep(&mut self, is_wanted: impl Fn(Purpose) -> bool) {
        self.0.retain(|(purpose, _)| is_wanted(*purpose));
    }

    /// Begins to reserve for what the turn asks for next.
    pub(super) fn begin(&mut self, inner: &Arc<Inner>, live: &Arc<Live>, purpose: Purpose) {
        if self.0.iter().any(|(begun, _)| *begun == purpose) {
            return;
        }
        let journal = live.lock().journal.clone();
        let Some((turn, estimate)) = estimate(inner, live, &journal, purpose) else { return };
        let is_passed_over =
            !matches!(purpose, Purpose::Sampling(_)) && journal.open_turn().is_some_and(Turn::has_fallen_short_of_the_last);
        let (inner, owner) = (inner.clone(), live.owner.clone());
        let make = async move {
            let standing = inner.standing(&owner, Some(journal.books()), Some(purpose)).await?;
            Ok(match reserve(&standing, &estimate) {
                Ok(reserved) => vec![Entry::Control(Control::Reserved(reserved))],
                Err(stop) if stop.needed.is_none() && is_passed_over => vec![unpriced(&estimate.model, stop)],
                Err(stop) => vec![refused(turn, &estimate, stop)],
            })
        };
        self.0.push((purpose, Box::pin(make)));
    }

    /// What comes of the next.
    pub(super) async fn next(&mut self) -> Result<Vec<Entry>, StoreError> {
        poll_fn(|context| {
            let done = self.0.iter_mut().enumerate().find_map(|(at, (_, making))| match making.as_mut().poll(context) {
                Poll::Ready(made) => Some((at, made)),
                Poll::Pending => None,
            });
            let Some((at, made)) = done else { return Poll::Pending };
            drop(self.0.swap_remove(at));
            Poll::Ready(made)
        })
        .await
    }
}

/// A model without a price that would be asked in the place of one that failed, where another can be.
fn unpriced(model: &ModelRef, stop: BudgetStop) -> Entry {
    let text = format!("`{model}` is not asked: its price is not known, and `budgets.{}` is in money", stop.budget.as_str());
    let code = Some(ProviderFailure::UNPRICED.to_owned());
    Entry::Control(Control::Failed(ProviderFailure { code, ..ProviderFailure::new(ProviderFailureKind::Unavailable, text) }))
}

/// What the turn does in the place of a call that is not within its budgets.
fn refused(turn: TurnId, estimate: &Estimate, stop: BudgetStop) -> Entry {
    match estimate.purpose {
        Purpose::Answer | Purpose::Summary | Purpose::SummaryByHand => {
            let status = TurnStatus::stopped(StopReason::Budget(stop));
            Entry::Control(Control::Ended { turn, status })
        }
        Purpose::Sampling(question) => {
            let failure = ProviderFailure::new(
                ProviderFailureKind::Limit,
                format!("the model was not asked: {}", stop.told_of_model(&estimate.model)),
            );
            let outcome = SamplingOutcome::Failed { failure, usage: Usage::default() };
            Entry::Sampled(Sampled { question, outcome })
        }
    }
}

/// What the call is about to take. `None` where the turn does not want it any more.
fn estimate(inner: &Inner, live: &Live, journal: &Journal, purpose: Purpose) -> Option<(TurnId, Estimate)> {
    let turn = journal.open_turn().filter(|turn| turn.asks_for(purpose))?;
    let estimate = match purpose {
        Purpose::Answer => {
            let settings = TurnSettings { model: turn.model().clone(), ..turn.settings().clone() };
            let prompt = prompt::of(&live.id, journal, &settings, true);
            let provider = inner.providers.get(settings.model.provider()).ok();
            inner.estimate(provider.as_deref(), (purpose, &settings.model), Some(journal), &prompt)
        }
        Purpose::Summary => {
            let model = turn.model();
            let cut = compaction::cut(journal)?;
            let provider = inner.providers.get(model.provider()).ok();
            let request = asking(provider.as_deref(), model, |asked| cut.request(asked));
            inner.estimate(provider.as_deref(), (purpose, model), None, &request.prompt())
        }
        // Nobody does who drives.
        Purpose::SummaryByHand => return None,
        Purpose::Sampling(question) => {
            let (_, sampling) = turn.samplings().find(|(id, _)| *id == question)?;
            let model = sampling.model.clone().unwrap_or_else(|| turn.model().clone());
            let request = sampling.request(&model);
            let provider = inner.providers.get(model.provider()).ok();
            inner.estimate(provider.as_deref(), (purpose, &model), None, &request.prompt())
        }
    };
    Some((turn.id(), estimate))
}
