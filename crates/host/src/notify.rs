//! Tells those who are away that a turn waits for people: a command, a webhook.
//!
//! What waits is read from the journals, by the index of open turns; so nothing is lost that was asked while nobody told.
//! Beside each conversation is kept up to which entry which channel was told: one that was told is not told again. It is kept
//! after the telling, so that a process that ends in between tells once more, under the same id. Of all processes over the same
//! data one tells ([`teller`]). A turn waits for none of this.

mod channel;
mod event;
mod round;
mod teller;
mod told;
mod webhook;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use turnwright_engine::{Documents, Engine};

use crate::{Environment, Host, HostError};
use channel::Channel;
use round::Round;
use teller::{Right, Teller};

/// How often it is looked for what waits, besides when this process begins to wait: other processes park turns too.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// See the module.
#[derive(Debug)]
pub(crate) struct Notifier {
    engine: Engine,
    documents: Arc<dyn Documents>,
    teller: Teller,
    channels: Vec<Channel>,
    /// Where people find the page.
    base: String,
    /// Whether what was said is told too.
    has_content: bool,
    after: Duration,
}

impl Notifier {
    /// What the configuration asks for; `None` where it names nobody.
    pub(crate) async fn new(host: &Host, environment: &Environment, base: &str) -> Result<Option<Self>, HostError> {
        let notify = &host.config().notify;
        let channels = channel::channels(host.loaded(), environment, host.command_mark()).await?;
        if channels.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self {
            engine: host.engine().clone(),
            documents: host.documents().clone(),
            teller: Teller::new(host.store.clone()),
            channels,
            base: base.trim_end_matches('/').to_owned(),
            has_content: notify.content,
            after: notify.after(),
        }))
    }

    /// Tells for as long as it is let, whenever it is this process that tells.
    pub(crate) async fn keep_telling(&self) {
        loop {
            match self.teller.take().await {
                Ok(Some(right)) => self.tell_by(right).await,
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(%error, "it is not known who tells of turns that wait");
                }
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Tells for as long as this process has the right to. No way to tell people waits for another.
    async fn tell_by(&self, right: Right) {
        join_all(self.channels.iter().map(|channel| self.tell_through(channel, right))).await;
    }

    /// No telling waits for another either, but for an earlier one of its conversation, as long as the channel takes more at once.
    async fn tell_through(&self, channel: &Channel, right: Right) {
        let mut begins = self.engine.begins_to_wait();
        let mut round = Round::default();
        let mut under_way = FuturesUnordered::new();
        while self.teller.holds(right) {
            begins.mark_unchanged();
            let looked = self.look(&mut round, channel).await;
            if let Err(error) = &looked {
                tracing::warn!(%error, "cannot look for turns that wait for people");
            }
            let mut look_again = pin!(tokio::time::sleep(LOOK_EVERY));
            while self.teller.holds(right) {
                let (due, next) = match looked {
                    Ok(()) => self.begin(&mut round, channel),
                    Err(_) => (Vec::new(), LOOK_EVERY),
                };
                under_way.extend(due.into_iter().map(|due| self.tell_one(due, channel, right)));
                tokio::select! {
                    Some(told) = under_way.next() => self.end(&mut round, channel, told),
                    // The sender lives as long as the engine, which is here.
                    _ = begins.changed() => break,
                    () = tokio::time::sleep(next) => break,
                    () = &mut look_again => break,
                }
            }
        }
        // What was begun under this right is kept, so that whoever has it next does not tell it again.
        while under_way.next().await.is_some() {}
    }
}
