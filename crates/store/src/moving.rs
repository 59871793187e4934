//! Everything from one database into another, row by row: between SQLite and PostgreSQL either way, and into a backup.
//!
//! Both keep the same tables with the same columns; what is made from others (words, signs) is made anew where it arrives. What
//! arrived stays: a move that broke off goes on behind the last row of each table when it is asked for again.

mod check;
mod postgres;
mod sqlite;
mod tables;
mod typed;

use std::collections::{BTreeMap, HashMap};

use async_trait::async_trait;
use sha2::{Digest, Sha256};
use turnwright_engine::StoreError;

use crate::postgres::RowLink;
use crate::sqlite::{Part, is_one_file};
use crate::{PostgresOptions, SqliteOptions};
use tables::{DOCUMENTS, FILES, Found, PIECES, Row, TABLES, Table, Value};

/// Where a database is.
#[derive(Debug, Clone)]
pub enum Location {
    /// A SQLite file.
    Sqlite(SqliteOptions),
    /// A schema of a PostgreSQL database.
    Postgres(Box<PostgresOptions>),
}

impl Location {
    /// The same, where a database has to be: nothing is made where there is none.
    fn that_is_there(&self) -> Self {
        match self {
            Self::Sqlite(options) => Self::Sqlite(options.clone().that_is_there()),
            Self::Postgres(options) => Self::Postgres(Box::new(options.as_ref().clone().that_is_there())),
        }
    }
}

/// What was moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// How many rows each table has, in the order in which they were moved.
    pub rows: Vec<(&'static str, u64)>,
}

