-- What was spent on models, by user and day (days since 1970-01-01 UTC). Money in billionths of a US dollar.
CREATE TABLE spent (
    day      INTEGER NOT NULL,
    owner    TEXT    NOT NULL,
    tokens   INTEGER NOT NULL,
    nano_usd INTEGER NOT NULL,
    PRIMARY KEY (day, owner)
) STRICT, WITHOUT ROWID;

-- What model calls may come to that are under way, or whose process is gone. `conversation` is the conversation's key.
CREATE TABLE reservation (
    conversation INTEGER NOT NULL,
    purpose      TEXT    NOT NULL,
    day          INTEGER NOT NULL,
    owner        TEXT    NOT NULL,
    tokens       INTEGER NOT NULL,
    nano_usd     INTEGER NOT NULL,
    PRIMARY KEY (conversation, purpose)
) STRICT, WITHOUT ROWID;

CREATE INDEX reservation_by_day ON reservation (day, owner);
