//! What people do to a conversation that has become long: put a summary in the place of its beginning, and take that back.

use std::sync::Arc;

use turnwright_core::budgets::{Amount, CallEnd, OpenReservation, Purpose, reserve};
use turnwright_core::compaction::cut;
use turnwright_core::{Compacted, Control, ConversationId, Entry, Journal, ModelRef, Reserved, Seq, Usage};

use super::Engine;
use super::act::{Act, act, kept_summary};
use crate::driver::longest_answer;
use crate::inner::Inner;
use crate::live::{From, Live, State};
use crate::summary::{Making, asking, is_stale};
use crate::{Append, EngineError, SettingsOverlay, SideRecord, StoreError};

/// A summary that is shown in the place of a conversation's beginning.
#[derive(Debug, Clone, PartialEq)]
pub struct Compaction {
    /// The place of its entry, by which it is undone.
    pub seq: Seq,
    /// The place up to which it stands for messages.
    pub through: Seq,
    /// What models are shown.
    pub summary: String,
    /// The model that wrote it; `None` where it was put together from the beginnings of what was said.
    pub model: Option<ModelRef>,
}

impl Engine {
    /// Puts a summary in the place of a conversation's beginning now, as a turn does that finds it too long. The model is asked
    /// for it that answers the conversation; where it gives none, one is put together without it. The journal keeps all that
    /// was said. A turn that is open goes on with it at its next step.
    ///
    /// # Errors
    /// [`EngineError::NotFound`]; [`EngineError::Invalid`] where there is nothing that a summary could stand for, or others
    /// compacted or hid something meanwhile; [`EngineError::ShuttingDown`].
    pub async fn compact(&self, id: &ConversationId, model: Option<ModelRef>) -> Result<Compaction, EngineError> {
        self.compact_once(id, model, None).await
    }

    /// As [`Engine::compact`], kept under an idempotency key (the key, and a hash of what was asked), where there is one: the same
    /// request makes one summary, whatever became of the first answer.
    ///
    /// # Errors
    /// As [`Engine::compact`]; [`EngineError::KeyReused`].
    pub async fn compact_once(
        &self,
        id: &ConversationId,
        model: Option<ModelRef>,
        idempotency: Option<(String, String)>,
    ) -> Result<Compaction, EngineError> {
        if self.is_draining() {
            return Err(EngineError::ShuttingDown);
        }
        let (engine, id) = (self.clone(), id.clone());
        let idempotency = idempotency.map(|(key, fingerprint)| (self.own_key(&key), fingerprint));
        let compact = async move {
            let live = engine.load_newest(&id).await?;
            let made_at = engine.compacted_before(&id, idempotency.as_ref()).await?;
            if let Some(made) = made_at.and_then(|seq| made_in(&live.lock().journal, seq)) {
                return Ok(made);
            }
            let (journal, model) = {
                let state = live.lock();
                let own = || state.overlay.merged(&SettingsOverlay::default()).over(&engine.inner.defaults()).model;
                let answers = || state.journal.open_turn().map_or_else(own, |turn| turn.model().clone());
                (state.journal.clone(), model.unwrap_or_else(answers))
            };
            let reserved = engine.reserve_summary(&live, &journal, &model).await?;
            let most_tokens = reserved.as_ref().map(|held| longest_answer(&held.reserved));
            let Some(mut making) = Making::begin(&engine.inner, &live, &journal, &model, most_tokens) else {
                let what = "there is nothing in this conversation that a summary could stand for".to_owned();
                return Err(EngineError::Invalid { what });
            };
            let seen = making.seen();
            let compacted = tokio::select! {
                biased;
                () = engine.inner.shutdown.cancelled() => None,
                compacted = making.made() => Some(compacted),
            };
            drop(making);
            let settled = reserved.map(|held| held.settled(compacted.as_ref()));
            let stored = match &compacted {
                None => Err(EngineError::ShuttingDown),
                Some(compacted) => {
                    let compact = |state: &State| {
                        let made = compact(state, (seen, compacted), settled)?;
                        let kept = idempotency.as_ref().map(|key| kept_summary(&id, made.answer.seq, key)).transpose()?;
                        Ok(made.with(kept))
                    };
                    act(&engine.inner, &live, compact).await
                }
            };
            if let (Some(settled), Err(_)) = (settled, &stored)
                && let Err(error) = settle(&engine.inner, &live, settled).await
            {
                tracing::warn!(conversation = %id, %error, "what a summary came to that is not used counts as all that was reserved");
            }
            stored
        };
        self.inner.whole(compact).await
    }

