//! What streams, subjects and buckets are called.

use turnwright_core::{ConversationId, DriverId};

use crate::JoinError;

/// The names of one cluster.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    prefix: String,
}

impl Names {
    pub(crate) fn of(prefix: &str) -> Result<Self, JoinError> {
        let fits = (1..=32).contains(&prefix.len())
            && prefix.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        if !fits {
            let expected = "a prefix for NATS: 1 to 32 characters of A-Z a-z 0-9 _ -";
            return Err(JoinError::Invalid { value: prefix.chars().take(80).collect(), expected });
        }
        Ok(Self { prefix: prefix.to_owned() })
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The stream of turns that want a driver.
    pub(crate) fn turns(&self) -> String {
        format!("{}_turns", self.prefix)
    }

    /// All of its subjects.
    pub(crate) fn all_turns(&self) -> String {
        format!("{}.turns.*", self.prefix)
    }

    /// The subject of one conversation's turn.
    pub(crate) fn turn(&self, conversation: &ConversationId) -> String {
        format!("{}.turns.{}", self.prefix, token(conversation))
    }

    /// Where nodes tell one another what all may want to know.
    pub(crate) fn told(&self) -> String {
        format!("{}.told", self.prefix)
    }

    /// Where the node that drives a conversation tells what happens in it.
    pub(crate) fn live(&self, conversation: &ConversationId) -> String {
        format!("{}.live.{}", self.prefix, token(conversation))
    }

    /// Where turns are handed to the node whose process this is. The store makes such names: one token each.
    pub(crate) fn handed_to(&self, driver: &DriverId) -> String {
        format!("{}.to.{}", self.prefix, driver.0)
    }

    /// The bucket in which each node says that it lives.
    pub(crate) fn nodes(&self) -> String {
        format!("{}_nodes", self.prefix)
    }

    /// The bucket that says which database the prefix belongs to.
    pub(crate) fn cluster(&self) -> String {
        format!("{}_cluster", self.prefix)
    }
}

/// A conversation's name as one token of a subject: a dot would end it, and `=` is in no name.
fn token(conversation: &ConversationId) -> String {
    conversation.as_str().replace('.', "=")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_conversation_has_one_token_of_its_own() {
        let names = Names::of("tw").unwrap();
        let of = |id: &str| names.turn(&id.parse().unwrap());
        assert_eq!(of("a.b:c-d_e"), "tw.turns.a=b:c-d_e");
        assert_ne!(of("a.b"), of("a_b"));
    }

    #[test]
    fn a_prefix_is_one_token() {
        for wrong in ["", "a.b", "a b", "a*", "a>", &"a".repeat(33)] {
            assert!(matches!(Names::of(wrong), Err(JoinError::Invalid { .. })), "{wrong}");
        }
    }
}
