//! Several processes on one database: starting together, writing together, being killed.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Barrier};

use turnwright_core::{ContentBlock, DriverId, Entry, Seq, TurnSettings, UserMessage};
use turnwright_engine::{Append, Store, StoreError};
use turnwright_store::{SqliteOptions, SqliteStore};
use turnwright_testkit::record;

fn open(directory: &Path) -> SqliteStore {
    SqliteStore::open(&SqliteOptions::in_directory(directory)).unwrap()
}

fn append(at: u64, text: &str) -> Append {
    let settings = TurnSettings::new("practice/words".parse().unwrap());
    let said = |text: &str| Entry::User(UserMessage { content: vec![ContentBlock::text(text)], settings: settings.clone() });
    let entries = vec![said(text), said("and so on")];
    Append { conversation: "a".parse().unwrap(), at: Seq::new(at).unwrap(), entries, at_ms: at, side: Vec::new() }
}

#[tokio::test]
async fn those_that_have_a_database_open_know_of_one_another_by_whatever_name_each_calls_it() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let first = open(&data);
    let file = data.join("turnwright.db");
    std::os::unix::fs::symlink(&file, folder.path().join("other.db")).unwrap();
    std::os::unix::fs::symlink(&data, folder.path().join("linked")).unwrap();
    let names = [
        SqliteOptions::at_file(&file),
        SqliteOptions::at_file(folder.path().join("data/../data/turnwright.db")),
        SqliteOptions::at_file(folder.path().join("other.db")),
        SqliteOptions::at_file(folder.path().join("linked/turnwright.db")),
        SqliteOptions::in_directory(folder.path().join("linked")),
    ];
    for options in names {
        let other = SqliteStore::open(&options).unwrap();
        for (one, another) in [(&first, &other), (&other, &first)] {
            assert!(one.is_alive(another.driver()).await.unwrap(), "{options:?}");
        }
        other.close().await;
    }
    // Another database beside it is another.
    let beside = SqliteStore::open(&SqliteOptions::at_file(data.join("own.db"))).unwrap();
    assert!(!first.is_alive(beside.driver()).await.unwrap());
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_to_a_database_that_is_not_there_yet_is_a_name_of_it_as_any_other() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["data", "large", "links"] {
        std::fs::create_dir(path(name)).unwrap();
    }
    symlink(path("large/turnwright.db"), path("data/turnwright.db")).unwrap();
    symlink("../large/own.db", path("links/second.db")).unwrap();
    symlink("links/second.db", path("first.db")).unwrap();
    let names = [
        (SqliteOptions::in_directory(path("data")), "large/turnwright.db", "large/locks"),
        (SqliteOptions::at_file(path("first.db")), "large/own.db", "large/own.db.locks"),
    ];
    for (options, file, locks) in names {
        let first = SqliteStore::open(&options).unwrap();

        let mode = std::fs::metadata(path(file)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{options:?}");
        assert!(path(locks).join(format!("{}.lock", first.driver())).is_file(), "{options:?}");
        for other in [options.clone(), SqliteOptions::at_file(path(file))] {
            assert_eq!(options.beside("processes"), other.beside("processes"));
            let other = SqliteStore::open(&other).unwrap();
            for (one, another) in [(&first, &other), (&other, &first)] {
                assert!(one.is_alive(another.driver()).await.unwrap(), "{options:?}");
            }
            other.close().await;
        }
        first.close().await;
    }
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_nowhere_is_told_and_one_that_leads_to_itself_ends() {
    use std::os::unix::fs::symlink;

    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    symlink(path("missing/own.db"), path("nowhere.db")).unwrap();
    symlink(path("round.db"), path("round.db")).unwrap();
    let said = |name: &str| SqliteStore::open(&SqliteOptions::at_file(path(name))).unwrap_err().to_string();

    let missing = format!("does not exist; create `{}` or name another file", path("missing").display());
    assert!(said("nowhere.db").ends_with(&missing), "{}", said("nowhere.db"));
    assert!(said("round.db").contains("round.db"), "{}", said("round.db"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is made");
}

/// This test's own program as another process that appends until it is killed.
struct Appender {
    process: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Appender {
    fn start(directory: &Path) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "sqlite_processes::a_process_that_appends_until_it_is_killed", "--ignored", "--nocapture"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        writeln!(process.stdin.as_mut().unwrap(), "{}", directory.display()).unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    /// The rest of the next line that begins with `word`; `None` where the process ended.
    fn next(&mut self, word: &str) -> Option<String> {
        self.lines.by_ref().map_while(Result::ok).find_map(|line| Some(line.strip_prefix(word)?.trim().to_owned()))
    }

    /// SIGKILL, and what it still said.
    fn kill(mut self) -> Vec<String> {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        let said: Vec<String> = self.lines.map_while(Result::ok).collect();
        said.iter().filter_map(|line| Some(line.strip_prefix("stored ")?.trim().to_owned())).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by the tests beside it, as a process of its own"]
async fn a_process_that_appends_until_it_is_killed() {
    let mut directory = String::new();
    std::io::stdin().read_line(&mut directory).unwrap();
    if directory.is_empty() {
        return;
    }
    let store = open(Path::new(directory.trim()));
    println!("\ndriver {}", store.driver());
    let mut at = 1;
    loop {
        match store.append(append(at, &format!("at {at}"))).await {
            Ok(stored) => {
                at += 2;
                for entry in stored {
                    println!("stored {}", entry.seq);
                }
            }
            Err(StoreError::Conflict { next }) => at = next.get(),
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn what_was_acknowledged_is_there_after_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    store.create(record("a")).await.unwrap();
    store.close().await;

    let mut acknowledged = 0;
    for round in 1..=5 {
        let mut appender = Appender::start(directory.path());
        for _ in 0..40 * round {
            acknowledged = appender.next("stored ").unwrap().parse().unwrap();
        }
        if let Some(last) = appender.kill().last() {
            acknowledged = last.parse().unwrap_or(acknowledged);
        }

        let store = open(directory.path());
        let read = store.entries(&"a".parse().unwrap(), Seq::FIRST, usize::MAX).await.unwrap();
        let places: Vec<u64> = read.iter().map(|entry| entry.seq.get()).collect();
        let last = places.len() as u64;
        assert_eq!(places, (1..=last).collect::<Vec<_>>());
        // The last append may have been stored without its acknowledgement having been said; whole, as all are.
        assert!(acknowledged <= last && last <= acknowledged + 3, "{acknowledged} acknowledged, {last} there");
        assert_eq!(last % 2, 0, "an append is stored whole or not at all");
        acknowledged = last;
    }
}

#[tokio::test]
async fn a_killed_process_is_not_alive_and_its_lock_file_goes() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    store.create(record("a")).await.unwrap();
    let mut appender = Appender::start(directory.path());
    let driver = DriverId(appender.next("driver ").unwrap());
    let lock = directory.path().join("locks").join(format!("{driver}.lock"));

    assert_eq!(store.is_alive(&driver).await, Ok(true));
    drop(open(directory.path()));
    assert_eq!(store.is_alive(&driver).await, Ok(true), "whoever opens does not sweep the living");

    appender.kill();

    assert_eq!(store.is_alive(&driver).await, Ok(false));
    assert!(lock.exists());
    drop(open(directory.path()));
    assert!(!lock.exists());
    assert_eq!(store.is_alive(&driver).await, Ok(false));
    assert_eq!(store.is_alive(store.driver()).await, Ok(true));
}

#[tokio::test]
async fn another_processs_appends_are_noticed_and_fenced() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    store.create(record("a")).await.unwrap();
    let mut writes = store.foreign_writes();

    let mut appender = Appender::start(directory.path());
    tokio::time::timeout(std::time::Duration::from_secs(30), writes.changed()).await.expect("a rise").unwrap();
    // Both write into the same journal for a while.
    let (mut at, mut own) = (1, Vec::new());
    while own.len() < 40 {
        match store.append(append(at, "mine")).await {
            Ok(stored) => {
                at += 2;
                own.extend(stored);
            }
            Err(StoreError::Conflict { next }) => at = next.get(),
            Err(error) => panic!("{error}"),
        }
    }
    appender.next("stored ").unwrap();
    let theirs: Vec<u64> = appender.kill().iter().map(|place| place.parse().unwrap()).collect();

    let read = store.entries(&"a".parse().unwrap(), Seq::FIRST, usize::MAX).await.unwrap();
    assert_eq!(read.iter().map(|entry| entry.seq.get()).collect::<Vec<_>>(), (1..=read.len() as u64).collect::<Vec<_>>());
    for mine in &own {
        assert!(read.contains(mine), "{mine:?}");
        assert!(!theirs.contains(&mine.seq.get()), "one place has one owner");
    }
}

#[tokio::test]
async fn processes_that_start_together_make_one_database() {
    for _ in 0..10 {
        let directory = tempfile::tempdir().unwrap();
        let start = Arc::new(Barrier::new(8));
        let starting: Vec<_> = (0..8)
            .map(|number| {
                let (start, directory) = (Arc::clone(&start), directory.path().to_owned());
                std::thread::spawn(move || {
                    start.wait();
                    (number, open(&directory))
                })
            })
            .collect();
        let stores: Vec<_> = starting.into_iter().map(|thread| thread.join().unwrap()).collect();

        for (number, store) in &stores {
            store.create(record(&format!("c{number}"))).await.unwrap();
        }
        let page =
            turnwright_engine::Page { owner: &turnwright_core::UserId::local(), after: None, limit: 100, only_pinned: false };
        assert_eq!(stores[0].1.conversations(page).await.unwrap().len(), 8);
    }
}
