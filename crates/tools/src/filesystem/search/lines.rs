//! The lines of one file that match.

use std::fs::File;
use std::io;

use grep_matcher::LineTerminator;
use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch};

use super::kept::Match;

/// The most characters of a line that are shown.
const MOST_LINE_CHARACTERS: usize = 300;
/// The most memory that one line may take, in bytes.
const MOST_LINE_BYTES: usize = 64 * 1024 * 1024;

/// A searcher that goes through files of any size piece by piece and stops at the first sign of a binary one.
pub(super) fn searcher(context: usize) -> Searcher {
    SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(0))
        .line_terminator(LineTerminator::crlf())
        .line_number(true)
        .before_context(context)
        .after_context(context)
        .heap_limit(Some(MOST_LINE_BYTES))
        .build()
}

/// The matches of a file, at most `most`; `None` where it is binary.
pub(super) fn lines_of(
    searcher: &mut Searcher,
    pattern: &RegexMatcher,
    file: &File,
    most: usize,
) -> io::Result<Option<Vec<Match>>> {
    let mut found = Lines { most, count: 0, matches: Vec::new(), is_binary: false };
    searcher.search_file(pattern, file, &mut found)?;
    Ok((!found.is_binary).then_some(found.matches))
}

struct Lines {
    most: usize,
    count: usize,
    matches: Vec<Match>,
    is_binary: bool,
}

impl Lines {
    fn push(&mut self, number: Option<u64>, bytes: &[u8], is_context: bool) {
        let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        // Of a line of megabytes only the beginning is looked at.
        let line = String::from_utf8_lossy(line.get(..MOST_LINE_CHARACTERS * 4 + 4).unwrap_or(line));
        let mut text: String = line.chars().take(MOST_LINE_CHARACTERS).collect();
        if text.len() < line.len() {
            text.push('…');
        }
        self.matches.push(Match::Line { number: number.unwrap_or_default(), text, is_context });
    }
}

impl Sink for Lines {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.push(found.line_number(), found.bytes(), false);
        self.count += 1;
        Ok(self.count < self.most)
    }

    fn context(&mut self, _: &Searcher, around: &SinkContext<'_>) -> io::Result<bool> {
        self.push(around.line_number(), around.bytes(), true);
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.matches.push(Match::Gap);
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.is_binary = true;
        Ok(false)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.is_binary |= finish.binary_byte_offset().is_some();
        Ok(())
    }
}
