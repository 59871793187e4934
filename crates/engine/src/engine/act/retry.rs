//! What taking the last turn up again appends.

use turnwright_core::{Control, ConversationId, Entry, TurnId, TurnStatus};

use super::{Act, Bounds, still_open};
use crate::inner::Inner;
use crate::live::State;
use crate::{EngineError, SettingsOverlay};

pub(super) fn retry(
    inner: &Inner,
    id: &ConversationId,
    state: &State,
    (overlay, bounds): (&SettingsOverlay, Bounds),
) -> Result<Act<TurnId>, EngineError> {
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
    bounds.hold(settings.approve, inner.defaults().approve, last.settings().approve)?;
    // What was taken over from elsewhere was offered nothing here.
    let is_settled = inner.is_settled();
    let offered = inner.newly_offered(&state.owner, &state.journal, &settings).filter(|_| is_settled);
    let settings = (settings != *last.settings()).then(|| Box::new(settings));
    let retried = Entry::Control(Control::Retried { turn, settings });
    let is_for_all = inner.is_for_all(inner.keeper(state));
    let claim = (!is_for_all).then(|| Entry::Control(Control::Claimed(inner.next_claim(&state.journal))));
    let entries = std::iter::once(retried).chain(claim).chain(offered).collect();
    let slot = inner.room_for_turn(&state.owner, is_for_all)?;
    Ok(Act { slot, is_for_all, ..Act::of(entries, vec![still_open(inner, state, turn)], turn) })
}
