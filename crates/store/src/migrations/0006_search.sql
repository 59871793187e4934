-- What was said, as words: the row of an entry has the entry's `place`. The text itself is in the entry; here it is looked up
-- alone. Whoever writes it puts spaces around each sign of a script that has none between words.
CREATE VIRTUAL TABLE said USING fts5 (
    text,
    content = '',
    contentless_delete = 1,
    tokenize = 'unicode61 remove_diacritics 2'
);

-- How far each journal is in `said`: up to before this place. Written with the words, so it is right whatever happens.
CREATE TABLE said_until (
    conversation INTEGER PRIMARY KEY,
    next_seq     INTEGER NOT NULL
) STRICT;
