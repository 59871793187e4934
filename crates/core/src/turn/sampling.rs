//! What calls may ask of models, and what each source had of that.

use std::sync::Arc;

use super::call;
use super::{Misfit, Turn};
use crate::{AnswerAction, Answered, ElicitationId, Sampled, Sampling, SamplingSpent, Wants};

impl Turn {
    /// What models are to be asked for its calls: it is allowed, and nothing came of it yet.
    pub fn samplings(&self) -> impl Iterator<Item = (ElicitationId, &Sampling)> {
        let epoch = self.epoch();
        let open = self.ended.is_none() && !self.is_cancelling();
        let due = self.calls.iter().filter(move |_| open).flat_map(move |call| call.due(epoch));
        due.filter_map(|(id, _, ask)| match &ask.wants {
            Wants::Sampling { request } => Some((id, &**request)),
            Wants::Form { .. } | Wants::Url { .. } => None,
        })
    }

    /// What a tool source had of models in this turn, what is allowed and still to come included.
    pub fn spent(&self, source: &str) -> SamplingSpent {
        self.spent.iter().find(|(of, _)| **of == *source).map_or(SamplingSpent::default(), |(_, spent)| *spent)
    }

    /// Counts a question to a model that was allowed, as if its answer took all that it may.
    pub(super) fn reserve(&mut self, answered: &Answered) {
        if answered.action != AnswerAction::Accept {
            return;
        }
        let Some((source, allowed)) = self.sampling(answered.question) else { return };
        self.spend(&source, |spent| {
            spent.requests = spent.requests.saturating_add(1);
            spent.output_tokens = spent.output_tokens.saturating_add(allowed);
        });
    }

    /// Takes what a model said.
    pub(super) fn apply_sampled(&mut self, sampled: &Sampled) -> Result<(), Misfit> {
        let epoch = self.epoch();
        let Some((source, allowed)) = self.sampling(sampled.question) else { return Err("no model is to be asked this") };
        self.call_mut(sampled.question.call)?.take_sampled(epoch, sampled)?;
        if let Some(tokens) = sampled.usage().output_tokens {
            self.spend(&source, |spent| {
                let rest = spent.output_tokens.saturating_sub(allowed);
                spent.output_tokens = rest.saturating_add(u32::try_from(tokens).unwrap_or(u32::MAX));
            });
        }
        Ok(())
    }

    /// Who asks a question to a model, and how many tokens its answer may have.
    fn sampling(&self, id: ElicitationId) -> Option<(Arc<str>, u32)> {
        let asking = call::find(&self.calls, id.call)?.asking.as_ref()?;
        match &asking.ask(id.index)?.wants {
            Wants::Sampling { request } => Some((asking.source().clone(), request.max_tokens)),
            Wants::Form { .. } | Wants::Url { .. } => None,
        }
    }

    /// Changes what a source had.
    fn spend(&mut self, source: &Arc<str>, change: impl FnOnce(&mut SamplingSpent)) {
        if let Some((_, spent)) = self.spent.iter_mut().find(|(of, _)| of == source) {
            return change(spent);
        }
        let mut spent = SamplingSpent::default();
        change(&mut spent);
        self.spent.push((source.clone(), spent));
    }
}
