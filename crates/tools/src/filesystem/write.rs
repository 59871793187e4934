//! The tool `write`, and the one way in which files are replaced.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

use cap_std::fs::{Dir, OpenOptions, Permissions};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use turnwright_core::ContentBlock;
use turnwright_engine::source::{ToolError, ToolOutput};

use super::Shared;
use super::open::regular;
use crate::error::{denied, failed, grouped};
use crate::roots::{Place, Roots};

pub(super) const DESCRIPTION: &str = "Writes text to a file: creates it with the parents that are missing, \
    or replaces all that it held.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The file, relative to the first root, or absolute inside a root.
    path: String,
    /// All that the file will hold.
    content: String,
}

pub(super) fn write(shared: &Shared, arguments: &Arguments, cancel: &CancellationToken) -> Result<ToolOutput, ToolError> {
    let place = shared.roots.place(&arguments.path)?;
    check_size(shared, &place, arguments.content.len())?;
    let _changing = shared.changing.lock().unwrap_or_else(PoisonError::into_inner);
    if cancel.is_cancelled() {
        return Err(failed("the call was given up before anything was written"));
    }
    let is_new = replace(&shared.roots, &place, arguments.content.as_bytes())?;
    let size = arguments.content.len() as u64;
    let what = if is_new { "a new file" } else { "replaced" };
    let text = format!("wrote {} bytes to `{}` ({what})", grouped(size), place.shown);
    Ok(ToolOutput {
        content: vec![ContentBlock::text(text)],
        structured_content: Some(json!({"path": place.shown, "size_bytes": size, "is_new": is_new})),
        is_error: false,
        diagnostic: None,
    })
}

/// Refuses to write more than the limit.
pub(super) fn check_size(shared: &Shared, place: &Place<'_>, size: usize) -> Result<(), ToolError> {
    let (size, max) = (size as u64, shared.config.max_write_bytes);
    if size > max {
        let (size, max) = (grouped(size), grouped(max));
        return Err(failed(format!("`{}` would be {size} bytes, limit {max}; nothing was written", place.shown)));
    }
    Ok(())
}

/// Makes `bytes` all that the file holds, at once: whoever reads it sees the old or the new. Says whether it is new.
pub(super) fn replace(roots: &Roots, place: &Place<'_>, bytes: &[u8]) -> Result<bool, ToolError> {
    let explain = |error: io::Error| roots.explain(place, &error);
    let Target { folder, name, permissions } = target(roots, place)?;
    let (temporary, mut file) = create_temporary(&folder).map_err(explain)?;
    let written = permissions
        .as_ref()
        .map_or(Ok(()), |permissions| file.set_permissions(permissions.clone()))
        .and_then(|()| file.write_all(bytes))
        .and_then(|()| folder.rename(&temporary, &folder, &name));
    if let Err(error) = written {
        if let Err(left) = folder.remove_file(&temporary) {
            tracing::warn!(file = %temporary.display(), error = %left, "a temporary file could not be removed");
        }
        return Err(explain(error));
    }
    Ok(permissions.is_none())
}

/// Where a file is replaced: links on the way are resolved, the folder is held open.
struct Target {
    folder: Dir,
    name: PathBuf,
    /// Those of the file that is there.
    permissions: Option<Permissions>,
}

fn target(roots: &Roots, place: &Place<'_>) -> Result<Target, ToolError> {
    let explain = |error: io::Error| roots.explain(place, &error);
    let dir = place.dir();
    let (path, permissions) = match dir.metadata(&place.path) {
        Ok(metadata) => {
            regular(place, &metadata)?;
            if metadata.permissions().readonly() {
                return Err(denied(format!("`{}` is write-protected", place.shown)));
            }
            (dir.canonicalize(&place.path).map_err(explain)?, Some(metadata.permissions()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if dir.symlink_metadata(&place.path).is_ok() {
                return Err(failed(format!("`{}` is a link that leads nowhere", place.shown)));
            }
            (place.path.clone(), None)
        }
        Err(error) => return Err(explain(error)),
    };
    let Some(name) = path.file_name().map(PathBuf::from).filter(|_| !place.shown.ends_with('/')) else {
        return Err(failed(format!("`{}` does not name a file", place.shown)));
    };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if permissions.is_none() && parent != Path::new(".") {
        dir.create_dir_all(parent).map_err(explain)?;
    }
    let folder = dir.open_dir(parent).map_err(explain)?;
    Ok(Target { folder, name, permissions })
}

/// A file of our own in `folder`, under a name that nothing has.
fn create_temporary(folder: &Dir) -> io::Result<(PathBuf, cap_std::fs::File)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    const ATTEMPTS: usize = 100;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
    for _ in 0..ATTEMPTS {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = PathBuf::from(format!(".turnwright-{}-{number}.tmp", std::process::id()));
        match folder.open_with(&name, &options) {
            Ok(file) => return Ok((name, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}
