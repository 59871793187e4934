-- One append, with the values of `append`, after which its conversation holds every file that another holds. What `append` says,
-- or 8 where that other is not there; nothing is written then.
CREATE FUNCTION append_holding(
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
    END IF;
    RETURN NEXT;
END $$;
