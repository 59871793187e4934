//! The sessions that the client has open: each is told what happens in its conversation, once, whoever brings it about.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{SessionId, SessionNotification};
use agent_client_protocol::{Client, Error};
use tokio::sync::watch;
use turnwright_core::{ConversationId, Entry, MessageId, Seq};
use turnwright_engine::{Engine, Event, Frame, Watch, WatchFrom};

use super::prompting::failed;
use super::updates::Updates;

/// That all is told which ever will be.
const ALL: u64 = u64::MAX;

/// The open sessions, by their ids.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    open: Mutex<HashMap<SessionId, Arc<Open>>>,
}

/// A session that is told what happens until it is closed.
#[derive(Debug)]
pub(super) struct Open {
    /// The place of the last entry of which all is told.
    told: watch::Sender<u64>,
    own: watch::Sender<Own>,
    is_closed: watch::Sender<bool>,
    /// Held by the prompt that asks the client.
    pub(super) asking: tokio::sync::Mutex<()>,
}

/// What the client said itself and need not be told.
#[derive(Debug, Default)]
struct Own {
    /// Messages that are being stored.
    sending: usize,
    messages: BTreeSet<MessageId>,
}

/// Where a session's conversation is, and to whom it is told.
#[derive(Debug, Clone)]
pub(super) struct Telling {
    pub(super) engine: Engine,
    pub(super) conversation: ConversationId,
    pub(super) session: SessionId,
    pub(super) client: ConnectionTo<Client>,
}

impl Sessions {
    /// Tells a session what `watch` shows from here on, in the place of what told it before.
    ///
    /// # Errors
    /// Where the connection ends.
    pub(super) fn open(&self, telling: Telling, watch: Watch, updates: Updates, told: Option<Seq>) -> Result<Arc<Open>, Error> {
        let open = Arc::new(Open {
            told: watch::Sender::new(told.map_or(0, Seq::get)),
            own: watch::Sender::default(),
            is_closed: watch::Sender::new(false),
            asking: tokio::sync::Mutex::default(),
        });
        let before = self.lock().insert(telling.session.clone(), open.clone());
        if let Some(before) = before {
            before.is_closed.send_replace(true);
        }
        let client = telling.client.clone();
        let task = open.clone();
        client.spawn(async move {
            if let Err(error) = task.tell(&telling, watch, updates).await {
                tracing::debug!(%error, session = %telling.session, "a session is told no more");
            }
            // Nobody waits for more.
            task.told.send_replace(ALL);
            Ok(())
        })?;
        Ok(open)
    }

    /// The session, where it is open.
    pub(super) fn get(&self, session: &SessionId) -> Option<Arc<Open>> {
        self.lock().get(session).cloned()
    }

    /// Tells a session no more.
    pub(super) fn close(&self, session: &SessionId) {
        if let Some(open) = self.lock().remove(session) {
            open.is_closed.send_replace(true);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, Arc<Open>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Stores a message of the client's by `storing`, which is not told to it.
    ///
    /// # Errors
    /// Those of `storing`.
    pub(super) async fn sending<T, E>(
        &self,
        storing: impl Future<Output = Result<T, E>>,
        id: impl Fn(&T) -> MessageId,
    ) -> Result<T, E> {
        self.own.send_modify(|own| own.sending = own.sending.saturating_add(1));
        let sent = storing.await;
        self.own.send_modify(|own| {
            own.sending = own.sending.saturating_sub(1);
            own.messages.extend(sent.as_ref().ok().map(&id));
        });
        sent
    }

    /// Waits until all is told up to an entry.
    pub(super) async fn has_told(&self, seq: Option<Seq>) {
        let place = seq.map_or(0, Seq::get);
        // The sender is here.
        drop(self.told.subscribe().wait_for(|told| *told >= place).await);
    }

    /// Whether the client said a message itself; what it is just saying is waited for.
    async fn is_own(&self, message: MessageId) -> bool {
        let mut own = self.own.subscribe();
        own.wait_for(|own| own.sending == 0 || own.messages.contains(&message))
            .await
            .is_ok_and(|own| own.messages.contains(&message))
    }

    async fn tell(&self, telling: &Telling, mut watch: Watch, mut updates: Updates) -> Result<(), Error> {
        let mut is_closed = self.is_closed.subscribe();
        let mut last = Seq::new(*self.told.borrow());
        loop {
            let next = async {
                if let Some(frame) = watch.next().await {
                    return Ok(Some(frame));
                }
                // It was too slow, or the process ends.
                let from = WatchFrom::After(last);
                watch = telling.engine.watch(&telling.conversation, from).await.map_err(|error| failed(&error))?;
                Ok::<_, Error>(watch.next().await)
            };
            let frame = tokio::select! {
                biased;
                _ = is_closed.wait_for(|is_closed| *is_closed) => return Ok(()),
                frame = next => frame?,
            };
            let Some(frame) = frame else { return Ok(()) };
            self.frame(telling, &frame, &mut updates).await?;
            last = frame.seq.or(last);
            self.told.send_replace(last.map_or(0, Seq::get));
        }
    }

    async fn frame(&self, telling: &Telling, frame: &Frame, updates: &mut Updates) -> Result<(), Error> {
        let mut told = Vec::new();
        for event in frame.events.iter() {
            let said = match event {
                Event::Entry { seq, entry, .. } if matches!(**entry, Entry::User(_)) => Some(MessageId(*seq)),
                _ => None,
            };
            if let Some(message) = said
                && self.is_own(message).await
            {
                continue;
            }
            updates.fold(event, &mut told);
        }
        for update in told {
            telling.client.send_notification(SessionNotification::new(telling.session.clone(), update))?;
        }
        Ok(())
    }
}
