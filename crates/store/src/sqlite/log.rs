//! The write-ahead log's way back into the database, beside those who write.

use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

/// A connection that puts the log back and does nothing else. SQLite lets one connection write while another does that.
#[derive(Debug)]
pub(super) struct Log {
    connection: Connection,
}

impl Log {
    /// Of the database in this file, which is opened now: another may be under its name when it is wanted.
    pub(super) fn open(file: &Path) -> rusqlite::Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(file, flags)?;
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        // Opens the log too.
        connection.query_row("PRAGMA schema_version", (), |_| Ok(()))?;
        Ok(Self { connection })
    }

    /// Puts back what is in the log now, as far as readers allow.
    pub(super) fn put_back(&self) -> rusqlite::Result<()> {
        put_back(&self.connection)
    }

    /// See [`keep_apart`].
    pub(super) fn keep_apart(&self) {
        keep_apart(&self.connection);
    }
}

/// Leaves the log where it is when this connection is closed, also where it is the last.
pub(super) fn keep_apart(connection: &Connection) {
    if let Err(error) = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true) {
        tracing::warn!(%error, "the log of a file that was written over is put into what is there");
    }
}

/// Puts back what is in the log now over this connection. It waits for no lock.
pub(super) fn put_back(connection: &Connection) -> rusqlite::Result<()> {
    connection.prepare_cached("PRAGMA wal_checkpoint(PASSIVE)")?.query_row((), |_| Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_put_back_while_another_connection_is_in_the_middle_of_a_transaction() {
        let folder = tempfile::tempdir().unwrap();
        let (file, copy) = (folder.path().join("ours.db"), folder.path().join("copy.db"));
        let writing = Connection::open(&file).unwrap();
        writing.execute_batch("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0").unwrap();
        writing.execute_batch("CREATE TABLE told (word TEXT); INSERT INTO told VALUES ('first')").unwrap();
        writing.execute_batch("BEGIN IMMEDIATE; INSERT INTO told VALUES ('second')").unwrap();

        Log::open(&file).unwrap().put_back().unwrap();

        std::fs::copy(&file, &copy).unwrap();
        writing.execute_batch("COMMIT").unwrap();
        let words = |file| -> i64 {
            Connection::open(file).unwrap().query_row("SELECT count(*) FROM told", (), |row| row.get(0)).unwrap()
        };
        assert_eq!((words(copy), words(file)), (1, 2), "what is committed is in the database alone, the rest in its log");
    }
}
