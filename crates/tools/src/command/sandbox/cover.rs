//! Hides folders and files by mounts that the command alone has: Landlock takes nothing away from a folder that it opens.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

use super::plan::Cover;

/// What is mounted over a folder.
const EMPTY: &str = "mode=0755,size=64k";
const SAFE: MsFlags = MsFlags::MS_NOSUID.union(MsFlags::MS_NODEV);
const NO_TEXT: Option<&str> = None;

/// Covers what is to be hidden, and leaves what lies within it and is to be used. `Ok(false)` where the system lets this process have
/// no mounts of its own; nothing is changed then.
///
/// # Errors
/// Where something was covered, and something else could not be.
pub(super) fn cover(cover: &Cover) -> io::Result<bool> {
    let here = std::env::current_dir()?;
    if own_mounts().is_err() {
        return Ok(false);
    }
    let held = |path: &Path| File::options().read(true).custom_flags(nix::libc::O_PATH).open(path);
    let kept = cover.kept.iter().map(|path| held(path).map(|file| (path, file))).collect::<io::Result<Vec<_>>>()?;
    for path in &cover.pinned {
        mount(Some(path), path, NO_TEXT, MsFlags::MS_BIND | MsFlags::MS_REC, NO_TEXT)?;
    }
    for path in &cover.hidden {
        if path.is_dir() {
            mount(Some("none"), path, Some("tmpfs"), SAFE, Some(EMPTY))?;
        } else {
            mount(Some("/dev/null"), path, NO_TEXT, MsFlags::MS_BIND, NO_TEXT)?;
        }
    }
    for (path, file) in &kept {
        if file.metadata()?.is_dir() {
            std::fs::create_dir_all(path)?;
        } else {
            path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
            File::create(path)?;
        }
        let there = format!("/proc/self/fd/{}", file.as_raw_fd());
        mount(Some(there.as_str()), *path, NO_TEXT, MsFlags::MS_BIND | MsFlags::MS_REC, NO_TEXT)?;
    }
    for path in cover.hidden.iter().filter(|path| path.is_dir()) {
        let closed = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY | SAFE;
        mount(NO_TEXT, path, NO_TEXT, closed, NO_TEXT)?;
    }
    // Whoever stays in a folder is not under what is mounted over one above it.
    std::env::set_current_dir(here)?;
    Ok(true)
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
