//! The journal on disk: SQLite with one writer that groups commits.
//!
//! [`SqliteStore`] is the engine's `Store` port on one database file. Several stores, in one process or
//! in several, may be open on the same file: the database decides who appended first, lock files beside it tell which
//! drivers are alive. What a conversation means is not known here; entries go in and come out as they are.

mod sqlite;

pub use sqlite::{Durability, SqliteOptions, SqliteStore};
