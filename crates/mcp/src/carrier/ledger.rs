//! A memory of running processes that outlives the host, so that the next one can sweep what was left (law 8).

use std::fmt::Debug;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use super::group::{self, Group};

/// One started server, as it is remembered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessRecord {
    /// A word that every process of the server carries in its environment; unique for each start, `[0-9a-f]+`.
    pub mark: String,
    /// The server's name, for people.
    pub server: String,
    /// The process group, which is the first process's id; unknown before it is spawned.
    #[serde(default)]
    pub pgid: Option<i32>,
    /// When the first process started, in ticks since the system did (proc(5), field 22 of `stat`).
    #[serde(default)]
    pub started: Option<u64>,
    /// Which run of the system that was.
    #[serde(default)]
    pub boot_id: Option<String>,
}

/// Remembers started processes.
pub trait ProcessLedger: Send + Sync + Debug {
    /// A server is being started. Told before the spawn, without a group, and again with it: whoever is killed in between
    /// has left a record.
    ///
    /// # Errors
    /// Where it cannot be stored; the server is then not started.
    fn started(&self, record: &ProcessRecord) -> io::Result<()>;

    /// Nothing of it is left.
    fn ended(&self, mark: &str);
}

/// Remembers nothing: what is left by a killed host stays.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoLedger;

impl ProcessLedger for NoLedger {
    fn started(&self, _record: &ProcessRecord) -> io::Result<()> {
        Ok(())
    }

    fn ended(&self, _mark: &str) {}
}

/// A small file for each record: `<processes>/<driver>/<mark>.json`.
#[derive(Debug, Clone)]
pub struct FileLedger {
    folder: PathBuf,
}

impl FileLedger {
    /// The ledger of the driver with this name, below `processes` (the data directory's folder of that name).
    ///
    /// # Errors
    /// Where its folder cannot be made.
    pub fn open(processes: &Path, driver: &str) -> io::Result<Self> {
        let folder = processes.join(driver);
        fs::create_dir_all(&folder)?;
        Ok(Self { folder })
    }

    fn file(&self, mark: &str) -> PathBuf {
        self.folder.join(format!("{mark}.json"))
    }
}

impl ProcessLedger for FileLedger {
    fn started(&self, record: &ProcessRecord) -> io::Result<()> {
        // The record must be whole or absent whenever the host is killed.
        let draft = self.folder.join(format!("{}.new", record.mark));
        fs::write(&draft, serde_json::to_vec(record)?)?;
        fs::rename(draft, self.file(&record.mark))
    }

    fn ended(&self, mark: &str) {
        if let Err(error) = fs::remove_file(self.file(mark)) {
            tracing::warn!(mark, %error, "the record of an ended process could not be removed");
        }
    }
}

/// Ends what is left of a recorded server. The owner must be gone.
///
/// Only processes that carry the record's mark are touched, and the group of its first process where that one still runs
/// and is the very one that was recorded: a process id that somebody else got since is left alone.
pub async fn sweep(record: &ProcessRecord) {
    let pid = record.pgid.map(Pid::from_raw);
    let same_boot = record.boot_id.is_some() && record.boot_id == group::boot_id();
    let trusted = pid.filter(|pid| {
        same_boot && record.started.is_some() && group::stat(*pid).map(|process| process.started) == record.started
    });
    Group { mark: record.mark.clone(), trusted }.end(Duration::from_millis(500)).await;
}

/// Sweeps the records of all drivers below `processes` that are not alive, and removes them. Returns how many there were.
/// Each driver is asked about when its folder was seen, since one may begin meanwhile.
///
/// # Errors
/// Where the folder cannot be read. A folder that does not exist holds no records.
pub async fn sweep_gone(processes: &Path, is_alive: impl AsyncFn(&str) -> bool) -> io::Result<usize> {
    let mut swept = 0;
    for driver in unless_missing(fs::read_dir(processes))?.into_iter().flatten() {
        let driver = driver?.file_name();
        if let Some(driver) = driver.to_str()
            && !is_alive(driver).await
        {
            swept += sweep_driver(processes, driver).await?;
        }
    }
    Ok(swept)
}

/// Sweeps the records of one driver below `processes`, which must be gone, and removes them. Returns how many there were.
///
/// # Errors
/// Where its folder cannot be read or emptied. That somebody else does the same at the same time is no error.
pub async fn sweep_driver(processes: &Path, driver: &str) -> io::Result<usize> {
    let folder = processes.join(driver);
    let mut swept = 0;
    for file in unless_missing(fs::read_dir(&folder))?.into_iter().flatten() {
        let file = file?.path();
        if let Some(record) = read(&file) {
            sweep(&record).await;
            swept += 1;
        }
        unless_missing(fs::remove_file(&file))?;
    }
    unless_missing(fs::remove_dir(&folder))?;
    Ok(swept)
}

fn unless_missing<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn read(file: &Path) -> Option<ProcessRecord> {
    serde_json::from_slice(&fs::read(file).ok()?).ok()
}
