//! What pages call the messages of their people: a message that comes again under its name is the same one, and one that is said
//! otherwise is found by it.
//!
//! A name counts beside the message before it, so a page that gives all its messages one name has as many messages.

use turnwright_core::{ContentBlock, Control, ConversationId, Entry, Journal, MessageId, Seq};
use turnwright_engine::{Engine, EngineError, KnownAs, Sent};

use crate::error::ApiError;

/// How much of a name counts.
const MOST_CHARS: usize = 128;
/// How many messages are looked at, the newest first, for the one of a name.
const MOST_MESSAGES: usize = 16;

/// A message of a person's, by what its page calls it.
#[derive(Debug)]
pub(crate) struct Named<'a> {
    conversation: &'a ConversationId,
    name: String,
    /// What people said so far, the newest first, each with what was said before it; without what is hidden.
    said: Vec<(MessageId, Option<Seq>)>,
    /// What was said last, hidden or not.
    last: Option<Seq>,
}

impl<'a> Named<'a> {
    /// A message of this name, at this door; `None` where it has none, or not alone among the `names` of the page's messages.
    pub(crate) async fn of<'n>(
        engine: &Engine,
        conversation: &'a ConversationId,
        (door, name): (&str, &str),
        names: impl Iterator<Item = &'n str>,
    ) -> Result<Option<Self>, ApiError> {
        if name.is_empty() || names.filter(|other| *other == name).count() > 1 {
            return Ok(None);
        }
        let name: String = name.chars().filter(|c| !c.is_control()).take(MOST_CHARS).collect();
        let (said, last) = said_in(engine, conversation).await?;
        Ok(Some(Self { conversation, name: format!("{door} {name}"), said, last }))
    }

    /// What it is called, with its door.
    pub(crate) fn name(self) -> String {
        self.name
    }

    /// How it is kept where it is new, and nobody says anything else meanwhile.
    pub(crate) fn known(&self) -> KnownAs {
        KnownAs { key: self.key_after(self.last), after: self.last }
    }

    fn key_after(&self, before: Option<Seq>) -> String {
        format!("{}/said {} after {}", self.conversation, self.name, before.map_or(0, Seq::get))
    }

    /// What was said last, where that is it.
    pub(crate) async fn newest(&self, engine: &Engine) -> Result<Option<Sent>, ApiError> {
        self.among(engine, 1).await
    }

    /// It, where it was said lately, or first of all, and is shown.
    pub(crate) async fn message(&self, engine: &Engine) -> Result<Option<MessageId>, ApiError> {
        let sent = match self.among(engine, MOST_MESSAGES).await? {
            None if self.said.len() > MOST_MESSAGES => self.said_as(engine, self.said.last()).await?,
            sent => sent,
        };
        Ok(sent.map(|sent| sent.message_id))
    }

    async fn among(&self, engine: &Engine, most: usize) -> Result<Option<Sent>, ApiError> {
        for said in self.said.iter().take(most) {
            if let Some(sent) = self.said_as(engine, Some(said)).await? {
                return Ok(Some(sent));
            }
        }
        Ok(None)
    }

    /// This message, where it has the name.
    async fn said_as(&self, engine: &Engine, said: Option<&(MessageId, Option<Seq>)>) -> Result<Option<Sent>, ApiError> {
        let Some((message, before)) = said else { return Ok(None) };
        let sent = engine.said_before(&self.key_after(*before), "").await?;
        let is_it = |(of, sent): &(ConversationId, Sent)| of == self.conversation && sent.message_id == *message;
        Ok(sent.filter(is_it).map(|(_, sent)| sent))
    }
}

/// What a message of a person's is called that is about to be said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SaidAs {
    /// With its door.
    pub(crate) name: String,
    /// What was said last when it was found to be new.
    pub(crate) after: Option<Seq>,
}

impl SaidAs {
    /// How it is kept, where nobody says anything else meanwhile; or what said it since.
    pub(crate) async fn known(
        &self,
        engine: &Engine,
        conversation: &ConversationId,
    ) -> Result<Result<KnownAs, Sent>, ApiError> {
        let (said, last) = said_in(engine, conversation).await?;
        let named = Named { conversation, name: self.name.clone(), said, last };
        let since = named.newest(engine).await?.filter(|sent| Some(sent.message_id.0) > self.after);
        Ok(since.map_or_else(|| Ok(named.known()), Err))
    }
}

/// What says which turn is the newest, and how far it is.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// What was said last.
    pub(crate) said: Option<Seq>,
    /// Where the newest turn ended, waited or was taken up last.
    moved: Option<Seq>,
}

/// How a conversation stands; the same where there is none as where nothing was said.
pub(crate) async fn standing(engine: &Engine, conversation: &ConversationId) -> Result<Standing, ApiError> {
    let look = |journal: &Journal| {
        let last = |is_it: fn(&Entry) -> bool| {
            journal.entries().iter().rev().find(|stored| is_it(&stored.entry)).map(|stored| stored.seq)
        };
        let said = last(|entry| matches!(entry, Entry::User(_)));
        let is_move = |entry: &Entry| {
            matches!(entry, Entry::Control(Control::Ended { .. } | Control::Retried { .. } | Control::Suspended))
        };
        Standing { said, moved: last(is_move) }
    };
    match engine.look(conversation, look).await {
        Err(EngineError::NotFound { .. }) => Ok(Standing::default()),
        standing => Ok(standing?),
    }
}

async fn said_in(
    engine: &Engine,
    conversation: &ConversationId,
) -> Result<(Vec<(MessageId, Option<Seq>)>, Option<Seq>), ApiError> {
    match engine.look(conversation, said).await {
        Err(EngineError::NotFound { .. }) => Ok((Vec::new(), None)),
        said => Ok(said?),
    }
}

/// Whether this was said in a message of a person's.
pub(crate) fn says(journal: &Journal, message: MessageId, content: &[ContentBlock]) -> bool {
    journal.entry(message.0).is_some_and(|stored| matches!(&*stored.entry, Entry::User(said) if said.content == content))
}

fn said(journal: &Journal) -> (Vec<(MessageId, Option<Seq>)>, Option<Seq>) {
    let (mut said, mut before) = (Vec::new(), None);
    for stored in journal.entries() {
        if let Entry::User(_) = &*stored.entry {
            let message = MessageId(stored.seq);
            if !journal.is_hidden(message) {
                said.push((message, before));
            }
            before = Some(stored.seq);
        }
    }
    said.reverse();
    (said, before)
}
