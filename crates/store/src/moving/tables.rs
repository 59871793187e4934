//! The tables that both kinds of database have, and their columns.

use sha2::{Digest, Sha256};
use turnwright_engine::StoreError;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Number,
    Text,
    Bytes,
}

/// What is in a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Null,
    Number(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// A row, in the order of its table's columns; or the first of them, which are its key.
pub(super) type Row = Vec<Value>;

/// A row that is there, of which a column holds something else than it should.
#[derive(Debug)]
pub(super) struct Broken {
    /// The row, with nothing in what cannot be read; its key can.
    pub(super) row: Row,
    /// The first column that cannot, and what it holds.
    pub(super) reason: String,
}

/// A row as it was read.
pub(super) type Found = Result<Row, Broken>;

/// A table.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) columns: &'static [(&'static str, Kind)],
    /// How many of the first columns are the key.
    pub(super) keys: usize,
    /// How many rows are read at once.
    pub(super) page: i64,
}

use Kind::{Bytes, Number, Text};

const fn table(name: &'static str, keys: usize, page: i64, columns: &'static [(&'static str, Kind)]) -> Table {
    Table { name, columns, keys, page }
}

pub(super) static DOCUMENTS: Table = table("document", 2, 200, &[("kind", Text), ("key", Text), ("body", Text)]);
pub(super) static CONVERSATIONS: Table = table(
    "conversation",
    1,
    500,
    &[
        ("key", Number),
        ("id", Text),
        ("next_seq", Number),
        ("created_at_ms", Number),
        ("updated_at_ms", Number),
        ("title", Text),
        ("settings", Text),
        ("owner", Text),
    ],
);
pub(super) static ENTRIES: Table =
    table("entry", 1, 200, &[("place", Number), ("version", Number), ("at_ms", Number), ("body", Text)]);
pub(super) static FILES: Table = table(
    "knowledge_file",
    1,
    500,
    &[
        ("key", Number),
        ("knowledge", Number),
        ("path", Text),
        ("bytes", Number),
        ("modified_ns", Number),
        ("hash", Text),
        ("skipped", Text),
    ],
);
pub(super) static PIECES: Table = table(
    "knowledge_piece",
    1,
    200,
    &[
        ("key", Number),
        ("file", Number),
        ("unit", Number),
        ("first", Number),
        ("last", Number),
        ("heading", Text),
        ("text", Text),
    ],
);
pub(super) static VECTORS: Table = table("knowledge_vector", 1, 100, &[("piece", Number), ("vector", Bytes)]);

pub(super) static OPEN_TURNS: Table =
    table("open_turn", 1, 500, &[("conversation", Number), ("turn", Number), ("is_parked", Number), ("kept_by", Text)]);
static IDEMPOTENCY: Table =
    table("idempotency", 1, 200, &[("key", Text), ("conversation", Number), ("fingerprint", Text), ("answer", Text)]);
static SPENT: Table = table("spent", 2, 500, &[("day", Number), ("owner", Text), ("tokens", Number), ("nano_usd", Number)]);
static RESERVATIONS: Table = table(
    "reservation",
    2,
    500,
    &[("conversation", Number), ("purpose", Text), ("day", Number), ("owner", Text), ("tokens", Number), ("nano_usd", Number)],
);
pub(super) static USERS: Table = table(
    "user",
    1,
    500,
    &[
        ("id", Text),
        ("name", Text),
        ("role", Text),
        ("is_enabled", Number),
        ("created_at_ms", Number),
        ("issuer", Text),
        ("subject", Text),
    ],
);
pub(super) static CREDENTIALS: Table = table(
    "credential",
    1,
    500,
    &[
        ("hash", Bytes),
        ("id", Text),
        ("user", Text),
        ("kind", Text),
        ("name", Text),
        ("scopes", Text),
        ("parent", Text),
        ("created_at_ms", Number),
        ("expires_at_ms", Number),
        ("used_at_ms", Number),
    ],
);
static ARTIFACTS: Table = table(
    "artifact",
    1,
    500,
    &[
        ("key", Number),
        ("id", Text),
        ("owner", Text),
        ("name", Text),
        ("media_type", Text),
        ("bytes", Number),
        ("created_at_ms", Number),
    ],
);
static ARTIFACT_PIECES: Table = table("artifact_piece", 1, 8, &[("place", Number), ("body", Bytes)]);
static ARTIFACT_USES: Table = table("artifact_use", 2, 500, &[("conversation", Number), ("artifact", Number)]);
static KNOWLEDGE: Table = table(
    "knowledge",
    1,
    500,
    &[("key", Number), ("name", Text), ("holder", Text), ("until_ms", Number), ("next_piece", Number), ("model", Text)],
);

/// All that is moved, in the order in which it is; a table that is added to both databases has its line here.
pub(super) static TABLES: [&Table; 16] = [
    &CONVERSATIONS,
    &ENTRIES,
    &OPEN_TURNS,
    &IDEMPOTENCY,
    &DOCUMENTS,
    &SPENT,
    &RESERVATIONS,
    &USERS,
    &CREDENTIALS,
    &ARTIFACTS,
    &ARTIFACT_PIECES,
    &ARTIFACT_USES,
    &KNOWLEDGE,
    &FILES,
    &PIECES,
    &VECTORS,
];

impl Table {
    /// The key of a row.
    pub(super) fn key_of(&self, row: &[Value]) -> Row {
        row.iter().take(self.keys).cloned().collect()
    }

    /// What is said where a row cannot be read.
    pub(super) fn damaged(&self, broken: &Broken) -> StoreError {
        let what = match broken.row.as_slice() {
            [Value::Number(place), ..] if self.name == ENTRIES.name => {
                format!("entry {} of the conversation with the key {}", place & 0xFFFF_FFFF, place >> 32)
            }
            [_, Value::Text(id), ..] if self.name == CONVERSATIONS.name => format!("conversation `{id}`"),
            row => format!("the row of `{}` with the key {}", self.name, shown(&self.key_of(row))),
        };
        StoreError::Damaged { what, reason: broken.reason.clone() }
    }

    /// Whether its rows are compared conversation by conversation.
    pub(super) fn is_grouped(&self) -> bool {
        self.name == ENTRIES.name
    }

    /// The conversation's key, where rows are compared by that.
    pub(super) fn group_of(&self, row: &Row) -> i64 {
        match row.first() {
            Some(Value::Number(place)) if self.is_grouped() => place >> 32,
            _ => 0,
        }
    }

    /// The columns, quoted.
    pub(super) fn column_list(&self) -> String {
        self.columns.iter().map(|(name, _)| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
    }

    /// The columns of the key, quoted.
    pub(super) fn key_list(&self) -> String {
        self.columns.iter().take(self.keys).map(|(name, _)| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
    }
}

/// A key in words. Bytes are hashes of secrets, and are told to nobody.
fn shown(key: &[Value]) -> String {
    let one = |value: &Value| match value {
        Value::Null => "nothing".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Text(text) => format!("`{text}`"),
        Value::Bytes(bytes) => format!("of {} bytes", bytes.len()),
    };
    key.iter().map(one).collect::<Vec<_>>().join(", ")
}

impl Value {
    /// The same text counts as the same in both databases, also where one of them cannot hold U+0000.
    pub(super) fn hash_into(&self, hasher: &mut Sha256) {
        let mut put = |kind: u8, bytes: &[u8]| {
            hasher.update([kind]);
            hasher.update(u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_be_bytes());
            hasher.update(bytes);
        };
        match self {
            Self::Null => put(0, &[]),
            Self::Number(number) => put(1, &number.to_be_bytes()),
            Self::Text(text) => put(2, crate::postgres::clean(text).as_bytes()),
            Self::Bytes(bytes) => put(3, bytes),
        }
    }
}
