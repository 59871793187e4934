//! What a client writes, as lines that are text.

use std::io::{BufRead, Read, Result};

/// A line that is not UTF-8 becomes one that is no JSON, which is answered as such (JSON-RPC 2.0, section 5.1: -32700); the library takes
/// it for a broken connection.
#[derive(Debug)]
pub(super) struct Input<R> {
    from: R,
    line: Vec<u8>,
    taken: usize,
}

impl<R: BufRead> Input<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from, line: Vec::new(), taken: 0 }
    }

    fn next_line(&mut self) -> Result<()> {
        self.line.clear();
        self.taken = 0;
        self.from.read_until(b'\n', &mut self.line)?;
        if std::str::from_utf8(&self.line).is_err() {
            tracing::warn!(bytes = self.line.len(), "the client wrote a line that is not UTF-8");
            self.line.clear();
            self.line.extend_from_slice(b"not UTF-8\n");
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Input<R> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        if self.taken == self.line.len() {
            self.next_line()?;
        }
        let count = self.line.get(self.taken..).unwrap_or_default().read(into)?;
        self.taken += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_text_is_replaced_a_line_at_a_time() {
        let written: &[u8] = b"{\"a\":\"\xc3\xa4\"}\n{\"b\":\"\xff\"}\n\nlast";
        for most in [1, 7, 100] {
            let mut input = Input::new(written);
            let (mut read, mut piece) = (Vec::new(), vec![0; most]);
            loop {
                match input.read(&mut piece).unwrap() {
                    0 => break,
                    count => read.extend_from_slice(&piece[..count]),
                }
            }
            assert_eq!(String::from_utf8(read).unwrap(), "{\"a\":\"ä\"}\nnot UTF-8\n\nlast");
        }
    }
}
