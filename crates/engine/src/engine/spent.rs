//! What a user's conversations cost.

use super::Engine;
use crate::spent::{Bill, Calls};
use crate::{EngineError, Page, Spending, StoreError};

/// How many conversations, and how many entries, are read from the store at once.
const PAGE: usize = 500;

impl Engine {
    /// What models were asked and what tools did from `from_ms` to before `until_ms`, in milliseconds since 1970 UTC. Reads
    /// the journals of that time; a conversation that was deleted is not in it, nor what cannot be read.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub async fn spent(&self, from_ms: u64, until_ms: u64) -> Result<Spending, EngineError> {
        let store = &*self.inner.store;
        let asks_no_model = |provider: &str| self.inner.providers.get(provider).is_ok_and(|provider| provider.asks_no_model());
        let mut bill = Bill::new(from_ms, until_ms, &asks_no_model);
        let mut after = None;
        loop {
            let page =
                store.conversations(Page { owner: &self.user, after: after.as_ref(), limit: PAGE, only_pinned: false }).await?;
            // The newest come first: what follows one that ended before has too.
            let recent = page.iter().take_while(|record| record.updated_at_ms >= from_ms);
            let mut count = 0;
            for record in recent {
                count += 1;
                let mut calls = Calls::default();
                let mut from = turnwright_core::Seq::FIRST;
                loop {
                    let entries = match store.entries(&record.id, from, PAGE).await {
                        Ok(entries) => entries,
                        // Deleted meanwhile.
                        Err(StoreError::Gone { .. }) => break,
                        Err(error) if error.is_of_what_is_stored() => {
                            tracing::warn!(conversation = %record.id, %error, "what a conversation cost from here on is not counted");
                            break;
                        }
                        Err(error) => return Err(error.into()),
                    };
                    for entry in &entries {
                        bill.add(entry, &mut calls);
                    }
                    match entries.last().filter(|_| entries.len() == PAGE) {
                        Some(last) => from = last.seq.next(),
                        None => break,
                    }
                }
            }
            match page.last().filter(|_| count == PAGE) {
                Some(last) => after = Some(last.place()),
                None => return Ok(bill.spending()),
            }
        }
    }
}
