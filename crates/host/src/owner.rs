//! To whom the folder of the data belongs: what root makes in the folder of another is root's, and the service that it is the folder of
//! could not use it.

use std::fs::OpenOptions;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::HostError;

/// Refuses to be root in a folder where something of another's is.
///
/// `at` is a database, or the folder of the data. Where there is nothing yet, as in the volume of a container, root may begin. Where the
/// database is root's already, root may go on; where whatever is made gets the folder's owner (some network file systems, and those of
/// other systems), nothing is wrong either.
pub(crate) fn not_anothers(at: &Path) -> Result<(), HostError> {
    let is_begun = |folder: &Path| std::fs::read_dir(folder).is_ok_and(|mut names| names.next().is_some());
    let Some(uid) = std::fs::metadata(at).ok().map(|found| found.uid()) else { return Ok(()) };
    let folder = match at.parent() {
        _ if at.is_dir() && is_begun(at) => at,
        Some(folder) if !at.is_dir() => folder,
        Some(_) | None => return Ok(()),
    };
    let is_root = rustix::process::geteuid().is_root();
    if !is_root || uid == 0 || made_by_us(folder).is_none_or(|made| made == uid) {
        return Ok(());
    }
    Err(HostError::Owner { path: folder.display().to_string(), uid })
}

/// To whom a file belongs that this process makes in a folder; `None` where it can make none, of which the start tells.
fn made_by_us(folder: &Path) -> Option<u32> {
    let path = folder.join(format!(".owner-{}", std::process::id()));
    let made = OpenOptions::new().write(true).create_new(true).open(&path).ok()?;
    let owner = made.metadata().ok().map(|made| made.uid());
    // One that stays is empty and does no harm.
    let _ = std::fs::remove_file(&path);
    owner
}