/// A database as rows.
#[async_trait]
trait Rows: Send + Sync {
    /// How it is called, for people.
    fn name(&self) -> String;
    /// Whether another process has it open.
    async fn is_in_use(&self) -> Result<bool, StoreError>;
    /// The rows behind a key, in the order of keys.
    async fn page(&self, table: &'static Table, after: Option<Row>) -> Result<Vec<Found>, StoreError>;
    /// The last key of a table.
    async fn last(&self, table: &'static Table) -> Result<Option<Row>, StoreError>;
    /// Stores rows in the place of those with their keys, and what is made from them; all or nothing.
    async fn put(&self, table: &'static Table, rows: Vec<Row>, paths: &HashMap<i64, String>) -> Result<(), StoreError>;
    /// Removes a row.
    async fn remove(&self, table: &'static Table, key: Row) -> Result<(), StoreError>;
    /// What has to be so once all rows are there.
    async fn settle(&self) -> Result<(), StoreError>;
    /// What the database itself finds wrong with it.
    async fn damage(&self) -> Result<Vec<String>, StoreError>;
    /// Ends.
    async fn close(&self);
}

/// By which a move that broke off is known, at its target: a document of this kind, which says from where it was moved.
pub const MOVING: &str = "moving";

/// Moves everything `from` one database `to` another that is empty, or to which the same move broke off; then compares both.
///
/// # Errors
/// [`StoreError::Unusable`], where there is no source, they are one, one of them is in use, the target has something else in it, or both are not the same at
/// the end. Nothing is removed then, and the source is never changed.
pub async fn move_all(from: &Location, to: &Location) -> Result<Moved, StoreError> {
    refuse_two_names(from, to)?;
    let from = open(&from.that_is_there(), Use::Moves).await?;
    let to = match open(to, Use::Fills).await {
        Ok(to) => to,
        Err(error) => {
            from.close().await;
            return Err(error);
        }
    };
    let moved = async {
        if from.name() == to.name() {
            let reason = format!("{} is both what is moved and where to; name another one to move to", from.name());
            return Err(StoreError::Unusable { reason });
        }
        for rows in [&from, &to] {
            if rows.is_in_use().await? {
                let reason = format!("{} is in use; end every turnwright that has it open first", rows.name());
                return Err(StoreError::Unusable { reason });
            }
        }
        all(&*from, &*to).await
    }
    .await;
    from.close().await;
    to.close().await;
    moved
}

/// Refuses a SQLite file under two names (hard links). Opened, it would have a log for each.
fn refuse_two_names(from: &Location, to: &Location) -> Result<(), StoreError> {
    let (Location::Sqlite(from), Location::Sqlite(to)) = (from, to) else { return Ok(()) };
    let (from, to) = (from.path()?, to.path()?);
    if from == to || !is_one_file(&from, &to) {
        return Ok(());
    }
    let (from, to) = (from.display(), to.display());
    let reason = format!("`{to}` is another name of the database `{from}`; name another one to move to");
    Err(StoreError::Unusable { reason })
}

/// Writes everything of a database, as it is at one moment, into a SQLite file that is not there yet. Others may use the
/// database meanwhile. The file is a database as any other: it is used as it is, or moved to where it shall be. It has its name
/// once it is whole, `FILE.part` before.
///
/// # Errors
/// Where the file is there, where the database or something else that was not made here has the name under which it is written,
/// and as [`move_all`].
pub async fn backup(from: &Location, file: &std::path::Path) -> Result<Moved, StoreError> {
    let source = match from {
        Location::Sqlite(options) => Some(options.path()?),
        Location::Postgres(_) => None,
    };
    let from = open(&from.that_is_there(), Use::Reads).await?;
    let begun = async {
        let part = Part::begin(file, source.as_deref())?;
        let to = open(&Location::Sqlite(part.options()), Use::Fills).await?;
        Ok((part, to))
    };
    let (part, to) = match begun.await {
        Ok(begun) => begun,
        Err(error) => {
            from.close().await;
            return Err(error);
        }
    };
    let moved = all(&*from, &*to).await;
    from.close().await;
    to.close().await;
    // Its last connection is closed with it.
    drop(to);
    let moved = moved?;
    part.finish()?;
    Ok(moved)
}

/// Copies what an older version left in a schema into a folder that is not there yet, as a SQLite database in a data directory is;
/// what this build would have to know of it and cannot, where there is something.
pub(crate) async fn copy_of_older(
    link: RowLink,
    options: &PostgresOptions,
    folder: &std::path::Path,
) -> Result<Vec<String>, StoreError> {
    let from = postgres::PostgresRows::of_older(link, options).await?;
    let lacking = from.lacking().await?;
    if lacking.is_empty() {
        let to = sqlite::SqliteRows::open(&SqliteOptions::in_directory(folder), Use::Fills)?;
        let copied = all(&from, &to).await;
        to.close().await;
        copied?;
    }
    from.close().await;
    Ok(lacking)
}

/// Looks whether everything can be read and nothing is missing; what is wrong, in words.
///
/// # Errors
/// Where there is none, or it cannot be used at all.
pub async fn check(location: &Location) -> Result<(Moved, Vec<String>), StoreError> {
    let rows = open(&location.that_is_there(), Use::Reads).await?;
    let found = check::check(&*rows).await;
    rows.close().await;
    found
}

/// What a database is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// To read what there is at one moment.
    Reads,
    /// To be moved, alone.
    Moves,
    /// To have what is moved put into it, alone.
    Fills,
}

async fn open(location: &Location, purpose: Use) -> Result<Box<dyn Rows>, StoreError> {
    match location {
        Location::Sqlite(options) => Ok(Box::new(sqlite::SqliteRows::open(options, purpose)?)),
        Location::Postgres(options) => Ok(Box::new(postgres::PostgresRows::open(options, purpose).await?)),
    }
}

/// The rows behind a key, each of which can be read as it is: what is moved is the same there, or it is not moved.
async fn page(rows: &dyn Rows, table: &'static Table, after: Option<Row>) -> Result<Vec<Row>, StoreError> {
    rows.page(table, after).await?.into_iter().map(|found| found.map_err(|broken| table.damaged(&broken))).collect()
}

async fn all(from: &dyn Rows, to: &dyn Rows) -> Result<Moved, StoreError> {
    let mark = vec![Value::Text(MOVING.to_owned()), Value::Text("from".to_owned()), Value::Text(from.name())];
    if let Begun::NotEmpty { table } = begin(to, &mark).await? {
        // A move that was done, and whose end nobody was told of: it goes on with nothing.
        return match compare(from, to).await? {
            Compared::Same(moved) => Ok(moved),
            Compared::Different(_) => {
                let reason = format!("{} is not empty: it has rows in `{table}`; name one that is", to.name());
                Err(StoreError::Unusable { reason })
            }
        };
    }
    let mut paths = HashMap::new();
    for table in TABLES {
        // The documents hold the mark, so their last key says nothing; they are few.
        let mut after = if table.name == DOCUMENTS.name { None } else { to.last(table).await? };
        if table.name == PIECES.name {
            paths = paths_of(from).await?;
        }
        loop {
            let rows = page(from, table, after).await?;
            let Some(last) = rows.last() else { break };
            after = Some(table.key_of(last));
            to.put(table, rows, &paths).await?;
        }
    }
    to.settle().await?;
    let moved = match compare(from, to).await? {
        Compared::Same(moved) => moved,
        Compared::Different(reason) => return Err(StoreError::Unusable { reason }),
    };
    // The last thing: wherever it broke off before, the same move goes on.
    to.remove(&DOCUMENTS, DOCUMENTS.key_of(&mark)).await?;
    Ok(moved)
}

/// What a target was found as.
enum Begun {
    /// It is empty but for the mark of this move, or this move broke off here.
    Marked,
    /// It has rows, and no mark of this move.
    NotEmpty { table: &'static str },
}

/// Marks an empty target, or finds the mark of the same move.
async fn begin(to: &dyn Rows, mark: &Row) -> Result<Begun, StoreError> {
    let documents = page(to, &DOCUMENTS, None).await?;
    if documents.contains(mark) {
        return Ok(Begun::Marked);
    }
    for table in TABLES.iter().filter(|table| table.name != "user") {
        if to.last(table).await?.is_some() {
            return Ok(Begun::NotEmpty { table: table.name });
        }
    }
    to.put(&DOCUMENTS, vec![mark.clone()], &HashMap::new()).await?;
    Ok(Begun::Marked)
}

/// The path of each document, by its key.
async fn paths_of(from: &dyn Rows) -> Result<HashMap<i64, String>, StoreError> {
    let mut paths = HashMap::new();
    let mut after = None;
    loop {
        let rows = page(from, &FILES, after).await?;
        let Some(last) = rows.last() else { return Ok(paths) };
        after = Some(FILES.key_of(last));
        for row in &rows {
            if let (Some(Value::Number(key)), Some(Value::Text(path))) = (row.first(), row.get(2)) {
                paths.insert(*key, path.clone());
            }
        }
    }
}

/// Counts and hashes: for each conversation of its entries, for other tables of the whole.
type Digests = BTreeMap<i64, (u64, [u8; 32])>;

async fn digest(rows: &dyn Rows, table: &'static Table) -> Result<Digests, StoreError> {
    let mut hashers: BTreeMap<i64, (u64, Sha256)> = BTreeMap::new();
    let mut after = None;
    loop {
        let found = page(rows, table, after).await?;
        let Some(last) = found.last() else { break };
        after = Some(table.key_of(last));
        for row in &found {
            // The mark of a move is no part of what is moved.
            if table.name == DOCUMENTS.name && row.first() == Some(&Value::Text(MOVING.to_owned())) {
                continue;
            }
            let (count, hasher) = hashers.entry(table.group_of(row)).or_default();
            *count = count.saturating_add(1);
            for value in row {
                value.hash_into(hasher);
            }
        }
    }
    Ok(hashers.into_iter().map(|(group, (count, hasher))| (group, (count, hasher.finalize().into()))).collect())
}

/// How two databases were found.
enum Compared {
    Same(Moved),
    /// Where they are not, in words. What comes behind that was not looked at.
    Different(String),
}

async fn compare(from: &dyn Rows, to: &dyn Rows) -> Result<Compared, StoreError> {
    let mut rows = Vec::new();
    for table in TABLES {
        let (here, there) = (digest(from, table).await?, digest(to, table).await?);
        let groups: std::collections::BTreeSet<&i64> = here.keys().chain(there.keys()).collect();
        for group in groups {
            if here.get(group) != there.get(group) {
                let count = |digests: &Digests| digests.get(group).map_or(0, |(count, _)| *count);
                let of = if table.is_grouped() { format!(" of the conversation with the key {group}") } else { String::new() };
                let reason = format!(
                    "`{}`{of} is not the same in {} ({} rows) and {} ({} rows); was somebody using one of them? Empty the \
                     second and move again",
                    table.name,
                    from.name(),
                    count(&here),
                    to.name(),
                    count(&there)
                );
                return Ok(Compared::Different(reason));
            }
        }
        rows.push((table.name, here.values().map(|(count, _)| *count).sum()));
    }
    Ok(Compared::Same(Moved { rows }))
}
