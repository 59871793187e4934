//! The port to a search over what was said.

use std::fmt::Debug;

use async_trait::async_trait;
use turnwright_core::{AssistantBlock, ContentBlock, Control, Entry, MessageId, UserId};

use crate::{ConversationRecord, Place, StoreError};

/// What is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search<'a> {
    /// In whose conversations.
    pub owner: &'a UserId,
    /// Words, in any form: all of them in one message, or in a conversation's title or name.
    pub words: &'a str,
    /// Goes on behind this place; from the newest where `None`.
    pub after: Option<&'a Place>,
    /// At most so many.
    pub limit: usize,
}

/// A conversation that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// It.
    pub conversation: ConversationRecord,
    /// The newest message with the words, and what it says around them; `None` where the title or the name has them alone.
    pub excerpt: Option<Excerpt>,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// Which message.
    pub message: MessageId,
    /// What it says around the first of the words that is in it.
    pub text: String,
}

/// What finds conversations by what was said in them. What was hidden or deleted is not found.
#[async_trait]
pub trait Texts: Send + Sync + Debug {
    /// The conversations that have the words, in the order of their [`Place`]s. Everything that is stored when it is asked
    /// is looked through.
    ///
    /// # Errors
    /// Where the store fails.
    async fn search(&self, search: Search<'_>) -> Result<Vec<Found>, StoreError>;

    /// Takes in what was stored since, so that the next search has less to do.
    ///
    /// # Errors
    /// Where the store fails.
    async fn take_in(&self) -> Result<(), StoreError>;
}

/// The message that is shown to nobody any more from an entry on.
pub fn hides(entry: &Entry) -> Option<MessageId> {
    match entry {
        Entry::Control(Control::Hidden { message }) => Some(*message),
        Entry::Control(Control::Retried { hides, .. }) => *hides,
        _ => None,
    }
}

/// What people and models said in an entry; empty for everything else.
pub fn said(entry: &Entry) -> String {
    let mut parts: Vec<&str> = Vec::new();
    match entry {
        Entry::User(message) => parts.extend(message.content.iter().filter_map(|block| match block {
            ContentBlock::Text { text } => Some(text.as_str()),
            ContentBlock::Resource { resource } => resource.text.as_deref(),
            ContentBlock::ResourceLink { name, .. } => Some(name.as_str()),
            ContentBlock::Image { .. } | ContentBlock::Audio { .. } => None,
        })),
        Entry::Assistant(message) => parts.extend(message.blocks.iter().filter_map(|block| match block {
            AssistantBlock::Text { text, .. } | AssistantBlock::Refusal { text } => Some(text.as_str()),
            AssistantBlock::Reasoning { .. } | AssistantBlock::Call(_) | AssistantBlock::Opaque { .. } => None,
        })),
        Entry::TaskAccepted(_)
        | Entry::Sampled(_)
        | Entry::Decision(_)
        | Entry::Question(_)
        | Entry::Started(_)
        | Entry::Elicited(_)
        | Entry::Answered(_)
        | Entry::Result(_)
        | Entry::Control(_) => {}
    }
    parts.join("\n")
}
