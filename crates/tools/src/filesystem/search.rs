//! The tool `search`.

mod glob;
mod kept;
mod lines;
mod walk;

use std::path::Path;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use turnwright_core::ContentBlock;
use turnwright_engine::source::{ToolError, ToolOutput};

pub use self::glob::PathGlob;
use self::kept::{Kept, Match};
use self::walk::{Counts, Walk, rules_above};
pub(super) use self::walk::{Rules, rules_of};
use super::list::written;
use super::open::{AtEnd, kind_of_stat, look, open_folder, regular};
use super::{Caller, Shared};
use crate::error::{failed, grouped, invalid};
use crate::roots::Place;

pub(super) const DESCRIPTION: &str = "Searches files below a path and finds the lines that contain a pattern (plain text, \
    or a regular expression with regex), or with target `names` everything whose name matches a glob. What `.gitignore` leaves \
    out is left out, unless include_ignored says otherwise; links are not followed, and `.git` is left out.";

/// The largest compiled pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 1024 * 1024;
/// The most lines around a match.
const MOST_CONTEXT: u32 = 20;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// What is looked for: text in lines, or a glob such as `**/*.rs` for names.
    pattern: String,
    /// The folder or file to look in, relative to the first root, or absolute inside a root. The first root by default.
    path: Option<String>,
    /// Where the pattern is looked for: `contents` (the default) or `names`.
    target: Option<Target>,
    /// Looks only into files whose path below `path` matches this glob; one without a slash is for the file's name.
    glob: Option<String>,
    /// Whether the pattern is a regular expression, matched line by line.
    regex: Option<bool>,
    /// Whether capital and small letters are the same.
    ignore_case: Option<bool>,
    /// How many lines before and after each match are shown with it.
    #[schemars(range(max = 20))]
    context: Option<u32>,
    /// Whether files that `.gitignore` and `.ignore` leave out are looked into.
    include_ignored: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum Target {
    Contents,
    Names,
}

/// What is looked for.
#[derive(Debug)]
pub(super) enum Wanted {
    /// Lines, in the files that the glob is for.
    Lines { pattern: RegexMatcher, files: Option<PathGlob>, context: usize },
    /// Paths.
    Names(PathGlob),
}

impl Wanted {
    fn of(arguments: &Arguments) -> Result<Self, ToolError> {
        let ignore_case = arguments.ignore_case.unwrap_or(false);
        let glob = |glob: &str| {
            PathGlob::new(glob, ignore_case).map_err(|reason| invalid(format!("`{glob}` is not a glob: {reason}")))
        };
        match arguments.target.unwrap_or(Target::Contents) {
            Target::Names => Ok(Self::Names(glob(&arguments.pattern)?)),
            Target::Contents => {
                let mut builder = RegexMatcherBuilder::new();
                builder.case_insensitive(ignore_case).size_limit(MAX_PATTERN_BYTES).multi_line(true).crlf(true);
                let pattern = if arguments.regex.unwrap_or(false) {
                    builder.build(&arguments.pattern)
                } else {
                    builder.fixed_strings(true).build(&arguments.pattern)
                };
                let pattern =
                    pattern.map_err(|error| invalid(format!("pattern is not a regular expression of one line: {error}")))?;
                let files = arguments.glob.as_deref().map(glob).transpose()?;
                let context = arguments.context.unwrap_or(0).min(MOST_CONTEXT);
                Ok(Self::Lines { pattern, files, context: usize::try_from(context).unwrap_or_default() })
            }
        }
    }
}

pub(super) fn search(shared: &Shared, arguments: &Arguments, caller: &Caller) -> Result<ToolOutput, ToolError> {
    if arguments.pattern.is_empty() {
        return Err(invalid("pattern is empty: say what is looked for"));
    }
    let wanted = Wanted::of(arguments)?;
    let spot = shared.spot(arguments.path.as_deref().unwrap_or("."), AtEnd::Follow)?;
    let explain = |error: std::io::Error| shared.swapped(&spot.place, &error);
    let stat = look(&spot.folder, &spot.name).map_err(explain)?;
    let kept = Kept::new(shared.config.max_entries);
    let walk = Walk::new(shared, &wanted, &caller.cancel, &kept, (spot.place.root(), &spot.real));
    if kind_of_stat(&stat) == "folder" {
        let folder = open_folder(&spot.folder, &spot.name).map_err(explain)?;
        let rules = match arguments.include_ignored {
            Some(true) => None,
            Some(false) | None => Some(rules_above(&spot)),
        };
        walk.run(folder, rules);
    } else {
        regular(&spot.place, &stat)?;
        shared.one_name(&spot.place, &stat)?;
        walk.one(&spot.folder, &spot.name, spot.real.file_name().map_or(Path::new(""), Path::new));
    }
    if caller.cancel.is_cancelled() {
        return Err(failed("the call was given up"));
    }
    let counts = walk.counts();
    Ok(output(&spot.place, kept, &counts))
}

fn output(place: &Place<'_>, kept: Kept, counts: &Counts) -> ToolOutput {
    let is_truncated = kept.is_cut() || counts.is_cut;
    let matches = kept.into_matches();
    let mut lines: Vec<String> = Vec::with_capacity(matches.len());
    let mut values = Vec::with_capacity(matches.len());
    for (path, found) in matches {
        let path = written(&path.to_string_lossy());
        match found {
            Match::Path { is_folder } => {
                lines.push(if is_folder { format!("{path}/") } else { path.clone() });
                values.push(json!({"path": path, "kind": if is_folder { "folder" } else { "file" }}));
            }
            Match::Line { number, text, is_context } => {
                let mark = if is_context { '-' } else { ':' };
                lines.push(format!("{path}{mark}{number}{mark} {text}"));
                if !is_context {
                    values.push(json!({"path": path, "line": number, "text": text}));
                }
            }
            Match::Gap => lines.push("--".to_owned()),
        }
    }
    if lines.is_empty() {
        lines.push(format!("[nothing found in `{}`]", place.shown));
    }
    if is_truncated {
        lines.push("[there may be more: search a smaller folder, or for something rarer]".to_owned());
    }
    if counts.skipped > 0 {
        let word = if counts.skipped == 1 { "file was" } else { "files were" };
        lines.push(format!("[{} {word} left out: binary, unreadable or not to be touched]", grouped(counts.skipped as u64)));
    }
    ToolOutput {
        content: vec![ContentBlock::text(lines.join("\n"))],
        structured_content: Some(json!({
            "path": place.shown, "matches": values, "is_truncated": is_truncated, "skipped_files": counts.skipped,
        })),
        is_error: false,
        diagnostic: None,
    }
}