    /// Reserves what a summary may come to, where there are budgets.
    async fn reserve_summary(
        &self,
        live: &Arc<Live>,
        journal: &Journal,
        model: &ModelRef,
    ) -> Result<Option<Held>, EngineError> {
        let inner = &self.inner;
        let Some(cut) = cut(journal).filter(|_| inner.has_budgets()) else { return Ok(None) };
        let provider = inner.providers.get(model.provider()).ok();
        let request = asking(provider.as_deref(), model, |asked| cut.request(asked));
        let estimate = inner.estimate(provider.as_deref(), (Purpose::SummaryByHand, model), None, &request.prompt());
        loop {
            let standing = inner.standing(&live.owner, Some(journal.books()), Some(Purpose::SummaryByHand)).await?;
            let reserved = reserve(&standing, &estimate).map_err(EngineError::OverBudget)?;
            let reserved = Reserved { driver: Some(inner.store.driver().clone()), ..reserved };
            let entry = Entry::Control(Control::Reserved(reserved.clone()));
            let reserve = |state: &State| Ok(Act::of(vec![entry.clone()], Vec::new(), state.journal.next_seq()));
            match act(inner, live, reserve).await {
                Ok(seq) => return Ok(Some(Held { seq, reserved })),
                // Others were quicker with what is left.
                Err(EngineError::Store(StoreError::OverBudget)) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes the newest summary back: models are shown again what it stands for, or the summary that was shown before it.
    /// Gives what is shown now, where that is a summary.
    ///
    /// # Errors
    /// [`EngineError::NotFound`]; [`EngineError::Invalid`] where no summary is shown.
    pub async fn uncompact(&self, id: &ConversationId) -> Result<Option<Compaction>, EngineError> {
        let (engine, id) = (self.clone(), id.clone());
        let undo = async move {
            let live = engine.load_newest(&id).await?;
            act(&engine.inner, &live, uncompact).await?;
            let shown = shown(&live.lock().journal);
            Ok(shown)
        };
        self.inner.whole(undo).await
    }

    /// The summary that is shown to models now; `None` where all is shown as it was said.
    ///
    /// # Errors
    /// [`EngineError::NotFound`].
    pub async fn compaction(&self, id: &ConversationId) -> Result<Option<Compaction>, EngineError> {
        self.look(id, shown).await
    }
}

/// What is reserved for a summary.
struct Held {
    seq: Seq,
    reserved: Reserved,
}

/// What that came to.
#[derive(Debug, Clone, Copy)]
struct Settled {
    reservation: Seq,
    amount: Amount,
}

impl Held {
    /// What it came to, with the summary where one was made.
    fn settled(&self, compacted: Option<&Compacted>) -> Settled {
        let amount = match compacted {
            None => self.reserved.came_to(CallEnd::Dropped, &Usage::default(), 0),
            Some(Compacted { origin, usage, summary, .. }) => {
                let end = if origin.is_some() { CallEnd::Whole } else { CallEnd::Failed };
                self.reserved.came_to(end, usage, u64::try_from(summary.len()).unwrap_or(u64::MAX))
            }
        };
        Settled { reservation: self.seq, amount }
    }
}

impl Settled {
    fn entry(self) -> Entry {
        Entry::Control(Control::Settled { reservation: self.reservation, amount: self.amount })
    }
}

/// Stores what a call came to of which nothing else is stored, also where the engine ends: nobody else knows it.
async fn settle(inner: &Inner, live: &Live, settled: Settled) -> Result<(), StoreError> {
    loop {
        let entries = vec![settled.entry()];
        let (at, closed) = {
            let state = live.lock();
            if !state.journal.books().open().iter().any(|open| open.seq == settled.reservation) {
                return Ok(());
            }
            (state.journal.next_seq(), state.journal.closed_by(&entries))
        };
        let mut side = vec![SideRecord::Of(live.incarnation())];
        side.extend(inner.ledger_records(&live.owner, closed, &entries).await?);
        let append = Append { conversation: live.id.clone(), at, entries, at_ms: inner.clock.now_ms(), side };
        match inner.store.append(append).await {
            Ok(stored) => {
                live.apply(stored, From::Others);
                return Ok(());
            }
            Err(StoreError::Conflict { next }) if next > at => live.refresh(&*inner.store).await?,
            Err(error) => return Err(error),
        }
    }
}

fn compact(
    state: &State,
    (seen, compacted): (Option<Seq>, &Compacted),
    settled: Option<Settled>,
) -> Result<Act<Compaction>, EngineError> {
    if is_stale(seen, &state.journal) {
        let what = "something was compacted or hidden in this conversation meanwhile; nothing was stored, try again".to_owned();
        return Err(EngineError::Invalid { what });
    }
    // What this one cost is its own; one that the turn waited for is not made on.
    let mut entries: Vec<Entry> = state.journal.books().open().iter().filter_map(|open| given_up(state, open)).collect();
    let made = told(entries.iter().fold(state.journal.next_seq(), |seq, _| seq.next()), compacted);
    entries.push(Entry::Control(Control::Compacted(compacted.clone())));
    entries.extend(settled.map(Settled::entry));
    Ok(Act::of(entries, Vec::new(), made))
}

/// What a turn's own summary comes to that is given up for one by hand: its prompt where its driver is here, which stops it; else all,
/// since nobody knows how far it is.
fn given_up(state: &State, open: &OpenReservation) -> Option<Entry> {
    let end = if state.is_driven { CallEnd::Dropped } else { CallEnd::Lost };
    let amount = open.reserved.came_to(end, &Usage::default(), 0);
    (open.reserved.purpose == Purpose::Summary).then(|| Settled { reservation: open.seq, amount }.entry())
}

fn uncompact(state: &State) -> Result<Act<()>, EngineError> {
    let Some(shown) = state.journal.compaction() else {
        let what = "this conversation is shown as it was said; there is no summary to take back".to_owned();
        return Err(EngineError::Invalid { what });
    };
    Ok(Act::of(vec![Entry::Control(Control::Uncompacted { summary: shown.seq() })], Vec::new(), ()))
}

fn shown(journal: &Journal) -> Option<Compaction> {
    made_in(journal, journal.compaction()?.seq())
}

/// The summary at this place, whether or not it is shown.
fn made_in(journal: &Journal, seq: Seq) -> Option<Compaction> {
    match &*journal.entry(seq)?.entry {
        Entry::Control(Control::Compacted(compacted)) => Some(told(seq, compacted)),
        _ => None,
    }
}

fn told(seq: Seq, compacted: &Compacted) -> Compaction {
    let Compacted { through, summary, origin, .. } = compacted;
    let model = origin.as_ref().map(|origin| ModelRef::new(&origin.provider, &origin.model));
    Compaction { seq, through: *through, summary: summary.clone(), model }
}
