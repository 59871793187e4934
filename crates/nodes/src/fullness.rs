//! Whether the queue of turns takes more.
//!
//! Who offers a turn is told. This is for those who watch over a node that offers none at the moment: the stream is asked every
//! few seconds how much is in it. Where too few servers of a NATS cluster are left nothing can be offered, though the connection to
//! one of them is up: it does not say then, or it says that the others are gone.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::Context;
use async_nats::jetstream::stream::{ClusterInfo, Info, PeerInfo};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use turnwright_engine::nodes::{NotOffered, Trouble};

use crate::connection::is_up;

/// How often the stream is asked.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// A server that the stream's leader has not heard of for so long is gone; they tell each other every second.
const GONE_AFTER: Duration = Duration::from_secs(5);

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
            Ok(Ok(stream)) => trouble(stream.cached_info(), self.most),
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

/// What is wrong with a stream that says this of itself.
fn trouble(info: &Info, most: u64) -> Option<Trouble> {
    if info.cluster.as_ref().is_some_and(has_no_majority) {
        return Some(Trouble::Silent);
    }
    (info.state.messages >= most).then_some(Trouble::Full { most })
}

/// Whether too few of the servers that keep a stream are there: those that are left still tell of it then, but take nothing.
fn has_no_majority(cluster: &ClusterInfo) -> bool {
    let is_gone = |peer: &&PeerInfo| peer.offline || peer.active > GONE_AFTER;
    let gone = cluster.replicas.iter().filter(is_gone).count();
    // The leader is not among the others.
    cluster.leader.is_none() || gone > cluster.replicas.len() / 2
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use async_nats::jetstream::stream::{ClusterInfo, PeerInfo};

    use super::{GONE_AFTER, has_no_majority};

    #[test]
    fn a_stream_without_a_leader_or_with_too_few_others_takes_nothing() {
        let (heard, gone) = (Duration::from_millis(900), GONE_AFTER + Duration::from_millis(1));
        let others = |active: &[Duration]| {
            let peer = |active: &Duration| PeerInfo { active: *active, ..PeerInfo::default() };
            ClusterInfo { leader: Some("a".to_owned()), replicas: active.iter().map(peer).collect(), ..ClusterInfo::default() }
        };
        for enough in [&[][..], &[heard, heard], &[heard, gone], &[Duration::ZERO, gone], &[heard, heard, gone, gone]] {
            assert!(!has_no_majority(&others(enough)), "{enough:?}");
        }
        for too_few in [&[gone][..], &[gone, gone], &[heard, gone, gone, gone]] {
            assert!(has_no_majority(&others(too_few)), "{too_few:?}");
        }
        assert!(has_no_majority(&ClusterInfo { leader: None, ..others(&[heard, heard]) }));
    }
}
