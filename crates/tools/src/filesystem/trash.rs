//! The tools `delete` and `restore`: what is deleted goes to a folder of this program's own, and comes back from there.
//!
//! Each deleted thing has a folder there, named by its id, with the thing itself and with where it was.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use turnwright_core::ContentBlock;
use turnwright_engine::source::{ToolError, ToolOutput};

use super::carry::{NotMoved, carry, remove};
use super::open::{AtEnd, kind_of_stat, look};
use super::{Caller, Shared};
use crate::RootsError;
use crate::error::{denied, failed, invalid, not_found};

pub(super) const DELETE: &str =
    "Deletes a file, or a folder and all it holds. What is deleted goes to a trash; restore brings it back.";
pub(super) const RESTORE: &str = "Brings back what delete took away, to where it was, by the id that delete gave.";

/// The most deleted things that are kept; the oldest go for good.
const MOST_KEPT: usize = 1_000;
/// How long something may take to become whole, in seconds.
const LEFT_OVER_AFTER_S: i64 = 24 * 60 * 60;
/// The name of the thing in its folder.
const ITEM: &str = "item";
/// The name of the file that says where it was.
const ORIGIN: &str = "origin.json";

/// The folder of deleted things.
#[derive(Debug)]
pub(super) struct Trash(Dir);

/// Where a deleted thing was.
#[derive(Debug, Serialize, Deserialize)]
struct Origin {
    root: PathBuf,
    path: PathBuf,
    shown: String,
}

impl Trash {
    pub(super) fn open(path: &Path) -> Result<Self, RootsError> {
        let unusable = |source: io::Error| RootsError::Trash { path: path.to_path_buf(), source };
        Dir::create_ambient_dir_all(path, ambient_authority()).map_err(unusable)?;
        let dir = Dir::open_ambient_dir(path, ambient_authority()).map_err(unusable)?;
        let owners = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(path, owners).map_err(unusable)?;
        Ok(Self(dir))
    }

    /// Erases the oldest for good where there are too many, and what was begun a day ago or before and never became whole: it is still
    /// where it was.
    fn tidy(&self) -> io::Result<()> {
        let is_missing = |found: io::Result<_>| found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        let mut kept = Vec::new();
        let newest = look(&self.0, Path::new("."))?.st_mtime;
        for entry in self.0.entries()? {
            let name = PathBuf::from(entry?.file_name());
            let stat = look(&self.0, &name)?;
            let is_left_over =
                newest.saturating_sub(stat.st_mtime) > LEFT_OVER_AFTER_S && is_missing(look(&self.0, &name.join(ITEM)));
            if is_left_over {
                remove(&self.0, &name)?;
            } else {
                kept.push((stat.st_mtime, stat.st_mtime_nsec, name));
            }
        }
        kept.sort_unstable();
        let too_many = kept.len().saturating_sub(MOST_KEPT);
        kept.into_iter().take(too_many).try_for_each(|(_, _, name)| remove(&self.0, &name))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DeleteArguments {
    /// What is deleted, relative to the first root, or absolute inside a root. Of a link the link.
    path: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RestoreArguments {
    /// The id that delete gave.
    id: String,
}

fn trash(shared: &Shared) -> Result<&Trash, ToolError> {
    shared.trash.as_ref().ok_or_else(|| denied("there is no trash, and nothing is deleted for good"))
}

pub(super) fn delete(shared: &Shared, arguments: &DeleteArguments, caller: &Caller) -> Result<ToolOutput, ToolError> {
    let path = &arguments.path;
    let trash = trash(shared)?;
    let _changing = shared.hold(&[(path, AtEnd::Itself)])?;
    if caller.cancel.is_cancelled() {
        return Err(failed("the call was given up before anything was deleted"));
    }
    let spot = shared.spot(path, AtEnd::Itself)?;
    shared.ask_within(&spot)?;
    let explain = |error: io::Error| shared.swapped(&spot.place, &error);
    let kind = kind_of_stat(&look(&spot.folder, &spot.name).map_err(explain)?);
    let id = format!("{:016x}", RandomState::new().hash_one(path));
    let origin = Origin { root: spot.place.root().to_owned(), path: spot.real.clone(), shown: path.clone() };
    let prepare = || -> io::Result<Dir> {
        trash.0.create_dir(&id)?;
        let folder = trash.0.open_dir(&id)?;
        folder.write(ORIGIN, serde_json::to_vec(&origin)?)?;
        Ok(folder)
    };
    let put = |folder: Dir| carry(&spot.folder, &spot.name, &folder, Path::new(ITEM));
    prepare().map_err(NotMoved::AtAll).and_then(put).map_err(|error| match error {
        NotMoved::AtAll(error) => {
            let _ = trash.0.remove_dir_all(&id);
            match error.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => failed(format!(
                    "`{path}` was not deleted: the disk of the trash is full; it is where it was, and the user can make room"
                )),
                _ => explain(error),
            }
        }
        NotMoved::Whole(error) => failed(format!(
            "`{path}` was deleted only in part: {error}; all of it is in the trash with the id {id}: move away what is left and restore \
             it, or ask the user"
        )),
    })?;
    if let Err(error) = trash.tidy() {
        tracing::warn!(%error, "old deleted files could not be erased");
    }
    Ok(ToolOutput {
        content: vec![ContentBlock::text(format!("deleted the {kind} `{path}`; restore with the id {id} brings it back"))],
        structured_content: Some(json!({"path": path, "kind": kind, "id": id})),
        is_error: false,
        diagnostic: None,
    })
}

pub(super) fn restore(shared: &Shared, arguments: &RestoreArguments, caller: &Caller) -> Result<ToolOutput, ToolError> {
    let id = &arguments.id;
    let trash = trash(shared)?;
    if id.len() != 16 || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(invalid("id is not one that delete gave: sixteen digits and letters from a to f"));
    }
    let gone = || not_found(format!("the trash holds nothing with the id {id}; perhaps it was restored already"));
    let folder = trash.0.open_dir(id).map_err(|_| gone())?;
    let origin: Origin = folder.read(ORIGIN).ok().and_then(|text| serde_json::from_slice(&text).ok()).ok_or_else(gone)?;
    let shown = origin.shown;
    let place = shared.roots.place_in(&origin.root, &origin.path, shown.clone());
    let place = place.ok_or_else(|| denied(format!("`{shown}` was below a root that is none any more")))?;
    let _changing = shared.hold_places(&[(place.clone(), AtEnd::Make)])?;
    if caller.cancel.is_cancelled() {
        return Err(failed("the call was given up before anything was restored"));
    }
    look(&folder, Path::new(ITEM)).map_err(|_| gone())?;
    let spot = shared.spot_at(place, AtEnd::Make)?;
    if look(&spot.folder, &spot.name).is_ok() {
        return Err(failed(format!("`{shown}` is there again; move it away first")));
    }
    match carry(&folder, Path::new(ITEM), &spot.folder, &spot.name) {
        // What is left in the trash is removed below, or with the oldest.
        Ok(()) | Err(NotMoved::Whole(_)) => {}
        Err(NotMoved::AtAll(error)) => return Err(shared.swapped(&spot.place, &error)),
    }
    if let Err(error) = trash.0.remove_dir_all(id) {
        tracing::warn!(%error, "an empty folder of the trash could not be removed");
    }
    Ok(ToolOutput {
        content: vec![ContentBlock::text(format!("restored `{shown}`"))],
        structured_content: Some(json!({"path": shown})),
        is_error: false,
        diagnostic: None,
    })
}
