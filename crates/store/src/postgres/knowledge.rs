//! The index over documents. A document is written in parts; it is found once its last part is there.

use async_trait::async_trait;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use turnwright_core::ContextPlace;
use turnwright_engine::StoreError;
use turnwright_engine::knowledge::{
    BESIDE, Beside, CollectionSize, FoundPiece, Hit, IndexedFile, KnowledgeIndex, Piece, PieceId, collection_beside,
};

use super::read::rows_at_most;
use super::words::{any_of, stems, vector};
use super::{PostgresStore, clean, get, milliseconds};
use crate::columns::integer;
use crate::vectors;
use crate::words::asked;

/// How much of a document is written at once, in bytes.
const PART_BYTES: usize = 256 * 1024;
/// How many words of a question are looked up.
const MOST_WORDS: usize = 32;
/// How many documents are removed at once.
const MOST_REMOVED: usize = 100;

const CLAIM: &str = "INSERT INTO knowledge (name, holder, until_ms) VALUES ($1, $2, $4)
    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until_ms = excluded.until_ms
    WHERE knowledge.holder = excluded.holder OR knowledge.until_ms <= $3";
/// What is beside a conversation that was deleted does not come back.
const CLAIM_KNOWN: &str = "UPDATE knowledge SET holder = $2, until_ms = $4
    WHERE name = $1 AND (holder = $2 OR until_ms <= $3)";
/// Told to people alone: counts all that there is.
const SIZES: &str = "SELECT name,
    (SELECT count(*) FROM knowledge_file WHERE knowledge_file.knowledge = knowledge.key AND skipped IS NULL),
    (SELECT count(*) FROM knowledge_file WHERE knowledge_file.knowledge = knowledge.key AND skipped IS NOT NULL),
    (SELECT count(*) FROM knowledge_piece
        WHERE knowledge_piece.key BETWEEN knowledge.key << 40 AND ((knowledge.key + 1) << 40) - 1),
    (SELECT count(*) FROM knowledge_sign
        WHERE knowledge_sign.piece BETWEEN knowledge.key << 40 AND ((knowledge.key + 1) << 40) - 1)
    FROM knowledge ORDER BY name";
const HAS_FILES: &str = "SELECT 1 FROM knowledge_file WHERE knowledge = (SELECT key FROM knowledge WHERE name = $1) LIMIT 1";
const FILES: &str = "SELECT path, bytes, modified_ns, hash, skipped FROM knowledge_file
    WHERE knowledge = (SELECT key FROM knowledge WHERE name = $1) ORDER BY path";
const PUT: &str = "SELECT put_pieces($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";
/// The same where the conversation is there; the lock keeps it until the document is put, and `forget_conversation` waits.
const PUT_BESIDE: &str = "WITH that AS MATERIALIZED (SELECT 1 FROM conversation
        WHERE id = $15 AND created_at_ms = $16 FOR KEY SHARE)
    SELECT put_pieces($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) FROM that";
/// Nobody holds it: each document beside a conversation is put by itself.
const MAKE_BESIDE: &str = "INSERT INTO knowledge (name, holder, until_ms)
    SELECT $1, '', 0 FROM conversation WHERE id = $2 AND created_at_ms = $3 FOR KEY SHARE
    ON CONFLICT (name) DO NOTHING";
const MOVE: &str = "SELECT move_file($1, $2, $3, $4, $5, $6, $7)";
const REMOVE: &str = "SELECT forget_files($1, $2)";
const REMOVE_ALL: &str = "SELECT forget_knowledge(key) FROM knowledge WHERE name = $1";
/// BM25 with the numbers that FTS5 has (k1 1.2, b 0.75), over the collections that are asked.
const BY_WORDS: &str = "WITH shelf AS MATERIALIZED (SELECT key FROM knowledge WHERE name = ANY ($1)),
    whole AS MATERIALIZED (SELECT count(*)::float8 AS pieces, greatest(avg(length), 1)::float8 AS length
        FROM knowledge_words WHERE knowledge IN (SELECT key FROM shelf)),
    term AS MATERIALIZED (SELECT piece, length::float8, lexeme, cardinality(positions)::float8 AS times
        FROM knowledge_words CROSS JOIN LATERAL unnest(words)
        WHERE words @@ $2::text::tsquery AND knowledge IN (SELECT key FROM shelf) AND lexeme = ANY ($3)),
    weight AS (SELECT lexeme, greatest(ln((pieces - count(*) + 0.5) / (count(*) + 0.5)), 0.000001) AS weight
        FROM term CROSS JOIN whole GROUP BY lexeme, pieces)
    SELECT piece, sum(weight * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * term.length / whole.length))) AS score
    FROM term JOIN weight USING (lexeme) CROSS JOIN whole GROUP BY piece ORDER BY score DESC, piece LIMIT $4";
