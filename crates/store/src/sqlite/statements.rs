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
    FIND = "SELECT key, next_seq, created_at_ms, owner FROM conversation WHERE id = ?1";
    CREATE = "INSERT INTO conversation (id, next_seq, created_at_ms, updated_at_ms, title, settings, owner)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (id) DO NOTHING";
    TITLE = "UPDATE conversation SET title = ?2 WHERE key = ?1";
    NEWEST = "SELECT next_seq, title, settings, created_at_ms, owner FROM conversation WHERE id = ?1";
    UPDATE = "UPDATE conversation SET title = ?2, settings = ?3 WHERE id = ?1 AND title IS ?4 AND settings = ?5";
    /// Its time goes on, also where the appender's clock does not.
    ADVANCE = "UPDATE conversation SET next_seq = ?2, updated_at_ms = max(updated_at_ms, ?3) WHERE key = ?1";
    INSERT_ENTRY = "INSERT INTO entry (place, version, at_ms, body) VALUES (?1, ?2, ?3, ?4)";
    /// With what a conversation begins that is stored elsewhere: under which key, and up to which place.
    BEGINNING = "SELECT begins_as, begins_through FROM conversation WHERE key = ?1";
    BEGIN_AS = "UPDATE conversation SET begins_as = ?2, begins_through = ?3 WHERE key = ?1";
    /// Those between two places, both included.
    COPY_ENTRIES = "INSERT INTO entry (place, version, at_ms, body)
        SELECT place + ((?2 - ?1) << 32), version, at_ms, body FROM entry
        WHERE place BETWEEN (?1 << 32) + ?3 AND (?1 << 32) + ?4 ORDER BY place";
    OPEN_TURN = "INSERT INTO open_turn (conversation, turn, is_parked, kept_by) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (conversation) DO UPDATE
        SET turn = excluded.turn, is_parked = excluded.is_parked, kept_by = excluded.kept_by";
    CLOSE_TURN = "DELETE FROM open_turn WHERE conversation = ?1";
    INSERT_IDEMPOTENT = "INSERT INTO idempotency (key, conversation, fingerprint, answer) VALUES (?1, ?2, ?3, ?4)";
    DELETE_CONVERSATION = "DELETE FROM conversation WHERE key = ?1";
    DELETE_ENTRIES = "DELETE FROM entry WHERE place BETWEEN ?1 << 32 AND (?1 << 32) + 4294967295";
    /// How far the entries of a key are what other conversations begin with; nothing where none does.
    SHARED_THROUGH = "SELECT max(begins_through) FROM conversation WHERE begins_as = ?1";
    LOWEST_BEGINNING = "SELECT min(begins_as) FROM conversation WHERE begins_as IS NOT NULL";
    KEEP_ENTRIES = "UPDATE entry SET place = place + ((?2 - ?1) << 32)
        WHERE place BETWEEN (?1 << 32) + 1 AND (?1 << 32) + ?3";
    BEGIN_OTHERWISE = "UPDATE conversation SET begins_as = ?2 WHERE begins_as = ?1";
    /// Those behind a place.
    DELETE_ENTRIES_AFTER = "DELETE FROM entry WHERE place BETWEEN (?1 << 32) + ?2 + 1 AND (?1 << 32) + 4294967295";
    DELETE_IDEMPOTENT = "DELETE FROM idempotency WHERE conversation = ?1";

    CONVERSATION = "SELECT id, title, settings, created_at_ms, updated_at_ms, owner FROM conversation WHERE id = ?1";
    /// The rest of those with the cursor's time, then the older ones: as one condition SQLite would only search by the time.
    CONVERSATIONS_OF_TIME = "SELECT id, title, settings, created_at_ms, updated_at_ms, owner FROM conversation
        WHERE owner = ?3 AND updated_at_ms = ?1 AND id < ?2
        AND (NOT ?4 OR CASE WHEN json_valid(settings) THEN json_extract(settings, '$.pinned') IS 1 ELSE 0 END) ORDER BY id DESC";
    CONVERSATIONS_BEFORE = "SELECT id, title, settings, created_at_ms, updated_at_ms, owner FROM conversation
        WHERE owner = ?2 AND updated_at_ms < ?1
        AND (NOT ?3 OR CASE WHEN json_valid(settings) THEN json_extract(settings, '$.pinned') IS 1 ELSE 0 END)
        ORDER BY updated_at_ms DESC, id DESC";
    /// One statement, so that what it sees is of one instant: no row where there is no conversation, one row of nulls where
    /// there is no entry of its own. What it begins with comes first.
    ENTRIES = "SELECT * FROM (SELECT entry.place & 4294967295, entry.version, entry.at_ms, entry.body FROM conversation
            CROSS JOIN entry ON entry.place BETWEEN (begins_as << 32) + ?2 AND (begins_as << 32) + begins_through
            WHERE conversation.id = ?1 ORDER BY entry.place LIMIT ?3)
        UNION ALL SELECT * FROM (SELECT entry.place & 4294967295, entry.version, entry.at_ms, entry.body FROM conversation
            LEFT JOIN entry ON entry.place BETWEEN (conversation.key << 32) + ?2 AND (conversation.key << 32) + 4294967295
            WHERE conversation.id = ?1 ORDER BY entry.place LIMIT ?3)
        LIMIT ?3";
    /// By how the bodies begin: no more of them is read.
    TAKES_BACK = r#"SELECT 1 FROM conversation CROSS JOIN entry
        ON entry.place BETWEEN conversation.key << 32 AND (conversation.key << 32) + 4294967295
        WHERE conversation.id = ?1
        AND substr(entry.body, 1, 20) IN ('{"control":{"hidden"', '{"control":{"retried')
        UNION ALL SELECT 1 FROM conversation CROSS JOIN entry
        ON entry.place BETWEEN begins_as << 32 AND (begins_as << 32) + begins_through
        WHERE conversation.id = ?1
        AND substr(entry.body, 1, 20) IN ('{"control":{"hidden"', '{"control":{"retried') LIMIT 1"#;
    IDEMPOTENT = "SELECT fingerprint, answer FROM idempotency WHERE key = ?1";
    LAST_KEY = "SELECT key FROM idempotency WHERE key >= ?1 AND key < ?2 ORDER BY key DESC LIMIT 1";
    FORGET_KEYS = "DELETE FROM idempotency WHERE key >= ?1 AND key < ?2 AND substr(key, ?3, length(?4)) < ?4";
    OPEN_TURNS = "SELECT conversation.id, open_turn.turn, open_turn.is_parked, open_turn.kept_by, conversation.owner,
        conversation.next_seq FROM open_turn CROSS JOIN conversation ON conversation.key = open_turn.conversation";
    /// Of one user, but for one conversation.
    RUNNING_TURNS = "SELECT count(*) FROM open_turn CROSS JOIN conversation ON conversation.key = open_turn.conversation
        WHERE conversation.owner = ?1 AND open_turn.is_parked = 0 AND open_turn.conversation <> ?2";

    RESERVE = "INSERT INTO reservation (conversation, purpose, day, owner, tokens, nano_usd) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
        ON CONFLICT (conversation, purpose) DO UPDATE
        SET day = excluded.day, owner = excluded.owner, tokens = excluded.tokens, nano_usd = excluded.nano_usd";
    RELEASE = "DELETE FROM reservation WHERE conversation = ?1 AND purpose = ?2 RETURNING day, owner";
    SPEND = "INSERT INTO spent (day, owner, tokens, nano_usd) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (day, owner) DO UPDATE
        SET tokens = tokens + excluded.tokens, nano_usd = nano_usd + excluded.nano_usd";
    SPEND_RESERVED = "INSERT INTO spent (day, owner, tokens, nano_usd)
        SELECT day, owner, tokens, nano_usd FROM reservation WHERE conversation = ?1
        ON CONFLICT (day, owner) DO UPDATE
        SET tokens = tokens + excluded.tokens, nano_usd = nano_usd + excluded.nano_usd";
    RELEASE_ALL = "DELETE FROM reservation WHERE conversation = ?1";
    SPENT = "SELECT coalesce(sum(tokens), 0), coalesce(sum(nano_usd), 0) FROM spent WHERE day >= ?1 AND day < ?2";
    SPENT_BY = "SELECT coalesce(sum(tokens), 0), coalesce(sum(nano_usd), 0) FROM spent
        WHERE day >= ?1 AND day < ?2 AND owner = ?3";
    RESERVED = "SELECT coalesce(sum(tokens), 0), coalesce(sum(nano_usd), 0) FROM reservation
        WHERE day >= ?1 AND day < ?2 AND NOT (conversation = ?3 AND purpose = ?4)";
    RESERVED_BY = "SELECT coalesce(sum(tokens), 0), coalesce(sum(nano_usd), 0) FROM reservation
        WHERE day >= ?1 AND day < ?2 AND NOT (conversation = ?3 AND purpose = ?4) AND owner = ?5";

    ADD_USER = "INSERT INTO user (id, name, role, is_enabled, created_at_ms, issuer, subject)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING";
    USERS = "SELECT id, name, role, is_enabled, created_at_ms, issuer, subject FROM user ORDER BY name";
    USER = "SELECT id, name, role, is_enabled, created_at_ms, issuer, subject FROM user WHERE id = ?1";
    USER_NAMED = "SELECT id, name, role, is_enabled, created_at_ms, issuer, subject FROM user WHERE name = ?1";
    USER_KNOWN_AS = "SELECT id, name, role, is_enabled, created_at_ms, issuer, subject FROM user
        WHERE issuer = ?1 AND subject = ?2";
    CHANGE_ROLE = "UPDATE user SET role = ?2 WHERE id = ?1";
    CHANGE_USER = "UPDATE user SET role = ?2, is_enabled = ?3 WHERE id = ?1";
    /// Whether an admin stays who can come in: `local` where it counts anyhow (?2), or a token or session of it does at a time.
    ADMIN_STAYS = "SELECT 1 FROM user WHERE role = 'admin' AND is_enabled = 1 AND id <> ?1 AND (id <> 'local' OR ?2 OR EXISTS
        (SELECT 1 FROM credential WHERE credential.user = 'local' AND kind <> 'link' AND (expires_at_ms IS NULL OR expires_at_ms > ?3)))
        LIMIT 1";
    REMOVE_USER = "DELETE FROM user WHERE id = ?1";
    /// Nothing, where the user was removed meanwhile, or what it goes with.
    ADD_CREDENTIAL = "INSERT INTO credential
        (hash, id, user, kind, name, scopes, parent, created_at_ms, expires_at_ms, used_at_ms)
        SELECT ?1, ?2, id, ?4, ?5, ?6, ?7, ?8, ?9, ?10 FROM user
        WHERE id = ?3 AND (?7 IS NULL OR EXISTS (SELECT 1 FROM credential WHERE credential.id = ?7))";
    CREDENTIAL = "SELECT hash, id, user, kind, name, scopes, parent, created_at_ms, expires_at_ms, used_at_ms
        FROM credential WHERE hash = ?1";
    CREDENTIAL_NAMED = "SELECT hash, id, user, kind, name, scopes, parent, created_at_ms, expires_at_ms, used_at_ms
        FROM credential WHERE id = ?1";
    CREDENTIALS = "SELECT hash, id, user, kind, name, scopes, parent, created_at_ms, expires_at_ms, used_at_ms
        FROM credential WHERE user = ?1 ORDER BY created_at_ms DESC, id";
    CREDENTIAL_USED = "UPDATE credential SET used_at_ms = ?2 WHERE id = ?1";
    /// With those that go with it, and those that go with them.
    REMOVE_CREDENTIAL = "DELETE FROM credential WHERE id IN (
        WITH RECURSIVE gone (id) AS (SELECT id FROM credential WHERE id = ?1
            UNION SELECT credential.id FROM gone CROSS JOIN credential ON credential.parent = gone.id)
        SELECT id FROM gone)";
    REMOVE_CREDENTIALS = "DELETE FROM credential WHERE user = ?1";
    REMOVE_EXPIRED = "DELETE FROM credential WHERE expires_at_ms < ?1";

    /// Those that nobody needs any more: looks at every conversation, now and then.
    /// What was made after one that is young is young too, whatever clock it was made by. Where the settings cannot be read, nobody knows
    /// that it is not pinned.
    OLD_CONVERSATIONS = "SELECT id FROM conversation WHERE updated_at_ms < ?1 AND created_at_ms < ?1
        AND key < coalesce((SELECT min(key) FROM conversation WHERE created_at_ms BETWEEN ?1 AND ?3), 9223372036854775807)
        AND CASE WHEN json_valid(settings) THEN json_extract(settings, '$.pinned') IS NOT 1 ELSE 0 END
        AND NOT EXISTS (SELECT 1 FROM open_turn WHERE open_turn.conversation = conversation.key) LIMIT ?2";
    /// Puts the words together anew, without those that were deleted.
    FORGET_WORDS = "INSERT INTO said (said) VALUES ('optimize')";
    FORGET_PIECES = "INSERT INTO knowledge_words (knowledge_words) VALUES ('optimize')";
    /// The journals that are not wholly in the search: looks at every conversation, which no append does.
    BEHIND = "SELECT conversation.key, coalesce(said_until.next_seq, 1), conversation.next_seq, conversation.id,
        conversation.created_at_ms FROM conversation
        LEFT JOIN said_until ON said_until.conversation = conversation.key
        WHERE conversation.next_seq > coalesce(said_until.next_seq, 1) LIMIT ?1";
    /// Those of the beginning are at the places that they have in the conversation.
    SAID_NEXT = "SELECT * FROM (SELECT (?1 << 32) + (place & 4294967295), version, body FROM conversation
            CROSS JOIN entry ON place BETWEEN (begins_as << 32) + ?2 AND (begins_as << 32) + begins_through
            WHERE key = ?1 ORDER BY place LIMIT ?3)
        UNION ALL SELECT * FROM (SELECT place, version, body FROM entry
            WHERE place BETWEEN (?1 << 32) + ?2 AND (?1 << 32) + 4294967295 ORDER BY place LIMIT ?3)
        LIMIT ?3";
    ENTRY_AT = "SELECT place, version, body FROM entry WHERE place = ?1
        UNION ALL SELECT ?1, version, body FROM conversation
        CROSS JOIN entry ON place = (begins_as << 32) + (?1 & 4294967295)
        WHERE key = ?1 >> 32 AND (?1 & 4294967295) <= begins_through LIMIT 1";
    /// Nothing, where the conversation is gone, or somebody else was quicker.
    SAID_UNTIL = "INSERT INTO said_until (conversation, next_seq)
        SELECT key, ?3 FROM conversation WHERE key = ?1 AND id = ?4 AND created_at_ms = ?5 AND coalesce(
            (SELECT next_seq FROM said_until WHERE conversation = ?1), 1) = ?2
        ON CONFLICT (conversation) DO UPDATE SET next_seq = excluded.next_seq";
    SAY = "INSERT INTO said (rowid, text) VALUES (?1, ?2)";
    UNSAY = "DELETE FROM said WHERE rowid = ?1";
    SAID_UP_TO = "SELECT next_seq FROM said_until WHERE conversation = ?1";
    UNSAY_ALL = "DELETE FROM said WHERE rowid IN
        (SELECT place FROM entry WHERE place BETWEEN ?1 << 32 AND (?1 << 32) + 4294967295
        UNION ALL SELECT (?1 << 32) + (place & 4294967295) FROM conversation
        CROSS JOIN entry ON place BETWEEN begins_as << 32 AND (begins_as << 32) + begins_through WHERE key = ?1)";
    FORGET_SAID = "DELETE FROM said_until WHERE conversation = ?1";
    /// The conversations with the words, each with the newest place that has them.
    SAID_BY = "SELECT conversation.key, max(said.rowid) FROM said CROSS JOIN conversation
        ON conversation.key = said.rowid >> 32 WHERE said MATCH ?1 AND conversation.owner = ?2 GROUP BY conversation.key";
    CONVERSATIONS_WITH_KEYS = "SELECT id, title, settings, created_at_ms, updated_at_ms, owner, key FROM conversation
        WHERE owner = ?1 AND updated_at_ms <= ?2 AND (updated_at_ms, id) < (?2, ?3)
        ORDER BY updated_at_ms DESC, id DESC";
    BEGIN_ARTIFACT = "INSERT INTO artifact (key, owner, name, media_type, bytes, created_at_ms) VALUES (?1, '', '', '', 0, ?2)";
    /// Nothing, where the draft was swept meanwhile.
    PUT_PIECE = "INSERT INTO artifact_piece (place, body) SELECT (key << 32) + ?2, ?3 FROM artifact
        WHERE key = ?1 AND id IS NULL ON CONFLICT (place) DO UPDATE SET body = excluded.body";
    FINISH_ARTIFACT = "UPDATE artifact SET id = ?2, owner = ?3, name = ?4, media_type = ?5, bytes = ?6
        WHERE key = ?1 AND id IS NULL";
    RENEW_ARTIFACT = "UPDATE artifact SET created_at_ms =
        max(created_at_ms, coalesce((SELECT created_at_ms FROM artifact WHERE key = ?1), 0)) WHERE id = ?2 AND key <> ?1";
    ARTIFACT_KEY = "SELECT key FROM artifact WHERE id = ?1";
    ARTIFACT = "SELECT name, media_type, bytes, created_at_ms FROM artifact WHERE id = ?1 AND owner = ?2";
    PIECE = "SELECT artifact_piece.body FROM artifact CROSS JOIN artifact_piece
        ON artifact_piece.place = (artifact.key << 32) + ?3 WHERE artifact.id = ?1 AND artifact.owner = ?2";
    USE_ARTIFACT = "INSERT INTO artifact_use (conversation, artifact)
        SELECT conversation.key, artifact.key FROM conversation CROSS JOIN artifact
        WHERE conversation.id = ?1 AND artifact.id = ?2 AND artifact.owner = ?3 AND conversation.owner = ?3
        ON CONFLICT (conversation, artifact) DO UPDATE SET artifact = excluded.artifact";
    /// By the conversation's key, where the artifact is its owner's.
    HOLD_ARTIFACT = "INSERT INTO artifact_use (conversation, artifact)
        SELECT conversation.key, artifact.key FROM conversation CROSS JOIN artifact
        WHERE conversation.key = ?1 AND artifact.id = ?2 AND artifact.owner = conversation.owner
        ON CONFLICT (conversation, artifact) DO NOTHING";
    /// What a conversation holds, also what only later entries than the copied name: it goes with the copy.
    COPY_USES = "INSERT INTO artifact_use (conversation, artifact) SELECT ?2, artifact FROM artifact_use WHERE conversation = ?1
        ON CONFLICT (conversation, artifact) DO NOTHING";
    UNUSED_ARTIFACT = "SELECT key FROM artifact WHERE id = ?1 AND owner = ?2
        AND NOT EXISTS (SELECT 1 FROM artifact_use WHERE artifact_use.artifact = artifact.key)";
    OLD_ARTIFACTS = "SELECT key FROM artifact WHERE created_at_ms < ?1
        AND NOT EXISTS (SELECT 1 FROM artifact_use WHERE artifact_use.artifact = artifact.key)";
    /// But for those that were uploaded again since: they wait for a message, and go with what nobody uses.
    ARTIFACTS_OF_ONE = "SELECT artifact FROM artifact_use AS this WHERE conversation = ?1 AND
        (SELECT created_at_ms FROM artifact WHERE key = this.artifact)
            <= (SELECT updated_at_ms FROM conversation WHERE key = ?1) AND NOT EXISTS
        (SELECT 1 FROM artifact_use AS other WHERE other.artifact = this.artifact AND other.conversation <> ?1)";
    DELETE_USES = "DELETE FROM artifact_use WHERE conversation = ?1";
    DELETE_PIECES = "DELETE FROM artifact_piece WHERE place BETWEEN ?1 << 32 AND (?1 << 32) + 4294967295";
    DELETE_ARTIFACT = "DELETE FROM artifact WHERE key = ?1";

    CLAIM_KNOWLEDGE = "INSERT INTO knowledge (name, holder, until_ms) VALUES (?1, ?2, ?4)
        ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until_ms = excluded.until_ms
        WHERE holder = excluded.holder OR until_ms <= ?3";
    CLAIM_KNOWN_KNOWLEDGE = "UPDATE knowledge SET holder = ?2, until_ms = ?4
        WHERE name = ?1 AND (holder = ?2 OR until_ms <= ?3)";
    /// Nobody holds it: each document beside a conversation is put by itself.
    MAKE_KNOWLEDGE_BESIDE = "INSERT OR IGNORE INTO knowledge (name, holder, until_ms) VALUES (?1, '', 0)";
    IS_THAT_CONVERSATION = "SELECT 1 FROM conversation WHERE id = ?1 AND created_at_ms = ?2";
    KNOWLEDGE = "SELECT key, next_piece, model FROM knowledge WHERE name = ?1";
    /// Told to people alone: counts all that there is.
    KNOWLEDGE_SIZES = "SELECT name,
        (SELECT count(*) FROM knowledge_file WHERE knowledge_file.knowledge = knowledge.key AND skipped IS NULL),
        (SELECT count(*) FROM knowledge_file WHERE knowledge_file.knowledge = knowledge.key AND skipped IS NOT NULL),
        (SELECT count(*) FROM knowledge_piece
            WHERE knowledge_piece.key BETWEEN knowledge.key << 40 AND ((knowledge.key + 1) << 40) - 1),
        (SELECT count(*) FROM knowledge_sign
            WHERE knowledge_sign.piece BETWEEN knowledge.key << 40 AND ((knowledge.key + 1) << 40) - 1)
        FROM knowledge ORDER BY name";
    HAS_FILES = "SELECT 1 FROM knowledge CROSS JOIN knowledge_file ON knowledge_file.knowledge = knowledge.key
        WHERE knowledge.name = ?1 LIMIT 1";
    KNOWLEDGE_FILES = "SELECT path, bytes, modified_ns, hash, skipped FROM knowledge_file
        WHERE knowledge = ?1 ORDER BY path";
    KNOWLEDGE_FILE = "SELECT key FROM knowledge_file WHERE knowledge = ?1 AND path = ?2";
    PUT_KNOWLEDGE_FILE = "INSERT INTO knowledge_file (knowledge, path, bytes, modified_ns, hash, skipped)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (knowledge, path) DO UPDATE SET bytes = excluded.bytes,
        modified_ns = excluded.modified_ns, hash = excluded.hash, skipped = excluded.skipped RETURNING key";
    MOVE_KNOWLEDGE_FILE = "UPDATE OR REPLACE knowledge_file SET path = ?2, bytes = ?3, modified_ns = ?4, hash = ?5, skipped = ?6
        WHERE key = ?1";
    REMOVE_KNOWLEDGE_FILE = "DELETE FROM knowledge_file WHERE key = ?1";
    REMOVE_PIECE_WORDS = "DELETE FROM knowledge_words WHERE rowid IN (SELECT key FROM knowledge_piece WHERE file = ?1)";
    REMOVE_PIECE_SIGNS = "DELETE FROM knowledge_sign WHERE piece IN (SELECT key FROM knowledge_piece WHERE file = ?1)";
    REMOVE_PIECE_VECTORS = "DELETE FROM knowledge_vector WHERE piece IN (SELECT key FROM knowledge_piece WHERE file = ?1)";
    REMOVE_PIECES = "DELETE FROM knowledge_piece WHERE file = ?1";
    PUT_KNOWLEDGE_PIECE = "INSERT INTO knowledge_piece (key, file, unit, first, last, heading, text)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    PUT_PIECE_WORDS = "INSERT INTO knowledge_words (rowid, text) VALUES (?1, ?2)";
    /// The pieces keep their numbers in the collection.
    COPY_KNOWLEDGE = "INSERT INTO knowledge (name, holder, until_ms, next_piece, model)
        SELECT ?1 || conversation.id, '', 0, next_piece, model FROM knowledge, conversation
        WHERE knowledge.key = ?2 AND conversation.key = ?3 ON CONFLICT (name) DO NOTHING RETURNING key";
    COPY_KNOWLEDGE_FILES = "INSERT INTO knowledge_file (knowledge, path, bytes, modified_ns, hash, skipped)
        SELECT ?2, path, bytes, modified_ns, hash, skipped FROM knowledge_file WHERE knowledge = ?1 AND hash <> ''";
    COPY_KNOWLEDGE_PIECES = "INSERT INTO knowledge_piece (key, file, unit, first, last, heading, text)
        SELECT piece.key + ((?2 - ?1) << 40), own.key, unit, first, last, heading, text
        FROM knowledge_file AS file CROSS JOIN knowledge_file AS own ON own.knowledge = ?2 AND own.path = file.path
        CROSS JOIN knowledge_piece AS piece ON piece.file = file.key WHERE file.knowledge = ?1";
    PIECES_OF = "SELECT knowledge_piece.key, path, heading, text FROM knowledge_piece
        JOIN knowledge_file ON knowledge_file.key = knowledge_piece.file
        WHERE knowledge_piece.key BETWEEN ?1 << 40 AND ((?1 + 1) << 40) - 1";
    COPY_SIGNS = "INSERT INTO knowledge_sign (piece, signs) SELECT own.key, signs
        FROM knowledge_piece AS own CROSS JOIN knowledge_sign ON piece = own.key - ((?2 - ?1) << 40)
        WHERE own.key BETWEEN ?2 << 40 AND ((?2 + 1) << 40) - 1";
    COPY_VECTORS = "INSERT INTO knowledge_vector (piece, vector) SELECT own.key, vector
        FROM knowledge_piece AS own CROSS JOIN knowledge_vector ON piece = own.key - ((?2 - ?1) << 40)
        WHERE own.key BETWEEN ?2 << 40 AND ((?2 + 1) << 40) - 1";
    KNOWLEDGE_NEXT = "UPDATE knowledge SET next_piece = ?2 WHERE key = ?1";
    KNOWLEDGE_MODEL = "UPDATE knowledge SET model = ?2 WHERE key = ?1";
    REMOVE_KNOWLEDGE = "DELETE FROM knowledge WHERE key = ?1";
    REMOVE_SIGNS = "DELETE FROM knowledge_sign WHERE piece BETWEEN ?1 << 40 AND ((?1 + 1) << 40) - 1";
    REMOVE_VECTORS = "DELETE FROM knowledge_vector WHERE piece BETWEEN ?1 << 40 AND ((?1 + 1) << 40) - 1";
    PUT_SIGNS = "INSERT OR REPLACE INTO knowledge_sign (piece, signs)
        SELECT key, ?2 FROM knowledge_piece WHERE key = ?1";
    PUT_VECTOR = "INSERT OR REPLACE INTO knowledge_vector (piece, vector)
        SELECT key, ?2 FROM knowledge_piece WHERE key = ?1";
    PIECES_WITH = "SELECT rowid FROM knowledge_words
        WHERE knowledge_words MATCH ?1 AND rowid BETWEEN ?2 << 40 AND ((?2 + 1) << 40) - 1 LIMIT ?3";
    PIECES_BY_WORDS = "SELECT rowid, bm25(knowledge_words) AS rank FROM knowledge_words
        WHERE knowledge_words MATCH ?1 AND rowid BETWEEN ?2 << 40 AND ((?2 + 1) << 40) - 1 ORDER BY rank, rowid LIMIT ?3";
    SIGNS = "SELECT piece, signs FROM knowledge_sign WHERE piece BETWEEN ?1 << 40 AND ((?1 + 1) << 40) - 1";
    VECTOR = "SELECT vector FROM knowledge_vector WHERE piece = ?1";
    KNOWLEDGE_PIECE = "SELECT knowledge.name, knowledge_file.path, knowledge_file.hash, unit, first, last, heading, text
        FROM knowledge_piece CROSS JOIN knowledge_file ON knowledge_file.key = knowledge_piece.file
        CROSS JOIN knowledge ON knowledge.key = knowledge_file.knowledge
        WHERE knowledge_piece.key = ?1 AND knowledge_file.hash <> ''";
    WITHOUT_VECTOR = "SELECT key FROM knowledge_piece
        WHERE key BETWEEN ?1 << 40 AND ((?1 + 1) << 40) - 1
        AND (?2 OR NOT EXISTS (SELECT 1 FROM knowledge_sign WHERE piece = knowledge_piece.key)) ORDER BY key LIMIT ?3";

    DOCUMENT = "SELECT key, body FROM document WHERE kind = ?1 AND key = ?2";
    DOCUMENTS = "SELECT key, body FROM document WHERE kind = ?1 ORDER BY key";
    /// The key comes first: of those that are left out the body is not read.
    UPPER_DOCUMENTS = "SELECT key, body FROM document WHERE kind = ?1 AND key NOT LIKE '%/%/%' ORDER BY key";
    ADD_DOCUMENT = "INSERT INTO document (kind, key, body) VALUES (?1, ?2, ?3) ON CONFLICT (kind, key) DO NOTHING";
    PUT_DOCUMENT = "INSERT INTO document (kind, key, body) VALUES (?1, ?2, ?3)
        ON CONFLICT (kind, key) DO UPDATE SET body = excluded.body";
    /// Those with a key from one on and before another.
    RATE = "SELECT body FROM document WHERE kind = 'rate' AND key = ?1";
    REPLACE_RATE = "INSERT INTO document (kind, key, body) VALUES ('rate', ?1, ?2)
        ON CONFLICT (kind, key) DO UPDATE SET body = excluded.body WHERE document.body = ?3";
    DELETE_DOCUMENTS = "DELETE FROM document WHERE kind = ?1 AND key >= ?2 AND key < ?3";
    CHANGE_DOCUMENT = "UPDATE document SET body = ?4 WHERE kind = ?1 AND key = ?2 AND body = ?3";
    REMOVE_DOCUMENT = "DELETE FROM document WHERE kind = ?1 AND key = ?2 AND body = ?3";
    DELETE_DOCUMENT = "DELETE FROM document WHERE kind = ?1 AND key = ?2";
}

#[cfg(test)]
mod tests;
