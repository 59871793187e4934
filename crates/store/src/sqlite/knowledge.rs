//! The index over documents.
//!
//! A document is written in parts, so that the writer has time for others; it is found once its last part is there. Where a
//! process ends before, the document has no hash, and whoever indexes next writes it anew.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row, params};
use turnwright_core::{ContextPlace, ConversationId};
use turnwright_engine::StoreError;
use turnwright_engine::knowledge::{
    BESIDE, Beside, CollectionSize, FoundPiece, Hit, IndexedFile, KnowledgeIndex, Piece, PieceId, collection_beside,
};

use super::SqliteStore;
use super::readers::Unread;
use super::statements as sql;
use super::write::Write;
use crate::columns::integer;
use crate::vectors;
use crate::words::{any_of, asked, unaccented, written};

mod nearest;

/// How much of a document is written at once, in bytes.
const PART_BYTES: usize = 128 * 1024;
/// How many words of a question are looked up.
const MOST_WORDS: usize = 32;
/// How many pieces are looked at to find the best, where a question has rarer words and more frequent ones.
const MOST_COMPARED: usize = 8_000;
/// How many documents are removed at once.
const MOST_REMOVED: usize = 100;
/// How many bits of a piece's key are its number in the collection.
const PIECE_BITS: u32 = 40;

/// One change to the index. Those of a collection that is not there change nothing.
#[derive(Debug)]
pub(super) enum Change {
    Claim { name: String, holder: String, now_ms: u64, until_ms: u64, is_taken: Arc<AtomicBool> },
    Put { to: Shelf, file: IndexedFile, pieces: Vec<Piece>, part: Part, is_put: Arc<AtomicBool> },
    Moved { name: String, from: String, file: IndexedFile },
    Remove { name: String, paths: Vec<String> },
    RemoveCollection { name: String },
    Vectors { name: String, model: String, vectors: Vec<(PieceId, Vec<f32>)> },
}

/// Where a document is put.
#[derive(Debug, Clone)]
pub(super) enum Shelf {
    Collection(String),
    Beside(Beside),
}

/// Which part of a document is put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    is_first: bool,
    is_last: bool,
}

/// A collection's row.
struct Collection {
    key: i64,
    next_piece: i64,
    model: Option<String>,
}

impl Change {
    /// About how many bytes it holds.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Put { pieces, .. } => pieces.iter().map(weight).sum(),
            Self::Vectors { vectors, .. } => vectors.iter().map(|(_, vector)| vector.len().saturating_mul(4)).sum(),
            Self::Claim { .. } | Self::Moved { .. } | Self::Remove { .. } | Self::RemoveCollection { .. } => 0,
        }
    }

    pub(super) fn carry_out(&self, connection: &Connection) -> rusqlite::Result<()> {
        let find = |name: &str| collection(connection, name);
        match self {
            Self::Claim { name, holder, now_ms, until_ms, is_taken } => {
                let row = (name, holder, integer(*now_ms), integer(*until_ms));
                // What is beside a conversation that was deleted does not come back.
                let claim = if name.starts_with(BESIDE) { sql::CLAIM_KNOWN_KNOWLEDGE } else { sql::CLAIM_KNOWLEDGE };
                let changed = connection.prepare_cached(claim)?.execute(row)?;
                is_taken.store(changed > 0, Ordering::Relaxed);
            }
            Self::Put { to, file, pieces, part, is_put } => {
                let found = match to {
                    Shelf::Collection(name) => find(name)?,
                    Shelf::Beside(beside) => collection_of(connection, beside)?,
                };
                if let Some(found) = found {
                    put(connection, &found, file, pieces, *part)?;
                    is_put.store(true, Ordering::Relaxed);
                }
            }
            Self::Moved { name, from, file } => {
                let Some(found) = find(name)? else { return Ok(()) };
                let Some(key) = file_key(connection, found.key, from)? else { return Ok(()) };
                if let Some(replaced) = file_key(connection, found.key, &file.path)?.filter(|other| *other != key) {
                    remove_file(connection, replaced)?;
                }
                let row = params![key, file.path, integer(file.bytes), file.modified_ns, file.hash, file.skipped];
                connection.prepare_cached(sql::MOVE_KNOWLEDGE_FILE)?.execute(row)?;
            }
            Self::Remove { name, paths } => {
                let Some(found) = find(name)? else { return Ok(()) };
                for path in paths {
                    if let Some(key) = file_key(connection, found.key, path)? {
                        remove_file(connection, key)?;
                    }
                }
            }
            Self::RemoveCollection { name } => {
                if let Some(found) = find(name)? {
                    remove_collection(connection, found.key)?;
                }
            }
            Self::Vectors { name, model, vectors } => {
                let Some(found) = find(name)? else { return Ok(()) };
                if found.model.as_ref() != Some(model) {
                    for statement in [sql::REMOVE_SIGNS, sql::REMOVE_VECTORS] {
                        connection.prepare_cached(statement)?.execute((found.key,))?;
                    }
                    connection.prepare_cached(sql::KNOWLEDGE_MODEL)?.execute((found.key, model))?;
                }
                for (piece, vector) in vectors {
                    connection.prepare_cached(sql::PUT_SIGNS)?.execute((piece.0, vectors::signs(vector)))?;
                    connection.prepare_cached(sql::PUT_VECTOR)?.execute((piece.0, vectors::bytes(vector)))?;
                }
            }
        }
        Ok(())
    }
}

