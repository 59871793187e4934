//! What a host does with processes that another one started.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use turnwright_host::{Environment, Host, Needs, Overrides, config};
use turnwright_mcp::{FileLedger, MARK, ProcessLedger, ProcessRecord};
use turnwright_store::{SqliteOptions, SqliteStore};

/// A process as a driver would have started it, remembered beside its database.
fn started(options: &SqliteOptions, driver: &str, mark: &str) -> Child {
    let record = ProcessRecord::new(mark, "command");
    FileLedger::open(&options.beside("processes"), driver).unwrap().started(&record).unwrap();
    Command::new("sleep").arg("1000").env(MARK, mark).stdin(Stdio::null()).spawn().unwrap()
}

/// Whether the process was ended; ends it in any case.
fn was_ended(mut child: Child) -> bool {
    let was_ended = child.try_wait().unwrap().is_some();
    let _ = child.kill();
    child.wait().unwrap();
    was_ended
}

async fn start_and_stop(folder: &Path, database: Option<&str>) {
    let environment = Environment::new(folder);
    let overrides = Overrides {
        data_dir: Some(folder.join("data")),
        database: database.map(|name| folder.join(name).display().to_string()),
        model: Some("practice/practice".to_owned()),
        ..Overrides::default()
    };
    let loaded = config::open(&environment, &overrides).unwrap();
    Host::start(loaded, &environment, Needs::Everything).await.unwrap().shutdown().await;
}

#[tokio::test]
async fn a_start_ends_what_the_dead_left_and_nothing_of_the_living() {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions::in_directory(folder.path().join("data"));
    let living = SqliteStore::open(&options).unwrap();
    let word = format!("{:x}", std::process::id());
    let kept = started(&options, &turnwright_engine::Store::driver(&living).0, &format!("{word}a1"));
    let left = started(&options, "0123456789abcdef0123456789abcdef", &format!("{word}a2"));
    start_and_stop(folder.path(), None).await;
    assert_eq!((was_ended(left), was_ended(kept)), (true, false));
}

#[tokio::test]
async fn a_start_with_another_database_leaves_the_processes_of_the_first_alone() {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions::in_directory(folder.path().join("data"));
    let living = SqliteStore::open(&options).unwrap();
    let word = format!("{:x}", std::process::id());
    let kept = started(&options, &turnwright_engine::Store::driver(&living).0, &format!("{word}b1"));
    start_and_stop(folder.path(), Some("other.db")).await;
    assert!(!was_ended(kept));
}
