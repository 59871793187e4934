//! The tool `search`.

use std::io::{self, Read};

use grep_matcher::{LineTerminator, Matcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use turnwright_engine::source::{CallContext, ToolError, ToolOutput};

use super::bytes::{Pieces, Whole};
use super::{Shared, output};
use crate::error::{failed, grouped, invalid};

pub(super) const DESCRIPTION: &str = "Finds the lines of an artifact that contain a pattern: a regular expression, or plain \
    text with literal. Each match has its line and its byte offset, from which artifact__page gives what is around it.";

/// The largest compiled pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 1024 * 1024;
/// The longest line that is looked at as one, in bytes.
const MOST_LINE_BYTES: usize = 4 << 20;
/// How much is looked at together where lines are longer, in bytes.
const WINDOW_BYTES: usize = 1 << 20;
/// By how much such parts overlap: the longest match that is surely found, in bytes.
const OVERLAP_BYTES: usize = 64 * 1024;
/// The most bytes that are shown of a line, around what matches.
const SHOWN_OF_LINE: usize = 400;
/// The most matches that are given where nothing is said.
const USUAL_MATCHES: u64 = 50;
/// The most matches that are given.
const MOST_MATCHES: u64 = 500;
/// The most lines around a match.
const MOST_CONTEXT: u64 = 20;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The id that a result names: `art_…`.
    artifact: String,
    /// What is looked for: a regular expression, matched line by line.
    pattern: String,
    /// Whether the pattern is plain text.
    literal: Option<bool>,
    /// Whether capital and small letters are the same.
    ignore_case: Option<bool>,
    /// How many lines before and after each match are shown with it, at most 20.
    context: Option<u64>,
    /// The most matches that are given; 50 by default, at most 500.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
    /// How many matches are passed over, to go on after others.
    skip: Option<u64>,
}

pub(super) async fn search(shared: &Shared, arguments: Arguments, context: &CallContext) -> Result<ToolOutput, ToolError> {
    if arguments.pattern.is_empty() {
        return Err(invalid("pattern is empty: say what is looked for"));
    }
    let mut builder = RegexMatcherBuilder::new();
    builder.case_insensitive(arguments.ignore_case.unwrap_or(false)).size_limit(MAX_PATTERN_BYTES).multi_line(true).crlf(true);
    builder.fixed_strings(arguments.literal.unwrap_or(false));
    let matcher = builder
        .build(&arguments.pattern)
        .map_err(|error| invalid(format!("pattern is not a regular expression of one line: {error}")))?;
    let whole = Whole::open(shared, &context.user, &arguments.artifact).await?;
    let found = Found {
        lines: Vec::new(),
        bytes: 0,
        most_bytes: shared.most_bytes,
        skip: arguments.skip.unwrap_or(0),
        limit: arguments.limit.unwrap_or(USUAL_MATCHES).clamp(1, MOST_MATCHES),
        seen: 0,
        given: 0,
        is_full: false,
        matcher,
    };
    let around = usize::try_from(arguments.context.unwrap_or(0).min(MOST_CONTEXT)).unwrap_or_default();
    let retry = whole.clone();
    let (first, is_long) = shared.through(whole, context, move |pieces, cancel| by_line(found, around, pieces, cancel)).await?;
    let found = if is_long {
        shared.through(retry, context, move |pieces, cancel| by_window(first.again(), pieces, cancel)).await?
    } else {
        first
    };
    Ok(found.output())
}

/// What was found so far.
struct Found {
    lines: Vec<String>,
    bytes: usize,
    most_bytes: usize,
    skip: u64,
    limit: u64,
    /// All matches that were met.
    seen: u64,
    given: u64,
    is_full: bool,
    matcher: RegexMatcher,
}

impl Found {
    /// The same, with nothing found yet.
    fn again(self) -> Self {
        Self { lines: Vec::new(), bytes: 0, seen: 0, given: 0, is_full: false, ..self }
    }

    /// Takes a match; says whether more are wanted.
    fn take(&mut self, line: impl FnOnce() -> String) -> bool {
        self.seen = self.seen.saturating_add(1);
        if self.seen <= self.skip {
            return true;
        }
        if self.given >= self.limit {
            self.is_full = true;
            return false;
        }
        let line = line();
        if self.given > 0 && self.bytes.saturating_add(line.len()) > self.most_bytes {
            self.is_full = true;
            return false;
        }
        self.given = self.given.saturating_add(1);
        self.push(line);
        true
    }

    fn push(&mut self, line: String) {
        self.bytes = self.bytes.saturating_add(line.len()).saturating_add(1);
        self.lines.push(line);
    }

    fn output(self) -> ToolOutput {
        let Self { lines, skip, given, is_full, .. } = self;
        let note = match (given, is_full) {
            (0, _) if skip > 0 => format!("no matches after the first {}", grouped(skip)),
            (0, _) => "nothing found".to_owned(),
            (1, true) => format!("1 match, and there are more: go on with skip {}", skip + 1),
            (given, true) => format!("{} matches, and there are more: go on with skip {}", grouped(given), skip + given),
            (1, false) => "1 match, the last one".to_owned(),
            (given, false) => format!("{} matches, the last ones", grouped(given)),
        };
        output(lines.join("\n"), &note)
    }
}

