-- The time of a conversation's newest entry goes on, also where whoever appends has a clock that does not; and a file that was uploaded
-- again since is not removed with the conversation that alone holds it.

-- As before, but for `updated_at_ms`.
CREATE OR REPLACE FUNCTION append(
    ids TEXT[], ats BIGINT[], times BIGINT[], counts BIGINT[], marks BIGINT[],
    versions SMALLINT[], entry_times BIGINT[], bodies TEXT[],
    side_of BIGINT[], side_kinds TEXT[], side_a TEXT[], side_b TEXT[], side_c TEXT[], side_n BIGINT[], side_m BIGINT[]
) RETURNS TABLE (verdict BIGINT, place BIGINT, key TEXT) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    this BIGINT;
    next BIGINT;
    last_mark BIGINT;
    creates BIGINT;
    known TEXT;
    wanted TEXT;
    before BIGINT := 0;
    found_one BOOLEAN;
    made BIGINT;
    belongs_to TEXT;
    is_another BOOLEAN;
BEGIN
    IF side_kinds && ARRAY['reserve', 'settle'] THEN PERFORM lock_ledger(); END IF;
    -- Whoever counts a user's turns waits for those that began others of them, until these are stored. All take the users in
    -- one order, before any conversation.
    IF 'running' = ANY (side_kinds) THEN
        FOR wanted IN SELECT DISTINCT side_a[s] COLLATE "C" FROM generate_series(1, cardinality(side_of)) AS s
            WHERE side_kinds[s] = 'running' ORDER BY 1
        LOOP
            PERFORM pg_advisory_xact_lock(hashtextextended('turnwright turns ' || current_schema() || ' ' || wanted, 0));
        END LOOP;
    END IF;
    FOR i IN 1 .. cardinality(ids) LOOP
        creates := NULL;
        known := NULL;
        FOR s IN 1 .. cardinality(side_of) LOOP
            IF side_of[s] = i AND side_kinds[s] = 'create' THEN creates := s; END IF;
        END LOOP;
        SELECT c.key, c.next_seq, c.mark, c.created_at_ms, c.owner INTO this, next, last_mark, made, belongs_to
            FROM conversation c WHERE c.id = ids[i] FOR NO KEY UPDATE;
        found_one := FOUND;
        is_another := FALSE;
        FOR s IN 1 .. cardinality(side_of) LOOP
            IF side_of[s] = i AND side_kinds[s] = 'of' AND (side_n[s] <> made OR side_a[s] <> belongs_to) THEN
                is_another := found_one;
            END IF;
        END LOOP;
        IF found_one AND (last_mark = marks[i]
            OR EXISTS (SELECT 1 FROM entry e WHERE e.place = (this << 32) + least(ats[i], 4294967295) AND e.mark = marks[i])) THEN
            -- It was stored, and its answer was lost.
            verdict := 0; place := 0; key := NULL;
        ELSIF found_one AND creates IS NOT NULL THEN
            verdict := 3; place := 0; key := NULL;
        ELSIF is_another OR NOT found_one AND creates IS NULL THEN
            verdict := 2; place := 0; key := NULL;
        ELSIF (CASE WHEN found_one THEN next ELSE 1 END) <> ats[i] THEN
            verdict := 1; place := CASE WHEN found_one THEN next ELSE 1 END; key := NULL;
        ELSE
            SELECT k.key INTO known FROM idempotency k WHERE k.key = ANY (
                SELECT side_a[s] FROM generate_series(1, cardinality(side_of)) AS s
                WHERE side_of[s] = i AND side_kinds[s] = 'answer') LIMIT 1;
            IF known IS NOT NULL THEN
                verdict := 4; place := 0; key := known;
            ELSIF ats[i] + counts[i] > 4294967296 THEN
                verdict := 5; place := ats[i]; key := NULL;
            ELSIF EXISTS (SELECT 1 FROM generate_series(1, cardinality(side_of)) AS s
                WHERE side_of[s] = i AND side_kinds[s] = 'reserve'
                    AND is_over_budget(CASE WHEN found_one THEN this END, side_a[s], side_n[s], side_m[s],
                        side_c[s]::json -> 'within')) THEN
                verdict := 6; place := 0; key := NULL;
            ELSIF EXISTS (SELECT 1 FROM generate_series(1, cardinality(side_of)) AS s
                WHERE side_of[s] = i AND side_kinds[s] = 'running'
                    AND side_n[s] <= (SELECT count(*) FROM open_turn AS o WHERE o.owner = side_a[s] AND o.is_parked = 0
                        AND o.conversation IS DISTINCT FROM CASE WHEN found_one THEN this END)) THEN
                verdict := 7; place := 0; key := NULL;
            ELSE
                verdict := 0; place := 0; key := NULL;
                IF creates IS NOT NULL THEN
                    INSERT INTO conversation (id, next_seq, created_at_ms, updated_at_ms, title, settings, owner, mark)
                        VALUES (ids[i], 1 + counts[i], side_n[creates],
                            CASE WHEN counts[i] = 0 THEN side_m[creates] ELSE times[i] END,
                            side_b[creates], side_c[creates], side_a[creates], marks[i])
                        ON CONFLICT (id) DO NOTHING RETURNING conversation.key INTO this;
                    IF NOT FOUND THEN verdict := 3; END IF;
                ELSIF counts[i] > 0 THEN
                    UPDATE conversation AS c SET next_seq = ats[i] + counts[i], mark = marks[i],
                        updated_at_ms = greatest(c.updated_at_ms, times[i]) WHERE c.key = this;
                END IF;
                IF verdict = 0 THEN
                    IF counts[i] > 0 THEN
                        INSERT INTO entry (place, version, at_ms, body, mark)
                            SELECT (this << 32) + ats[i] + n - 1, versions[before + n], entry_times[before + n],
                                bodies[before + n], CASE WHEN n = 1 THEN marks[i] END
                            FROM generate_series(1, counts[i]) AS n;
                    END IF;
                    FOR s IN 1 .. cardinality(side_of) LOOP
                        CONTINUE WHEN side_of[s] <> i OR side_kinds[s] IN ('create', 'running', 'of');
                        CASE side_kinds[s]
                        WHEN 'title' THEN
                            UPDATE conversation AS c SET title = side_a[s] WHERE c.key = this;
                        WHEN 'open' THEN
                            INSERT INTO open_turn (conversation, turn, is_parked, kept_by)
                                VALUES (this, side_n[s], side_m[s], side_a[s])
                                ON CONFLICT (conversation) DO UPDATE SET turn = excluded.turn,
                                    is_parked = excluded.is_parked, kept_by = excluded.kept_by;
                        WHEN 'over' THEN
                            DELETE FROM open_turn WHERE conversation = this;
                        WHEN 'document' THEN
                            IF side_c[s] IS NULL THEN
                                DELETE FROM document AS d WHERE d.kind = side_a[s] AND d.key = side_b[s];
                            ELSE
                                INSERT INTO document (kind, key, body) VALUES (side_a[s], side_b[s], side_c[s])
                                    ON CONFLICT (kind, key) DO UPDATE SET body = excluded.body;
                            END IF;
                        WHEN 'holds' THEN
                            INSERT INTO artifact_use (conversation, artifact)
                                SELECT c.key, a.key FROM conversation AS c CROSS JOIN artifact AS a
                                WHERE c.key = this AND a.id = side_a[s] AND a.owner = c.owner
                                ON CONFLICT (conversation, artifact) DO NOTHING;
                        WHEN 'settle' THEN
                            PERFORM settle(this, side_a[s], side_n[s], side_m[s]);
                        WHEN 'reserve' THEN
                            INSERT INTO reservation (conversation, purpose, day, owner, tokens, nano_usd)
                                VALUES (this, side_a[s], (side_c[s]::json ->> 'day')::bigint, side_b[s], side_n[s], side_m[s])
                                ON CONFLICT (conversation, purpose) DO UPDATE SET day = excluded.day, owner = excluded.owner,
                                    tokens = excluded.tokens, nano_usd = excluded.nano_usd;
                        WHEN 'answer' THEN
                            INSERT INTO idempotency (key, conversation, fingerprint, answer)
                                VALUES (side_a[s], this, side_b[s], side_c[s]);
                        END CASE;
                    END LOOP;
                END IF;
            END IF;
        END IF;
        before := before + counts[i];
        RETURN NEXT;
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION forget_conversation(wanted TEXT, documents TEXT) RETURNS BOOLEAN LANGUAGE plpgsql AS $$
DECLARE
    this BIGINT;
    alone BIGINT[];
    shelf BIGINT;
