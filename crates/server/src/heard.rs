//! Which turns pages were told of since this process began: one whose process died in it may have been told to nobody.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use turnwright_core::{ConversationId, TurnId};

/// How many conversations are known; where there are more all are forgotten, and a page may be told an answer a second time.
const MOST: usize = 10_000;

/// The newest turn of each conversation that a page has heard, or read.
#[derive(Debug, Default)]
pub(crate) struct Heard(Mutex<HashMap<ConversationId, TurnId>>);

impl Heard {
    /// A page is told this turn.
    pub(crate) fn hear(&self, conversation: &ConversationId, turn: TurnId) {
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if heard.len() >= MOST {
            heard.clear();
        }
        heard.insert(conversation.clone(), turn);
    }

    /// Whether a page was told this turn.
    pub(crate) fn has(&self, conversation: &ConversationId, turn: TurnId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(conversation) == Some(&turn)
    }
}
