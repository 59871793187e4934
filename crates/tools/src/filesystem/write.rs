//! The tool `write`, and the one way in which files are replaced.

use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use cap_std::fs::{Dir, OpenOptions};
use rustix::fs::{Gid, Mode, Stat, Uid};
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use turnwright_core::ContentBlock;
use turnwright_engine::source::{ToolError, ToolOutput};

use super::carry::rename_to_free;
use super::diff::diff;
use super::encoding::{Form, decode, encode, form_of};
use super::open::{AtEnd, Spot, look, open_file, regular};
use super::seen::Stamp;
use super::{Caller, Shared, attributes};
use crate::error::{denied, failed, grouped};

pub(super) const DESCRIPTION: &str = "Writes text to a file: creates it with the parents that are missing, \
    or replaces all that it held, and gives the lines that changed. A file that changed since it was read is not replaced.";

/// The largest file whose earlier text is compared with the new one, in bytes.
const MOST_COMPARED: u64 = 8 * 1024 * 1024;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The file, relative to the first root, or absolute inside a root.
    path: String,
    /// All that the file will hold.
    content: String,
}

pub(super) fn write(shared: &Shared, arguments: &Arguments, caller: &Caller) -> Result<ToolOutput, ToolError> {
    let Arguments { path, content } = arguments;
    check_size(shared, path, content.len())?;
    let _changing = shared.hold(&[(path, AtEnd::Make)])?;
    if caller.cancel.is_cancelled() {
        return Err(failed("the call was given up before anything was written"));
    }
    if path.ends_with('/') {
        return Err(failed(format!("`{path}` does not name a file")));
    }
    let spot = shared.spot(path, AtEnd::Make)?;
    let old = old(shared, &spot)?;
    let before = old.as_ref().and_then(|_| text_before(&spot));
    let (bytes, note) = written(content, before.as_ref().map(|(form, _)| *form));
    check_size(shared, path, bytes.len())?;
    replace(shared, &spot, caller, old.as_ref(), &bytes)?;
    let size = bytes.len() as u64;
    let what = if old.is_none() { "a new file" } else { "replaced" };
    let text = format!("wrote {} bytes to `{path}` ({what}){note}", grouped(size));
    let diff = before.map(|(_, before)| diff(&before, content)).unwrap_or_default();
    let diff = diff.trim_end();
    let shown = (!diff.is_empty()).then(|| ContentBlock::text(diff));
    let mut told = json!({"path": path, "size_bytes": size, "is_new": old.is_none()});
    if let (Some(told), false) = (told.as_object_mut(), diff.is_empty()) {
        told.insert("diff".to_owned(), diff.into());
    }
    Ok(ToolOutput {
        content: std::iter::once(ContentBlock::text(text)).chain(shown).collect(),
        structured_content: Some(told),
        is_error: false,
        diagnostic: None,
    })
}

/// The bytes of a text that takes the place of one in this form, in the same form where it can be written so; and what is told of that.
fn written(content: &str, before: Option<Form>) -> (Vec<u8>, String) {
    let plain = || content.as_bytes().to_vec();
    let Some(form) = before.filter(|form| *form != Form::PLAIN) else { return (plain(), String::new()) };
    let name = form.encoding.name();
    let marked = if form.has_mark { " with a byte order mark" } else { "" };
    // The mark is written beside the text.
    let text = if form.has_mark { content.strip_prefix('\u{feff}').unwrap_or(content) } else { content };
    match encode(form, text) {
        Ok(bytes) => (bytes, format!(" as {name}{marked}, as it was")),
        Err(letter) => (plain(), format!(" as UTF-8: it was {name}, which has no `{letter}`")),
    }
}

/// Refuses to write more than the limit.
pub(super) fn check_size(shared: &Shared, shown: &str, size: usize) -> Result<(), ToolError> {
    let (size, max) = (size as u64, shared.config.max_write_bytes);
    if size > max {
        let (size, max) = (grouped(size), grouped(max));
        return Err(failed(format!("`{shown}` would be {size} bytes, limit {max}; nothing was written")));
    }
    Ok(())
}

