-- A conversation that begins with the entries of another up to a place names them: they are stored once, whoever shows them. Where
-- the other is deleted they stay, under a number of their own, which is below zero; the last that shows them takes them along.
ALTER TABLE conversation ADD COLUMN begins_as INTEGER;
ALTER TABLE conversation ADD COLUMN begins_through INTEGER;
CREATE INDEX conversation_by_beginning ON conversation (begins_as, begins_through) WHERE begins_as IS NOT NULL;
