//! How far a remembered rule reaches.

use serde::{Deserialize, Serialize};

use super::RuleText;
use crate::{ConversationId, TurnId, UserId};

/// How far a remembered rule reaches. What a person decides without one holds once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// The turn of the call.
    Turn,
    /// Its conversation.
    Conversation,
    /// All conversations of its owner.
    User,
    /// All conversations.
    Everyone,
}

impl Scope {
    /// All, the narrowest first.
    pub const ALL: [Self; 4] = [Self::Turn, Self::Conversation, Self::User, Self::Everyone];

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Conversation => "conversation",
            Self::User => "user",
            Self::Everyone => "everyone",
        }
    }

    fn described(self) -> &'static str {
        match self {
            Self::Turn => "this turn",
            Self::Conversation => "this conversation",
            Self::User => "this user",
            Self::Everyone => "everyone",
        }
    }
}

impl std::fmt::Display for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.described())
    }
}

/// For whom a remembered rule holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reach {
    /// One turn.
    Turn(ConversationId, TurnId),
    /// One conversation.
    Conversation(ConversationId),
    /// The conversations of one user.
    User(UserId),
    /// All conversations.
    Everyone,
}

/// Where a call is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whose<'a> {
    /// Its conversation; `None` where it has none.
    pub conversation: Option<&'a ConversationId>,
    /// Its turn, where one is known.
    pub turn: Option<TurnId>,
    /// Whose conversation it is.
    pub owner: &'a UserId,
}

impl Reach {
    /// Whether it reaches a call that is made there.
    pub fn holds(&self, whose: Whose<'_>) -> bool {
        match self {
            Self::Turn(conversation, turn) => whose.conversation == Some(conversation) && whose.turn == Some(*turn),
            Self::Conversation(conversation) => whose.conversation == Some(conversation),
            Self::User(user) => whose.owner == user,
            Self::Everyone => true,
        }
    }

    /// How far that is.
    pub fn scope(&self) -> Scope {
        match self {
            Self::Turn(..) => Scope::Turn,
            Self::Conversation(_) => Scope::Conversation,
            Self::User(_) => Scope::User,
            Self::Everyone => Scope::Everyone,
        }
    }

    /// The conversation that it belongs to, and with which it goes.
    pub fn conversation(&self) -> Option<&ConversationId> {
        match self {
            Self::Turn(conversation, _) | Self::Conversation(conversation) => Some(conversation),
            Self::User(_) | Self::Everyone => None,
        }
    }
}

/// A rule that a person had remembered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remembered {
    /// Its name, such as `rule_3f9a0c41`.
    pub id: String,
    /// For whom it holds.
    pub reach: Reach,
    /// What it says.
    pub rule: RuleText,
    /// When it was stored, in milliseconds since 1970 UTC.
    pub at_ms: u64,
}
