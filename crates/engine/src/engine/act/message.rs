//! A message that is sent, and what is kept of it under its idempotency key.

use serde::{Deserialize, Serialize};
use turnwright_core::{ContentBlock, ConversationId, MessageId, Seq, TurnId};

use super::{Answers, ClientResult};
use crate::{Engine, EngineError, Idempotent, KeptBy, SettingsOverlay, SideRecord, StoreError};

/// A message to send.
#[derive(Debug, Clone, PartialEq)]
pub struct NewMessage {
    /// What is said; at least one block.
    pub content: Vec<ContentBlock>,
    /// Settings for the turn that it opens, over the conversation's.
    pub overlay: SettingsOverlay,
    /// What happens where the conversation waits for a person's decision.
    pub on_waiting: OnWaiting,
    /// What the person answers with it: stored after it, all of it or nothing.
    pub answers: Answers,
    /// What tools gave that whoever asks runs itself, stored before it, in one append. [`EngineError::NotFound`] where a call does not
    /// wait for that, or was given something else.
    pub given: Vec<ClientResult>,
    /// What its settings change in a turn that it joins.
    pub joins: Joins,
    /// What people said last, hidden or not, when it was written, where it answers that alone: [`EngineError::SaidMeanwhile`] where that
    /// is another message now.
    pub only_after: Option<Seq>,
    /// What takes the turn up again if this process ends.
    pub kept_by: KeptBy,
    /// Whether a conversation that is not there is created.
    pub create: bool,
    /// The settings of the conversation, where it is created.
    pub conversation: SettingsOverlay,
    /// The message that it stands for: that one and all that came after it are hidden with it. [`EngineError::NotFound`] where
    /// it is no message of a person's that is shown, [`EngineError::TurnOpen`] while a turn is open.
    pub replaces: Option<MessageId>,
    /// Which settings hold beneath the overlay in a turn that it opens.
    pub beneath: Beneath,
    /// A key that makes a repetition harmless, and a hash of the request.
    pub idempotency: Option<(String, String)>,
    /// Another key, under which it is found too: what the page of the person calls it.
    pub known_as: Option<KnownAs>,
    /// A text that is kept beside the conversation together with it, [by the name](beside_message) that this begins.
    pub beside: Option<(&'static str, String)>,
    /// Whether nobody who hears the answer can be asked: a turn that it opens denies what mode `ask` would ask about.
    pub denies_questions: bool,
}

/// What the page of a person calls a message, beside what was said before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownAs {
    /// The key under which [`Engine::said_before`] finds it, with an empty hash.
    pub key: String,
    /// What people said last, hidden or not, as the key has it: [`EngineError::SaidMeanwhile`] where that is another message now.
    pub after: Option<Seq>,
}

impl NewMessage {
    /// A text, with nothing else chosen.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![ContentBlock::text(text)],
            overlay: SettingsOverlay::default(),
            on_waiting: OnWaiting::Hold,
            answers: Answers::default(),
            given: Vec::new(),
            joins: Joins::AsItIs,
            only_after: None,
            kept_by: KeptBy::Servers,
            create: false,
            conversation: SettingsOverlay::default(),
            replaces: None,
            beneath: Beneath::Conversation,
            idempotency: None,
            known_as: None,
            beside: None,
            denies_questions: false,
        }
    }
}

/// The name of what is kept beside a conversation together with the message at this place ([`NewMessage::beside`],
/// [`Engine::kept_beside`]).
pub fn beside_message(name: &str, message: Seq) -> String {
    format!("{name}/{message}")
}

/// What the settings of a message that joins a turn change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Joins {
    /// Who answers. [`EngineError::OtherSettings`] where more is chosen.
    #[default]
    AsItIs,
    /// All that may change, as [`Engine::give_results_once`] says: whoever asks says all with each request.
    Anew,
}

/// The settings of a message where it chooses none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Beneath {
    /// Those of its conversation, over the installation's.
    #[default]
    Conversation,
    /// Those of the message that it replaces: it is said again.
    Replaced,
}

/// What a message does to a parked turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnWaiting {
    /// It is held until a person has decided.
    #[default]
    Hold,
    /// It declines what waits.
    Deny,
}

/// A stored message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// The message.
    pub message_id: MessageId,
    /// The turn that it opened or joined.
    pub turn_id: TurnId,
    /// What became of it.
    pub state: SentState,
}

/// What is kept under the idempotency key of what was said, or given.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Kept {
    /// Where; not in what older versions stored.
    #[serde(default, rename = "conversation_id", skip_serializing_if = "Option::is_none")]
    pub(super) conversation: Option<ConversationId>,
    /// What became of the message; nothing, where decisions, answers or results alone were given.
    #[serde(flatten)]
    pub(super) sent: Option<Sent>,
    /// The place of the summary that was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) summary: Option<Seq>,
}

