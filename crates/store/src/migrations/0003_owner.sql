-- To whom each conversation belongs. What was made before there were users is whoever's who sits at the machine.
ALTER TABLE conversation ADD COLUMN owner TEXT NOT NULL DEFAULT 'local';

-- Lists are of one owner. One index and not two: each append moves its conversation in it.
DROP INDEX conversation_by_update;
CREATE INDEX conversation_by_owner ON conversation (owner, updated_at_ms);
