//! Tells those who are away that a turn waits for people: a command, a webhook.
//!
//! What waits is read from the journals, by the index of open turns; so nothing is lost that was asked while nobody told.
//! Beside each conversation is kept up to which entry which channel was told: one that was told is not told again. It is kept
//! after the telling, so that a process that ends in between tells once more, under the same id. Of all processes over the same
//! data one tells: the one that holds the lock file. A turn waits for none of this.

mod channel;
mod event;
mod round;
mod told;
mod webhook;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use turnwright_engine::{Documents, Engine};

use crate::{Environment, Host, HostError};
use channel::Channel;
use round::Round;

/// How often it is looked for what waits, besides when this process begins to wait: other processes park turns too.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// See the module.
#[derive(Debug)]
pub(crate) struct Notifier {
    engine: Engine,
    documents: Arc<dyn Documents>,
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
        let channels = channel::channels(host.loaded(), environment).await?;
        if channels.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self {
            engine: host.engine().clone(),
            documents: host.documents().clone(),
            channels,
            base: base.trim_end_matches('/').to_owned(),
            has_content: notify.content,
            after: notify.after(),
        }))
    }

    /// Tells for as long as it is let, once the lock is free.
    pub(crate) async fn keep_telling(&self, lock: &Path) {
        let mut begins = self.engine.begins_to_wait();
        // Held as long as this runs; the system lets go of it where the process dies.
        let _held = loop {
            match locked(lock) {
                Ok(Some(held)) => break held,
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(lock = %lock.display(), %error, "nobody is told of turns that wait: the lock file cannot be used");
                }
            }
            tokio::time::sleep(LOOK_EVERY).await;
        };
        let mut round = Round::default();
        loop {
            begins.mark_unchanged();
            let next = self.tell(&mut round).await.min(LOOK_EVERY);
            tokio::select! {
                // The sender lives as long as the engine, which is here.
                _ = begins.changed() => {}
                () = tokio::time::sleep(next) => {}
            }
        }
    }
}

/// The lock, where nobody else holds it.
fn locked(path: &Path) -> std::io::Result<Option<Flock<std::fs::File>>> {
    let file = std::fs::OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(held) => Ok(Some(held)),
        Err((_, nix::errno::Errno::EWOULDBLOCK)) => Ok(None),
        Err((_, error)) => Err(error.into()),
    }
}