impl Kept {
    /// The record of it.
    pub(super) fn record(self, key: &str, fingerprint: &str) -> Result<SideRecord, EngineError> {
        let answer = serde_json::to_string(&self).map_err(|error| EngineError::Invalid { what: error.to_string() })?;
        let record = Idempotent { fingerprint: fingerprint.to_owned(), answer };
        Ok(SideRecord::Idempotent { key: key.to_owned(), record })
    }
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SentState {
    /// It opened a turn.
    Started,
    /// The open turn answers it at its next step.
    Joined,
    /// The open turn is parked; it answers once a person has decided.
    Held,
}

/// The record of a summary that is stored at this place.
pub(in crate::engine) fn kept_summary(
    conversation: &ConversationId,
    seq: Seq,
    (key, fingerprint): &(String, String),
) -> Result<SideRecord, EngineError> {
    Kept { conversation: Some(conversation.clone()), sent: None, summary: Some(seq) }.record(key, fingerprint)
}

impl SentState {
    /// The turn's status in the words of the HTTP API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Started | Self::Joined => "running",
            Self::Held => "suspended",
        }
    }
}

impl Engine {
    /// What became of the message that was sent with this idempotency key (the key, and a hash of what was asked), and where: for
    /// those who choose the conversation by what is said. Nothing for one that was stored by a version that did not keep where.
    ///
    /// # Errors
    /// [`EngineError::KeyReused`]; [`EngineError::Store`].
    pub async fn said_before(&self, key: &str, fingerprint: &str) -> Result<Option<(ConversationId, Sent)>, EngineError> {
        let kept = self.kept(&self.own_key(key), fingerprint).await?;
        Ok(kept.and_then(|kept| Some((kept.conversation?, kept.sent?))))
    }

    /// The record of decisions, answers or results that are given with this idempotency key; nothing where there is no key, or
    /// they were given with it before.
    pub(super) async fn to_keep(
        &self,
        conversation: &ConversationId,
        idempotency: Option<(String, String)>,
    ) -> Result<Option<SideRecord>, EngineError> {
        let Some((key, fingerprint)) = idempotency else { return Ok(None) };
        let key = self.own_key(&key);
        if self.kept(&key, &fingerprint).await?.is_some() {
            return Ok(None);
        }
        let kept = Kept { conversation: Some(conversation.clone()), sent: None, summary: None };
        kept.record(&key, &fingerprint).map(Some)
    }

    /// Where another request was stored with this key a moment ago, that is what is told.
    pub(super) async fn or_reused<T>(
        &self,
        done: Result<T, EngineError>,
        idempotency: Option<(String, String)>,
    ) -> Result<T, EngineError> {
        if let (Err(EngineError::Store(StoreError::Repeated { .. })), Some((key, fingerprint))) = (&done, &idempotency) {
            self.kept(&self.own_key(key), fingerprint).await?;
        }
        done
    }

    /// What was stored under this key, which is as it is stored.
    pub(super) async fn sent_before(&self, idempotency: Option<&(String, String)>) -> Result<Option<Sent>, EngineError> {
        let Some((key, fingerprint)) = idempotency else { return Ok(None) };
        Ok(self.kept(key, fingerprint).await?.and_then(|kept| kept.sent))
    }

    /// The place of the summary that was made with this idempotency key, in this conversation.
    pub(in crate::engine) async fn compacted_before(
        &self,
        conversation: &ConversationId,
        idempotency: Option<&(String, String)>,
    ) -> Result<Option<Seq>, EngineError> {
        let Some((key, fingerprint)) = idempotency else { return Ok(None) };
        let kept = self.kept(key, fingerprint).await?.filter(|kept| kept.conversation.as_ref() == Some(conversation));
        Ok(kept.and_then(|kept| kept.summary))
    }

    async fn kept(&self, key: &str, fingerprint: &str) -> Result<Option<Kept>, EngineError> {
        let Some(record) = self.inner.store.idempotent(key).await? else { return Ok(None) };
        if record.fingerprint != fingerprint {
            let key = key.split_once('\t').map_or(key, |(_, key)| key).to_owned();
            return Err(EngineError::KeyReused { key });
        }
        let kept = serde_json::from_str(&record.answer);
        kept.map(Some).map_err(|error| {
            EngineError::Store(StoreError::Damaged { what: format!("idempotency key `{key}`"), reason: error.to_string() })
        })
    }
}
