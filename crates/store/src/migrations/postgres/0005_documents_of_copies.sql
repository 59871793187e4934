-- The documents beside a conversation are beside its copy too. The pieces keep their numbers in the collection.
CREATE FUNCTION copy_beside(name_of_source TEXT, name_of_copy TEXT) RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE
    shelf BIGINT;
    own BIGINT;
BEGIN
    -- Nobody writes a part of a document in between.
    SELECT k.key INTO shelf FROM knowledge AS k WHERE k.name = 'conversation/' || name_of_source FOR SHARE;
    INSERT INTO knowledge AS k (name, holder, until_ms, next_piece, model)
        SELECT 'conversation/' || name_of_copy, '', 0, of.next_piece, of.model FROM knowledge AS of WHERE of.key = shelf
        ON CONFLICT (name) DO NOTHING RETURNING k.key INTO own;
    IF own IS NOT NULL THEN
        INSERT INTO knowledge_file (knowledge, path, bytes, modified_ns, hash, skipped)
            SELECT own, path, bytes, modified_ns, hash, skipped FROM knowledge_file
            WHERE knowledge = shelf AND hash <> '';
        INSERT INTO knowledge_piece (key, file, unit, first, last, heading, text)
            SELECT p.key + ((own - shelf) << 40), mine.key, unit, first, last, heading, text
            FROM knowledge_file AS f JOIN knowledge_file AS mine ON mine.knowledge = own AND mine.path = f.path
            JOIN knowledge_piece AS p ON p.file = f.key WHERE f.knowledge = shelf;
        INSERT INTO knowledge_words (piece, knowledge, length, words)
            SELECT p.key, own, length, words FROM knowledge_piece AS p
            JOIN knowledge_words AS w ON w.piece = p.key - ((own - shelf) << 40)
            WHERE p.key BETWEEN own << 40 AND ((own + 1) << 40) - 1;
        INSERT INTO knowledge_sign (piece, signs)
            SELECT p.key, signs FROM knowledge_piece AS p JOIN knowledge_sign AS s ON s.piece = p.key - ((own - shelf) << 40)
            WHERE p.key BETWEEN own << 40 AND ((own + 1) << 40) - 1;
        INSERT INTO knowledge_vector (piece, vector)
            SELECT p.key, vector FROM knowledge_piece AS p JOIN knowledge_vector AS v ON v.piece = p.key - ((own - shelf) << 40)
            WHERE p.key BETWEEN own << 40 AND ((own + 1) << 40) - 1;
    END IF;
END $$;

CREATE OR REPLACE FUNCTION copy_conversation(
    new_id TEXT, new_owner TEXT, new_title TEXT, new_settings TEXT, new_created BIGINT, new_updated BIGINT, new_mark BIGINT,
    source TEXT, through BIGINT
) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE
    old BIGINT;
    this BIGINT;
BEGIN
    SELECT key INTO old FROM conversation WHERE id = source AND next_seq > through FOR SHARE;
    IF NOT FOUND THEN RETURN 2; END IF;
    INSERT INTO conversation (id, next_seq, created_at_ms, updated_at_ms, title, settings, owner, mark)
        VALUES (new_id, through + 1, new_created, new_updated, new_title, new_settings, new_owner, new_mark)
        ON CONFLICT (id) DO NOTHING RETURNING key INTO this;
    IF NOT FOUND THEN
        RETURN CASE WHEN EXISTS (SELECT 1 FROM conversation WHERE id = new_id AND mark = new_mark) THEN 0 ELSE 3 END;
    END IF;
    INSERT INTO entry (place, version, at_ms, body)
        SELECT place + ((this - old) << 32), version, at_ms, body FROM entry
        WHERE place BETWEEN (old << 32) + 1 AND (old << 32) + through;
    -- What it holds, also what only later entries than the copied name.
    INSERT INTO artifact_use (conversation, artifact) SELECT this, artifact FROM artifact_use WHERE conversation = old;
    PERFORM copy_beside(source, new_id);
    RETURN 0;
END $$;

-- One append, with the values of `append`, after which its conversation holds every file that another holds, and has copies of the
-- documents beside it. What `append` says,
-- or 8 where that other is not there; nothing is written then.
CREATE OR REPLACE FUNCTION append_holding(
    ids TEXT[], ats BIGINT[], times BIGINT[], counts BIGINT[], marks BIGINT[],
    versions SMALLINT[], entry_times BIGINT[], bodies TEXT[],
    side_of BIGINT[], side_kinds TEXT[], side_a TEXT[], side_b TEXT[], side_c TEXT[], side_n BIGINT[], side_m BIGINT[],
    source TEXT
) RETURNS TABLE (verdict BIGINT, place BIGINT, key TEXT) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    other BIGINT;
BEGIN
    -- It is not removed before this is stored. Who appends to it waits for nothing.
    SELECT c.key INTO other FROM conversation AS c WHERE c.id = source FOR KEY SHARE;
    -- Where it was stored, and its answer was lost, the other may be gone since.
    IF NOT FOUND AND NOT EXISTS (SELECT 1 FROM conversation AS c WHERE c.id = ids[1] AND c.mark = marks[1]) THEN
        verdict := 8; place := 0; key := NULL;
        RETURN NEXT;
        RETURN;
    END IF;
    SELECT done.verdict, done.place, done.key INTO verdict, place, key
        FROM append(ids, ats, times, counts, marks, versions, entry_times, bodies,
            side_of, side_kinds, side_a, side_b, side_c, side_n, side_m) AS done;
    IF verdict = 0 THEN
        INSERT INTO artifact_use (conversation, artifact)
            SELECT c.key, used.artifact FROM conversation AS c CROSS JOIN artifact_use AS used
            WHERE c.id = ids[1] AND used.conversation = other
            ON CONFLICT (conversation, artifact) DO NOTHING;
        PERFORM copy_beside(source, ids[1]);
    END IF;
    RETURN NEXT;
END $$;
