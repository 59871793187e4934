//! A command's output, kept within bounds: its beginning and its end.

use std::collections::VecDeque;

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::error::grouped;

/// The size of one read, in bytes.
const READ_BYTES: usize = 16 * 1024;

/// The first and the last bytes of an output.
#[derive(Debug, Default)]
pub(crate) struct Output {
    half: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    dropped: u64,
}

impl Output {
    /// Keeps at most `max_bytes`.
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self { half: max_bytes / 2, ..Self::default() }
    }

    /// Reads to the end. What came is kept if this is dropped before. A failed read is the end.
    pub(crate) async fn read<R: AsyncRead + Unpin>(&mut self, source: Option<R>) {
        let Some(mut source) = source else { return };
        let mut buffer = vec![0; READ_BYTES];
        while let Ok(count @ 1..) = source.read(&mut buffer).await {
            self.push(buffer.get(..count).unwrap_or_default());
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        let (first, rest) = bytes.split_at(bytes.len().min(self.half.saturating_sub(self.head.len())));
        self.head.extend_from_slice(first);
        // Bytes that would be pushed out at once are not put in.
        let rest_kept = rest.get(rest.len().saturating_sub(self.half)..).unwrap_or_default();
        let too_many = (self.tail.len() + rest_kept.len()).saturating_sub(self.half);
        self.tail.drain(..too_many);
        self.tail.extend(rest_kept);
        self.dropped += (rest.len() - rest_kept.len() + too_many) as u64;
    }

    /// As text. What is not UTF-8 is replaced; a gap says how many bytes are missing.
    pub(crate) fn into_text(self) -> String {
        let Self { mut head, tail, mut dropped, .. } = self;
        let mut tail = Vec::from(tail);
        if dropped == 0 {
            head.append(&mut tail);
            return text_of(head);
        }
        // Characters that the gap cut belong to the gap.
        let whole = match std::str::from_utf8(&head) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => head.len(),
        };
        dropped += (head.len() - whole) as u64;
        head.truncate(whole);
        let torn = tail.iter().take(3).take_while(|byte| **byte & 0b1100_0000 == 0b1000_0000).count();
        dropped += torn as u64;
        tail.drain(..torn);
        format!("{}\n[… {} bytes left out …]\n{}", text_of(head), grouped(dropped), text_of(tail))
    }
}

fn text_of(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::Output;

    async fn kept(max_bytes: usize, bytes: &[u8]) -> String {
        let mut output = Output::new(max_bytes);
        output.read(Some(bytes)).await;
        output.into_text()
    }

    #[tokio::test]
    async fn an_output_within_its_bounds_is_whole() {
        assert_eq!(kept(8, b"abcdefgh").await, "abcdefgh");
    }

    #[tokio::test]
    async fn of_a_longer_output_head_and_tail_stay_with_the_size_of_the_gap() {
        assert_eq!(kept(8, b"abcdefghi").await, "abcd\n[… 1 bytes left out …]\nfghi");
        assert_eq!(kept(4, &b"x".repeat(100_000)).await, "xx\n[… 99,996 bytes left out …]\nxx");
    }

    #[tokio::test]
    async fn a_gap_cuts_no_character() {
        assert_eq!(kept(6, "aé€€€€z".as_bytes()).await, "aé\n[… 12 bytes left out …]\nz");
    }

    #[tokio::test]
    async fn bytes_that_are_not_text_are_replaced() {
        assert_eq!(kept(8, b"a\xffb").await, "a\u{fffd}b");
    }
}
