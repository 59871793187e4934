//! Takes turns from the queue that all nodes share, and holds each until it wants no driver any more.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::MissedTickBehavior;
use turnwright_core::ConversationId;

use super::{Offered, PROGRESS_EVERY};
use crate::inner::Inner;
use crate::live::Live;
use crate::telemetry::spans::turn_context;
use crate::{EngineError, StoreError};

/// How often it is looked whether there is room for another turn here, while there is none.
const ROOM_EVERY: Duration = Duration::from_millis(50);
/// When a turn that another process seems to drive is looked at again: where that one is dead, so much later than its lease
/// runs out it is taken over.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(250);
/// When a turn that could not be driven here is offered again.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// What becomes of an offer.
enum Outcome {
    /// The turn wants no driver any more.
    Done,
    /// It may be looked at again.
    Again(Duration),
    /// This process ends, and let go of it.
    LetGo,
}

/// Takes turns until the engine is drained.
pub(crate) async fn run(inner: Arc<Inner>) {
    loop {
        let next = async {
            while inner.running.is_full() {
                tokio::time::sleep(ROOM_EVERY).await;
            }
            inner.nodes().next().await
        };
        let offered = tokio::select! {
            () = inner.draining.cancelled() => break,
            () = inner.shutdown.cancelled() => break,
            offered = next => offered,
        };
        inner.tasks.spawn(hold(inner.clone(), offered));
    }
    inner.nodes().drain().await;
}

/// Takes what other nodes hand to this one until the engine is drained. What is handed is driven also where this node has no room
/// for more: what the conversation's calls left is nowhere else.
pub(crate) async fn run_handed(inner: Arc<Inner>) {
    loop {
        let offered = tokio::select! {
            () = inner.draining.cancelled() => return,
            () = inner.shutdown.cancelled() => return,
            offered = inner.nodes().handed() => offered,
        };
        inner.tasks.spawn(hold(inner.clone(), offered));
    }
}

async fn hold(inner: Arc<Inner>, offered: Box<dyn Offered>) {
    let conversation = offered.offer().conversation.clone();
    if !inner.cluster.hold(&conversation) {
        // It was thought to be lost, and is held here.
        offered.give_back(LOOK_AGAIN_AFTER).await;
        return;
    }
    let held = Held { inner: &inner, conversation: &conversation };
    if let Some(home) = offered.offer().elsewhere(inner.store.driver())
        && offered.hand_to(home).await
    {
        return;
    }
    let context = |live: Option<&Arc<Live>>| live.map_or_else(|| turn_context(&conversation, None), |live| live.context());
    let (outcome, live) = match load(&inner, &conversation).await {
        Ok(live) => (drive(&inner, &live, &*offered).await, Some(live)),
        Err(error) => (Err(error), None),
    };
    let outcome = outcome.unwrap_or_else(|error| match error {
        EngineError::NotFound { .. } | EngineError::Store(StoreError::Gone { .. }) => Outcome::Done,
        EngineError::ShuttingDown => Outcome::Again(Duration::ZERO),
        error => {
            let told = || tracing::warn!(%error, "a turn that was offered cannot be driven here for the moment");
            context(live.as_ref()).in_scope(told);
            Outcome::Again(TRY_AGAIN_AFTER)
        }
    });
    match outcome {
        Outcome::Again(after) => offered.give_back(after).await,
        Outcome::Done | Outcome::LetGo => offered.done().await,
    }
    drop(held);
    let Some(live) = live else { return };
    match outcome {
        Outcome::Again(_) => {}
        Outcome::LetGo => inner.hand_over(&live).await,
        Outcome::Done => {
            // What was offered while this offer was still there counted as the same.
            let looked = match inner.catch_up(&live).await {
                Ok(()) => inner.offer_where_vacant(&live).await,
                Err(error) => Err(error.into()),
            };
            if let Err(error) = looked {
                tracing::debug!(%conversation, %error, "a later turn is left to the sweep");
            }
        }
    }
}

/// However it ends, it is not held any more.
struct Held<'a> {
    inner: &'a Inner,
    conversation: &'a ConversationId,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.inner.cluster.release(self.conversation);
    }
}

async fn load(inner: &Inner, conversation: &ConversationId) -> Result<Arc<Live>, EngineError> {
    let live = inner.registry.load(conversation, &*inner.store).await?;
    inner.catch_up(&live).await?;
    Ok(live)
}

/// Drives the turn to where it wants no driver, or as far as it goes here.
async fn drive(inner: &Arc<Inner>, live: &Arc<Live>, offered: &dyn Offered) -> Result<Outcome, EngineError> {
    let is_taken = inner.ensure_driven_after(live, offered.offer().let_go.as_ref()).await?;
    if is_taken || live.lock().is_driven {
        while_driven(live, offered).await;
    }
    let wants_driver = {
        let state = live.lock();
        let is_open = state.journal.open_turn().is_some_and(|turn| !turn.is_suspended() || !turn.is_parked());
        is_open && !state.is_gone && state.broken.is_none()
    };
    if !wants_driver {
        return Ok(Outcome::Done);
    }
    if inner.draining.is_cancelled() || inner.shutdown.is_cancelled() {
        return Ok(Outcome::LetGo);
    }
    // Another process has it, or it could not go on here.
    Ok(Outcome::Again(if is_taken { TRY_AGAIN_AFTER } else { LOOK_AGAIN_AFTER }))
}

/// Says again and again that the turn is driven here, until it is not.
async fn while_driven(live: &Live, offered: &dyn Offered) {
    let mut progress = tokio::time::interval(PROGRESS_EVERY);
    progress.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let settled = live.settled.notified();
        tokio::pin!(settled);
        settled.as_mut().enable();
        if !live.lock().is_driven {
            return;
        }
        tokio::select! {
            () = settled => {}
            _ = progress.tick() => offered.progress().await,
        }
    }
}
