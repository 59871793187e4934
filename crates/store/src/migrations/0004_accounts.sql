-- Who may use the installation, and by what they are known.
CREATE TABLE user (
    id            TEXT    NOT NULL PRIMARY KEY,
    name          TEXT    NOT NULL COLLATE NOCASE UNIQUE,
    role          TEXT    NOT NULL,
    is_enabled    INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL,
    issuer        TEXT,
    subject       TEXT
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX user_by_identity ON user (issuer, subject);

-- Whoever sits at the machine is always there.
INSERT INTO user (id, name, role, is_enabled, created_at_ms) VALUES ('local', 'local', 'admin', 1, 0);

-- Tokens, browser sessions and links. `hash` is the SHA-256 of the secret; `parent` is the credential that it goes with.
CREATE TABLE credential (
    hash          BLOB    NOT NULL PRIMARY KEY,
    id            TEXT    NOT NULL UNIQUE,
    user          TEXT    NOT NULL,
    kind          TEXT    NOT NULL,
    name          TEXT    NOT NULL,
    scopes        TEXT    NOT NULL,
    parent        TEXT,
    created_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER,
    used_at_ms    INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX credential_by_user ON credential (user);
CREATE INDEX credential_by_parent ON credential (parent);
CREATE INDEX credential_by_expiry ON credential (expires_at_ms);
