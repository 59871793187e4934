-- By which this file is known from every other: given to it when it is made or brought up, in no backup of it, and never changed.
CREATE TABLE origin (
    mark TEXT NOT NULL
) STRICT;
INSERT INTO origin VALUES (lower(hex(randomblob(16))));
