-- A conversation that begins with the first entries of another, which is told by its owner and when it was made, and with the files
-- that these name. 0 where it is made, 2 where the other is not there or has not so many, 3 where there is one of its name.
CREATE FUNCTION begin_as(
    new_id TEXT, new_owner TEXT, new_title TEXT, new_settings TEXT, new_created BIGINT, new_updated BIGINT, new_mark BIGINT,
    source TEXT, source_owner TEXT, source_created BIGINT, through BIGINT, files TEXT[]
) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE
    old BIGINT;
    this BIGINT;
BEGIN
    -- It is not removed before this is stored.
    SELECT key INTO old FROM conversation
        WHERE id = source AND owner = source_owner AND created_at_ms = source_created AND next_seq > through FOR SHARE;
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
    INSERT INTO artifact_use (conversation, artifact)
        SELECT this, a.key FROM artifact AS a WHERE a.id = ANY (files) AND a.owner = new_owner
        ON CONFLICT (conversation, artifact) DO NOTHING;
    RETURN 0;
END $$;