BEGIN
    PERFORM lock_ledger();
    SELECT key INTO this FROM conversation WHERE id = wanted FOR UPDATE;
    IF NOT FOUND THEN RETURN FALSE; END IF;
    -- Nobody will know any more what its calls came to, so what was reserved for them is spent.
    INSERT INTO spent AS s (day, owner, tokens, nano_usd)
        SELECT r.day, r.owner, sum(r.tokens)::bigint, sum(r.nano_usd)::bigint FROM reservation AS r
        WHERE r.conversation = this GROUP BY r.day, r.owner
        ON CONFLICT (day, owner) DO UPDATE SET tokens = s.tokens + excluded.tokens, nano_usd = s.nano_usd + excluded.nano_usd;
    DELETE FROM reservation AS r WHERE r.conversation = this;
    -- What was uploaded again since waits for its message; it goes with what nobody uses.
    alone := ARRAY(SELECT used.artifact FROM artifact_use AS used
        JOIN artifact ON artifact.key = used.artifact JOIN conversation AS own ON own.key = this
        WHERE used.conversation = this AND artifact.created_at_ms <= own.updated_at_ms AND NOT EXISTS
        (SELECT 1 FROM artifact_use AS other WHERE other.artifact = used.artifact AND other.conversation <> this)
        FOR UPDATE OF artifact);
    DELETE FROM artifact_piece USING unnest(alone) AS gone (number)
        WHERE place BETWEEN gone.number << 32 AND (gone.number << 32) + 4294967295;
    DELETE FROM artifact WHERE key = ANY (alone);
    DELETE FROM artifact_use WHERE conversation = this;
    DELETE FROM said WHERE place BETWEEN this << 32 AND (this << 32) + 4294967295;
    DELETE FROM said_until WHERE conversation = this;
    SELECT key INTO shelf FROM knowledge WHERE name = 'conversation/' || wanted FOR UPDATE;
    IF FOUND THEN PERFORM forget_knowledge(shelf); END IF;
    DELETE FROM entry WHERE place BETWEEN this << 32 AND (this << 32) + 4294967295;
    DELETE FROM open_turn WHERE conversation = this;
    DELETE FROM idempotency WHERE conversation = this;
    DELETE FROM conversation WHERE key = this;
    -- From its name with a `/` to the sign after that.
    DELETE FROM document WHERE kind = documents AND key >= wanted || '/' AND key < wanted || '0';
    RETURN TRUE;
END $$;
