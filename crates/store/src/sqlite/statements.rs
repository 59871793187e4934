//! Every SQL statement that a running store uses, in one place, so that a test can ask for the plan of each.

macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $sql:literal;)*) => {
        $($(#[$doc])* pub(super) const $name: &str = $sql;)*
        #[cfg(test)]
        const ALL: &[(&str, &str)] = &[$((stringify!($name), $name)),*];
    };
}

statements! {
    /// A conversation's key and fence.
    FIND = "SELECT key, next_seq FROM conversation WHERE id = ?1";
    CREATE = "INSERT INTO conversation (id, next_seq, created_at_ms, updated_at_ms, title, settings)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (id) DO NOTHING";
    TITLE = "UPDATE conversation SET title = ?2 WHERE key = ?1";
    UPDATE = "UPDATE conversation SET title = ?2, settings = ?3 WHERE id = ?1";
    ADVANCE = "UPDATE conversation SET next_seq = ?2, updated_at_ms = ?3 WHERE key = ?1";
    INSERT_ENTRY = "INSERT INTO entry (place, version, at_ms, body) VALUES (?1, ?2, ?3, ?4)";
    OPEN_TURN = "INSERT INTO open_turn (conversation, turn, is_parked, kept_by) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (conversation) DO UPDATE
        SET turn = excluded.turn, is_parked = excluded.is_parked, kept_by = excluded.kept_by";
    CLOSE_TURN = "DELETE FROM open_turn WHERE conversation = ?1";
    INSERT_IDEMPOTENT = "INSERT INTO idempotency (key, conversation, fingerprint, answer) VALUES (?1, ?2, ?3, ?4)";
    DELETE_CONVERSATION = "DELETE FROM conversation WHERE key = ?1";
    DELETE_ENTRIES = "DELETE FROM entry WHERE place BETWEEN ?1 << 32 AND (?1 << 32) + 4294967295";
    DELETE_IDEMPOTENT = "DELETE FROM idempotency WHERE conversation = ?1";

    CONVERSATION = "SELECT id, title, settings, created_at_ms, updated_at_ms FROM conversation WHERE id = ?1";
    /// Where a page begins.
    CURSOR = "SELECT updated_at_ms, key FROM conversation WHERE id = ?1";
    /// The rest of those with the cursor's time, then the older ones: as one condition SQLite would only search by the time.
    CONVERSATIONS_OF_TIME = "SELECT id, title, settings, created_at_ms, updated_at_ms FROM conversation
        WHERE updated_at_ms = ?1 AND key < ?2 ORDER BY key DESC LIMIT ?3";
    CONVERSATIONS_BEFORE = "SELECT id, title, settings, created_at_ms, updated_at_ms FROM conversation
        WHERE updated_at_ms < ?1 ORDER BY updated_at_ms DESC, key DESC LIMIT ?2";
    /// One statement, so that what it sees is of one instant: no row where there is no conversation, one row of nulls where
    /// there is no entry.
    ENTRIES = "SELECT entry.place & 4294967295, entry.version, entry.at_ms, entry.body FROM conversation
        LEFT JOIN entry ON entry.place BETWEEN (conversation.key << 32) + ?2 AND (conversation.key << 32) + 4294967295
        WHERE conversation.id = ?1 ORDER BY entry.place LIMIT ?3";
    IDEMPOTENT = "SELECT fingerprint, answer FROM idempotency WHERE key = ?1";
    OPEN_TURNS = "SELECT conversation.id, open_turn.turn, open_turn.is_parked, open_turn.kept_by
        FROM open_turn CROSS JOIN conversation ON conversation.key = open_turn.conversation";

    DOCUMENT = "SELECT key, body FROM document WHERE kind = ?1 AND key = ?2";
    DOCUMENTS = "SELECT key, body FROM document WHERE kind = ?1 ORDER BY key";
    PUT_DOCUMENT = "INSERT INTO document (kind, key, body) VALUES (?1, ?2, ?3)
        ON CONFLICT (kind, key) DO UPDATE SET body = excluded.body";
    DELETE_DOCUMENT = "DELETE FROM document WHERE kind = ?1 AND key = ?2";
}

#[cfg(test)]
mod tests;
