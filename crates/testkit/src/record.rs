//! A conversation's record, for tests to which it does not matter what is in it.

use turnwright_core::UserId;
use turnwright_engine::ConversationRecord;

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
