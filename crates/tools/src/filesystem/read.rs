//! The tool `read`.

use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use turnwright_core::ContentBlock;
use turnwright_engine::source::{ToolError, ToolOutput};

use super::Shared;
use super::open::{open_regular, read_part, text_of};
use crate::error::{failed, grouped, invalid};

pub(super) const DESCRIPTION: &str = "Reads a text file (UTF-8) and gives what it says. \
    A file over the limit is read in parts, with offset and limit in bytes.";

/// The longest character of UTF-8, in bytes: a part that is smaller might hold none.
const LONGEST_CHARACTER: u64 = 4;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The file, relative to the first root, or absolute inside a root.
    path: String,
    /// The byte to begin at; 0 is the first.
    offset: Option<u64>,
    /// The most bytes to read.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
}

pub(super) fn read(shared: &Shared, arguments: &Arguments, _: &CancellationToken) -> Result<ToolOutput, ToolError> {
    let place = shared.roots.place(&arguments.path)?;
    let (file, metadata) = open_regular(&shared.roots, &place)?;
    let max = shared.config.max_read_bytes;
    let shown = &place.shown;
    let too_large = |size: u64| {
        let (size, max) = (grouped(size), grouped(max));
        failed(format!("`{shown}` is {size} bytes, limit {max}; read it in parts with offset and limit"))
    };
    let is_part = arguments.offset.is_some() || arguments.limit.is_some();
    let size = metadata.len();
    if !is_part && size > max {
        return Err(too_large(size));
    }
    let offset = arguments.offset.unwrap_or(0);
    if offset > size {
        return Err(invalid(format!("offset {offset} is past the end: `{shown}` is {} bytes", grouped(size))));
    }
    let limit = arguments.limit.unwrap_or(max).min(max).max(LONGEST_CHARACTER);
    // One byte more than allowed shows that a file grew, or that the system gave no size for it.
    let wanted = if is_part { limit } else { max.saturating_add(1) };
    let mut bytes = read_part(file, offset, wanted).map_err(|error| shared.roots.explain(&place, &error))?;
    if !is_part {
        let read = bytes.len() as u64;
        if read > max {
            return Err(too_large(read));
        }
        return Ok(ToolOutput::text(text_of(&place, 0, bytes)?));
    }
    let skipped = trim_to_characters(&mut bytes, offset > 0, bytes_follow(offset, limit, size));
    let start = offset.saturating_add(skipped);
    let end = start.saturating_add(bytes.len() as u64);
    let text = text_of(&place, start, bytes)?;
    let rest = if end < size { format!("read on with offset {end}") } else { "the end".to_owned() };
    let note = format!("[bytes {start} to {end} of {size}; {rest}]");
    Ok(ToolOutput { content: vec![ContentBlock::text(text), ContentBlock::text(note)], ..ToolOutput::default() })
}

fn bytes_follow(offset: u64, limit: u64, size: u64) -> bool {
    offset.saturating_add(limit) < size
}

/// Takes away the rest of a character that the part before began, and the beginning of one that the part after ends.
/// Gives how many bytes went from the front.
fn trim_to_characters(bytes: &mut Vec<u8>, has_before: bool, has_after: bool) -> u64 {
    let is_continuation = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
    let front = if has_before { bytes.iter().take(3).take_while(is_continuation).count() } else { 0 };
    bytes.drain(..front);
    if has_after
        && let Err(error) = std::str::from_utf8(bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
    front as u64
}
