//! A turn being brought to its end, with somebody who hears of it.

use std::pin::pin;
use std::time::Duration;

use futures_util::FutureExt;
use turnwright_core::{ConversationId, Journal, Seq, Turn, TurnId, TurnStatus};
use turnwright_engine::{Engine, EngineError, Event, Frame, TurnState, Watch, WatchFrom};

/// How long a stopped turn's last words may take to be read.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Takes what a turn tells.
pub trait Audience {
    /// Events, in their order.
    fn hear(&mut self, events: &[Event]) -> impl Future<Output = ()>;

    /// The turn was asked to stop; a second wish leaves it.
    fn stopping(&mut self) -> impl Future<Output = ()>;
}

/// A wish to stop, from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupt {
    /// A person pressed Ctrl-C.
    Interrupt,
    /// The process is to end, or its terminal is gone.
    Terminate,
}

/// Where such wishes come from.
pub trait Interrupts {
    /// The next wish.
    fn next(&mut self) -> impl Future<Output = Interrupt>;
}

/// Where a turn came to rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    /// It is over.
    Ended(TurnStatus),
    /// Only a person can move it on.
    Parked,
    /// It was asked to stop, and whoever asked did not wait: for its end, or until all of it was read.
    Left,
    /// It goes on: this process is to end, and is not the one that drives it.
    Elsewhere,
}

/// What became of a wish to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Stop {
    /// The turn was asked to stop, or is over already.
    Asked,
    /// It was not: another process drives it and goes on with it.
    Elsewhere,
}

/// Follows the turns of one conversation.
#[derive(Debug)]
pub struct Follow {
    engine: Engine,
    conversation: ConversationId,
    watch: Option<Watch>,
    after: Option<Seq>,
    interrupt: Option<Interrupt>,
}

impl Follow {
    /// Tells everything after the entry at `after`; from the beginning where `None`.
    ///
    /// # Errors
    /// As [`Engine::watch`].
    pub async fn begin(engine: &Engine, conversation: &ConversationId, after: Option<Seq>) -> Result<Self, EngineError> {
        let watch = engine.watch(conversation, WatchFrom::After(after)).await?;
        Ok(Self { watch: Some(watch), after, ..Self::silent(engine, conversation) })
    }

    /// Tells nothing and only waits.
    pub fn silent(engine: &Engine, conversation: &ConversationId) -> Self {
        let (engine, conversation) = (engine.clone(), conversation.clone());
        Self { engine, conversation, watch: None, after: None, interrupt: None }
    }

    /// The last wish to stop that came on the way, if one did.
    pub fn interrupt(&self) -> Option<Interrupt> {
        self.interrupt
    }

    /// Asks the turn to stop, since somebody wishes so. That this process is to end is no wish of a person: it stops what the
    /// process drives itself, or drove last, and nothing else.
    ///
    /// # Errors
    /// As [`Engine::cancel`]; a turn that is over already is none.
    pub async fn stop(&mut self, turn: TurnId, interrupt: Interrupt) -> Result<Stop, EngineError> {
        self.interrupt = Some(interrupt);
        if interrupt == Interrupt::Terminate && self.is_driven_elsewhere(turn).await? {
            return Ok(Stop::Elsewhere);
        }
        match self.engine.cancel(&self.conversation, Some(turn)).await {
            Ok(_) | Err(EngineError::NoOpenTurn { .. }) => Ok(Stop::Asked),
            Err(error) => Err(error),
        }
    }

    async fn is_driven_elsewhere(&self, turn: TurnId) -> Result<bool, EngineError> {
        let driver = self.engine.driver();
        let is_other = |open: &Turn| open.claim().is_none_or(|claim| claim.driver != *driver);
        let look = |journal: &Journal| journal.open_turn().filter(|open| open.id() == turn).is_some_and(is_other);
        self.engine.look(&self.conversation, look).await
    }

    /// Waits until `turn` is over or parked, and tells what happens. The first wish to stop cancels the turn and its end is
    /// waited for; the second does not wait any more. Where [`Self::stop`] does not ask it to stop, nothing is waited for.
    ///
    /// # Errors
    /// As [`Engine::wait`].
    pub async fn until_settled(
        &mut self,
        turn: TurnId,
        interrupts: &mut impl Interrupts,
        audience: &mut impl Audience,
    ) -> Result<Settled, EngineError> {
        loop {
            if let Some(settled) = self.until(turn, Questions::Pass, interrupts, audience).await? {
                return Ok(settled);
            }
        }
    }

    /// The same, or until a call asks something while it holds its connection: `None` then.
    ///
    /// # Errors
    /// As [`Engine::wait`].
    pub async fn until_settled_or_asked(
        &mut self,
        turn: TurnId,
        interrupts: &mut impl Interrupts,
        audience: &mut impl Audience,
    ) -> Result<Option<Settled>, EngineError> {
        self.until(turn, Questions::StopAt, interrupts, audience).await
    }

