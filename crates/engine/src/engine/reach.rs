//! What a handle reaches: the conversations of the user for whom it acts, and decisions where a person asks.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use turnwright_core::{ApproveMode, ConversationId, QuestionReason, Turn, UserId};

use super::Engine;
use crate::live::Live;
use crate::resent::RESENT;
use crate::{EngineError, OpenTurn, SettingsOverlay, StoreError};

/// Who finds out whether a person asks (law 6): people decide, what tools start does not.
///
/// It is asked when something is decided and not before, since a look may cost something.
#[async_trait]
pub trait Door: Debug + Send + Sync {
    /// Lets people through.
    ///
    /// # Errors
    /// Why whoever asks is not let through, in words for them.
    async fn open(&self) -> Result<(), String>;
}

/// Within what something is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bounds {
    /// Nothing runs without a person that would not by the installation's settings and by the conversation's own, in a turn
    /// that is open neither; and nothing that waits is declined.
    Installation,
    /// Nothing is said in a turn in which more runs without a person than was chosen for its conversation, and nothing that
    /// waits for a person is declined.
    Conversation,
    /// None: a person asks.
    Lifted,
}

impl Bounds {
    /// Refuses a turn to begin under a mode that lets more run without a person than may.
    pub(super) fn hold(self, mode: ApproveMode, default: ApproveMode, chosen: ApproveMode) -> Result<(), EngineError> {
        match self {
            Self::Installation => not_wider(mode, default).and_then(|()| not_wider(mode, chosen)),
            Self::Conversation => not_wider(mode, chosen),
            Self::Lifted => Ok(()),
        }
    }

    /// Refuses to go on with an open turn under a mode that lets more run without a person than may.
    pub(super) fn hold_open(self, mode: ApproveMode, default: ApproveMode, chosen: ApproveMode) -> Result<(), EngineError> {
        match self {
            Self::Installation => not_wider(mode, default),
            // Whoever began it let more run for what they said themselves.
            Self::Conversation => not_wider(mode, chosen),
            Self::Lifted => Ok(()),
        }
    }

    /// Refuses to decline what waits in this turn. What waits for a client alone, whoever says something there may decline.
    pub(super) fn hold_declining(self, turn: &Turn) -> Result<(), EngineError> {
        let is_for_people = turn.questions().next().is_some()
            || turn.waiting().any(|(_, question)| self == Self::Installation || question.reason != QuestionReason::ClientTool);
        if self == Self::Lifted || !is_for_people {
            return Ok(());
        }
        let what = "the message would decline what waits for a person, for which the right to decide (`approve`) is \
                    missing; with `on_waiting: hold`, where the route has that, it waits beside it";
        let what = what.to_owned();
        Err(EngineError::NotAllowed { what })
    }

    /// Refuses to stop a turn in which something waits for a person.
    pub(super) fn hold_stopping(self, turn: &Turn) -> Result<(), EngineError> {
        let waits = turn.waiting().next().is_some() || turn.questions().next().is_some();
        match self {
            Self::Installation if waits => {
                let what = "the turn waits for a person, and what waits would be gone".to_owned();
                Err(EngineError::NotAllowed { what })
            }
            Self::Installation | Self::Conversation | Self::Lifted => Ok(()),
        }
    }
}

fn not_wider(mode: ApproveMode, other: ApproveMode) -> Result<(), EngineError> {
    if !mode.is_wider_than(other) {
        return Ok(());
    }
    let what =
        format!("with approve mode `{mode}` more runs without a person than with `{other}`, which holds for whoever asks");
    Err(EngineError::NotAllowed { what })
}

impl Engine {
    /// The same engine, acting for this user.
    #[must_use]
    pub fn acting_for(&self, user: UserId) -> Self {
        Self { user, ..self.clone() }
    }

    /// The same engine, which decides nothing: no call is allowed through this handle, nothing that a tool asks is answered,
    /// and no turn begins in which more runs without a person than by the installation's settings.
    #[must_use]
    pub fn without_decisions(&self) -> Self {
        Self { may_decide: false, ..self.clone() }
    }

