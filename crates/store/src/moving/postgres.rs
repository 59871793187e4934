//! A schema of PostgreSQL as rows.

use std::collections::{HashMap, HashSet};

use async_trait::async_trait;
use tokio_postgres::types::ToSql;
use turnwright_engine::{Store, StoreError};

use super::tables::{Found, Kind, PIECES, Row, TABLES, Table, VECTORS, Value};
use super::{Rows, Use};
use crate::postgres::{RowLink, clean, stems, vector};
use crate::vectors::{bits, unpacked};
use crate::{PostgresOptions, PostgresStore};

/// See the module.
pub(super) struct PostgresRows {
    /// Keeps its lease, so that others see that it is in use; nothing where an older version's schema is read.
    store: Option<PostgresStore>,
    link: RowLink,
    name: String,
}

/// What is read is of one moment, whoever writes meanwhile.
const OF_ONE_MOMENT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

fn name(options: &PostgresOptions) -> String {
    format!("the database `{}` (schema `{}`)", options.shown(), options.schema())
}

type Column = Box<dyn ToSql + Sync + Send>;

impl PostgresRows {
    pub(super) async fn open(options: &PostgresOptions, purpose: Use) -> Result<Self, StoreError> {
        let store = PostgresStore::open(options).await?;
        let link = store.row_link().await?;
        if purpose == Use::Reads {
            link.batch(OF_ONE_MOMENT).await?;
        }
        Ok(Self { store: Some(store), link, name: name(options) })
    }

    /// The schema as it is, of whichever version, at one moment.
    pub(super) async fn of_older(link: RowLink, options: &PostgresOptions) -> Result<Self, StoreError> {
        link.batch(OF_ONE_MOMENT).await?;
        Ok(Self { store: None, link, name: name(options) })
    }

    /// The columns that this build knows and the schema has not, as `TABLE.COLUMN`.
    pub(super) async fn lacking(&self) -> Result<Vec<String>, StoreError> {
        const COLUMNS: &str = "SELECT table_name || '.' || column_name FROM information_schema.columns
            WHERE table_schema = current_schema()";
        let rows = self.link.once(COLUMNS, &[]).await?;
        let there = rows.iter().map(|row| crate::postgres::get::<String>(row, 0)).collect::<Result<HashSet<_>, _>>()?;
        let known = TABLES.iter().flat_map(|table| table.columns.iter().map(|(column, _)| format!("{}.{column}", table.name)));
        Ok(known.filter(|column| !there.contains(column)).collect())
    }

    async fn read(&self, sql: &str, values: &[Column], kinds: &[Kind]) -> Result<Vec<Row>, StoreError> {
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect();
        let rows = self.link.once(sql, &values).await?;
        let mut found = Vec::with_capacity(rows.len());
        for row in &rows {
            let mut values = Vec::with_capacity(kinds.len());
            for (kind, column) in kinds.iter().zip(0_usize..) {
                values.push(match kind {
                    Kind::Number => crate::postgres::get::<Option<i64>>(row, column)?.map_or(Value::Null, Value::Number),
                    Kind::Text => crate::postgres::get::<Option<String>>(row, column)?.map_or(Value::Null, Value::Text),
                    Kind::Bytes => crate::postgres::get::<Option<Vec<u8>>>(row, column)?.map_or(Value::Null, Value::Bytes),
                });
            }
            found.push(values);
        }
        Ok(found)
    }
}

fn selected(table: &Table, columns: usize) -> String {
    let one = |(name, kind): &(&str, Kind)| match kind {
        Kind::Number => format!("\"{name}\"::bigint"),
        Kind::Text | Kind::Bytes => format!("\"{name}\""),
    };
    table.columns.iter().take(columns).map(one).collect::<Vec<_>>().join(", ")
}

fn kinds(table: &Table, columns: usize) -> Vec<Kind> {
    table.columns.iter().take(columns).map(|(_, kind)| *kind).collect()
}

/// `$1, $2, …`
fn places(count: usize) -> String {
    (1..=count).map(|number| format!("${number}")).collect::<Vec<_>>().join(", ")
}

fn one(value: Value) -> Column {
    match value {
        Value::Null => Box::new(None::<String>),
        Value::Number(number) => Box::new(number),
        Value::Text(text) => Box::new(clean(&text).into_owned()),
        Value::Bytes(bytes) => Box::new(bytes),
    }
}

/// A column of rows as one array.
fn column(rows: &[Row], at: usize, kind: Kind) -> Column {
    let values = rows.iter().map(|row| row.get(at).cloned().unwrap_or(Value::Null));
    match kind {
        Kind::Number => Box::new(
            values.map(|value| if let Value::Number(number) = value { Some(number) } else { None }).collect::<Vec<_>>(),
        ),
        Kind::Text => Box::new(
            values
                .map(|value| if let Value::Text(text) = value { Some(clean(&text).into_owned()) } else { None })
                .collect::<Vec<_>>(),
        ),
        Kind::Bytes => {
            Box::new(values.map(|value| if let Value::Bytes(bytes) = value { Some(bytes) } else { None }).collect::<Vec<_>>())
        }
    }
}

fn array_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Number => "bigint[]",
        Kind::Text => "text[]",
        Kind::Bytes => "bytea[]",
    }
}

#[async_trait]
impl Rows for PostgresRows {
    fn name(&self) -> String {
        self.name.clone()
    }

