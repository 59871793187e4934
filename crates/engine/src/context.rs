//! The port to what a model is shown besides what was said: instructions, memories, and what documents say to a question.

use std::fmt::Debug;

use async_trait::async_trait;
use turnwright_core::{Context, ContextPart, ConversationId, ModelRef, UserId};

/// For what something is gathered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextAsk {
    /// The conversation.
    pub conversation: ConversationId,
    /// Whose it is: what belongs to another is not gathered.
    pub owner: UserId,
    /// The model that is asked.
    pub model: ModelRef,
    /// What was said; may be empty, where no text was.
    pub said: String,
    /// The instructions and memories that the model is shown already, each in its newest version.
    pub standing: Vec<ContextPart>,
    /// What was found in documents that the model is shown already.
    pub found: Vec<Context>,
}

/// Something to show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gathered {
    /// What models are shown, word for word.
    pub text: String,
    /// Of what it consists.
    pub parts: Vec<ContextPart>,
    /// What people should know of how it was gathered, a sentence each.
    pub notices: Vec<String>,
}

impl Gathered {
    /// Whether there is nothing to show and nothing to tell.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.notices.is_empty()
    }
}

/// What gathers. It does not fail: what it could not do it says in [`Gathered::notices`].
#[async_trait]
pub trait ContextSource: Send + Sync + Debug {
    /// What to show besides one message, in the order in which it is to be shown; each is stored on its own. What it changes
    /// stays right where nobody waits for it any more.
    async fn gather(&self, ask: ContextAsk) -> Vec<Gathered>;
}
