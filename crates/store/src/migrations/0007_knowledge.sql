-- Collections of documents that are looked up for a question. Whoever holds one changes it.
CREATE TABLE knowledge (
    key        INTEGER PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    holder     TEXT NOT NULL,
    until_ms   INTEGER NOT NULL,
    next_piece INTEGER NOT NULL DEFAULT 1,
    -- Whose vectors its pieces have.
    model      TEXT
) STRICT;

CREATE TABLE knowledge_file (
    key         INTEGER PRIMARY KEY,
    knowledge   INTEGER NOT NULL,
    path        TEXT NOT NULL,
    bytes       INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    -- Empty while its pieces are being written.
    hash        TEXT NOT NULL,
    skipped     TEXT,
    UNIQUE (knowledge, path)
) STRICT;

-- The key is the collection's, shifted by 40 bits, and the piece's number in it; so a collection is one range.
CREATE TABLE knowledge_piece (
    key     INTEGER PRIMARY KEY,
    file    INTEGER NOT NULL,
    unit    INTEGER NOT NULL,
    first   INTEGER NOT NULL,
    last    INTEGER NOT NULL,
    heading TEXT NOT NULL,
    text    TEXT NOT NULL
) STRICT;
CREATE INDEX knowledge_piece_of_file ON knowledge_piece (file);

-- The words of each piece, as `said` has those of entries; English words by their stems.
CREATE VIRTUAL TABLE knowledge_words USING fts5 (
    text,
    content = '',
    contentless_delete = 1,
    tokenize = 'porter unicode61 remove_diacritics 2'
);

-- The signs of a vector's numbers, a bit each: small, so that all of a collection are looked through; and the vector itself,
-- which those that come near are compared by.
CREATE TABLE knowledge_sign (
    piece INTEGER PRIMARY KEY,
    signs BLOB NOT NULL
) STRICT;
CREATE TABLE knowledge_vector (
    piece  INTEGER PRIMARY KEY,
    vector BLOB NOT NULL
) STRICT;
