//! The conversation that a chat talks in.

use turnwright_core::{ApproveMode, ContentBlock, ConversationId, Journal, Seq, TurnId};
use turnwright_engine::{Engine, EngineError, KeptBy, NewConversation, NewMessage, OnWaiting, SettingsOverlay};

/// Which conversation is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// A new one.
    New,
    /// The one with this name; a new one of this name where there is none.
    Named(ConversationId),
    /// The one that was used last.
    Latest,
}

/// A turn and where to begin to tell about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// The turn.
    pub turn: TurnId,
    /// The last entry that is known already.
    pub after: Option<Seq>,
}

/// The conversation that a chat talks in. It is created with its first message.
#[derive(Debug)]
pub struct Session {
    engine: Engine,
    id: Option<ConversationId>,
    is_there: bool,
    /// What was chosen for the turns from here on, over the conversation's own settings.
    pub overlay: SettingsOverlay,
}

impl Session {
    /// Finds the conversation.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] where there is none to go on with.
    pub async fn open(engine: &Engine, which: Which, overlay: SettingsOverlay) -> Result<Self, EngineError> {
        let (id, is_there) = match which {
            Which::New => (None, false),
            Which::Named(id) => match engine.conversation(&id).await {
                Ok(_) => (Some(id), true),
                Err(EngineError::NotFound { .. }) => (Some(id), false),
                Err(error) => return Err(error),
            },
            Which::Latest => {
                let newest = engine.conversations(None, 1).await?.pop();
                let newest = newest.ok_or_else(|| EngineError::NotFound { what: "conversation to continue".to_owned() })?;
                (Some(newest.id), true)
            }
        };
        Ok(Self { engine: engine.clone(), id, is_there, overlay })
    }

    /// What drives its turns.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Its name, once it has one.
    pub fn id(&self) -> Option<&ConversationId> {
        self.id.as_ref()
    }

    /// Whether it is stored.
    pub fn is_there(&self) -> bool {
        self.is_there
    }

    /// Says something. What was chosen for a new conversation is kept with it, but for what belongs to single turns.
    ///
    /// # Errors
    /// As [`Engine::send`].
    pub async fn say(&mut self, content: Vec<ContentBlock>) -> Result<(ConversationId, Told), EngineError> {
        let id = self.create().await?;
        let journal = self.engine.journal(&id).await?;
        let but_the_model = SettingsOverlay { model: None, ..self.overlay.clone() };
        fits_open_turn(&but_the_model, &id, &journal)?;
        let after = journal.last_seq();
        let message = NewMessage {
            content,
            overlay: self.overlay.clone(),
            on_waiting: OnWaiting::Hold,
            kept_by: KeptBy::Chat,
            create: false,
            conversation: SettingsOverlay::default(),
            idempotency: None,
        };
        let sent = self.engine.send(&id, message).await?;
        Ok((id, Told { turn: sent.turn_id, after }))
    }

    /// Takes its last turn up again that did not end well, with what was chosen since; where it is open still, as
    /// [`Session::take_up`].
    ///
    /// # Errors
    /// As [`Engine::retry`] and [`Session::take_up`]; [`EngineError::NotFound`] where nothing was said yet.
    pub async fn retry(&self) -> Result<(ConversationId, Told), EngineError> {
        let Some(id) = self.id.clone().filter(|_| self.is_there) else {
            return Err(EngineError::NotFound { what: "conversation to go on with".to_owned() });
        };
        if let Some(open) = self.take_up().await? {
            return Ok(open);
        }
        let after = self.engine.journal(&id).await?.last_seq();
        let turn = self.engine.retry(&id, self.overlay.clone()).await?;
        Ok((id, Told { turn, after }))
    }

    /// Takes its open turn up, whoever held it; `None` where none is open.
    ///
    /// # Errors
    /// As [`Engine::resume`]; [`EngineError::Invalid`] where something was chosen that the turn does not go on with.
    pub async fn take_up(&self) -> Result<Option<(ConversationId, Told)>, EngineError> {
        let Some(id) = self.id.clone().filter(|_| self.is_there) else { return Ok(None) };
        let journal = self.engine.journal(&id).await?;
        let Some(turn) = journal.open_turn().map(turnwright_core::Turn::id) else { return Ok(None) };
        fits_open_turn(&self.overlay, &id, &journal)?;
        self.engine.resume(&id).await?;
        Ok(Some((id, Told::from_its_beginning(turn))))
    }

    async fn create(&mut self) -> Result<ConversationId, EngineError> {
        if let Some(id) = self.id.clone().filter(|_| self.is_there) {
            return Ok(id);
        }
        let overlay = SettingsOverlay { approve: None, max_steps: None, ..self.overlay.clone() };
        let id = match self
            .engine
            .create(NewConversation { id: self.id.clone(), title: None, overlay, ..NewConversation::default() })
            .await
        {
            Ok(conversation) => conversation.id,
            // Somebody created it a moment ago.
            Err(EngineError::Exists { id }) => id,
            Err(error) => return Err(error),
        };
        self.id = Some(id.clone());
        self.is_there = true;
        Ok(id)
    }
}

impl Told {
    /// A turn with all that was told of it before.
    pub fn from_its_beginning(turn: TurnId) -> Self {
        Self { turn, after: turn.0.get().checked_sub(1).and_then(Seq::new) }
    }
}

/// An open turn keeps what it began with, but for the model of what is said in it. Whoever chose something else is told so
/// before anything runs: they may have chosen it so that a call is not carried out.
fn fits_open_turn(chosen: &SettingsOverlay, id: &ConversationId, journal: &Journal) -> Result<(), EngineError> {
    let Some(turn) = journal.open_turn() else { return Ok(()) };
    let settings = turn.settings();
    if chosen.over(settings) == *settings {
        return Ok(());
    }
    let approve = match settings.approve {
        ApproveMode::Ask => "ask",
        ApproveMode::All => "all",
        ApproveMode::None => "none",
        ApproveMode::ReadOnly => "read-only",
    };
    let what = format!(
        "{} is open and goes on with {}, approve {approve}, max steps {}, and the prompt and tools that it began with; \
         say something in it with another --model, take it up without other choices, or stop it with \
         `turnwright conversations stop {id}`, in a chat with /stop",
        turn.id(),
        settings.model,
        settings.max_steps,
    );
    Err(EngineError::Invalid { what })
}
