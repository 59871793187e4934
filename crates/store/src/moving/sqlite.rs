//! A SQLite database as rows.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, ToSql, params_from_iter};
use turnwright_core::counted;
use turnwright_engine::{Store, StoreError};

use super::tables::{Broken, ENTRIES, Found, Kind, PIECES, Row, Table, VECTORS, Value};
use super::{Rows, Use};
use crate::sqlite::{Unread, Untouched, UntouchedLocks, failure_of, rows_connection};
use crate::vectors::{signs, unpacked};
use crate::words::unaccented;
use crate::{SqliteOptions, SqliteStore};

/// See the module.
pub(super) struct SqliteRows {
    source: Source,
    connection: Arc<Mutex<Connection>>,
    file: std::path::PathBuf,
    /// By which a move that broke off is known: one and the same, however the database is called.
    path: std::path::PathBuf,
}

/// Where the rows are from.
enum Source {
    /// The database itself. The store keeps its lock, so that others see that it is in use.
    Own(Box<SqliteStore>),
    /// What is not changed, nor opened as a server does; the folder of locks is the database's.
    Untouched(UntouchedLocks),
}

impl Source {
    /// With a connection to it, and its file.
    fn open(options: &SqliteOptions, purpose: Use) -> Result<(Self, Connection, std::path::PathBuf), StoreError> {
        let untouched = match purpose {
            // What is only read is not changed, nor brought up.
            Use::Reads | Use::Moves => Untouched::of(options)?,
            Use::Fills => None,
        };
        if let Some(untouched) = untouched {
            return Ok(Self::untouched(untouched));
        }
        let store = Box::new(SqliteStore::open(options)?);
        let (connection, file) = rows_connection(options)?;
        Ok((Self::Own(store), connection, file))
    }

    fn untouched(Untouched { connection, file, locks }: Untouched) -> (Self, Connection, std::path::PathBuf) {
        (Self::Untouched(locks), connection, file)
    }
}

impl SqliteRows {
    pub(super) fn open(options: &SqliteOptions, purpose: Use) -> Result<Self, StoreError> {
        let opened = match Source::open(options, purpose) {
            // Who only reads can do without what is written beside it.
            Err(full @ StoreError::Unusable { .. }) if purpose == Use::Reads => {
                Untouched::without_room(options)?.map(Source::untouched).ok_or(full)
            }
            opened => opened,
        };
        let (source, connection, file) = opened?;
        if purpose == Use::Reads {
            // What is read is of one moment, whoever writes meanwhile.
            let begun = connection.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema");
            begun.map_err(|error| failure_of(&file, &error))?;
        }
        Ok(Self { source, connection: Arc::new(Mutex::new(connection)), file, path: options.path()? })
    }

    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, Unread> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (connection, file) = (Arc::clone(&self.connection), self.file.clone());
        let working = tokio::task::spawn_blocking(move || {
            work(&mut connection.lock().unwrap_or_else(PoisonError::into_inner)).map_err(|unread| match unread {
                Unread::Database(error) => failure_of(&file, &error),
                Unread::Refused(error) => error,
            })
        });
        working.await.unwrap_or_else(|error| Err(StoreError::Unusable { reason: format!("it broke off: {error}") }))
    }
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Number(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// What is stored, or what is wrong with it: nothing is made of it that would fit.
fn value(stored: ValueRef<'_>, kind: Kind) -> Result<Value, String> {
    match (kind, stored) {
        (Kind::Number | Kind::Text | Kind::Bytes, ValueRef::Null) => Ok(Value::Null),
        (Kind::Number, ValueRef::Integer(number)) => Ok(Value::Number(number)),
        (Kind::Text, ValueRef::Text(text)) => match std::str::from_utf8(text) {
            Ok(text) => Ok(Value::Text(text.to_owned())),
            Err(_) => Err("is not UTF-8 text".to_owned()),
        },
        (Kind::Bytes, ValueRef::Blob(bytes)) => Ok(Value::Bytes(bytes.to_vec())),
        (Kind::Number | Kind::Text | Kind::Bytes, other) => Err(format!("is of the type {}", other.data_type())),
    }
}

/// # Errors
/// Where the key of a row cannot be read: nobody could go on behind it.
fn found(row: &rusqlite::Row<'_>, table: &Table, columns: usize) -> Result<Found, Unread> {
    let (mut values, mut wrong) = (Row::with_capacity(columns), None);
    for ((name, kind), at) in table.columns.iter().take(columns).zip(0_usize..) {
        match value(row.get_ref(at)?, *kind) {
            Ok(value) => values.push(value),
            Err(reason) if at < table.keys => {
                let what = format!("the key of a row of `{}`", table.name);
                return Err(StoreError::Damaged { what, reason: format!("its `{name}` {reason}") }.into());
            }
            Err(reason) => {
                values.push(Value::Null);
                wrong.get_or_insert_with(|| format!("its `{name}` {reason}"));
            }
        }
    }
    Ok(match wrong {
        None => Ok(values),
        Some(reason) => Err(Broken { row: values, reason }),
    })
}

fn read(connection: &Connection, sql: &str, values: &[Value], of: (&Table, usize)) -> Result<Vec<Found>, Unread> {
    let (table, columns) = of;
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        all.push(found(row, table, columns)?);
    }
    Ok(all)
}

