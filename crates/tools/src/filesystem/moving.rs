//! The tool `move`.

use std::io;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use turnwright_core::ContentBlock;
use turnwright_engine::source::{ToolError, ToolOutput};

use super::carry::{NotMoved, carry};
use super::open::{AtEnd, look};
use super::{Caller, Shared};
use crate::error::failed;

pub(super) const DESCRIPTION: &str = "Moves or renames a file or a folder, also to another root. Nothing is replaced: where \
    something has the new name already, it fails.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// What is moved, relative to the first root, or absolute inside a root. Of a link the link.
    from: String,
    /// Its new path; folders on the way that are missing are made.
    to: String,
}

pub(super) fn move_to(shared: &Shared, arguments: &Arguments, caller: &Caller) -> Result<ToolOutput, ToolError> {
    let Arguments { from, to } = arguments;
    let _changing = shared.hold(&[(from, AtEnd::Itself), (to, AtEnd::Make)])?;
    if caller.cancel.is_cancelled() {
        return Err(failed("the call was given up before anything was moved"));
    }
    let source = shared.spot(from, AtEnd::Itself)?;
    shared.ask_within(&source)?;
    let target = shared.spot(to, AtEnd::Make)?;
    shared.ask_above(&target)?;
    if look(&target.folder, &target.name).is_ok() {
        return Err(failed(format!("`{to}` is there already; nothing was moved")));
    }
    carry(&source.folder, &source.name, &target.folder, &target.name).map_err(|error| match error {
        NotMoved::AtAll(error) => match error.kind() {
            io::ErrorKind::AlreadyExists => failed(format!("`{to}` is there already; nothing was moved")),
            io::ErrorKind::InvalidInput => failed(format!("`{from}` cannot be moved into itself")),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                failed(format!("`{to}` was not written: the disk is full; `{from}` is where it was"))
            }
            _ => shared.swapped(&source.place, &error),
        },
        NotMoved::Whole(error) => failed(format!(
            "all of `{from}` is at `{to}`, and not all of it could be removed from where it was: {error}; look at both, and tell the user"
        )),
    })?;
    Ok(ToolOutput {
        content: vec![ContentBlock::text(format!("moved `{from}` to `{to}`"))],
        structured_content: Some(json!({"from": from, "to": to})),
        is_error: false,
        diagnostic: None,
    })
}