/// What is there, where it may be replaced.
fn old(shared: &Shared, spot: &Spot<'_>) -> Result<Option<Stat>, ToolError> {
    let shown = &spot.place.shown;
    match look(&spot.folder, &spot.name) {
        Ok(stat) => {
            regular(&spot.place, &stat)?;
            if stat.st_mode & 0o222 == 0 {
                return Err(denied(format!("`{shown}` is write-protected")));
            }
            Ok(Some(stat))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(shared.swapped(&spot.place, &error)),
    }
}

/// The text that is replaced with its form, where it is one and not too large.
fn text_before(spot: &Spot<'_>) -> Option<(Form, String)> {
    let file = open_file(&spot.folder, &spot.name).ok()?;
    let stat = rustix::fs::fstat(&file).ok()?;
    if u64::try_from(stat.st_size).ok()? > MOST_COMPARED || stat.st_nlink > 1 {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(MOST_COMPARED).read_to_end(&mut bytes).ok()?;
    let form = form_of(&bytes).ok()?;
    Some((form, decode(form, &bytes)?.into_owned()))
}

/// Makes `bytes` all that the file holds, at once: whoever reads it sees the old or the new. Refused where the file was seen
/// in another state than it is in, and where there is one and `old` says that there is none. Other names of the file keep what
/// it held.
pub(super) fn replace(
    shared: &Shared,
    spot: &Spot<'_>,
    caller: &Caller,
    old: Option<&Stat>,
    bytes: &[u8],
) -> Result<(), ToolError> {
    let explain = |error: io::Error| shared.swapped(&spot.place, &error);
    let key = caller.key(spot);
    let check = || match look(&spot.folder, &spot.name) {
        Ok(stat) if shared.seen.is_stale(&key, Stamp::of(&stat)) => Err(stale(spot)),
        Ok(stat) => match old {
            Some(old) if Stamp::of(old) == Stamp::of(&stat) => Ok(()),
            Some(_) => Err(stale(spot)),
            None => Err(made(spot)),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(explain(error)),
    };
    check()?;
    let (temporary, mut file) = create_temporary(&spot.folder).map_err(explain)?;
    if old.is_some()
        && let Ok(before) = open_file(&spot.folder, &spot.name)
    {
        attributes::copy(&before, &file);
    }
    let written = old.map_or(Ok(()), |old| like(&file, old)).and_then(|()| file.write_all(bytes)).map_err(explain);
    let rename = || match old {
        Some(_) => spot.folder.rename(&temporary, &spot.folder, &spot.name).map_err(explain),
        // Between the look and this somebody else may make one.
        None => rename_to_free(&spot.folder, &temporary, &spot.folder, &spot.name).map_err(|error| match error {
            Errno::EXIST => made(spot),
            error => explain(error.into()),
        }),
    };
    let renamed = written.and_then(|()| check()).and_then(|()| rename());
    if let Err(error) = renamed {
        if let Err(left) = spot.folder.remove_file(&temporary) {
            tracing::warn!(file = %temporary.display(), error = %left, "a temporary file could not be removed");
        }
        return Err(error);
    }
    if let Ok(stat) = rustix::fs::fstat(&file) {
        shared.seen.note(key, Stamp::of(&stat));
    }
    Ok(())
}

fn stale(spot: &Spot<'_>) -> ToolError {
    let shown = &spot.place.shown;
    failed(format!("`{shown}` changed since it was read; nothing was written: read it again, and then say what it shall hold"))
}

fn made(spot: &Spot<'_>) -> ToolError {
    let shown = &spot.place.shown;
    failed(format!(
        "`{shown}` was made by somebody else meanwhile; nothing was written: read it, and then say what it shall hold"
    ))
}

/// Gives a new file the permissions and, where that is possible, the owner of the one that it replaces.
fn like(file: &cap_std::fs::File, old: &Stat) -> io::Result<()> {
    let own = rustix::fs::fstat(file)?;
    if (own.st_uid, own.st_gid) != (old.st_uid, old.st_gid) {
        // Only some may give files away; the content counts more.
        let given = rustix::fs::fchown(file, Some(Uid::from_raw(old.st_uid)), Some(Gid::from_raw(old.st_gid)));
        if let Err(error) = given {
            tracing::debug!(%error, "a replaced file has another owner");
        }
    }
    Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(old.st_mode & 0o7777))?)
}

/// A name for what is not whole yet.
pub(super) fn temporary_name() -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    PathBuf::from(format!(".turnwright-{}-{number}.tmp", std::process::id()))
}

/// A file of our own in `folder`, under a name that nothing has.
fn create_temporary(folder: &Dir) -> io::Result<(PathBuf, cap_std::fs::File)> {
    const ATTEMPTS: usize = 100;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
    for _ in 0..ATTEMPTS {
        let name = temporary_name();
        match folder.open_with(&name, &options) {
            Ok(file) => return Ok((name, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}
