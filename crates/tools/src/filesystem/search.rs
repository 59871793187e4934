//! The tool `search`.

use std::path::{Path, PathBuf};

use cap_std::fs::Dir;
use globset::{GlobBuilder, GlobMatcher};
use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use turnwright_core::ContentBlock;
use turnwright_engine::source::{ToolError, ToolOutput};

use super::Shared;
use super::open::{read_options, read_part};
use crate::error::{failed, grouped, invalid};
use crate::roots::Place;

pub(super) const DESCRIPTION: &str = "Searches files below a path and finds the lines that contain a pattern (plain text, \
    or a regular expression with regex), or with target `names` everything whose name matches a glob. Links are not \
    followed; `.git` is left out.";

/// The most files and folders that one search looks at.
const MOST_VISITED: usize = 100_000;
/// The most characters of a line that are shown.
const MOST_LINE_CHARACTERS: usize = 300;
/// The largest compiled pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 1024 * 1024;

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
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum Target {
    Contents,
    Names,
}

pub(super) fn search(shared: &Shared, arguments: &Arguments, cancel: &CancellationToken) -> Result<ToolOutput, ToolError> {
    if arguments.pattern.is_empty() {
        return Err(invalid("pattern is empty: say what is looked for"));
    }
    let place = shared.roots.place(arguments.path.as_deref().unwrap_or("."))?;
    let mut search = Search {
        wanted: Wanted::of(arguments)?,
        max_file_bytes: shared.config.max_read_bytes,
        max_matches: shared.config.max_entries,
        cancel,
        found: Found::default(),
    };
    let explain = |error: std::io::Error| shared.roots.explain(&place, &error);
    let metadata = place.dir().metadata(&place.path).map_err(explain)?;
    if metadata.is_dir() {
        search.folder(&place)?;
    } else {
        super::open::regular(&place, &metadata)?;
        let name = place.path.file_name().map(PathBuf::from).unwrap_or_default();
        search.file(place.dir(), &place.path, &name);
    }
    Ok(search.found.output(&place, shared.config.max_entries))
}

/// What is looked for.
enum Wanted {
    Lines { pattern: Regex, files: Option<Names> },
    Names(Names),
}

impl Wanted {
    fn of(arguments: &Arguments) -> Result<Self, ToolError> {
        let ignore_case = arguments.ignore_case.unwrap_or(false);
        match arguments.target.unwrap_or(Target::Contents) {
            Target::Names => Ok(Self::Names(Names::of(&arguments.pattern, ignore_case)?)),
            Target::Contents => {
                let text = if arguments.regex.unwrap_or(false) {
                    arguments.pattern.clone()
                } else {
                    regex::escape(&arguments.pattern)
                };
                let pattern = RegexBuilder::new(&text)
                    .case_insensitive(ignore_case)
                    .size_limit(MAX_PATTERN_BYTES)
                    .build()
                    .map_err(|error| invalid(format!("pattern is not a regular expression: {error}")))?;
                let files = arguments.glob.as_deref().map(|glob| Names::of(glob, ignore_case)).transpose()?;
                Ok(Self::Lines { pattern, files })
            }
        }
    }
}

/// A glob over paths, or over names where it holds no slash.
struct Names {
    glob: GlobMatcher,
    is_for_name: bool,
}

impl Names {
    fn of(glob: &str, ignore_case: bool) -> Result<Self, ToolError> {
        let matcher = GlobBuilder::new(glob)
            .literal_separator(true)
            .case_insensitive(ignore_case)
            .build()
            .map_err(|error| invalid(format!("`{glob}` is not a glob: {error}")))?
            .compile_matcher();
        Ok(Self { glob: matcher, is_for_name: !glob.contains('/') })
    }

    fn fit(&self, path: &Path) -> bool {
        if self.is_for_name { path.file_name().is_some_and(|name| self.glob.is_match(name)) } else { self.glob.is_match(path) }
    }
}

/// One search on its way through a tree, in the order of names.
struct Search<'a> {
    wanted: Wanted,
    max_file_bytes: u64,
    max_matches: usize,
    cancel: &'a CancellationToken,
    found: Found,
}

#[derive(Debug, Default)]
struct Found {
    lines: Vec<String>,
    matches: Vec<Value>,
    visited: usize,
    /// Files that are too large, binary or unreadable.
    skipped: usize,
}

