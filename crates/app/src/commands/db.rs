//! `turnwright db`: moving, backing up and checking the database.

use turnwright_engine::StoreError;
use turnwright_host::HostError;
use turnwright_host::database::{self, Moved};

use crate::cli::Everywhere;
use crate::cli::db::Db;
use crate::exit::{DAMAGED, Exit, Failure};
use crate::opened::{self, QUIET};
use crate::output::{Output, say};
use crate::table::table;

/// What is to be done about a database that is damaged.
const RESTORE: &str = "restore it from a backup";

pub(super) async fn run(everywhere: &Everywhere, command: Db, output: &mut Output) -> Result<Exit, Failure> {
    let opened = opened::open(&opened::overrides(everywhere), QUIET)?;
    let loaded = &opened.loaded;
    match command {
        Db::Move { from, to } => {
            let moved = database::move_all(loaded, &from, &to).await.map_err(|error| unread(error, DAMAGED))?;
            tell(&moved, output);
            say("moved, and compared: every row is the same in both");
            Ok(Exit::Done)
        }
        Db::Backup { file } => {
            let moved = database::backup(loaded, &file).await.map_err(|error| unread(error, DAMAGED))?;
            tell(&moved, output);
            say(&format!("written to {}", file.display()));
            Ok(Exit::Done)
        }
        Db::Check => {
            // It may be found damaged where it is opened already.
            let (counted, wrong) = database::check(loaded).await.map_err(|error| unread(error, RESTORE))?;
            tell(&counted, output);
            if wrong.is_empty() {
                say("nothing is wrong with it");
                return Ok(Exit::Done);
            }
            Err(Failure::failed(wrong.join("\n")).hint(RESTORE))
        }
    }
}

/// What is damaged is no mistake of whoever asked.
fn unread(error: HostError, hint: &str) -> Failure {
    match error {
        HostError::Store(error @ StoreError::Damaged { .. }) => Failure::failed(error.to_string()).hint(hint),
        error => error.into(),
    }
}

fn tell(moved: &Moved, output: &mut Output) {
    let rows: Vec<_> = moved.rows.iter().map(|(name, count)| [(*name).to_owned(), count.to_string()]).collect();
    for line in table(&rows) {
        output.line(&line);
    }
}