    async fn is_in_use(&self) -> Result<bool, StoreError> {
        match &self.store {
            Some(store) => store.has_company().await,
            None => Ok(false),
        }
    }

    async fn page(&self, table: &'static Table, after: Option<Row>) -> Result<Vec<Found>, StoreError> {
        let keys = table.key_list();
        let behind = match &after {
            Some(key) => format!("WHERE ({keys}) > ({})", places(key.len())),
            None => String::new(),
        };
        let all = table.columns.len();
        let columns = selected(table, all);
        let sql = format!("SELECT {columns} FROM \"{}\" {behind} ORDER BY {keys} LIMIT {}", table.name, table.page);
        let values: Vec<Column> = after.unwrap_or_default().into_iter().map(one).collect();
        // The server lets no text in that is none, and no column hold what is not of its type.
        Ok(self.read(&sql, &values, &kinds(table, all)).await?.into_iter().map(Ok).collect())
    }

    async fn last(&self, table: &'static Table) -> Result<Option<Row>, StoreError> {
        let columns = selected(table, table.keys);
        let order = table.columns.iter().take(table.keys).map(|(name, _)| format!("\"{name}\" DESC")).collect::<Vec<_>>();
        let sql = format!("SELECT {columns} FROM \"{}\" ORDER BY {} LIMIT 1", table.name, order.join(", "));
        Ok(self.read(&sql, &[], &kinds(table, table.keys)).await?.pop())
    }

    async fn put(&self, table: &'static Table, rows: Vec<Row>, paths: &HashMap<i64, String>) -> Result<(), StoreError> {
        let arrays = table.columns.iter().zip(1..).map(|((_, kind), number)| format!("${number}::{}", array_of(*kind)));
        let arrays: Vec<String> = arrays.collect();
        let set = table.columns.iter().skip(table.keys).map(|(name, _)| format!("\"{name}\" = excluded.\"{name}\""));
        let set: Vec<String> = set.collect();
        let instead = if set.is_empty() { "NOTHING".to_owned() } else { format!("UPDATE SET {}", set.join(", ")) };
        let sql = format!(
            "INSERT INTO \"{}\" ({}) SELECT * FROM unnest({}) ON CONFLICT ({}) DO {instead}",
            table.name,
            table.column_list(),
            arrays.join(", "),
            table.key_list()
        );
        let values: Vec<Column> = table.columns.iter().zip(0..).map(|((_, kind), at)| column(&rows, at, *kind)).collect();
        self.link.batch("BEGIN").await?;
        self.read(&sql, &values, &[]).await?;
        let derived = derived(table, &rows, paths);
        if let Some((sql, values)) = derived {
            self.read(sql, &values, &[]).await?;
        }
        self.link.batch("COMMIT").await
    }

    async fn remove(&self, table: &'static Table, key: Row) -> Result<(), StoreError> {
        let sql = format!("DELETE FROM \"{}\" WHERE ({}) = ({})", table.name, table.key_list(), places(key.len()));
        let values: Vec<Column> = key.into_iter().map(one).collect();
        self.read(&sql, &values, &[]).await.map(drop)
    }

    async fn settle(&self) -> Result<(), StoreError> {
        for table in ["conversation", "knowledge", "knowledge_file"] {
            let sql = format!(
                "SELECT setval(pg_get_serial_sequence('{table}', 'key'), greatest(coalesce(max(key), 0), 1)) FROM {table}"
            );
            self.link.once(&sql, &[]).await?;
        }
        self.link.batch("ANALYZE conversation; ANALYZE entry").await
    }

    async fn damage(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }

    async fn close(&self) {
        match &self.store {
            Some(store) => store.close().await,
            // Nobody who changes the tables then waits for it.
            None => drop(self.link.batch("COMMIT").await),
        }
    }
}

/// What is made from rows.
fn derived(table: &Table, rows: &[Row], paths: &HashMap<i64, String>) -> Option<(&'static str, Vec<Column>)> {
    if table.name == PIECES.name {
        let (mut keys, mut lengths, mut words) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            let [Value::Number(key), Value::Number(file), _, _, _, Value::Text(heading), Value::Text(text)] = row.as_slice()
            else {
                continue;
            };
            let path = paths.get(file).map(String::as_str).unwrap_or_default();
            let stems = stems(&format!("{path}\n{heading}\n{text}"));
            keys.push(*key);
            lengths.push(i64::try_from(stems.len()).unwrap_or(i64::MAX));
            words.push(vector(&stems));
        }
        let sql = "INSERT INTO knowledge_words (piece, knowledge, length, words)
            SELECT piece, piece >> 40, length, words::tsvector
            FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS made (piece, length, words)
            ON CONFLICT (piece) DO UPDATE SET length = excluded.length, words = excluded.words";
        return Some((sql, vec![Box::new(keys), Box::new(lengths), Box::new(words)]));
    }
    if table.name == VECTORS.name {
        let (mut keys, mut signs) = (Vec::new(), Vec::new());
        for row in rows {
            let [Value::Number(key), Value::Bytes(vector)] = row.as_slice() else { continue };
            keys.push(*key);
            signs.push(bits(&unpacked(vector)));
        }
        let sql = "INSERT INTO knowledge_sign (piece, signs)
            SELECT piece, signs::varbit FROM unnest($1::bigint[], $2::text[]) AS made (piece, signs)
            ON CONFLICT (piece) DO UPDATE SET signs = excluded.signs";
        return Some((sql, vec![Box::new(keys), Box::new(signs)]));
    }
    None
}
