//! Acts on what other nodes tell.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use turnwright_core::{ConversationId, Seq};

use super::News;
use crate::StoreError;
use crate::inner::Inner;
use crate::live::Followed;

/// Hears until the engine ends.
pub(crate) async fn run(inner: Arc<Inner>) {
    let shutdown: CancellationToken = inner.shutdown.clone();
    while let Some(news) = shutdown.run_until_cancelled(inner.nodes().hear()).await {
        match news {
            News::Appended { conversation, seq } => look(&inner, &conversation, seq),
            News::Watching { conversation, anew } => {
                let relay = inner.cluster.watch(&conversation);
                match relay {
                    Some(relay) if anew => relay.notify_one(),
                    Some(_) => {}
                    None => {
                        if let Some(live) = inner.registry.peek(&conversation) {
                            inner.relay(&live);
                        }
                    }
                }
            }
            // For those who follow a conversation.
            News::Live { .. } => {}
            News::Reconnected => {
                inner.cluster.sweep_now.notify_one();
                for live in inner.registry.watched() {
                    inner.mirror(&live);
                }
            }
        }
    }
}

/// Looks at what was stored in a conversation, where anybody here wants to know.
fn look(inner: &Arc<Inner>, conversation: &ConversationId, seq: Option<Seq>) {
    if seq.is_none() {
        // It was deleted, and may be in memory where no journal of it is.
        inner.tell_gone(conversation);
    }
    let Some(live) = inner.registry.peek(conversation) else { return };
    {
        let state = live.lock();
        let is_known = seq.is_some() && state.journal.last_seq() >= seq;
        // Whoever waits for the turn, or acts, holds it beside the registry and this.
        let is_wanted = state.is_driven || state.watchers.are_there() || Arc::strong_count(&live) > 2;
        // The node that drives tells of it in its place among the rest.
        if is_known || !is_wanted || state.followed == Followed::InStep {
            return;
        }
    }
    let inner = inner.clone();
    let tasks = inner.tasks.clone();
    tasks.spawn(async move {
        match inner.catch_up(&live).await {
            Ok(()) => inner.mirror(&live),
            Err(StoreError::Gone { .. }) => {}
            Err(error) => live.context().in_scope(|| tracing::warn!(%error, "cannot see what another node stored")),
        }
    });
}
