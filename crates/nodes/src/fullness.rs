//! Whether the queue of turns takes more.
//!
//! Who offers a turn is told. This is for those who watch over a node that offers none at the moment: the stream is asked every
//! few seconds how much is in it. Where too few servers of a NATS cluster are left it does not say, though the connection to one
//! of them is up.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::Context;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use turnwright_engine::nodes::{NotOffered, Trouble};

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
    /// What the last look, or the last offer that was not taken since, found wrong.
    wrong: Mutex<Option<Trouble>>,
}

impl Fullness {
    pub(crate) fn new(client: Client, context: Context, stream: String, most: u64) -> Arc<Self> {
        Arc::new(Self { client, context, stream, most, wrong: Mutex::new(None) })
    }

    /// What is wrong with the queue, as far as is known.
    pub(crate) fn wrong(&self) -> Option<Trouble> {
        *self.wrong.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn found(&self, wrong: Option<Trouble>) {
        *self.wrong.lock().unwrap_or_else(PoisonError::into_inner) = wrong;
    }

    /// An offer was not taken.
    pub(crate) fn refused(&self, why: &NotOffered) {
        match why {
            NotOffered::Full { most } => self.found(Some(Trouble::Full { most: *most })),
            NotOffered::Unreachable { .. } => self.found(Some(Trouble::Silent)),
            NotOffered::Alone => {}
        }
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
        let wrong = match tokio::time::timeout(LOOK_EVERY, self.context.get_stream(&self.stream)).await {
            Ok(Ok(stream)) => (stream.cached_info().state.messages >= self.most).then_some(Trouble::Full { most: self.most }),
            Ok(Err(error)) => {
                tracing::debug!(%error, "the queue of turns does not say how full it is");
                Some(Trouble::Silent)
            }
            Err(_late) => {
                tracing::debug!("the queue of turns does not say how full it is in time");
                Some(Trouble::Silent)
            }
        };
        self.found(wrong);
    }
}
