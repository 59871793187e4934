//! The tool `list`.

use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use turnwright_core::ContentBlock;
use turnwright_engine::source::{ToolError, ToolOutput};

use super::open::{AtEnd, kind_of, kind_of_stat, look, open_folder};
use super::{Caller, Shared};
use crate::error::{failed, grouped};

pub(super) const DESCRIPTION: &str = "Lists which files and folders are in a folder (directory), with their sizes.";

/// The most names that are looked at before they are sorted.
const MOST_NAMES: usize = 200_000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The folder, relative to the first root, or absolute inside a root. The first root by default.
    path: Option<String>,
}

pub(super) fn list(shared: &Shared, arguments: &Arguments, caller: &Caller) -> Result<ToolOutput, ToolError> {
    let spot = shared.spot(arguments.path.as_deref().unwrap_or("."), AtEnd::Follow)?;
    let place = &spot.place;
    let explain = |error: std::io::Error| shared.swapped(place, &error);
    let kind = kind_of_stat(&look(&spot.folder, &spot.name).map_err(explain)?);
    if kind != "folder" {
        return Err(failed(format!("`{}` is a {kind}, not a folder", place.shown)));
    }
    let folder = open_folder(&spot.folder, &spot.name).map_err(explain)?;
    let mut names = Vec::new();
    for entry in folder.entries().map_err(explain)?.take(MOST_NAMES) {
        names.push(entry.map_err(explain)?.file_name());
    }
    names.sort_unstable();
    let total = names.len();
    let mut lines = Vec::new();
    let mut entries = Vec::new();
    for name in names.into_iter().take(shared.config.max_entries) {
        if caller.cancel.is_cancelled() {
            return Err(failed("the call was given up"));
        }
        // One that went away since it was named is not there.
        let Ok(metadata) = folder.symlink_metadata(Path::new(&name)) else { continue };
        let kind = kind_of(metadata.file_type());
        let is_protected = shared.guard.covers_entry(spot.place.root(), &spot.real.join(&name), kind == "folder");
        let name = written(&name.to_string_lossy());
        let (line, size) = match kind {
            "file" => (format!("{name} ({} bytes)", grouped(metadata.len())), Some(metadata.len())),
            "folder" => (format!("{name}/"), None),
            kind => (format!("{name} ({kind})"), None),
        };
        lines.push(if is_protected { format!("{line} [not to be touched]") } else { line });
        entries.push(json!({"name": name, "kind": kind, "size_bytes": size}));
    }
    let is_cut = total > shared.config.max_entries;
    if is_cut {
        lines.push(format!("[{} of {} entries]", grouped(shared.config.max_entries as u64), grouped(total as u64)));
    }
    if lines.is_empty() {
        lines.push(format!("[`{}` is empty]", place.shown));
    }
    Ok(ToolOutput {
        content: vec![ContentBlock::text(lines.join("\n"))],
        structured_content: Some(json!({"path": place.shown, "entries": Value::Array(entries), "is_truncated": is_cut})),
        is_error: false,
        diagnostic: None,
    })
}

/// A name on one line: what would break it is written as in a string.
pub(super) fn written(name: &str) -> String {
    if name.chars().any(char::is_control) { name.escape_debug().to_string() } else { name.to_owned() }
}
