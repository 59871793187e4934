//! Conversations in the forms of others, in and out.

mod export;
mod import;

use std::sync::Arc;

use serde_json::Value;
use turnwright_core::{Journal, ModelRef, Seq, StoredEntry, TurnSettings, prompt};
use turnwright_dialects::export::{ExportForm, History, export as written};
use turnwright_dialects::import::{Imported, ImportedConversation, read};

fn settings() -> TurnSettings {
    TurnSettings::new(ModelRef::new("p", "m"))
}

fn imported(text: &str) -> Imported {
    read(text.as_bytes(), &settings()).unwrap()
}

/// The journal, which a store would take: every entry fits and no turn is open.
fn journal(conversation: &ImportedConversation) -> Journal {
    let places = std::iter::successors(Some(Seq::FIRST), |seq| Some(seq.next()));
    let entries = conversation.entries.iter().cloned().zip(&conversation.times_ms).zip(places);
    let stored = |((entry, at_ms), seq): ((_, &Option<u64>), _)| StoredEntry {
        seq,
        at_ms: at_ms.unwrap_or_default(),
        entry: Arc::new(entry),
    };
    let journal = Journal::replay(entries.map(stored)).unwrap();
    assert_eq!(journal.open_turn(), None);
    journal
}

fn exported(journal: &Journal, form: ExportForm, system: Option<&str>) -> Value {
    let history = prompt::history(journal);
    let messages = written(form, system, &History::whole(&history, journal.turns()));
    Value::Array(messages.iter().map(|message| serde_json::from_str(message.get()).unwrap()).collect())
}
