-- Whether settings say that a conversation is pinned. NULL where they cannot be read, so that nobody knows: one that is damaged hinders
-- nothing that is asked of the others.
CREATE FUNCTION is_pinned(settings TEXT) RETURNS BOOLEAN LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
    -- Without what is escaped, of which PostgreSQL refuses some (the sign of number zero) that JSON allows.
    RETURN replace(replace(settings, '\\', ''), '\u', '')::json ->> 'pinned' IS NOT DISTINCT FROM 'true';
EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END $$;
