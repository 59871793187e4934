//! The journal on disk: SQLite with one writer that groups commits.
