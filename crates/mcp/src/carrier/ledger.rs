//! A memory of running processes that outlives the host, so that the next one can sweep what was left (law 8).

use std::fmt::Debug;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use super::container;
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
    /// The engine in which it is a container, labelled with the mark; `None` for processes of this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
}

impl ProcessRecord {
    /// Of processes that are known by their mark alone.
    pub fn new(mark: impl Into<String>, server: impl Into<String>) -> Self {
        Self { mark: mark.into(), server: server.into(), pgid: None, started: None, boot_id: None, engine: None }
    }
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

/// Which folder a record was written below. A moved folder stays the same one, a copy is another: whoever runs by records
/// that were copied belongs to the owner of the original, which may live where the copy's locks say that nobody does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Origin {
    device: u64,
    inode: u64,
}

impl Origin {
    fn of(processes: &Path) -> io::Result<Self> {
        let folder = fs::metadata(processes)?;
        Ok(Self { device: folder.dev(), inode: folder.ino() })
    }
}

/// A record as it is in its file.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    #[serde(flatten)]
    record: ProcessRecord,
    /// Older versions did not write it; what they left may have been copied.
    #[serde(default)]
    origin: Option<Origin>,
}

/// A small file for each record: `<processes>/<driver>/<mark>.json`.
#[derive(Debug, Clone)]
pub struct FileLedger {
    folder: PathBuf,
    origin: Origin,
    /// Held open, so that others can see (`/proc/<process>/fd`) which process remembers its tools there.
    _held: Arc<fs::File>,
}

impl FileLedger {
    /// The ledger of the driver with this name, below `processes` (the data directory's folder of that name).
    ///
    /// # Errors
    /// Where its folder cannot be made.
    pub fn open(processes: &Path, driver: &str) -> io::Result<Self> {
        let folder = processes.join(driver);
        fs::create_dir_all(&folder)?;
        let held = Arc::new(fs::File::open(&folder)?);
        Ok(Self { folder, origin: Origin::of(processes)?, _held: held })
    }

    fn file(&self, mark: &str) -> PathBuf {
        self.folder.join(format!("{mark}.json"))
    }
}

impl ProcessLedger for FileLedger {
    fn started(&self, record: &ProcessRecord) -> io::Result<()> {
        // The record must be whole or absent whenever the host is killed.
        let draft = self.folder.join(format!("{}.new", record.mark));
        let kept = Kept { record: record.clone(), origin: Some(self.origin) };
        fs::write(&draft, serde_json::to_vec(&kept)?)?;
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
///
/// Whether nothing is left: where an engine does not answer, its container may be.
pub async fn sweep(record: &ProcessRecord) -> bool {
    let pid = record.pgid.map(Pid::from_raw);
    let same_boot = record.boot_id.is_some() && record.boot_id == group::boot_id();
    let trusted = pid.filter(|pid| {
        same_boot && record.started.is_some() && group::stat(*pid).map(|process| process.started) == record.started
    });
    group::nobody_begins().await;
    Group { mark: record.mark.clone(), trusted }.end(Duration::from_millis(500)).await;
    let Some(engine) = &record.engine else { return true };
    match container::remove(engine, &record.mark).await {
        Ok(()) => true,
        Err(reason) => {
            let server = record.server.as_str();
            tracing::warn!(server, engine, reason, "the container of a host that is gone could not be looked for");
            false
        }
    }
}

/// Sweeps the records of all drivers below `processes` that are not alive, and removes them. Returns of how many nothing is left.
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
            swept += sweep_driver(processes, driver).await?.ended;
        }
    }
    Ok(swept)
}

/// What came of sweeping the records of a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    /// Of so many nothing is left.
    pub ended: usize,
    /// Of so many something may run: their records stay, for the next who sweeps.
    pub left: usize,
}

/// Sweeps the records of one driver below `processes`, which must be gone, and removes them.
/// Records that came with a copy of another folder, or do not say where they were written, are removed and end nothing.
///
/// # Errors
/// Where its folder cannot be read or emptied. That somebody else does the same at the same time is no error.
pub async fn sweep_driver(processes: &Path, driver: &str) -> io::Result<Swept> {
    let folder = processes.join(driver);
    let Some(origin) = unless_missing(Origin::of(processes))? else { return Ok(Swept::default()) };
    // All at once: each may take a moment to be asked and another to be killed.
    let mut sweeps = JoinSet::new();
    for file in unless_missing(fs::read_dir(&folder))?.into_iter().flatten() {
        let file = file?.path();
        sweeps.spawn(async move {
            let swept = match read(&file) {
                Some(Kept { record, origin: written }) if written == Some(origin) => sweep(&record).await.then_some(1),
                Some(Kept { record, origin: written }) => {
                    leave(&record, written);
                    Some(0)
                }
                None => Some(0),
            };
            (file, swept)
        });
    }
    let mut swept = Swept::default();
    while let Some(swept_one) = sweeps.join_next().await {
        match swept_one {
            Ok((file, Some(ended))) => {
                if file.extension().is_some_and(|extension| extension == "json") {
                    swept.ended = swept.ended.saturating_add(ended);
                }
                unless_missing(fs::remove_file(&file))?;
            }
            Ok((_, None)) | Err(_) => swept.left = swept.left.saturating_add(1),
        }
    }
    if swept.left == 0 {
        unless_missing(fs::remove_dir(&folder))?;
    }
    Ok(swept)
}

/// Says what is not ended, and why.
fn leave(record: &ProcessRecord, written: Option<Origin>) {
    let ProcessRecord { server, mark, pgid, .. } = record;
    if written.is_some() {
        tracing::info!(server, mark, pgid, "the record of a process came with a copy of another data directory");
    } else {
        let why = "an older version recorded it, and it may be that of a data directory which was copied";
        tracing::warn!(server, mark, pgid, why, "a process that may be left running is not ended");
    }
}

fn unless_missing<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn read(file: &Path) -> Option<Kept> {
    serde_json::from_slice(&fs::read(file).ok()?).ok()
}
