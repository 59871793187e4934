//! The conversation that a chat talks in.

use turnwright_core::{ContentBlock, ConversationId, Seq, TurnId};
use turnwright_engine::{Engine, EngineError, KeptBy, NewConversation, NewMessage, OnWaiting, SettingsOverlay, TurnState};

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

/// The conversation that a chat talks in. It is created with its first message, or by [`Session::begin`].
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
    /// As [`Engine::send`]; [`EngineError::OtherFolder`] where it would move an open turn to another folder.
    pub async fn say(&mut self, content: Vec<ContentBlock>) -> Result<(ConversationId, Told), EngineError> {
        let id = self.begin().await?;
        self.engine.stays_in_its_folder(&id).await?;
        let after = self.engine.journal(&id).await?.last_seq();
        let message = NewMessage {
            content,
            overlay: self.overlay.clone(),
            on_waiting: OnWaiting::Hold,
            kept_by: KeptBy::Chat,
            ..NewMessage::text(String::new())
        };
        let sent = self.engine.send(&id, message).await?;
        Ok((id, Told { turn: sent.turn_id, after }))
    }

    /// Takes its last turn up again with what was chosen since: one that did not end well, or one that is open, which is
    /// stopped first where it would not go on with that, or not in this folder.
    ///
    /// # Errors
    /// As [`Engine::retry`]; [`EngineError::NotFound`] where nothing was said yet; [`EngineError::OtherSettings`] and
    /// [`EngineError::OtherFolder`] where the open turn was told to stop and cannot before a person has said what became of a call.
    pub async fn retry(&self) -> Result<(ConversationId, Told), EngineError> {
        let Some(id) = self.id.clone().filter(|_| self.is_there) else {
            return Err(EngineError::NotFound { what: "conversation to go on with".to_owned() });
        };
        match self.take_up().await {
            Ok(Some(open)) => return Ok(open),
            Ok(None) => {}
            Err(other @ (EngineError::OtherSettings { .. } | EngineError::OtherFolder { .. })) => {
                let turn = self.engine.cancel(&id, None).await?;
                match self.engine.wait(&id, turn).await? {
                    TurnState::Ended(_) => {}
                    TurnState::Parked => return Err(other),
                }
            }
            Err(error) => return Err(error),
        }
        let after = self.engine.journal(&id).await?.last_seq();
        let turn = self.engine.retry(&id, self.overlay.clone()).await?;
        Ok((id, Told { turn, after }))
    }

    /// Takes its open turn up, whoever held it; `None` where none is open.
    ///
    /// # Errors
    /// As [`Engine::open_turn`] and [`Engine::resume`]; [`EngineError::OtherFolder`] where it would move to another folder.
    pub async fn take_up(&self) -> Result<Option<(ConversationId, Told)>, EngineError> {
        let Some(id) = self.id.clone().filter(|_| self.is_there) else { return Ok(None) };
        let Some(turn) = self.engine.open_turn(&id, &self.overlay).await? else { return Ok(None) };
        self.engine.stays_in_its_folder(&id).await?;
        self.engine.resume(&id).await?;
        Ok(Some((id, Told::from_its_beginning(turn))))
    }

    /// Its name, with which it is stored from here on.
    ///
    /// # Errors
    /// As [`Engine::create`].
    pub async fn begin(&mut self) -> Result<ConversationId, EngineError> {
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
