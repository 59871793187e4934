//! The lines of one file that match.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use encoding_rs::UTF_8;
use grep_matcher::LineTerminator;
use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch};

use super::super::encoding::{Form, MOST_LOOKED_AT, decode_all, form_of};
use super::kept::Match;

/// The most characters of a line that are shown.
const MOST_LINE_CHARACTERS: usize = 300;
/// How much of a file is read at first: most are smaller.
const FIRST_READ: usize = 16 * 1024;
/// How much is looked for where the end is expected.
const LAST_READ: usize = 256;
/// The most memory that one line may take, in bytes.
const MOST_LINE_BYTES: usize = 64 * 1024 * 1024;

/// A searcher that goes through files of any size piece by piece and stops at the first sign of a binary one.
pub(super) fn searcher(context: usize) -> Searcher {
    builder(context).build()
}

fn builder(context: usize) -> SearcherBuilder {
    let mut builder = SearcherBuilder::new();
    builder
        .binary_detection(BinaryDetection::quit(0))
        .line_terminator(LineTerminator::crlf())
        .line_number(true)
        .before_context(context)
        .after_context(context)
        .heap_limit(Some(MOST_LINE_BYTES));
    builder
}

/// The matches of a file, at most `most`; `None` where it is binary. It is looked through in the encoding in which it is read; where
/// nothing is found so, as it stands, for a text of which a byte is broken.
pub(super) fn lines_of(
    searcher: &mut Searcher,
    pattern: &RegexMatcher,
    file: &File,
    most: usize,
) -> io::Result<Option<Vec<Match>>> {
    let head = head(file)?;
    let is_whole = head.len() <= MOST_LOOKED_AT;
    let lines = || Lines { most, count: 0, matches: Vec::new(), is_binary: false };
    let mut found = lines();
    if let Some(form) = other_form(&head) {
        if is_whole {
            let (text, _) = decode_all(form, head);
            searcher.search_slice(pattern, text.as_bytes(), &mut found)?;
        } else {
            let encoding = grep_searcher::Encoding::new(form.encoding.name()).map_err(io::Error::other)?;
            builder(searcher.before_context()).encoding(Some(encoding)).build().search_file(pattern, file, &mut found)?;
        }
        if !found.matches.is_empty() {
            return Ok(Some(found.matches));
        }
        found = lines();
    } else if is_whole && !head.contains(&0) {
        // It is in memory already.
        searcher.search_slice(pattern, &head, &mut found)?;
        return Ok(Some(found.matches));
    }
    searcher.search_file(pattern, file, &mut found)?;
    Ok((!found.is_binary).then_some(found.matches))
}

/// The beginning of a file: what decides about its encoding, and a byte more where there is more.
fn head(file: &File) -> io::Result<Vec<u8>> {
    let (mut head, mut room) = (Vec::new(), FIRST_READ);
    loop {
        let begin = head.len();
        head.resize(begin + room, 0);
        let read = file.read_at(head.get_mut(begin..).unwrap_or_default(), begin as u64);
        head.truncate(begin + read.as_ref().copied().unwrap_or_default());
        match read {
            Ok(0) => return Ok(head),
            Ok(_) if head.len() > MOST_LOOKED_AT => return Ok(head),
            // Less than there was room for is the end, nearly always.
            Ok(read) => room = (MOST_LOOKED_AT + 1 - head.len()).min(if read < room { LAST_READ } else { MOST_LOOKED_AT }),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The form of a text that is none of those that are looked through as they stand.
fn other_form(head: &[u8]) -> Option<Form> {
    if std::str::from_utf8(head).is_ok() && !head.contains(&0) {
        return None;
    }
    form_of(head).ok().filter(|form| form.encoding != UTF_8)
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
