//! `turnwright db`.

use std::path::PathBuf;

use clap::Subcommand;

/// The database as a whole.
#[derive(Debug, Subcommand)]
pub(crate) enum Db {
    /// Move everything from one database into another that is empty
    #[command(after_help = "End every turnwright that uses one of them first. Where it breaks off, the same command goes on. \
        The first database is never changed.")]
    Move {
        /// The database that is read: a SQLite file or postgres://…
        #[arg(long, value_name = "URL")]
        from: String,
        /// The database that is written: a SQLite file or postgres://…
        #[arg(long, value_name = "URL")]
        to: String,
    },
    /// Write everything into a SQLite file, as it is at one moment
    #[command(after_help = "Others may use the database meanwhile. To restore it, name it with --database, or move it.")]
    Backup {
        /// The file; there must be none of this name
        file: PathBuf,
    },
    /// Look whether everything can be read and nothing is missing
    Check,
}
