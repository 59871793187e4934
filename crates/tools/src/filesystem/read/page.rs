//! Which part of a text, line by line, is shown: the text comes in pieces, and only what is shown is kept. Pure.

/// What is wanted, and what has come of it.
#[derive(Debug)]
pub(super) struct Page {
    /// The first line, from 1.
    first: u64,
    max_lines: u64,
    max_bytes: usize,
    /// The line that the next byte belongs to.
    line: u64,
    kept: Vec<u8>,
    /// Whether what came last ended a line.
    is_at_start: bool,
    end: Option<End>,
}

/// Why no more is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The lines that were wanted are there.
    Lines,
    /// The bytes that may be shown are there, at the end of a line.
    Bytes,
    /// The same, and the one line is longer than they are.
    WithinLine,
}

/// Whether another piece is of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    More,
    Enough,
}

impl Page {
    pub(super) fn new(first: u64, max_lines: u64, max_bytes: usize) -> Self {
        Self { first: first.max(1), max_lines, max_bytes, line: 1, kept: Vec::new(), is_at_start: true, end: None }
    }

    /// Takes the next piece of the text.
    pub(super) fn push(&mut self, mut piece: &[u8]) -> Flow {
        if let Some(last) = piece.last() {
            self.is_at_start = *last == b'\n';
        }
        piece = self.skipped(piece);
        while !piece.is_empty() {
            if self.line - self.first >= self.max_lines {
                self.end = Some(End::Lines);
                return Flow::Enough;
            }
            let length = memchr::memchr(b'\n', piece).map(|at| at + 1);
            let (part, rest) = piece.split_at(length.unwrap_or(piece.len()));
            if self.kept.len() + part.len() > self.max_bytes {
                self.cut(part);
                return Flow::Enough;
            }
            self.kept.extend_from_slice(part);
            self.line += u64::from(length.is_some());
            piece = rest;
        }
        Flow::More
    }

    /// What of the piece is not before the first line.
    fn skipped<'a>(&mut self, piece: &'a [u8]) -> &'a [u8] {
        if self.line >= self.first {
            return piece;
        }
        let missing = self.first - self.line;
        let in_piece = memchr::memchr_iter(b'\n', piece).count() as u64;
        if in_piece < missing {
            self.line += in_piece;
            return &[];
        }
        let nth = usize::try_from(missing - 1).unwrap_or(usize::MAX);
        self.line = self.first;
        let start = memchr::memchr_iter(b'\n', piece).nth(nth).map_or(piece.len(), |at| at + 1);
        piece.get(start..).unwrap_or_default()
    }

    /// No more fits: only whole lines stay, unless not even one does.
    fn cut(&mut self, part: &[u8]) {
        let whole = memchr::memrchr(b'\n', &self.kept).map_or(0, |at| at + 1);
        if whole > 0 {
            self.kept.truncate(whole);
            self.end = Some(End::Bytes);
            return;
        }
        let fits = self.max_bytes.saturating_sub(self.kept.len());
        self.kept.extend_from_slice(part.get(..fits).unwrap_or(part));
        if let Err(error) = std::str::from_utf8(&self.kept)
            && error.error_len().is_none()
        {
            self.kept.truncate(error.valid_up_to());
        }
        self.end = Some(End::WithinLine);
    }

    /// What is shown, and where it ends. Without an end the text ended first.
    pub(super) fn finish(self) -> Shown {
        let lines = memchr::memchr_iter(b'\n', &self.kept).count() as u64;
        let has_rest = self.kept.last().is_some_and(|byte| *byte != b'\n');
        let ends_with = self.line - u64::from(!has_rest && self.line > self.first);
        Shown {
            lines: lines + u64::from(has_rest),
            last: ends_with,
            bytes: self.kept,
            end: self.end,
            reached: self.line - u64::from(self.is_at_start),
        }
    }
}

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) bytes: Vec<u8>,
    /// How many lines it has, the one that was cut included.
    pub(super) lines: u64,
    /// The number of its last line.
    pub(super) last: u64,
    /// The number of the last line of the text, where it was read to its end.
    pub(super) reached: u64,
    pub(super) end: Option<End>,
}

#[cfg(test)]
mod tests {
    use super::{End, Page};

    /// The same in one piece and in pieces of every size.
    fn shown(text: &str, first: u64, max_lines: u64, max_bytes: usize) -> (String, u64, u64, Option<End>) {
        let run = |size: usize| {
            let mut page = Page::new(first, max_lines, max_bytes);
            for piece in text.as_bytes().chunks(size) {
                if page.push(piece) == super::Flow::Enough {
                    break;
                }
            }
            let shown = page.finish();
            (String::from_utf8(shown.bytes).unwrap(), shown.lines, shown.last, shown.end)
        };
        let whole = run(text.len().max(1));
        for size in 1..text.len().max(1) {
            assert_eq!(run(size), whole, "in pieces of {size}");
        }
        whole
    }

    #[test]
    fn lines_are_counted_from_one_and_stay_whole() {
        let text = "one\ntwo\nthree";
        assert_eq!(shown(text, 1, 2, 100), ("one\ntwo\n".to_owned(), 2, 2, Some(End::Lines)));
        assert_eq!(shown(text, 2, 9, 100), ("two\nthree".to_owned(), 2, 3, None));
        assert_eq!(shown(text, 3, 1, 100), ("three".to_owned(), 1, 3, None));
        assert_eq!(shown(text, 1, 9, 9), ("one\ntwo\n".to_owned(), 2, 2, Some(End::Bytes)));
        assert_eq!(shown("one\ntwo\n", 1, 9, 100), ("one\ntwo\n".to_owned(), 2, 2, None));
        assert_eq!(shown(text, 4, 1, 100), (String::new(), 0, 3, None));
    }

    #[test]
    fn a_line_that_is_longer_than_may_be_shown_is_cut_between_characters() {
        assert_eq!(shown("éééé\nx", 1, 9, 3), ("é".to_owned(), 1, 1, Some(End::WithinLine)));
    }
}
