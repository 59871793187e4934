//! Hides folders and files by mounts that the command alone has: Landlock takes nothing away from a folder that it opens.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

use super::plan::Over;

/// What is mounted over a folder.
const EMPTY: &str = "mode=0755,size=64k";
const SAFE: MsFlags = MsFlags::MS_NOSUID.union(MsFlags::MS_NODEV);
const NO_TEXT: Option<&str> = None;

/// Mounts these, in this order: nothing over what is to be hidden, and over the rest itself. `Ok(false)` where the system lets this
/// process have no mounts of its own; nothing is changed then.
///
/// # Errors
/// Where something was covered, and something else could not be.
pub(super) fn cover(places: &[(PathBuf, Over)]) -> io::Result<bool> {
    let here = std::env::current_dir()?;
    if own_mounts().is_err() {
        return Ok(false);
    }
    // What comes back is gone by then.
    let held = |path: &Path| File::options().read(true).custom_flags(nix::libc::O_PATH).open(path);
    let held = |(path, over): &(PathBuf, Over)| match over {
        Over::Itself => held(path).map(Some),
        Over::Nothing => Ok(None),
    };
    let held = places.iter().map(held).collect::<io::Result<Vec<_>>>()?;
    let mut covered = Vec::new();
    for ((path, _), held) in places.iter().zip(&held) {
        match held {
            Some(file) => bring_back(path, file)?,
            None if path.is_dir() => {
                mount(Some("none"), path, Some("tmpfs"), SAFE, Some(EMPTY))?;
                covered.push(path);
            }
            None => mount(Some("/dev/null"), path, NO_TEXT, MsFlags::MS_BIND, NO_TEXT)?,
        }
    }
    for path in covered {
        let closed = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY | SAFE;
        mount(NO_TEXT, path, NO_TEXT, closed, NO_TEXT)?;
    }
    // Whoever stays in a folder is not under what is mounted over one above it.
    std::env::set_current_dir(here)?;
    Ok(true)
}

/// Mounts a file or folder at its path, which is made where it lies in what was covered.
fn bring_back(path: &Path, file: &File) -> io::Result<()> {
    if file.metadata()?.is_dir() {
        std::fs::create_dir_all(path)?;
    } else if !path.exists() {
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        File::create(path)?;
    }
    let there = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(mount(Some(there.as_str()), path, NO_TEXT, MsFlags::MS_BIND | MsFlags::MS_REC, NO_TEXT)?)
}

/// Gives this process mounts of its own: as root by itself, as anybody else within a name space of users.
fn own_mounts() -> io::Result<()> {
    if unshare(CloneFlags::CLONE_NEWNS).is_err() {
        let (user, group) = (nix::unistd::geteuid(), nix::unistd::getegid());
        unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS)?;
        std::fs::write("/proc/self/setgroups", "deny")?;
        std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
        std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    }
    // What is mounted here is mounted nowhere else.
    Ok(mount(NO_TEXT, "/", NO_TEXT, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NO_TEXT)?)
}
