//! What models were asked, by day and model. Pure.

use std::collections::BTreeMap;

use turnwright_core::{Control, Entry, Origin, StoredEntry, Usage};

/// Milliseconds of a day.
const DAY_MS: u64 = 86_400_000;

/// What one model was asked on one day (UTC).
#[derive(Debug, Clone, PartialEq)]
pub struct Spent {
    /// Days since 1970-01-01.
    pub day: u64,
    /// The provider's name in the configuration.
    pub provider: String,
    /// The provider's name for the model.
    pub model: String,
    /// How often it answered.
    pub model_calls: u64,
    /// What that cost, as far as the provider told.
    pub usage: Usage,
}

/// Adds up entries.
#[derive(Debug, Default)]
pub(crate) struct Bill {
    lines: BTreeMap<(u64, String, String), (u64, Usage)>,
}

impl Bill {
    /// Takes an entry that was stored in this time, `until` not included. What was taken over from elsewhere counts too:
    /// it says what it cost there.
    pub(crate) fn add(&mut self, stored: &StoredEntry, from_ms: u64, until_ms: u64) {
        if stored.at_ms < from_ms || stored.at_ms >= until_ms {
            return;
        }
        let asked: Option<(&Origin, Usage)> = match &*stored.entry {
            Entry::Assistant(message) => Some((&message.origin, message.usage)),
            Entry::Control(Control::Compacted(compacted)) => compacted.origin.as_ref().map(|origin| (origin, compacted.usage)),
            _ => None,
        };
        let Some((origin, usage)) = asked else { return };
        let key = (stored.at_ms / DAY_MS, origin.provider.clone(), origin.model.clone());
        let (calls, sum) = self.lines.entry(key).or_default();
        *calls = calls.saturating_add(1);
        *sum = sum.plus(usage);
    }

    /// A line for each model on each day, the oldest first.
    pub(crate) fn lines(self) -> Vec<Spent> {
        let line = |((day, provider, model), (model_calls, usage))| Spent { day, provider, model, model_calls, usage };
        self.lines.into_iter().map(line).collect()
    }
}
