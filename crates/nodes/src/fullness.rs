//! Whether the queue of turns takes more.
//!
//! Who offers a turn is told. This is for those who watch over a node that offers none at the moment: the stream is asked every
//! few seconds how much is in it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::Context;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::connection::is_up;

/// How often the stream is asked.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// See the module.
#[derive(Debug)]
pub(crate) struct Fullness {
    client: Client,
    context: Context,
    stream: String,
    most: u64,
    is_full: AtomicBool,
}

impl Fullness {
    pub(crate) fn new(client: Client, context: Context, stream: String, most: u64) -> Arc<Self> {
        Arc::new(Self { client, context, stream, most, is_full: AtomicBool::new(false) })
    }

    /// The limit, where as many turns are offered as there may be.
    pub(crate) fn reached(&self) -> Option<u64> {
        self.is_full.load(Ordering::Relaxed).then_some(self.most)
    }

    /// An offer was refused.
    pub(crate) fn refused(&self) {
        self.is_full.store(true, Ordering::Relaxed);
    }

    /// Asks the stream again and again, until `ending`.
    pub(crate) async fn keep_looking(self: Arc<Self>, ending: CancellationToken) {
        let mut every = tokio::time::interval(LOOK_EVERY);
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let looking = async {
            loop {
                every.tick().await;
                if is_up(&self.client) {
                    self.look().await;
                }
            }
        };
        ending.run_until_cancelled(looking).await;
    }

    async fn look(&self) {
        match tokio::time::timeout(LOOK_EVERY, self.context.get_stream(&self.stream)).await {
            Ok(Ok(stream)) => self.is_full.store(stream.cached_info().state.messages >= self.most, Ordering::Relaxed),
            Ok(Err(error)) => tracing::debug!(%error, "the queue of turns does not say how full it is"),
            Err(_late) => tracing::debug!("the queue of turns does not say how full it is in time"),
        }
    }
}
