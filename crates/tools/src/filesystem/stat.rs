//! The tool `stat`.

use cap_std::fs::PermissionsExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use turnwright_core::ContentBlock;
use turnwright_engine::source::{ToolError, ToolOutput};

use super::open::{AtEnd, kind_of};
use super::{Caller, Shared};
use crate::error::grouped;

pub(super) const DESCRIPTION: &str = "Tells whether a path exists and what it is: its kind, how large it is, its permissions \
    and when it was modified.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The file or folder, relative to the first root, or absolute inside a root.
    path: String,
}

pub(super) fn stat(shared: &Shared, arguments: &Arguments, _: &Caller) -> Result<ToolOutput, ToolError> {
    let spot = shared.spot(&arguments.path, AtEnd::Itself)?;
    let place = &spot.place;
    let explain = |error: std::io::Error| shared.swapped(place, &error);
    let itself = spot.folder.symlink_metadata(&spot.name).map_err(explain)?;
    let kind = kind_of(itself.file_type());
    let leads_to = if itself.is_symlink() {
        Some(spot.folder.read_link_contents(&spot.name).map_err(explain)?.to_string_lossy().into_owned())
    } else {
        None
    };
    let modified = itself
        .modified()
        .ok()
        .and_then(|time| jiff::Timestamp::try_from(time.into_std()).ok())
        .and_then(|time| time.round(jiff::Unit::Second).ok())
        .map(|time| time.to_string());
    let mode = format!("{:04o}", itself.permissions().mode() & 0o7777);
    let mut parts = vec![format!("`{}` is a {kind}", place.shown)];
    if let Some(target) = &leads_to {
        parts.push(format!("leads to `{target}`"));
    }
    if itself.is_file() {
        parts.push(format!("{} bytes", grouped(itself.len())));
    }
    if let Some(modified) = &modified {
        parts.push(format!("modified {modified}"));
    }
    parts.push(format!("mode {mode}"));
    Ok(ToolOutput {
        content: vec![ContentBlock::text(parts.join(", "))],
        structured_content: Some(json!({
            "path": place.shown, "kind": kind, "size_bytes": itself.len(), "modified": modified, "mode": mode,
            "leads_to": leads_to,
        })),
        is_error: false,
        diagnostic: None,
    })
}
