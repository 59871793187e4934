//! The idempotency key of a call: by it whoever carries the call out knows the same one when it comes again, and takes no other
//! for it.

use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use turnwright_core::{CallId, ConversationId, KeyForm};

use crate::live::Live;
use crate::names::hex;

/// Which call it is.
#[derive(Debug, Clone)]
pub(crate) enum Keyed {
    /// One of a turn: the same for every attempt that the same decision allowed.
    InTurn {
        /// Counts the decisions.
        attempt: u32,
        /// Of what its key was made where it started first.
        form: KeyForm,
    },
    /// One of no turn, by a text that no other call of its user has.
    Alone(String),
}

impl Keyed {
    /// The conversation that calls, where it is one.
    pub(super) fn conversation<'a>(&self, live: &'a Live) -> Option<&'a ConversationId> {
        match self {
            Self::InTurn { .. } => Some(&live.id),
            Self::Alone(_) => None,
        }
    }

    /// The key of this call of the tool with this qualified name.
    pub(super) fn key(&self, live: &Live, call: CallId, tool: &str, arguments: &Map<String, Value>) -> String {
        match self {
            Self::InTurn { attempt, form: KeyForm::OfNames } => of_names(&live.id, call, *attempt, arguments),
            Self::InTurn { attempt, form: KeyForm::OfConversation } => {
                let made = live.incarnation();
                let place = (&live.id, made.created_at_ms(), made.owner(), call, attempt);
                hash_of(&("in a turn", place, tool, arguments))
            }
            Self::Alone(which) => hash_of(&("alone", &live.owner, which, tool, arguments)),
        }
    }
}

/// As JSON: where one value ends and the next begins is no question.
fn hash_of(parts: &impl Serialize) -> String {
    hex(&Sha256::digest(serde_json::to_vec(parts).unwrap_or_default()))
}

/// See [`KeyForm::OfNames`]: as those versions made it, byte for byte.
fn of_names(conversation: &ConversationId, call: CallId, attempt: u32, arguments: &Map<String, Value>) -> String {
    let mut hasher = Sha256::new();
    hasher.update(conversation.as_str().as_bytes());
    hasher.update(call.message.get().to_le_bytes());
    hasher.update(call.index.to_le_bytes());
    hasher.update(attempt.to_le_bytes());
    hasher.update(serde_json::to_vec(arguments).unwrap_or_default());
    hex(&hasher.finalize())
}

#[cfg(test)]
mod tests {
    use turnwright_core::{Seq, UserId};

    use super::*;
    use crate::{Chosen, SettingsOverlay};

    const CALL: CallId = CallId { message: Seq::FIRST, index: 0 };

    fn live(name: &str, owner: &str, created_at_ms: u64) -> Live {
        let owner: UserId = owner.parse().unwrap();
        Live::new(name.parse().unwrap(), (owner, created_at_ms), SettingsOverlay::default(), Chosen::default())
    }

    fn all_differ(keys: &[String]) {
        let told: std::collections::BTreeSet<_> = keys.iter().collect();
        assert_eq!(told.len(), keys.len(), "{keys:?}");
    }

    #[test]
    fn a_call_of_a_turn_has_the_key_of_no_other() {
        let (first, again) = (Keyed::InTurn { attempt: 1, form: KeyForm::OfConversation }, Map::new());
        let key = |live: Live, keyed: &Keyed, tool| keyed.key(&live, CALL, tool, &again);
        let second = Keyed::InTurn { attempt: 2, form: KeyForm::OfConversation };
        all_differ(&[
            key(live("a", "local", 1), &first, "pay"),
            key(live("a", "local", 1), &first, "refund"),
            key(live("a", "local", 1), &second, "pay"),
            key(live("a", "local", 2), &first, "pay"),
            key(live("a", "other", 1), &first, "pay"),
            key(live("b", "local", 1), &first, "pay"),
        ]);
        assert_eq!(key(live("a", "local", 1), &first, "pay"), key(live("a", "local", 1), &first, "pay"));
    }

    #[test]
    fn a_call_of_no_turn_is_known_by_its_text_its_user_and_its_tool() {
        let key = |owner: &str, which: &str, tool| {
            Keyed::Alone(which.to_owned()).key(&live("any", owner, 0), CALL, tool, &Map::new())
        };
        all_differ(&[key("a", "1", "pay"), key("a", "2", "pay"), key("b", "1", "pay"), key("a", "1", "refund")]);
        assert_eq!(key("a", "1", "pay"), key("a", "1", "pay"));
    }

    #[test]
    fn a_call_that_an_older_version_started_keeps_its_key() {
        let old = Keyed::InTurn { attempt: 1, form: KeyForm::OfNames };
        let arguments = Map::from_iter([("amount".to_owned(), Value::from(5))]);
        let key = old.key(&live("pay-1", "local", 7), CALL, "bank__pay", &arguments);
        assert_eq!(key, "5d3bc134460ed87b8790f662f12f5e147762d6465a206d226f9ac0c7ddc7e39d");
    }
}
