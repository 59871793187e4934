//! What taking the last turn up again appends.

use std::sync::Arc;

use turnwright_core::{Control, ConversationId, Entry, MessageId, TurnId, TurnStatus};

use super::{Act, Bounds, Kept, Sent, SentState, act, still_open};
use crate::inner::Inner;
use crate::live::{Live, State};
use crate::{Engine, EngineError, SettingsOverlay};

impl Engine {
    /// Takes the last turn up again that did not end well, with other settings where some are given.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], [`EngineError::TurnOpen`], [`EngineError::NoOpenTurn`] where the last turn ended well.
    pub async fn retry(&self, id: &ConversationId, overlay: SettingsOverlay) -> Result<TurnId, EngineError> {
        self.retry_once(id, overlay, None).await.map(|sent| sent.turn_id)
    }

    /// As [`Engine::retry`], kept under an idempotency key (the key, and a hash of what was asked), where there is one. What it
    /// tells as the message is the entry after which the turn goes on.
    ///
    /// # Errors
    /// As [`Engine::retry`]; [`EngineError::KeyReused`].
    pub async fn retry_once(
        &self,
        id: &ConversationId,
        overlay: SettingsOverlay,
        idempotency: Option<(String, String)>,
    ) -> Result<Sent, EngineError> {
        if let Some(problem) = overlay.problem() {
            return Err(EngineError::Invalid { what: problem });
        }
        self.limits().admit_chosen(None, &overlay)?;
        self.must_not_decide(&overlay).await?;
        if self.is_draining() {
            return Err(EngineError::ShuttingDown);
        }
        let key = idempotency.map(|(key, fingerprint)| (self.own_key(&key), fingerprint));
        if let Some(sent) = self.sent_before(key.as_ref()).await? {
            return Ok(sent);
        }
        let (engine, id, kept_under) = (self.clone(), id.clone(), key.clone());
        let retry = async move {
            let live = engine.load_newest(&id).await?;
            let bounds = engine.bounds();
            let inner = &engine.inner;
            match retry_kept(inner, &live, (&overlay, bounds), kept_under.as_ref()).await {
                Err(EngineError::NotAllowed { what }) => {
                    let wider = engine.wider(bounds, what).await?;
                    retry_kept(inner, &live, (&overlay, wider), kept_under.as_ref()).await
                }
                retried => retried,
            }
        };
        match self.inner.whole(retry).await {
            // The same request may have come twice at once, and the other one was stored first.
            Err(error) => self.sent_before(key.as_ref()).await?.ok_or(error),
            retried => retried,
        }
    }
}

async fn retry_kept(
    inner: &Arc<Inner>,
    live: &Arc<Live>,
    chosen: (&SettingsOverlay, Bounds),
    key: Option<&(String, String)>,
) -> Result<Sent, EngineError> {
    let make = |state: &State| {
        let mut act = retry(inner, &live.id, state, chosen)?;
        if let Some((key, fingerprint)) = key {
            let kept = Kept { conversation: Some(live.id.clone()), sent: Some(act.answer.clone()), summary: None };
            act.side.push(kept.record(key, fingerprint)?);
        }
        Ok(act)
    };
    act(inner, live, make).await
}

fn retry(
    inner: &Inner,
    id: &ConversationId,
    state: &State,
    (overlay, bounds): (&SettingsOverlay, Bounds),
) -> Result<Act<Sent>, EngineError> {
    let refuse = |why: &str| Err(EngineError::NoOpenTurn { why: why.to_owned() });
    let Some(last) = state.journal.turn() else { return refuse("there is no turn to retry") };
    match last.ended() {
        None => return Err(EngineError::TurnOpen { why: format!("{} is still open", last.id()) }),
        Some(TurnStatus::Completed) => {
            return refuse(&format!("the last turn of {id} ended well, there is nothing to retry"));
        }
        Some(TurnStatus::Cancelled | TurnStatus::Failed { .. } | TurnStatus::StepLimit | TurnStatus::Stopped { .. }) => {}
    }
    let turn = last.id();
    let settings = inner.settings(overlay, last.settings());
    let default = inner.defaults().approve;
    bounds.hold(settings.approve, default, last.settings().approve)?;
    bounds.hold_open(settings.approve, default, state.overlay.approve.unwrap_or(default))?;
    // What was taken over from elsewhere was offered nothing here.
    let is_settled = inner.is_settled(&state.owner);
    let offered = inner.newly_offered(&state.owner, &state.journal, &settings).filter(|_| is_settled);
    let settings = (settings != *last.settings()).then(|| Box::new(settings));
    let retried = Entry::Control(Control::Retried { turn, settings, hides: last.hidden_by_retry().map(MessageId) });
    let is_for_all = inner.is_for_all(inner.keeper(state));
    let claim = (!is_for_all).then(|| Entry::Control(Control::Claimed(inner.next_claim(&state.journal))));
    let entries = std::iter::once(retried).chain(claim).chain(offered).collect();
    let slot = inner.room_for_turn(&state.owner, is_for_all)?;
    let sent = Sent { message_id: MessageId(state.shown_now()), turn_id: turn, state: SentState::Started };
    Ok(Act { slot, is_for_all, ..Act::of(entries, vec![still_open(inner, state, turn)], sent) })
}
