//! The tool `edit`.

use std::sync::PoisonError;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use turnwright_core::ContentBlock;
use turnwright_engine::source::{ToolError, ToolOutput};

use super::Shared;
use super::open::{open_regular, read_part, text_of};
use super::write::{check_size, replace};
use crate::error::{failed, grouped, invalid};

pub(super) const DESCRIPTION: &str = "Edits a text file: replaces old_text, which must occur exactly once, by new_text; \
    with all, every occurrence.";

/// The most lines that a message names.
const MOST_LINES_NAMED: usize = 5;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The file, relative to the first root, or absolute inside a root.
    path: String,
    /// What is replaced, exactly as it stands in the file, white space included.
    old_text: String,
    /// What stands there afterwards.
    new_text: String,
    /// Whether every occurrence is replaced.
    all: Option<bool>,
}

pub(super) fn edit(shared: &Shared, arguments: &Arguments, cancel: &CancellationToken) -> Result<ToolOutput, ToolError> {
    let Arguments { path, old_text, new_text, all } = arguments;
    if old_text.is_empty() {
        return Err(invalid("old_text is empty; use write for a new file"));
    }
    if old_text == new_text {
        return Err(invalid("old_text and new_text are the same: nothing would change"));
    }
    let place = shared.roots.place(path)?;
    let _changing = shared.changing.lock().unwrap_or_else(PoisonError::into_inner);
    let (file, metadata) = open_regular(&shared.roots, &place)?;
    let max = shared.config.max_write_bytes;
    if metadata.len() > max {
        let (size, max) = (grouped(metadata.len()), grouped(max));
        return Err(failed(format!("`{path}` is {size} bytes, limit {max}: too large to edit")));
    }
    let bytes = read_part(file, 0, max).map_err(|error| shared.roots.explain(&place, &error))?;
    let text = text_of(&place, 0, bytes)?;
    let lines = lines_of(&text, old_text);
    match (lines.len(), all.unwrap_or(false)) {
        (0, _) => return Err(failed(missing(path, &text, old_text))),
        (1, _) | (_, true) => {}
        (count, false) => {
            let lines = named(&lines);
            return Err(failed(format!(
                "old_text occurs {count} times in `{path}`, in lines {lines}; take in more of what surrounds the one that is \
                 meant, or set all"
            )));
        }
    }
    let changed = text.replace(old_text, new_text);
    check_size(shared, &place, changed.len())?;
    if cancel.is_cancelled() {
        return Err(failed("the call was given up before anything was written"));
    }
    replace(&shared.roots, &place, changed.as_bytes())?;
    let count = lines.len();
    let (times, word) = if count == 1 { ("once".to_owned(), "line") } else { (format!("{count} times"), "lines") };
    let text = format!("replaced old_text {times} in `{path}`, in {word} {}", named(&lines));
    Ok(ToolOutput {
        content: vec![ContentBlock::text(text)],
        structured_content: Some(json!({"path": path, "replacements": count, "size_bytes": changed.len()})),
        is_error: false,
        diagnostic: None,
    })
}

/// The lines, from 1, in which `part` begins.
fn lines_of(text: &str, part: &str) -> Vec<usize> {
    let mut line = 1;
    let mut from = 0;
    let starts = text.match_indices(part).map(|(at, _)| {
        line += text.get(from..at).unwrap_or_default().matches('\n').count();
        from = at;
        line
    });
    starts.collect()
}

fn named(lines: &[usize]) -> String {
    let mut names: Vec<String> = lines.iter().take(MOST_LINES_NAMED).map(ToString::to_string).collect();
    if lines.len() > MOST_LINES_NAMED {
        names.push("…".to_owned());
    }
    names.join(", ")
}

/// Why `old` may not be there.
fn missing(path: &str, text: &str, old: &str) -> String {
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let hint = if text.contains('\r') && text.replace("\r\n", "\n").contains(old) {
        "; the lines of the file end in \\r\\n"
    } else if squeezed(text).contains(&squeezed(old)) {
        "; it is there with other white space: read the file and copy it exactly"
    } else {
        "; read the file and copy it exactly"
    };
    format!("old_text is not in `{path}`{hint}")
}