/// Searches line by line. Says whether a line was too long for that.
fn by_line(mut found: Found, context: usize, pieces: Pieces, cancel: &CancellationToken) -> Result<(Found, bool), ToolError> {
    let mut searcher = SearcherBuilder::new()
        .line_terminator(LineTerminator::crlf())
        .line_number(true)
        .before_context(context)
        .after_context(context)
        .heap_limit(Some(MOST_LINE_BYTES))
        .build();
    let matcher = found.matcher.clone();
    match searcher.search_reader(&matcher, pieces, &mut found) {
        Ok(()) => Ok((found, false)),
        Err(_) if cancel.is_cancelled() => Err(failed("the call was given up")),
        // The one thing that the searcher itself refuses.
        Err(error) if error.kind() == io::ErrorKind::Other && error.to_string().contains("limit") => Ok((found, true)),
        Err(error) => Err(failed(format!("the artifact cannot be searched: {error}"))),
    }
}

/// Searches without looking at lines, part by part.
fn by_window(mut found: Found, mut pieces: Pieces, cancel: &CancellationToken) -> Result<Found, ToolError> {
    let unreadable = |error: io::Error| {
        if cancel.is_cancelled() {
            failed("the call was given up")
        } else {
            failed(format!("the artifact cannot be searched: {error}"))
        }
    };
    let matcher = found.matcher.clone();
    let mut window: Vec<u8> = Vec::new();
    // Where the window begins, and up to where matches were looked for.
    let (mut begin, mut done) = (0_u64, 0_usize);
    loop {
        let before = window.len();
        let more = WINDOW_BYTES.saturating_sub(before);
        pieces.by_ref().take(more as u64).read_to_end(&mut window).map_err(unreadable)?;
        let is_last = window.len() == before || window.len() < WINDOW_BYTES;
        // A match may go on where the window ends: what begins there is looked for again.
        let until = if is_last { window.len() } else { window.len().saturating_sub(OVERLAP_BYTES) };
        let mut at = done;
        while let Ok(Some(hit)) = matcher.find_at(&window, at) {
            if hit.start() >= until && !is_last {
                break;
            }
            let offset = begin.saturating_add(hit.start() as u64);
            let line = || format!("offset {offset}: {}", around(&window, hit.start(), hit.end()));
            if !found.take(line) {
                return Ok(found);
            }
            at = hit.end().max(hit.start().saturating_add(1));
            if at > window.len() {
                break;
            }
        }
        if is_last {
            return Ok(found);
        }
        // What is before a match is shown with it.
        let keep_from = until.saturating_sub(SHOWN_OF_LINE);
        done = at.max(until).saturating_sub(keep_from);
        begin = begin.saturating_add(keep_from as u64);
        window.drain(..keep_from);
    }
}

/// What is shown of bytes around a match: a line, or a part of one.
fn around(bytes: &[u8], start: usize, end: usize) -> String {
    let line_start = bytes.get(..start).and_then(|before| memchr::memrchr(b'\n', before)).map_or(0, |at| at + 1);
    let rest = bytes.get(end..).unwrap_or_default();
    let line_end = memchr::memchr(b'\n', rest).map_or(bytes.len(), |at| end + at);
    let side = SHOWN_OF_LINE.saturating_sub((end - start).min(SHOWN_OF_LINE)) / 2;
    let from = line_start.max(start.saturating_sub(side));
    let to = line_end.min(end.min(start.saturating_add(SHOWN_OF_LINE)).saturating_add(side));
    let text = String::from_utf8_lossy(bytes.get(from..to).unwrap_or_default());
    let text = text.trim_matches('\u{fffd}').trim_end_matches('\r');
    let (before, after) = (if from > line_start { "…" } else { "" }, if to < line_end { "…" } else { "" });
    format!("{before}{text}{after}")
}

impl Sink for Found {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, hit: &SinkMatch<'_>) -> io::Result<bool> {
        let bytes = hit.bytes().strip_suffix(b"\n").unwrap_or(hit.bytes());
        let inside = self.matcher.find(bytes).ok().flatten();
        let (start, end) = inside.map_or((0, 0), |inside| (inside.start(), inside.end()));
        let (number, offset) = (hit.line_number().unwrap_or_default(), hit.absolute_byte_offset());
        Ok(self.take(|| format!("{number} (offset {offset}): {}", around(bytes, start, end))))
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> io::Result<bool> {
        let is_shown = match line.kind() {
            SinkContextKind::After => self.seen > self.skip,
            SinkContextKind::Before | SinkContextKind::Other => self.seen >= self.skip && self.given < self.limit,
        };
        if is_shown && self.bytes < self.most_bytes {
            let bytes = line.bytes().strip_suffix(b"\n").unwrap_or(line.bytes());
            self.push(format!("{}- {}", line.line_number().unwrap_or_default(), around(bytes, 0, 0)));
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        if self.given > 0 && self.given < self.limit {
            self.push("--".to_owned());
        }
        Ok(true)
    }
}
