//! The tool `edit`.

mod apply;

use std::io::Read as _;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use turnwright_core::ContentBlock;
use turnwright_engine::source::{ToolError, ToolOutput};

pub use self::apply::{Edit, EditRefusal, Found, Replaced, apply_edits};
use super::diff::diff;
use super::encoding::{decode, encode, form_of};
use super::open::AtEnd;
use super::write::{check_size, replace};
use super::{Caller, Shared};
use crate::error::{failed, grouped, invalid};

pub(super) const DESCRIPTION: &str = "Edits a text file: replaces old_text, which must occur exactly once, by new_text; \
    with all, every occurrence. Several edits of one file go in edits: they are made one after the other, all or none. Where \
    old_text is not there exactly, whole lines that differ only in indentation, white space at their ends or line ends are taken.";

/// The most edits of one call.
const MOST_EDITS: usize = 200;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The file, relative to the first root, or absolute inside a root.
    path: String,
    /// What is replaced, as it stands in the file.
    old_text: Option<String>,
    /// What stands there afterwards.
    new_text: Option<String>,
    /// Whether every occurrence is replaced.
    all: Option<bool>,
    /// Several edits, in place of `old_text` and `new_text`.
    edits: Option<Vec<Edit>>,
}

pub(super) fn edit(shared: &Shared, arguments: &Arguments, caller: &Caller) -> Result<ToolOutput, ToolError> {
    let path = &arguments.path;
    let edits = edits_of(arguments)?;
    let _changing = shared.hold(&[(path, AtEnd::Follow)])?;
    let spot = shared.spot(path, AtEnd::Follow)?;
    let (file, stat) = shared.open_regular(&spot)?;
    if stat.st_mode & 0o222 == 0 {
        return Err(crate::error::denied(format!("`{path}` is write-protected")));
    }
    let max = shared.config.max_write_bytes;
    let size = u64::try_from(stat.st_size).unwrap_or_default();
    if size > max {
        let (size, max) = (grouped(size), grouped(max));
        return Err(failed(format!("`{path}` is {size} bytes, limit {max}: too large to edit")));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default() + 1);
    file.take(max).read_to_end(&mut bytes).map_err(|error| shared.roots.explain(&spot.place, &error))?;
    let no_text = |why: &str| failed(format!("`{path}` is a binary file, not text: {why}"));
    let form = form_of(&bytes).map_err(|binary| no_text(binary.why()))?;
    let text = decode(form, &bytes).ok_or_else(|| no_text("some of its bytes stand for no character"))?;
    if text.contains('\0') {
        return Err(no_text("it holds zero bytes"));
    }
    if encode(form, &text).ok().is_none_or(|same| same != bytes) {
        // Two forms of one letter, as Shift_JIS has: what nobody named would change with the rest.
        let name = form.encoding.name();
        return Err(failed(format!(
            "`{path}` is written as {name} in a way that would not come back as it is; nothing was written"
        )));
    }
    let (changed, done) =
        apply_edits(&text, &edits).map_err(|(number, refusal)| refused(path, edits.len(), number, &refusal))?;
    let written = encode(form, &changed).map_err(|letter| {
        failed(format!("`{path}` is written as {}, which has no `{letter}`; nothing was written", form.encoding.name()))
    })?;
    check_size(shared, path, written.len())?;
    if caller.cancel.is_cancelled() {
        return Err(failed("the call was given up before anything was written"));
    }
    replace(shared, &spot, caller, Some(&stat), &written)?;
    let diff = diff(&text, &changed);
    let diff = diff.trim_end();
    let told: Vec<String> = done.iter().map(|done| told(path, done)).collect();
    let count: usize = done.iter().map(|done| done.lines.len()).sum();
    Ok(ToolOutput {
        content: vec![ContentBlock::text(told.join("\n")), ContentBlock::text(diff)],
        structured_content: Some(json!({"path": path, "replacements": count, "size_bytes": written.len(), "diff": diff})),
        is_error: false,
        diagnostic: None,
    })
}

fn edits_of(arguments: &Arguments) -> Result<Vec<Edit>, ToolError> {
    let Arguments { old_text, new_text, all, edits, .. } = arguments;
    match (old_text, new_text, edits) {
        (Some(old), Some(new), None) => Ok(vec![Edit { old_text: old.clone(), new_text: new.clone(), all: *all }]),
        (None, None, Some(edits)) if all.is_none() => match edits.len() {
            0 => Err(invalid("edits is empty: nothing would change")),
            1..=MOST_EDITS => Ok(edits.clone()),
            many => Err(invalid(format!("edits has {many} edits, limit {MOST_EDITS}"))),
        },
        _ => Err(invalid("say what is replaced by old_text and new_text, or by edits alone")),
    }
}

fn refused(path: &str, count: usize, number: usize, refusal: &EditRefusal) -> ToolError {
    let text = if count == 1 {
        format!("`{path}`: {refusal}")
    } else {
        format!("`{path}`: edit {} of {count}: {refusal}; no edit was made", number + 1)
    };
    match refusal {
        EditRefusal::Empty | EditRefusal::Same => invalid(text),
        EditRefusal::Missing { .. } | EditRefusal::Several(_) => failed(text),
    }
}

fn told(path: &str, done: &Replaced) -> String {
    let count = done.lines.len();
    let (times, word) = if count == 1 { ("once".to_owned(), "line") } else { (format!("{count} times"), "lines") };
    let how = match done.found {
        Found::Exactly => "",
        Found::ByLineEnds => " (found by its words: the line ends of the file are others)",
        Found::ByWhiteSpace => " (found by its words: the white space of the file is other)",
    };
    format!("replaced old_text {times} in `{path}`, in {word} {}{how}", apply::named(&done.lines))
}