fn collection(connection: &Connection, name: &str) -> rusqlite::Result<Option<Collection>> {
    let mut statement = connection.prepare_cached(sql::KNOWLEDGE)?;
    let row = |row: &Row<'_>| Ok(Collection { key: row.get(0)?, next_piece: row.get(1)?, model: row.get(2)? });
    statement.query_row((name,), row).optional()
}

/// The collection beside a conversation, made where it is lacking; `None` where that conversation is gone.
fn collection_of(connection: &Connection, beside: &Beside) -> rusqlite::Result<Option<Collection>> {
    let that = (beside.conversation.as_str(), integer(beside.created_at_ms));
    if !connection.prepare_cached(sql::IS_THAT_CONVERSATION)?.exists(that)? {
        return Ok(None);
    }
    let name = collection_beside(&beside.conversation);
    connection.prepare_cached(sql::MAKE_KNOWLEDGE_BESIDE)?.execute((&name,))?;
    collection(connection, &name)
}

fn file_key(connection: &Connection, collection: i64, path: &str) -> rusqlite::Result<Option<i64>> {
    connection.prepare_cached(sql::KNOWLEDGE_FILE)?.query_row((collection, path), |row| row.get(0)).optional()
}

fn put(connection: &Connection, found: &Collection, file: &IndexedFile, pieces: &[Piece], part: Part) -> rusqlite::Result<()> {
    let hash = if part.is_last { file.hash.as_str() } else { "" };
    let row = params![found.key, file.path, integer(file.bytes), file.modified_ns, hash, file.skipped];
    let key: i64 = connection.prepare_cached(sql::PUT_KNOWLEDGE_FILE)?.query_row(row, |row| row.get(0))?;
    if part.is_first {
        remove_pieces(connection, key)?;
    }
    let mut next = found.next_piece;
    for piece in pieces {
        let id = (found.key << PIECE_BITS) + next;
        next = next.saturating_add(1);
        let (unit, first, last) = match piece.place {
            ContextPlace::Lines { first, last } => (0, first, last),
            ContextPlace::Pages { first, last } => (1, first, last),
        };
        let row = params![id, key, unit, first, last, piece.heading, piece.text];
        connection.prepare_cached(sql::PUT_KNOWLEDGE_PIECE)?.execute(row)?;
        put_words(connection, id, (&file.path, &piece.heading, &piece.text))?;
    }
    connection.prepare_cached(sql::KNOWLEDGE_NEXT)?.execute((found.key, next))?;
    Ok(())
}

fn remove_pieces(connection: &Connection, file: i64) -> rusqlite::Result<()> {
    for statement in [sql::REMOVE_PIECE_WORDS, sql::REMOVE_PIECE_SIGNS, sql::REMOVE_PIECE_VECTORS, sql::REMOVE_PIECES] {
        connection.prepare_cached(statement)?.execute((file,))?;
    }
    Ok(())
}

