//! What a client has once it was told a response: where it says all of that again it goes on in that conversation.

use std::sync::Arc;

use serde_json::Value;
use turnwright_core::{ConversationId, TurnId};

use crate::openai::history::{Said, mark};
use crate::openai::items::items;
use crate::openai::known::{Fingerprint, KnownHistories};

/// What the client said, and where what it is told is remembered.
#[derive(Debug)]
pub(crate) struct Remembered {
    /// All that it said.
    pub(crate) history: Fingerprint,
    pub(crate) known: Arc<KnownHistories>,
}

impl Remembered {
    /// It was told these items: read as they are where they come back.
    pub(super) fn told(mut self, output: Vec<Value>, conversation: &ConversationId, turn: TurnId) {
        let Ok(items) = items(&Value::Array(output)) else { return };
        if items.iter().any(|item| matches!(item.said, Said::Answer { .. })) {
            mark(&mut self.history, items.iter());
            self.known.remember(&self.history, conversation.clone(), turn);
        }
    }
}
