//! A conversation's record, for tests to which it does not matter what is in it.

use turnwright_core::{Seq, UserId};
use turnwright_engine::{ConversationRecord, Copied};

/// The record of a conversation that nothing was said of: the local user's, without a title, made and changed at 1 ms.
/// What matters is named over it: `ConversationRecord { title: …, ..record("a") }`.
///
/// # Panics
///
/// Where `id` is none that a conversation can have.
#[must_use]
#[expect(clippy::expect_used, reason = "only tests call it, and what they write is right or the test wrong")]
pub fn record(id: &str) -> ConversationRecord {
    ConversationRecord {
        id: id.parse().expect("a test names a conversation by what can be one"),
        owner: UserId::local(),
        title: None,
        settings: "{}".to_owned(),
        created_at_ms: 1,
        updated_at_ms: 1,
    }
}

/// That `conversation` begins with the first entries of another, up to the entry `through`, and holds nothing.
///
/// # Panics
///
/// Where `through` is 0.
#[must_use]
#[expect(clippy::expect_used, reason = "only tests call it, and what they write is right or the test wrong")]
pub fn copied(conversation: ConversationRecord, of: &ConversationRecord, through: u64) -> Copied {
    let through = Seq::new(through).expect("a test names an entry by what can be one");
    Copied { conversation, of: of.id.clone(), meant: of.incarnation(), through, holds: Vec::new() }
}