    /// The same engine for whoever is at this door, or for whom another look was taken where `None`.
    #[must_use]
    pub fn at_door(&self, door: Option<Arc<dyn Door>>) -> Self {
        Self { door, ..self.clone() }
    }

    /// Through which door all handles of this engine decide, besides one of their own. Counts once.
    pub fn stand_behind(&self, door: Arc<dyn Door>) {
        if self.inner.door.set(door).is_err() {
            tracing::error!("the door of an engine is chosen once");
        }
    }

    /// Whether this handle takes decisions, of people.
    pub fn may_decide(&self) -> bool {
        self.may_decide
    }

    /// For whom this handle acts.
    pub fn user(&self) -> &UserId {
        &self.user
    }

    /// Refuses a decision where this handle takes none, or no person asks.
    ///
    /// # Errors
    /// [`EngineError::NotAllowed`], [`EngineError::PeopleOnly`].
    pub async fn must_decide(&self) -> Result<(), EngineError> {
        if !self.may_decide {
            let what = "whoever asks may not decide about calls or answer for people".to_owned();
            return Err(EngineError::NotAllowed { what });
        }
        self.must_be_a_person().await
    }

    async fn must_be_a_person(&self) -> Result<(), EngineError> {
        for door in self.doors() {
            door.open().await.map_err(|why| EngineError::PeopleOnly { why })?;
        }
        Ok(())
    }

    fn doors(&self) -> impl Iterator<Item = &Arc<dyn Door>> {
        self.inner.door.get().into_iter().chain(&self.door)
    }

    /// The bounds of whoever asks. Who it is, is looked at only where it matters: after what was asked for did not keep within.
    pub(super) fn bounds(&self) -> Bounds {
        if self.doors().next().is_some() { Bounds::Installation } else { self.bounds_of_people() }
    }

    /// The bounds after it did not keep within these.
    ///
    /// # Errors
    /// Why there are no wider ones: `what` it was that did not keep within, or that no person asks.
    pub(super) async fn wider(&self, bounds: Bounds, what: String) -> Result<Bounds, EngineError> {
        match bounds {
            Bounds::Installation => {
                self.must_be_a_person().await?;
                Ok(self.bounds_of_people())
            }
            Bounds::Conversation | Bounds::Lifted => Err(EngineError::NotAllowed { what }),
        }
    }

    fn bounds_of_people(&self) -> Bounds {
        if self.may_decide { Bounds::Lifted } else { Bounds::Conversation }
    }

    /// Refuses a mode that lets more run without a person than the installation's and `before`, where no person asks.
    pub(super) async fn must_not_widen(&self, mode: ApproveMode, before: Option<ApproveMode>) -> Result<(), EngineError> {
        let default = self.inner.defaults().approve;
        let is_wider = mode.is_wider_than(default) || before.is_some_and(|before| mode.is_wider_than(before));
        if is_wider { self.must_decide().await } else { Ok(()) }
    }

    /// Refuses settings of a new conversation that let more run without a person than the installation's, where no person asks.
    pub(super) async fn must_not_decide(&self, overlay: &SettingsOverlay) -> Result<(), EngineError> {
        match overlay.approve {
            Some(mode) => self.must_not_widen(mode, None).await,
            None => Ok(()),
        }
    }

    pub(super) async fn load(&self, id: &ConversationId) -> Result<Arc<Live>, EngineError> {
        let live = self.load_own(id).await?;
        self.learn_keeper(&live).await?;
        Ok(live)
    }

    pub(super) async fn load_own(&self, id: &ConversationId) -> Result<Arc<Live>, EngineError> {
        let live = self.inner.registry.load(id, &*self.inner.store).await?;
        if live.owner == self.user {
            return Ok(live);
        }
        // Another process may have deleted it, and somebody else's may have its name now.
        let live = self.newest(live).await?;
        if live.owner == self.user { Ok(live) } else { Err(not_there(id)) }
    }

