//! Rows of lists that cannot be read: each is left out, so that it hides no other, and told of once.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use turnwright_engine::{ConversationRecord, SettingsOverlay, StoreError};

/// How many are told of while a store is open: lists are asked for all the time.
const MOST_TOLD: usize = 1_000;

/// Those that were told of, by what was said.
#[derive(Debug, Default)]
pub(crate) struct Skipped(Mutex<HashSet<String>>);

impl Skipped {
    /// What was read; nothing where what is stored cannot be.
    pub(crate) fn readable<T>(&self, read: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(error) if error.is_of_what_is_stored() => {
                let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                if told.len() < MOST_TOLD && told.insert(error.to_string()) {
                    tracing::error!(%error, "left out of what is listed; `turnwright db check` says all that is damaged");
                }
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// A conversation as lists show it, which is with its settings.
pub(crate) fn listed(record: ConversationRecord) -> Result<ConversationRecord, StoreError> {
    SettingsOverlay::stored(&record.id, &record.settings).map(|_| record)
}