fn remove_file(connection: &Connection, file: i64) -> rusqlite::Result<()> {
    remove_pieces(connection, file)?;
    connection.prepare_cached(sql::REMOVE_KNOWLEDGE_FILE)?.execute((file,))?;
    Ok(())
}

fn remove_collection(connection: &Connection, key: i64) -> rusqlite::Result<()> {
    let files: Vec<String> =
        connection.prepare_cached(sql::KNOWLEDGE_FILES)?.query_map((key,), |row| row.get(0))?.collect::<Result<_, _>>()?;
    for path in files {
        if let Some(file) = file_key(connection, key, &path)? {
            remove_file(connection, file)?;
        }
    }
    connection.prepare_cached(sql::REMOVE_KNOWLEDGE)?.execute((key,))?;
    Ok(())
}

/// A conversation begins as another does: it has copies of the documents that are beside that.
pub(super) fn copy_beside(connection: &Connection, source: &ConversationId, conversation: i64) -> rusqlite::Result<()> {
    let Some(of) = collection(connection, &collection_beside(source))? else { return Ok(()) };
    let mut statement = connection.prepare_cached(sql::COPY_KNOWLEDGE)?;
    let own: Option<i64> = statement.query_row((BESIDE, of.key, conversation), |row| row.get(0)).optional()?;
    let Some(own) = own else { return Ok(()) };
    for statement in [sql::COPY_KNOWLEDGE_FILES, sql::COPY_KNOWLEDGE_PIECES, sql::COPY_SIGNS, sql::COPY_VECTORS] {
        connection.prepare_cached(statement)?.execute((of.key, own))?;
    }
    let mut pieces = connection.prepare_cached(sql::PIECES_OF)?;
    let mut rows = pieces.query((own,))?;
    while let Some(row) = rows.next()? {
        let (id, path, heading, text): (i64, String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
        put_words(connection, id, (&path, &heading, &text))?;
    }
    Ok(())
}

fn put_words(connection: &Connection, piece: i64, (path, heading, text): (&str, &str, &str)) -> rusqlite::Result<usize> {
    connection.prepare_cached(sql::PUT_PIECE_WORDS)?.execute((piece, unaccented(&format!("{path}\n{heading}\n{text}"))))
}

/// A conversation is deleted: what was attached to it goes.
pub(super) fn forget_conversation(connection: &Connection, id: &ConversationId) -> rusqlite::Result<()> {
    match collection(connection, &collection_beside(id))? {
        Some(found) => remove_collection(connection, found.key),
        None => Ok(()),
    }
}

fn weight(piece: &Piece) -> usize {
    piece.text.len().saturating_add(piece.heading.len()).saturating_add(64)
}

/// Pieces in parts that are written at once; at least one, which may be empty.
fn parts(pieces: Vec<Piece>) -> Vec<Vec<Piece>> {
    let mut parts = vec![Vec::new()];
    let mut bytes = 0;
    for piece in pieces {
        if bytes >= PART_BYTES {
            parts.push(Vec::new());
            bytes = 0;
        }
        bytes += weight(&piece);
        if let Some(part) = parts.last_mut() {
            part.push(piece);
        }
    }
    parts
}

impl SqliteStore {
    async fn change(&self, change: Change) -> Result<(), StoreError> {
        self.writer.write(Write::Knowledge(change)).await
    }

    /// All parts, one after the other; whether there was where to put them.
    async fn put_parts(&self, to: Shelf, file: IndexedFile, pieces: Vec<Piece>) -> Result<bool, StoreError> {
        let parts = parts(pieces);
        let last = parts.len().saturating_sub(1);
        for (index, pieces) in parts.into_iter().enumerate() {
            let is_put = Arc::new(AtomicBool::new(false));
            let (to, file, told) = (to.clone(), file.clone(), is_put.clone());
            let part = Part { is_first: index == 0, is_last: index == last };
            self.change(Change::Put { to, file, pieces, part, is_put: told }).await?;
            if !is_put.load(Ordering::Relaxed) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[async_trait]
impl KnowledgeIndex for SqliteStore {
    async fn claim(&self, collection: &str, holder: &str, now_ms: u64, until_ms: u64) -> Result<bool, StoreError> {
        let is_taken = Arc::new(AtomicBool::new(false));
        let (name, holder) = (collection.to_owned(), holder.to_owned());
        self.change(Change::Claim { name, holder, now_ms, until_ms, is_taken: is_taken.clone() }).await?;
        Ok(is_taken.load(Ordering::Relaxed))
    }

    async fn sizes(&self) -> Result<Vec<CollectionSize>, StoreError> {
        let read = |connection: &Connection| {
            let mut statement = connection.prepare_cached(sql::KNOWLEDGE_SIZES)?;
            let rows = statement.query_map((), size)?.collect::<Result<_, _>>()?;
            Ok::<_, Unread>(rows)
        };
        self.readers.read(read).await
    }

    async fn has_files(&self, collection: &str) -> Result<bool, StoreError> {
        let name = collection.to_owned();
        let read = move |connection: &Connection| Ok::<_, Unread>(connection.prepare_cached(sql::HAS_FILES)?.exists((name,))?);
        self.readers.read_here(read).await
    }

    async fn files(&self, collection: &str) -> Result<Vec<IndexedFile>, StoreError> {
        let name = collection.to_owned();
        let read = move |connection: &Connection| {
            let Some(found) = self::collection(connection, &name)? else { return Ok::<_, Unread>(Vec::new()) };
            let mut statement = connection.prepare_cached(sql::KNOWLEDGE_FILES)?;
            let files = statement.query_map((found.key,), indexed_file)?.collect::<Result<_, _>>()?;
            Ok(files)
        };
        self.readers.read(read).await
    }

    async fn put(&self, collection: &str, file: IndexedFile, pieces: Vec<Piece>) -> Result<(), StoreError> {
        self.put_parts(Shelf::Collection(collection.to_owned()), file, pieces).await.map(drop)
    }

    async fn put_beside(&self, beside: &Beside, file: IndexedFile, pieces: Vec<Piece>) -> Result<bool, StoreError> {
        // Whoever puts into other collections has claimed them.
        let _putting = self.putting.lock().await;
        self.put_parts(Shelf::Beside(beside.clone()), file, pieces).await
    }

    async fn moved(&self, collection: &str, from: &str, file: IndexedFile) -> Result<(), StoreError> {
        self.change(Change::Moved { name: collection.to_owned(), from: from.to_owned(), file }).await
    }

    async fn remove(&self, collection: &str, paths: Vec<String>) -> Result<(), StoreError> {
        for paths in paths.chunks(MOST_REMOVED) {
            self.change(Change::Remove { name: collection.to_owned(), paths: paths.to_vec() }).await?;
        }
        Ok(())
    }

    async fn remove_collection(&self, collection: &str) -> Result<(), StoreError> {
        self.change(Change::RemoveCollection { name: collection.to_owned() }).await
    }

    async fn by_words(&self, collections: &[String], text: &str, limit: usize) -> Result<Vec<Hit>, StoreError> {
        let words = written(&asked(text, MOST_WORDS));
        let (names, most) = (collections.to_vec(), i64::try_from(limit).unwrap_or(i64::MAX));
        let read = move |connection: &Connection| {
            let mut hits: Vec<(f64, i64)> = Vec::new();
            for name in &names {
                let Some(found) = collection(connection, name)? else { continue };
                let counted = words.iter().map(|word| Ok((pieces_with(connection, found.key, word)?, word.clone())));
                let Some(query) = any_of(counted.collect::<rusqlite::Result<_>>()?, MOST_COMPARED) else { continue };
                let mut statement = connection.prepare_cached(sql::PIECES_BY_WORDS)?;
                let rows = statement.query_map((&query, found.key, most), |row| Ok((row.get(1)?, row.get(0)?)))?;
                for row in rows {
                    hits.push(row?);
                }
            }
            // SQLite's rank is the lower the better.
            hits.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let hit = |(rank, id): (f64, i64)| Hit { piece: PieceId(id), score: -rank };
            Ok::<_, Unread>(hits.into_iter().take(limit).map(hit).collect())
        };
        self.readers.read(read).await
    }

    async fn by_vector(
        &self,
        collections: &[String],
        model: &str,
        vector: &[f32],
        limit: usize,
    ) -> Result<Vec<Hit>, StoreError> {
        let (names, model, vector) = (collections.to_vec(), model.to_owned(), vector.to_vec());
        let read = move |connection: &Connection| {
            let mut keys = Vec::new();
            for name in &names {
                let found = collection(connection, name)?;
                keys.extend(found.filter(|found| found.model.as_ref() == Some(&model)).map(|found| found.key));
            }
            Ok::<_, Unread>(nearest::nearest(connection, &keys, &vector, limit)?)
        };
        self.readers.read(read).await
    }

    async fn pieces(&self, ids: &[PieceId]) -> Result<Vec<FoundPiece>, StoreError> {
        let ids = ids.to_vec();
        let read = move |connection: &Connection| {
            let mut found = Vec::new();
            for id in ids {
                found.extend(found_piece(connection, id)?);
            }
            Ok::<_, Unread>(found)
        };
        self.readers.read(read).await
    }

    async fn without_vector(&self, collection: &str, model: &str, limit: usize) -> Result<Vec<FoundPiece>, StoreError> {
        let (name, model, limit) = (collection.to_owned(), model.to_owned(), i64::try_from(limit).unwrap_or(i64::MAX));
        let read = move |connection: &Connection| {
            let Some(known) = self::collection(connection, &name)? else { return Ok::<_, Unread>(Vec::new()) };
            let all = known.model.as_ref() != Some(&model);
            let mut statement = connection.prepare_cached(sql::WITHOUT_VECTOR)?;
            let rows = statement.query_map((known.key, all, limit), |row| row.get(0))?;
            let ids: Vec<i64> = rows.collect::<Result<_, _>>()?;
            let mut found = Vec::new();
            for id in ids {
                found.extend(found_piece(connection, PieceId(id))?);
            }
            Ok(found)
        };
        self.readers.read(read).await
    }

    async fn put_vectors(&self, collection: &str, model: &str, vectors: Vec<(PieceId, Vec<f32>)>) -> Result<(), StoreError> {
        self.change(Change::Vectors { name: collection.to_owned(), model: model.to_owned(), vectors }).await
    }
}

/// In how many pieces of a collection a word is; no more are counted than say that it is a frequent one.
fn pieces_with(connection: &Connection, collection: i64, word: &str) -> rusqlite::Result<usize> {
    let mut statement = connection.prepare_cached(sql::PIECES_WITH)?;
    let most = i64::try_from(MOST_COMPARED).unwrap_or(i64::MAX).saturating_add(1);
    let mut rows = statement.query((word, collection, most))?;
    let mut count = 0;
    while rows.next()?.is_some() {
        count += 1;
    }
    Ok(count)
}

fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(|number| u64::try_from(number).unwrap_or_default())
}

fn size(row: &Row<'_>) -> rusqlite::Result<CollectionSize> {
    Ok(CollectionSize {
        collection: row.get(0)?,
        files: number(row, 1)?,
        skipped: number(row, 2)?,
        pieces: number(row, 3)?,
        vectors: number(row, 4)?,
    })
}

fn indexed_file(row: &Row<'_>) -> rusqlite::Result<IndexedFile> {
    let (path, bytes) = (row.get(0)?, number(row, 1)?);
    Ok(IndexedFile { path, bytes, modified_ns: row.get(2)?, hash: row.get(3)?, skipped: row.get(4)? })
}

fn found_piece(connection: &Connection, id: PieceId) -> rusqlite::Result<Option<FoundPiece>> {
    let row = |row: &Row<'_>| {
        let (first, last) = (row.get(4)?, row.get(5)?);
        let is_lines = row.get::<_, i64>(3)? == 0;
        let place = if is_lines { ContextPlace::Lines { first, last } } else { ContextPlace::Pages { first, last } };
        let piece = Piece { place, heading: row.get(6)?, text: row.get(7)? };
        Ok(FoundPiece { id, collection: row.get(0)?, path: row.get(1)?, hash: row.get(2)?, piece })
    };
    connection.prepare_cached(sql::KNOWLEDGE_PIECE)?.query_row((id.0,), row).optional()
}
