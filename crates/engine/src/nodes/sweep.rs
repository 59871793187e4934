//! Finds open turns that nobody drives although they could go on: a hint was lost, a node died without one, or the queue was
//! full. What it finds it offers; an offer that is there already is one. Every node sweeps, so that a turn in which something
//! is stored all the time, as in most, costs each of them a row and no look at its journal.

use std::collections::HashMap;
use std::sync::Arc;

use turnwright_core::{ConversationId, DriverId, Seq};

use crate::inner::Inner;
use crate::live::{Live, Vacancy};
use crate::{EngineError, KeptBy, OpenTurn};

/// So many open turns are looked at though something was stored in them: every node does this when one dies.
const MOST_MOVING: usize = 1_000;

/// Which open turns are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All of them, where there are not too many: nothing is known yet, or nodes are gone.
    All,
    /// Those in which nothing was stored since the sweep before; in the others somebody has just done something.
    Still,
}

impl Extent {
    /// That of a sweep which found so many open turns.
    fn of(self, open: usize) -> Self {
        if open > MOST_MOVING { Self::Still } else { self }
    }
}

/// What the sweep before saw of each open turn: so that a journal is read once for as long as nothing is stored in it.
#[derive(Debug, Default)]
pub(crate) struct Seen(HashMap<ConversationId, Sight>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Sight {
    last: Option<Seq>,
    /// Whose claim it was; nothing where it was not looked at.
    holder: Option<DriverId>,
}

/// Which drivers are alive, as far as one sweep asked.
#[derive(Debug, Default)]
struct Living(HashMap<DriverId, bool>);

impl Inner {
    /// Looks at open turns, which is one question to the store, one for each driver of them, and two for each that is looked
    /// at and not known; how many were offered.
    pub(crate) async fn sweep(self: &Arc<Self>, seen: &mut Seen, extent: Extent) -> Result<usize, EngineError> {
        let open = self.store.open_turns().await?;
        let extent = extent.of(open.len());
        let (mut now, mut living) = (HashMap::new(), Living::default());
        let mut offered = 0_usize;
        for turn in open.into_iter().filter(|turn| turn.kept_by == KeptBy::Servers && !turn.parked) {
            let before = seen.0.remove(&turn.conversation).filter(|sight| sight.last == turn.last);
            if before.is_none() && extent == Extent::Still {
                now.insert(turn.conversation, Sight { last: turn.last, holder: None });
                continue;
            }
            match self.look_at(&turn, before, &mut living).await {
                Ok(Looked::Fine(holder)) => {
                    now.insert(turn.conversation, Sight { last: turn.last, holder });
                }
                Ok(Looked::Offered) => offered = offered.saturating_add(1),
                Err(EngineError::NotFound { .. }) => {}
                Err(error) => {
                    tracing::error!(conversation = %turn.conversation, turn = %turn.turn, %error, "a turn could not be looked at");
                }
            }
        }
        seen.0 = now;
        Ok(offered)
    }

    async fn look_at(
        self: &Arc<Self>,
        open: &OpenTurn,
        before: Option<Sight>,
        living: &mut Living,
    ) -> Result<Looked, EngineError> {
        if self.registry.peek(&open.conversation).is_some_and(|live| live.lock().is_driven) {
            return Ok(Looked::Fine(None));
        }
        if let Some(holder) = before.as_ref().and_then(|sight| sight.holder.clone())
            && holder != *self.store.driver()
            && self.lives(&holder, living).await?
        {
            return Ok(Looked::Fine(Some(holder)));
        }
        let live: Arc<Live> = self.registry.load(&open.conversation, &*self.store).await?;
        self.catch_up(&live).await?;
        let vacancy = live.lock().vacancy(true);
        match vacancy {
            Vacancy::Nothing => Ok(Looked::Fine(None)),
            Vacancy::After(holder) if holder != *self.store.driver() && self.lives(&holder, living).await? => {
                Ok(Looked::Fine(Some(holder)))
            }
            Vacancy::After(_) | Vacancy::Free => {
                self.offer_where_vacant(&live).await?;
                Ok(Looked::Offered)
            }
        }
    }

    /// Whether a driver is alive, as it was found out in this sweep. One that died meanwhile the next sweep finds.
    async fn lives(&self, driver: &DriverId, living: &mut Living) -> Result<bool, EngineError> {
        if let Some(lives) = living.0.get(driver) {
            return Ok(*lives);
        }
        let lives = self.store.is_alive(driver).await?;
        living.0.insert(driver.clone(), lives);
        Ok(lives)
    }
}

/// What a look at an open turn came to.
enum Looked {
    /// It is driven, by this one where that is known, or wants no driver.
    Fine(Option<DriverId>),
    /// It was offered.
    Offered,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_open_turns_only_those_that_stand_still_are_looked_at() {
        assert_eq!(Extent::All.of(MOST_MOVING), Extent::All);
        assert_eq!(Extent::All.of(MOST_MOVING + 1), Extent::Still);
        assert_eq!(Extent::Still.of(1), Extent::Still);
    }
}
