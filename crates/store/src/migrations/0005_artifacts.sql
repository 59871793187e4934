-- Files that people bring. `id` is empty while one is being stored; then it says what the file holds, and whose it is.
CREATE TABLE artifact (
    key           INTEGER PRIMARY KEY,
    id            TEXT,
    owner         TEXT    NOT NULL,
    name          TEXT    NOT NULL,
    media_type    TEXT    NOT NULL,
    bytes         INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX artifact_by_id ON artifact (id);
CREATE INDEX artifact_by_age ON artifact (created_at_ms);

-- `place` is the artifact's key in the upper 32 bits and the piece's number, from 0, in the lower ones.
CREATE TABLE artifact_piece (
    place INTEGER PRIMARY KEY,
    body  BLOB    NOT NULL
) STRICT;

-- The conversations that hold an artifact; with the last of them it goes.
CREATE TABLE artifact_use (
    conversation INTEGER NOT NULL,
    artifact     INTEGER NOT NULL,
    PRIMARY KEY (conversation, artifact)
) STRICT, WITHOUT ROWID;

CREATE INDEX artifact_use_by_artifact ON artifact_use (artifact);
