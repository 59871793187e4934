//! What a background process prints: the newest bytes, each at its place from the beginning.

use std::collections::VecDeque;

/// The most that is given at once, in bytes.
const MAX_GIVEN: usize = 32 * 1024;

/// The newest output of a process, at most so many bytes.
#[derive(Debug)]
pub(super) struct Log {
    most: usize,
    /// The place of the first byte that is kept.
    start: u64,
    kept: VecDeque<u8>,
}

/// A part of an output.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Where it begins: later than asked for where that is not kept any more.
    pub(super) from: u64,
    /// Where the next part begins.
    pub(super) next: u64,
    pub(super) text: String,
}

impl Log {
    pub(super) fn new(most: usize) -> Self {
        Self { most, start: 0, kept: VecDeque::new() }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.kept.extend(bytes);
        let too_many = self.kept.len().saturating_sub(self.most);
        self.kept.drain(..too_many);
        self.start += too_many as u64;
    }

    /// How much was printed in all.
    pub(super) fn end(&self) -> u64 {
        self.start + self.kept.len() as u64
    }

    /// What is there from a place on. A character that is not whole yet is left for the next part, unless nothing follows.
    pub(super) fn part(&self, from: u64, is_over: bool) -> Part {
        let mut from = from.clamp(self.start, self.end());
        let skipped = usize::try_from(from - self.start).unwrap_or(usize::MAX);
        let mut bytes: Vec<u8> = self.kept.iter().skip(skipped).take(MAX_GIVEN).copied().collect();
        if from == self.start && from > 0 {
            // The rest of a character that was cut.
            let torn = bytes.iter().take(3).take_while(|byte| **byte & 0b1100_0000 == 0b1000_0000).count();
            bytes.drain(..torn);
            from += torn as u64;
        }
        let is_last = from + bytes.len() as u64 == self.end();
        if let Err(error) = std::str::from_utf8(&bytes)
            && let (None, false) = (error.error_len(), is_over && is_last)
        {
            bytes.truncate(error.valid_up_to());
        }
        let next = from + bytes.len() as u64;
        Part { from, next, text: String::from_utf8_lossy(&bytes).into_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::{Log, Part};

    fn part(from: u64, next: u64, text: &str) -> Part {
        Part { from, next, text: text.to_owned() }
    }

    #[test]
    fn parts_follow_one_another_without_gap_and_cut_no_character() {
        let mut log = Log::new(100);
        log.push(b"one\nt\xc3");
        assert_eq!(log.part(0, false), part(0, 5, "one\nt"));
        log.push(b"\xa4\n");
        assert_eq!(log.part(5, false), part(5, 8, "ä\n"));
        assert_eq!(log.part(8, false), part(8, 8, ""));
    }

    #[test]
    fn what_is_not_kept_any_more_is_left_out_and_the_place_tells_it() {
        let mut log = Log::new(4);
        log.push("aé€z".as_bytes());
        assert_eq!(log.part(0, false), part(3, 7, "€z"));
        log.push(b"y");
        assert_eq!(log.part(0, false), part(6, 8, "zy"));
        assert_eq!(log.end(), 8);
    }

    #[test]
    fn at_the_end_nothing_is_held_back() {
        let mut log = Log::new(100);
        log.push(b"a\xe2\x82");
        assert_eq!(log.part(0, true), part(0, 3, "a\u{fffd}"));
        assert_eq!(log.part(0, false), part(0, 1, "a"));
    }
}