/// The entries behind a place, as if each conversation had all that it shows: those that it shares with others are stored once.
fn entries(connection: &Connection, after: &[Value]) -> Result<Vec<Found>, Unread> {
    const NEXT: &str = "SELECT key FROM conversation WHERE key > ?1 ORDER BY key LIMIT 1";
    const OF: &str = "SELECT * FROM (SELECT (?1 << 32) + (entry.place & 4294967295), entry.version, entry.at_ms, entry.body
            FROM conversation CROSS JOIN entry ON entry.place BETWEEN (begins_as << 32) + ?2 AND (begins_as << 32) + begins_through
            WHERE conversation.key = ?1 ORDER BY entry.place LIMIT ?3)
        UNION ALL SELECT * FROM (SELECT place, version, at_ms, body FROM entry
            WHERE place BETWEEN (?1 << 32) + ?2 AND (?1 << 32) + 4294967295 ORDER BY place LIMIT ?3)
        LIMIT ?3";
    // The first page begins with the first conversation.
    let (mut key, mut from) = match after {
        [Value::Number(place), ..] => (place >> 32, (place & 0xFFFF_FFFF) + 1),
        _ => (0, 1),
    };
    let mut found = Vec::new();
    loop {
        let left = ENTRIES.page.saturating_sub(i64::try_from(found.len()).unwrap_or(i64::MAX));
        let of = [Value::Number(key), Value::Number(from), Value::Number(left)];
        found.extend(read(connection, OF, &of, (&ENTRIES, ENTRIES.columns.len()))?);
        if i64::try_from(found.len()).is_ok_and(|count| count >= ENTRIES.page) {
            return Ok(found);
        }
        let next: Option<i64> = connection.prepare_cached(NEXT)?.query_row((key,), |row| row.get(0)).optional()?;
        let Some(next) = next else { return Ok(found) };
        (key, from) = (next, 1);
    }
}

