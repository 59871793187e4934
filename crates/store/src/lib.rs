//! Where journals are kept: SQLite with one writer that groups commits, or PostgreSQL for many nodes.
//!
//! [`SqliteStore`] and [`PostgresStore`] fill the engine's `Store` port and those beside it. Several stores, in one process or
//! in several, may be open on the same data: the database decides who appended first. Lock files beside a SQLite file, and
//! leases in PostgreSQL, tell which drivers are alive. What a conversation means is not known here; entries go in and come out
//! as they are.

use turnwright_engine::accounts::Accounts;
use turnwright_engine::artifacts::Artifacts;
use turnwright_engine::knowledge::KnowledgeIndex;
use turnwright_engine::search::Texts;
use turnwright_engine::upkeep::Upkeep;
use turnwright_engine::{Documents, Locks, Rates, Store, StoreError};

mod columns;
mod moving;
mod postgres;
mod rates;
mod skipped;
mod sqlite;
mod vectors;
mod words;

pub use moving::{Location, MOVING, Moved, backup, check, move_all};
pub use postgres::{LEASE, PostgresOptions, PostgresStore};
pub use sqlite::{Durability, SqliteOptions, SqliteStore, mend};

/// All that a database is used for: every port that it fills.
pub trait Storage: Store + Accounts + Artifacts + Documents + KnowledgeIndex + Locks + Rates + Texts + Upkeep {}

impl<T: Store + Accounts + Artifacts + Documents + KnowledgeIndex + Locks + Rates + Texts + Upkeep> Storage for T {}

/// The error of a call that a fault of this program ended: what came of it is not known.
pub(crate) fn broken_off() -> StoreError {
    StoreError::Unusable { reason: "the store broke off, and what came of it is not known; the log says why".to_owned() }
}
