-- Conversations, their journals, and what is written together with entries.

-- `next_seq` is the fence of appends: the place that the journal's next entry takes.
CREATE TABLE conversation (
    key           INTEGER PRIMARY KEY,
    id            TEXT    NOT NULL UNIQUE,
    next_seq      INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    title         TEXT,
    settings      TEXT    NOT NULL
) STRICT;

-- Lists show the conversation with the newest entry first; the key breaks ties.
CREATE INDEX conversation_by_update ON conversation (updated_at_ms);

-- `place` is the conversation's key in the upper 32 bits and the entry's place in its journal, from 1, in the lower ones:
-- one primary key for both. So a conversation lies together however many others there are, and the tree stays flat: its
-- inner pages hold numbers alone, where the rows of a table without rowid would carry their bodies into them.
CREATE TABLE entry (
    place   INTEGER PRIMARY KEY,
    version INTEGER NOT NULL,
    at_ms   INTEGER NOT NULL,
    body    TEXT    NOT NULL
) STRICT;

-- One row for each conversation with a turn that is not over.
CREATE TABLE open_turn (
    conversation INTEGER PRIMARY KEY,
    turn         INTEGER NOT NULL,
    is_parked    INTEGER NOT NULL,
    kept_by      TEXT    NOT NULL
) STRICT;

-- The answers that idempotency keys were given.
CREATE TABLE idempotency (
    key          TEXT    NOT NULL PRIMARY KEY,
    conversation INTEGER NOT NULL,
    fingerprint  TEXT    NOT NULL,
    answer       TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_by_conversation ON idempotency (conversation);
