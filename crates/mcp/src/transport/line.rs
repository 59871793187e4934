//! Lines of a stream, bounded, read without loss when a read is abandoned half way.

use std::io;

use memchr::memchr;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// Bytes of an over-long line that are kept at each end.
const KEPT_OF_TOO_LONG: usize = 4096;
/// The capacity that the buffer for lines in pieces keeps between two of them.
const KEPT_CAPACITY: usize = 1 << 20;

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// The whole line, without its end.
    Whole(&'a [u8]),
    /// A line over the limit: its first and last bytes, and how many there were.
    TooLong { head: &'a [u8], tail: &'a [u8], length: u64 },
}

/// Reads lines; at most `limit` bytes of one are held.
#[derive(Debug)]
pub(crate) struct LineReader<R> {
    source: BufReader<R>,
    limit: usize,
    /// Bytes of the source's buffer that the last line was.
    handed_out: usize,
    /// A line that came in pieces, as far as it came.
    pieces: Vec<u8>,
    too_long: Option<TooLong>,
    is_complete: bool,
}

#[derive(Debug)]
struct TooLong {
    tail: Vec<u8>,
    length: u64,
}

enum Found {
    End,
    InBuffer(usize),
    InPieces,
    More,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(crate) fn new(source: BufReader<R>, limit: usize) -> Self {
        Self { source, limit, handed_out: 0, pieces: Vec::new(), too_long: None, is_complete: false }
    }

    /// The next line; `None` at the end. May be dropped while it waits: nothing is lost.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.forget_last();
        let found = loop {
            let available = self.source.fill_buf().await?;
            let (used, found) = if available.is_empty() {
                (0, if self.pieces.is_empty() { Found::End } else { Found::InPieces })
            } else {
                match memchr(b'\n', available) {
                    Some(end) if self.pieces.is_empty() && end <= self.limit => (0, Found::InBuffer(end)),
                    Some(end) => {
                        keep(&mut self.pieces, &mut self.too_long, self.limit, available.get(..end).unwrap_or_default());
                        (end + 1, Found::InPieces)
                    }
                    None => {
                        keep(&mut self.pieces, &mut self.too_long, self.limit, available);
                        (available.len(), Found::More)
                    }
                }
            };
            self.source.consume(used);
            if !matches!(found, Found::More) {
                break found;
            }
        };
        Ok(match found {
            Found::End | Found::More => None,
            Found::InBuffer(end) => {
                self.handed_out = end + 1;
                Some(Line::Whole(self.source.buffer().get(..end).unwrap_or_default()))
            }
            Found::InPieces => {
                self.is_complete = true;
                Some(match &self.too_long {
                    None => Line::Whole(&self.pieces),
                    Some(line) => Line::TooLong { head: &self.pieces, tail: &line.tail, length: line.length },
                })
            }
        })
    }

    fn forget_last(&mut self) {
        self.source.consume(std::mem::take(&mut self.handed_out));
        if std::mem::take(&mut self.is_complete) {
            self.pieces.clear();
            self.pieces.shrink_to(KEPT_CAPACITY);
            self.too_long = None;
        }
    }
}

fn keep(pieces: &mut Vec<u8>, too_long: &mut Option<TooLong>, limit: usize, piece: &[u8]) {
    if too_long.is_none() && pieces.len() + piece.len() <= limit {
        pieces.extend_from_slice(piece);
        return;
    }
    let line = too_long.get_or_insert_with(|| {
        let length = pieces.len() as u64;
        if pieces.len() < KEPT_OF_TOO_LONG {
            pieces.extend_from_slice(piece.get(..KEPT_OF_TOO_LONG).unwrap_or(piece));
        }
        pieces.truncate(KEPT_OF_TOO_LONG);
        pieces.shrink_to_fit();
        TooLong { tail: Vec::new(), length }
    });
    line.length += piece.len() as u64;
    line.tail.extend_from_slice(piece.get(piece.len().saturating_sub(KEPT_OF_TOO_LONG)..).unwrap_or_default());
    line.tail.drain(..line.tail.len().saturating_sub(KEPT_OF_TOO_LONG));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Eq)]
    enum Owned {
        Whole(String),
        TooLong(usize, usize, u64),
    }

    async fn lines(text: &[u8], capacity: usize, limit: usize) -> Vec<Owned> {
        let mut reader = LineReader::new(BufReader::with_capacity(capacity, text), limit);
        let mut lines = Vec::new();
        while let Some(line) = reader.next().await.unwrap() {
            lines.push(match line {
                Line::Whole(line) => Owned::Whole(String::from_utf8_lossy(line).into_owned()),
                Line::TooLong { head, tail, length } => Owned::TooLong(head.len(), tail.len(), length),
            });
        }
        lines
    }

    fn whole(lines: &[&str]) -> Vec<Owned> {
        lines.iter().map(|line| Owned::Whole((*line).to_owned())).collect()
    }

    #[tokio::test]
    async fn lines_are_the_same_however_they_arrive() {
        for capacity in 1..20 {
            let read = lines(b"one\n\ntwo two\nlast", capacity, 100).await;
            assert_eq!(read, whole(&["one", "", "two two", "last"]), "{capacity}");
        }
    }

    #[tokio::test]
    async fn a_line_over_the_limit_is_told_with_its_ends_and_the_next_one_is_whole() {
        let mut text = vec![b'x'; 50_000];
        text.extend_from_slice(b"\nnext\n");
        let read = lines(&text, 1000, 20_000).await;
        assert_eq!(read, [Owned::TooLong(4096, 4096, 50_000), Owned::Whole("next".into())]);
    }

    #[tokio::test]
    async fn a_line_at_the_limit_is_whole() {
        assert_eq!(lines(b"12345\n123456\n", 3, 5).await, [Owned::Whole("12345".into()), Owned::TooLong(6, 3, 6)]);
        assert_eq!(lines(b"12345\n123456\n", 64, 5).await, [Owned::Whole("12345".into()), Owned::TooLong(6, 6, 6)]);
    }
}