/// What lies under keys of which no conversation shows anything.
fn unshown(connection: &Connection) -> Result<Vec<String>, Unread> {
    const UNSHOWN: &str = "SELECT place >> 32, count(*) FROM entry WHERE NOT EXISTS
        (SELECT 1 FROM conversation WHERE key = place >> 32 OR begins_as = place >> 32) GROUP BY 1 LIMIT 20";
    let mut statement = connection.prepare(UNSHOWN)?;
    let told = |key: i64, count: i64| {
        let belong = if count == 1 { "belongs" } else { "belong" };
        format!("{} {belong} to no conversation (key {key})", counted(count, "entry"))
    };
    Ok(statement.query_map((), |row| Ok(told(row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?)
}

/// `?1, ?2, …`
fn places(count: usize) -> String {
    (1..=count).map(|number| format!("?{number}")).collect::<Vec<_>>().join(", ")
}

#[async_trait]
impl Rows for SqliteRows {
    fn name(&self) -> String {
        format!("the database `{}`", self.path.display())
    }

    async fn is_in_use(&self) -> Result<bool, StoreError> {
        match &self.source {
            Source::Own(store) => store.has_company(),
            Source::Untouched(locks) => locks.is_in_use(),
        }
    }

    async fn page(&self, table: &'static Table, after: Option<Row>) -> Result<Vec<Found>, StoreError> {
        if table.name == ENTRIES.name {
            return self.with(move |connection| entries(connection, after.as_deref().unwrap_or_default())).await;
        }
        let (columns, keys) = (table.column_list(), table.key_list());
        let behind = match &after {
            Some(key) => format!("WHERE ({keys}) > ({})", places(key.len())),
            None => String::new(),
        };
        let sql = format!("SELECT {columns} FROM \"{}\" {behind} ORDER BY {keys} LIMIT {}", table.name, table.page);
        self.with(move |connection| read(connection, &sql, &after.unwrap_or_default(), (table, table.columns.len()))).await
    }

    async fn last(&self, table: &'static Table) -> Result<Option<Row>, StoreError> {
        let keys = table.key_list();
        let order = table.columns.iter().take(table.keys).map(|(name, _)| format!("\"{name}\" DESC")).collect::<Vec<_>>();
        let sql = format!("SELECT {keys} FROM \"{}\" ORDER BY {} LIMIT 1", table.name, order.join(", "));
        let last = self.with(move |connection| Ok(read(connection, &sql, &[], (table, table.keys))?.pop())).await?;
        last.transpose().map_err(|broken| table.damaged(&broken))
    }

    async fn put(&self, table: &'static Table, rows: Vec<Row>, paths: &HashMap<i64, String>) -> Result<(), StoreError> {
        let sql = format!(
            "INSERT OR REPLACE INTO \"{}\" ({}) VALUES ({})",
            table.name,
            table.column_list(),
            places(table.columns.len())
        );
        let derived: Vec<(i64, Derived)> = rows.iter().filter_map(|row| derived(table, row, paths)).collect();
        self.with(move |connection| {
            let transaction = connection.transaction()?;
            {
                let mut insert = transaction.prepare_cached(&sql)?;
                for row in &rows {
                    insert.execute(params_from_iter(row))?;
                }
            }
            for (key, derived) in derived {
                match derived {
                    Derived::Words(words) => {
                        transaction.prepare_cached("DELETE FROM knowledge_words WHERE rowid = ?1")?.execute((key,))?;
                        let sql = "INSERT INTO knowledge_words (rowid, text) VALUES (?1, ?2)";
                        transaction.prepare_cached(sql)?.execute((key, words))?;
                    }
                    Derived::Signs(signs) => {
                        let sql = "INSERT OR REPLACE INTO knowledge_sign (piece, signs) VALUES (?1, ?2)";
                        transaction.prepare_cached(sql)?.execute((key, signs))?;
                    }
                }
            }
            Ok(transaction.commit()?)
        })
        .await
    }

    async fn remove(&self, table: &'static Table, key: Row) -> Result<(), StoreError> {
        let sql = format!("DELETE FROM \"{}\" WHERE ({}) = ({})", table.name, table.key_list(), places(key.len()));
        self.with(move |connection| Ok(connection.execute(&sql, params_from_iter(&key)).map(drop)?)).await
    }

    async fn settle(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn damage(&self) -> Result<Vec<String>, StoreError> {
        let said = self
            .with(|connection| {
                Ok(connection.query_row("PRAGMA integrity_check(20)", (), |row| row.get::<_, String>(0)).optional()?)
            })
            .await?;
        let mut wrong: Vec<String> = said.into_iter().filter(|said| said != "ok").collect();
        // Of a file that is damaged nothing more is known by asking it.
        if wrong.is_empty() {
            wrong.extend(self.with(|connection| unshown(connection)).await?);
        }
        Ok(wrong)
    }

    async fn close(&self) {
        match &self.source {
            Source::Own(store) => store.close().await,
            Source::Untouched(_) => {}
        }
    }
}

/// What is made from a row.
enum Derived {
    Words(String),
    Signs(Vec<u8>),
}

fn derived(table: &Table, row: &Row, paths: &HashMap<i64, String>) -> Option<(i64, Derived)> {
    match row.as_slice() {
        [Value::Number(key), Value::Number(file), _, _, _, Value::Text(heading), Value::Text(text)]
            if table.name == PIECES.name =>
        {
            let path = paths.get(file).map(String::as_str).unwrap_or_default();
            Some((*key, Derived::Words(unaccented(&format!("{path}\n{heading}\n{text}")))))
        }
        [Value::Number(key), Value::Bytes(vector)] if table.name == VECTORS.name => {
            Some((*key, Derived::Signs(signs(&unpacked(vector)))))
        }
        _ => None,
    }
}