    async fn until(
        &mut self,
        turn: TurnId,
        questions: Questions,
        interrupts: &mut impl Interrupts,
        audience: &mut impl Audience,
    ) -> Result<Option<Settled>, EngineError> {
        let (engine, conversation) = (self.engine.clone(), self.conversation.clone());
        let mut settled = pin!(engine.wait(&conversation, turn));
        let mut is_stopping = false;
        loop {
            let was_stopping = is_stopping;
            let frame = tokio::select! {
                state = &mut settled => {
                    let state = state?;
                    if let Some(settled) = self.tell_the_rest(turn, &mut is_stopping, interrupts, audience).await?.left() {
                        return Ok(Some(settled));
                    }
                    return Ok(Some(match state {
                        TurnState::Ended(status) => Settled::Ended(status),
                        TurnState::Parked => Settled::Parked,
                    }));
                }
                interrupt = interrupts.next() => {
                    if is_stopping {
                        return Ok(Some(Settled::Left));
                    }
                    is_stopping = true;
                    match self.stop(turn, interrupt).await? {
                        Stop::Asked => None,
                        Stop::Elsewhere => return Ok(Some(Settled::Elsewhere)),
                    }
                }
                frame = next(&mut self.watch) => {
                    if frame.is_none() {
                        self.come_back().await?;
                    }
                    frame
                }
            };
            if let Some(frame) = &frame
                && let Some(settled) = self.hear(frame, turn, &mut is_stopping, interrupts, audience).await?.left()
            {
                return Ok(Some(settled));
            }
            if is_stopping && !was_stopping {
                audience.stopping().await;
            }
            if questions == Questions::StopAt && !is_stopping && frame.is_some_and(|frame| asks(&frame)) {
                return Ok(None);
            }
        }
    }

    /// The watch was cut off since whoever hears was too slow.
    async fn come_back(&mut self) -> Result<(), EngineError> {
        self.watch = Some(self.engine.watch(&self.conversation, WatchFrom::After(self.after)).await?);
        Ok(())
    }

    /// What was told and not heard when the turn came to rest.
    async fn tell_the_rest(
        &mut self,
        turn: TurnId,
        is_stopping: &mut bool,
        interrupts: &mut impl Interrupts,
        audience: &mut impl Audience,
    ) -> Result<Heard, EngineError> {
        while self.watch.is_some() {
            match tokio::task::unconstrained(next(&mut self.watch)).now_or_never() {
                Some(Some(frame)) => match self.hear(&frame, turn, is_stopping, interrupts, audience).await? {
                    Heard::All => {}
                    not_all @ (Heard::NotAll | Heard::Elsewhere) => return Ok(not_all),
                },
                Some(None) => self.come_back().await?,
                None => break,
            }
        }
        Ok(Heard::All)
    }

    /// Lets a frame be heard. Whoever reads may be slow, or not read at all: that must not keep a wish to stop from being
    /// granted.
    async fn hear(
        &mut self,
        frame: &Frame,
        turn: TurnId,
        is_stopping: &mut bool,
        interrupts: &mut impl Interrupts,
        audience: &mut impl Audience,
    ) -> Result<Heard, EngineError> {
        self.after = frame.seq.or(self.after);
        let (engine, conversation) = (self.engine.clone(), self.conversation.clone());
        let mut stopped = pin!(async {
            // However it ended: there is nothing more to wait for.
            drop(engine.wait(&conversation, turn).await);
            tokio::time::sleep(LAST_WORDS).await;
        });
        let mut hearing = pin!(audience.hear(&frame.events));
        loop {
            tokio::select! {
                () = &mut hearing => return Ok(Heard::All),
                () = &mut stopped, if *is_stopping => return Ok(Heard::NotAll),
                interrupt = interrupts.next() => {
                    if *is_stopping {
                        return Ok(Heard::NotAll);
                    }
                    *is_stopping = true;
                    match self.stop(turn, interrupt).await? {
                        Stop::Asked => {}
                        Stop::Elsewhere => return Ok(Heard::Elsewhere),
                    }
                }
            }
        }
    }
}

/// What is done about a call that asks something while it holds its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Questions {
    Pass,
    StopAt,
}

fn asks(frame: &Frame) -> bool {
    frame.events.iter().any(|event| matches!(event, Event::ElicitationRequested { holds_connection: true, .. }))
}

/// Whether somebody who was told heard it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heard {
    All,
    NotAll,
    /// Not all, since the turn goes on without this process.
    Elsewhere,
}

impl Heard {
    /// Where the turn came to rest for somebody who does not hear any more.
    fn left(self) -> Option<Settled> {
        match self {
            Self::All => None,
            Self::NotAll => Some(Settled::Left),
            Self::Elsewhere => Some(Settled::Elsewhere),
        }
    }
}

async fn next(watch: &mut Option<Watch>) -> Option<Frame> {
    match watch {
        Some(watch) => watch.next().await,
        None => std::future::pending().await,
    }
}