impl Search<'_> {
    fn is_full(&self) -> bool {
        self.found.lines.len() >= self.max_matches || self.found.visited >= MOST_VISITED
    }

    fn folder(&mut self, place: &Place<'_>) -> Result<(), ToolError> {
        let mut folders = vec![PathBuf::new()];
        while let Some(below) = folders.pop() {
            let path = place.path.join(&below);
            let Ok(folder) = place.dir().open_dir(&path) else {
                self.found.skipped += 1;
                continue;
            };
            let mut deeper = Vec::new();
            for (name, is_folder) in entries_of(&folder) {
                if self.cancel.is_cancelled() {
                    return Err(failed("the call was given up"));
                }
                if self.is_full() {
                    return Ok(());
                }
                self.found.visited += 1;
                let shown = below.join(&name);
                if let Wanted::Names(names) = &self.wanted
                    && names.fit(&shown)
                {
                    self.found.name(&shown, is_folder);
                }
                if is_folder {
                    deeper.push(shown);
                } else {
                    self.file(&folder, &name, &shown);
                }
            }
            folders.extend(deeper.into_iter().rev());
        }
        Ok(())
    }

    /// Looks into the file `name` of `folder`, where its contents are asked for.
    fn file(&mut self, folder: &Dir, name: &Path, shown: &Path) {
        let Wanted::Lines { pattern, files } = &self.wanted else { return };
        if files.as_ref().is_some_and(|files| !files.fit(shown)) {
            return;
        }
        let Some(text) = read_text(folder, name, self.max_file_bytes) else {
            self.found.skipped += 1;
            return;
        };
        for (line, number) in text.lines().zip(1_usize..) {
            if self.found.lines.len() >= self.max_matches {
                return;
            }
            if pattern.is_match(line) {
                self.found.line(shown, number, line);
            }
        }
    }
}

/// The files and folders of a folder by name; links and special files are left out.
fn entries_of(folder: &Dir) -> Vec<(PathBuf, bool)> {
    let Ok(entries) = folder.entries() else { return Vec::new() };
    let mut entries: Vec<(PathBuf, bool)> = entries
        .take(MOST_VISITED)
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let kind = entry.file_type().ok()?;
            let name = PathBuf::from(entry.file_name());
            (kind.is_file() || (kind.is_dir() && name != Path::new(".git"))).then_some((name, kind.is_dir()))
        })
        .collect();
    entries.sort_unstable();
    entries
}

fn read_text(folder: &Dir, name: &Path, max_bytes: u64) -> Option<String> {
    let file = folder.open_with(name, &read_options()).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > max_bytes {
        return None;
    }
    let bytes = read_part(file, 0, max_bytes).ok()?;
    if bytes.contains(&0) { None } else { String::from_utf8(bytes).ok() }
}

impl Found {
    fn name(&mut self, path: &Path, is_folder: bool) {
        let path = path.to_string_lossy();
        self.lines.push(if is_folder { format!("{path}/") } else { path.to_string() });
        self.matches.push(json!({"path": path, "kind": if is_folder { "folder" } else { "file" }}));
    }

    fn line(&mut self, path: &Path, number: usize, line: &str) {
        let mut shown: String = line.chars().take(MOST_LINE_CHARACTERS).collect();
        if shown.len() < line.len() {
            shown.push('…');
        }
        let path = path.to_string_lossy();
        self.lines.push(format!("{path}:{number}: {shown}"));
        self.matches.push(json!({"path": path, "line": number, "text": shown}));
    }

    fn output(mut self, place: &Place<'_>, max_matches: usize) -> ToolOutput {
        let is_cut = self.lines.len() >= max_matches || self.visited >= MOST_VISITED;
        if self.lines.is_empty() {
            self.lines.push(format!("[nothing found in `{}`]", place.shown));
        }
        if is_cut {
            self.lines.push("[there may be more: search a smaller folder, or for something rarer]".to_owned());
        }
        if self.skipped > 0 {
            let word = if self.skipped == 1 { "file was" } else { "files were" };
            self.lines.push(format!("[{} {word} left out: too large, binary or unreadable]", grouped(self.skipped as u64)));
        }
        ToolOutput {
            content: vec![ContentBlock::text(self.lines.join("\n"))],
            structured_content: Some(json!({
                "path": place.shown, "matches": self.matches, "is_truncated": is_cut, "skipped_files": self.skipped,
            })),
            is_error: false,
            diagnostic: None,
        }
    }
}