/// By the signs of their numbers, which is coarse and fast, those that come near by their numbers. What has another length is
/// compared with nothing.
const NEAR: &str = "SELECT near.piece, vector FROM (SELECT piece FROM knowledge_sign
        WHERE piece >> 40 IN (SELECT key FROM knowledge WHERE name = ANY ($1) AND model = $2)
        AND length(signs) = length($3::text::varbit)
        ORDER BY CASE WHEN length(signs) = length($3::text::varbit)
            THEN bit_count(signs # $3::text::varbit) ELSE 2147483647 END, piece LIMIT $4) AS near
    JOIN knowledge_vector ON knowledge_vector.piece = near.piece";
const PIECES: &str = "SELECT knowledge.name, knowledge_file.path, knowledge_file.hash, unit, first, last, heading, text,
    knowledge_piece.key
    FROM unnest($1::bigint[]) WITH ORDINALITY AS wanted (piece, number)
    JOIN knowledge_piece ON knowledge_piece.key = wanted.piece
    JOIN knowledge_file ON knowledge_file.key = knowledge_piece.file
    JOIN knowledge ON knowledge.key = knowledge_file.knowledge
    WHERE knowledge_file.hash <> '' ORDER BY wanted.number";
const WITHOUT_VECTOR: &str = "SELECT knowledge_piece.key FROM knowledge JOIN knowledge_piece
    ON knowledge_piece.key BETWEEN knowledge.key << 40 AND ((knowledge.key + 1) << 40) - 1
    WHERE knowledge.name = $1 AND (knowledge.model IS DISTINCT FROM $2
        OR NOT EXISTS (SELECT 1 FROM knowledge_sign WHERE piece = knowledge_piece.key))
    ORDER BY knowledge_piece.key LIMIT $3";
const PUT_VECTORS: &str = "SELECT put_vectors($1, $2, $3, $4, $5)";

/// What the columns of pieces hold.
#[derive(Default)]
struct Columns {
    units: Vec<i64>,
    firsts: Vec<i64>,
    lasts: Vec<i64>,
    headings: Vec<String>,
    texts: Vec<String>,
    lengths: Vec<i64>,
    stems: Vec<String>,
    bytes: usize,
}

/// Where a document is put.
#[derive(Debug, Clone, Copy)]
enum Shelf<'a> {
    Collection(&'a str),
    Beside(&'a Beside),
}

/// What became of a part of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stored {
    Once,
    /// There is not where to put it.
    Nowhere,
    /// The connection broke, and it was sent again: the document is written from its beginning then.
    MaybeTwice,
}

impl Columns {
    fn push(&mut self, path: &str, piece: &Piece) {
        let (unit, first, last) = match piece.place {
            ContextPlace::Lines { first, last } => (0, first, last),
            ContextPlace::Pages { first, last } => (1, first, last),
        };
        let words = stems(&format!("{path}\n{}\n{}", piece.heading, piece.text));
        self.units.push(unit);
        self.firsts.push(i64::from(first));
        self.lasts.push(i64::from(last));
        self.headings.push(clean(&piece.heading).into_owned());
        self.texts.push(clean(&piece.text).into_owned());
        self.lengths.push(i64::try_from(words.len()).unwrap_or(i64::MAX));
        self.stems.push(vector(&words));
        self.bytes = self.bytes.saturating_add(piece.text.len()).saturating_add(piece.heading.len()).saturating_add(64);
    }
}

impl PostgresStore {
    async fn put_part(
        &self,
        to: Shelf<'_>,
        file: &IndexedFile,
        columns: &Columns,
        is_first: bool,
        is_last: bool,
    ) -> Result<Stored, StoreError> {
        let hash = if is_last { file.hash.as_str() } else { "" };
        let (path, bytes, skipped) = (clean(&file.path), integer(file.bytes), file.skipped.as_deref().map(clean));
        let name = match to {
            Shelf::Collection(name) => name.to_owned(),
            Shelf::Beside(beside) => collection_beside(&beside.conversation),
        };
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![
            &name,
            &path,
            &bytes,
            &file.modified_ns,
            &hash,
            &skipped,
            &is_first,
            &columns.units,
            &columns.firsts,
            &columns.lasts,
            &columns.headings,
            &columns.texts,
            &columns.lengths,
            &columns.stems,
        ];
        let answer = match to {
            Shelf::Collection(_) => self.pool.ask(PUT, &values).await?,
            Shelf::Beside(beside) => {
                let (id, created) = (beside.conversation.as_str(), integer(beside.created_at_ms));
                values.extend([&id as &(dyn ToSql + Sync), &created]);
                self.pool.ask(PUT_BESIDE, &values).await?
            }
        };
        if answer.count == 0 {
            return Ok(Stored::Nowhere);
        }
        // The first part begins with nothing, whatever was there.
        Ok(if answer.is_resent && !is_first { Stored::MaybeTwice } else { Stored::Once })
    }

    /// All parts, one after the other, until one may be there twice or has no place.
    async fn put_parts(&self, to: Shelf<'_>, file: &IndexedFile, pieces: &[Piece]) -> Result<Stored, StoreError> {
        let mut columns = Columns::default();
        let mut is_first = true;
        for piece in pieces {
            if columns.bytes >= PART_BYTES {
                let stored = self.put_part(to, file, &columns, is_first, false).await?;
                if stored != Stored::Once {
                    return Ok(stored);
                }
                (columns, is_first) = (Columns::default(), false);
            }
            columns.push(&file.path, piece);
        }
        self.put_part(to, file, &columns, is_first, true).await
    }

    /// Whether there was where to put it.
    async fn put_whole(&self, to: Shelf<'_>, file: &IndexedFile, pieces: &[Piece]) -> Result<bool, StoreError> {
        loop {
            match self.put_parts(to, file, pieces).await? {
                Stored::Once => return Ok(true),
                Stored::Nowhere => return Ok(false),
                Stored::MaybeTwice => {}
            }
        }
    }
}

#[async_trait]
impl KnowledgeIndex for PostgresStore {
    async fn claim(&self, collection: &str, holder: &str, now_ms: u64, until_ms: u64) -> Result<bool, StoreError> {
        let claim = if collection.starts_with(BESIDE) { CLAIM_KNOWN } else { CLAIM };
        let answer = self.pool.ask(claim, &[&collection, &holder, &integer(now_ms), &integer(until_ms)]).await?;
        Ok(answer.count > 0)
    }

    async fn sizes(&self) -> Result<Vec<CollectionSize>, StoreError> {
        let number = |row: &Row, column| get::<i64>(row, column).map(milliseconds);
        let size = |row: &Row| {
            Ok(CollectionSize {
                collection: get(row, 0)?,
                files: number(row, 1)?,
                skipped: number(row, 2)?,
                pieces: number(row, 3)?,
                vectors: number(row, 4)?,
            })
        };
        self.pool.ask(SIZES, &[]).await?.rows.iter().map(size).collect()
    }

    async fn has_files(&self, collection: &str) -> Result<bool, StoreError> {
        Ok(self.pool.ask(HAS_FILES, &[&collection]).await?.count > 0)
    }

    async fn files(&self, collection: &str) -> Result<Vec<IndexedFile>, StoreError> {
        let file = |row: &Row| {
            let (path, bytes) = (get(row, 0)?, milliseconds(get(row, 1)?));
            Ok(IndexedFile { path, bytes, modified_ns: get(row, 2)?, hash: get(row, 3)?, skipped: get(row, 4)? })
        };
        self.pool.ask(FILES, &[&collection]).await?.rows.iter().map(file).collect()
    }

    async fn put(&self, collection: &str, file: IndexedFile, pieces: Vec<Piece>) -> Result<(), StoreError> {
        self.put_whole(Shelf::Collection(collection), &file, &pieces).await.map(drop)
    }

    async fn put_beside(&self, beside: &Beside, file: IndexedFile, pieces: Vec<Piece>) -> Result<bool, StoreError> {
        let (id, created) = (beside.conversation.as_str(), integer(beside.created_at_ms));
        self.pool.ask(MAKE_BESIDE, &[&collection_beside(&beside.conversation), &id, &created]).await?;
        self.put_whole(Shelf::Beside(beside), &file, &pieces).await
    }

    async fn moved(&self, collection: &str, from: &str, file: IndexedFile) -> Result<(), StoreError> {
        let (path, bytes, skipped) = (clean(&file.path), integer(file.bytes), file.skipped.as_deref().map(clean));
        let values: [&(dyn ToSql + Sync); 7] =
            [&collection, &clean(from), &path, &bytes, &file.modified_ns, &file.hash, &skipped];
        self.pool.ask(MOVE, &values).await.map(drop)
    }

    async fn remove(&self, collection: &str, paths: Vec<String>) -> Result<(), StoreError> {
        for paths in paths.chunks(MOST_REMOVED) {
            let paths: Vec<_> = paths.iter().map(|path| clean(path)).collect();
            self.pool.ask(REMOVE, &[&collection, &paths]).await?;
        }
        Ok(())
    }

    async fn remove_collection(&self, collection: &str) -> Result<(), StoreError> {
        self.pool.ask(REMOVE_ALL, &[&collection]).await.map(drop)
    }

    async fn by_words(&self, collections: &[String], text: &str, limit: usize) -> Result<Vec<Hit>, StoreError> {
        let Some((query, counted)) = any_of(&asked(text, MOST_WORDS)) else { return Ok(Vec::new()) };
        let names: Vec<&str> = collections.iter().map(String::as_str).collect();
        let rows = self.pool.ask(BY_WORDS, &[&names, &query, &counted, &rows_at_most(limit)]).await?.rows;
        rows.iter().map(|row| Ok(Hit { piece: PieceId(get(row, 0)?), score: get(row, 1)? })).collect()
    }

    async fn by_vector(
        &self,
        collections: &[String],
        model: &str,
        vector: &[f32],
        limit: usize,
    ) -> Result<Vec<Hit>, StoreError> {
        let names: Vec<&str> = collections.iter().map(String::as_str).collect();
        let most = rows_at_most(vectors::compared(limit));
        let rows = self.pool.ask(NEAR, &[&names, &model, &vectors::bits(vector), &most]).await?.rows;
        let near = rows.iter().map(|row| Ok((get(row, 0)?, get::<&[u8]>(row, 1)?))).collect::<Result<Vec<_>, StoreError>>()?;
        Ok(vectors::best(near, vector, limit))
    }

    async fn pieces(&self, ids: &[PieceId]) -> Result<Vec<FoundPiece>, StoreError> {
        let ids: Vec<i64> = ids.iter().map(|id| id.0).collect();
        self.pool.ask(PIECES, &[&ids]).await?.rows.iter().map(found_piece).collect()
    }

    async fn without_vector(&self, collection: &str, model: &str, limit: usize) -> Result<Vec<FoundPiece>, StoreError> {
        let rows = self.pool.ask(WITHOUT_VECTOR, &[&collection, &model, &rows_at_most(limit)]).await?.rows;
        let ids = rows.iter().map(|row| Ok(PieceId(get(row, 0)?))).collect::<Result<Vec<_>, StoreError>>()?;
        self.pieces(&ids).await
    }

    async fn put_vectors(&self, collection: &str, model: &str, vectors: Vec<(PieceId, Vec<f32>)>) -> Result<(), StoreError> {
        let pieces: Vec<i64> = vectors.iter().map(|(piece, _)| piece.0).collect();
        let signs: Vec<String> = vectors.iter().map(|(_, vector)| vectors::bits(vector)).collect();
        let bytes: Vec<Vec<u8>> = vectors.iter().map(|(_, vector)| vectors::bytes(vector)).collect();
        self.pool.ask(PUT_VECTORS, &[&collection, &model, &pieces, &signs, &bytes]).await.map(drop)
    }
}

fn found_piece(row: &Row) -> Result<FoundPiece, StoreError> {
    let number = |column| get::<i64>(row, column).map(|number| u32::try_from(number).unwrap_or_default());
    let (first, last) = (number(4)?, number(5)?);
    let is_lines = get::<i64>(row, 3)? == 0;
    let place = if is_lines { ContextPlace::Lines { first, last } } else { ContextPlace::Pages { first, last } };
    let piece = Piece { place, heading: get(row, 6)?, text: get(row, 7)? };
    Ok(FoundPiece { id: PieceId(get(row, 8)?), collection: get(row, 0)?, path: get(row, 1)?, hash: get(row, 2)?, piece })
}
