-- What an installation remembers beside its conversations; each kind has an owner that knows what its bodies mean.
CREATE TABLE document (
    kind TEXT NOT NULL,
    key  TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;