    pub(super) async fn own_open_turns(&self) -> Result<impl Iterator<Item = OpenTurn>, EngineError> {
        let open = self.inner.store.open_turns().await?;
        Ok(open.into_iter().filter(|open| open.owner == self.user))
    }

    /// The stored form of an idempotency key: one user's keys are nobody else's. No key that a client sends has a tab.
    pub(super) fn own_key(&self, key: &str) -> String {
        let [ours, _] = RESENT;
        // Those hold whose they are, and are forgotten together.
        let is_unique = self.user.is_local() || key.starts_with(ours);
        if is_unique { key.to_owned() } else { format!("{}\t{key}", self.user) }
    }

    /// The conversation with everything that any process has stored.
    pub(super) async fn load_newest(&self, id: &ConversationId) -> Result<Arc<Live>, EngineError> {
        let live = self.newest(self.load_own(id).await?).await?;
        if live.owner != self.user {
            return Err(not_there(id));
        }
        self.learn_keeper(&live).await?;
        Ok(live)
    }

    /// The conversation, with what is chosen for it. Where nobody else ever wrote that is what is known.
    pub(super) async fn load_chosen(&self, id: &ConversationId) -> Result<Arc<Live>, EngineError> {
        let live = self.load(id).await?;
        if self.inner.foreign_writes() == 0 {
            return Ok(live);
        }
        let live = self.newest(live).await?;
        if live.owner == self.user { Ok(live) } else { Err(not_there(id)) }
    }

    /// The newest for a row of the index of open turns.
    pub(super) async fn load_open(&self, open: &OpenTurn) -> Result<Arc<Live>, EngineError> {
        let live = self.inner.registry.load(&open.conversation, &*self.inner.store).await?;
        let live = self.newest(live).await?;
        let mut state = live.lock();
        if state.kept_by().is_none() {
            state.keeper = Some((open.turn, open.kept_by));
        }
        drop(state);
        Ok(live)
    }

    /// The same; `None` where it is gone, or cannot be read: that is no reason to say nothing of the others.
    pub(super) async fn load_readable(&self, open: &OpenTurn) -> Result<Option<Arc<Live>>, EngineError> {
        match self.load_open(open).await {
            Ok(live) => Ok(Some(live)),
            Err(EngineError::NotFound { .. }) => Ok(None),
            Err(EngineError::Store(error)) if error.is_of_what_is_stored() => {
                tracing::warn!(conversation = %open.conversation, turn = %open.turn, %error, "a conversation with an open turn is left out");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    async fn newest(&self, live: Arc<Live>) -> Result<Arc<Live>, EngineError> {
        // Others say and decide something in a turn that is driven here, too.
        let is_known = self.inner.foreign_writes() == 0 && {
            let state = live.lock();
            state.is_driven && state.journal.open_turn().is_some()
        };
        if is_known {
            return Ok(live);
        }
        match self.inner.catch_up(&live).await {
            Ok(()) => Ok(live),
            // What was known is gone; there may be another of its name.
            Err(StoreError::Gone { .. }) => self.inner.registry.load(&live.id, &*self.inner.store).await,
            Err(error) => Err(error.into()),
        }
    }

    /// Reads what takes the open turn up again, where another process began it.
    async fn learn_keeper(&self, live: &Live) -> Result<(), EngineError> {
        let is_known = {
            let state = live.lock();
            state.journal.open_turn().is_none() || state.kept_by().is_some()
        };
        if !is_known {
            let row = self.inner.store.open_turns().await?.into_iter().find(|open| open.conversation == live.id);
            live.lock().keeper = row.map(|open| (open.turn, open.kept_by));
        }
        Ok(())
    }
}

/// There is no such conversation, or it is somebody else's: nobody is told which.
pub(super) fn not_there(id: &ConversationId) -> EngineError {
    EngineError::NotFound { what: format!("conversation `{id}`") }
}
