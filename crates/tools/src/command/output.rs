//! A command's output, kept within bounds: its beginning and its end, and all of it where there is a place for that.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use turnwright_engine::artifacts::Artifact;
use turnwright_engine::{Spool, Spooling};

use crate::error::grouped;

/// The size of one read, in bytes.
const READ_BYTES: usize = 16 * 1024;
/// How long nothing may come once whoever wrote was killed, until that is taken for the end: others may hold the output open.
const SILENCE: Duration = Duration::from_millis(250);
/// The most that is read from then on, in bytes. A pipe holds no more, unless the system's owner says otherwise.
const LAST_BYTES: usize = 1024 * 1024;

/// The first and the last bytes of an output.
#[derive(Debug, Default)]
pub(crate) struct Output {
    half: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    dropped: u64,
    spill: Option<Spill>,
}

/// All of an output that is longer than what is held.
#[derive(Debug)]
struct Spill {
    spool: Spool,
    /// What came and is not in yet.
    waiting: Vec<u8>,
    state: Spilling,
}

#[derive(Debug)]
enum Spilling {
    /// Everything is held so far.
    NotYet,
    Under(Box<Spooling>),
    /// It cannot be kept, for this reason.
    Failed(String),
}

/// An output that has ended, as it is shown.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Printed {
    /// Beginning and end; what is not UTF-8 is replaced, and a gap says how many bytes are missing and where they are.
    pub(crate) text: String,
    /// All of it, where it is longer and was kept.
    pub(crate) whole: Option<Artifact>,
}

impl Output {
    /// Keeps at most `max_bytes`.
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self { half: max_bytes / 2, ..Self::default() }
    }

    /// Keeps at most `max_bytes` here, no more than a model is shown, and all of what is longer in `spool`.
    pub(crate) fn spilling(max_bytes: usize, spool: Option<&Spool>) -> Self {
        // Two outputs, written as JSON, are within what is shown of one result.
        let max_bytes = spool.map_or(max_bytes, |spool| max_bytes.min(spool.how().shown_bytes / 4));
        let spill = |spool: &Spool| Spill { spool: spool.clone(), waiting: Vec::new(), state: Spilling::NotYet };
        Self { spill: spool.map(spill), ..Self::new(max_bytes) }
    }

    /// Reads to the end. What came is kept if this is dropped before. A failed read is the end.
    pub(crate) async fn read<R: AsyncRead + Unpin>(&mut self, source: Option<R>) {
        self.read_out(source, &CancellationToken::new()).await;
    }

    /// The same; once `killed` is cancelled it ends by itself, with all that was written until then. What keeping it takes does not
    /// count as silence.
    pub(crate) async fn read_out<R: AsyncRead + Unpin>(&mut self, source: Option<R>, killed: &CancellationToken) {
        let Some(mut source) = source else { return };
        let mut buffer = vec![0; READ_BYTES];
        let mut left = LAST_BYTES;
        while left > 0 {
            let silence = async {
                killed.cancelled().await;
                sleep(SILENCE).await;
            };
            let read = tokio::select! {
                biased;
                read = source.read(&mut buffer) => read,
                () = silence => break,
            };
            let Ok(count @ 1..) = read else { break };
            if killed.is_cancelled() {
                left = left.saturating_sub(count);
            }
            self.push(buffer.get(..count).unwrap_or_default());
            self.spill().await;
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        let held = self.head.len().saturating_add(self.tail.len());
        let fits = self.dropped == 0 && held.saturating_add(bytes.len()) <= self.half.saturating_mul(2);
        if let Some(spill) = self.spill.as_mut().filter(|_| !fits) {
            spill.take(&self.head, &self.tail, bytes);
        }
        let (first, rest) = bytes.split_at(bytes.len().min(self.half.saturating_sub(self.head.len())));
        self.head.extend_from_slice(first);
        // Bytes that would be pushed out at once are not put in.
        let rest_kept = rest.get(rest.len().saturating_sub(self.half)..).unwrap_or_default();
        let too_many = (self.tail.len() + rest_kept.len()).saturating_sub(self.half);
        self.tail.drain(..too_many);
        self.tail.extend(rest_kept);
        self.dropped += (rest.len() - rest_kept.len() + too_many) as u64;
    }

    async fn spill(&mut self) {
        if let Some(spill) = &mut self.spill {
            spill.write().await;
        }
    }

    /// What it comes to. `name` is what people call all of it.
    pub(crate) async fn finish(mut self, name: &str) -> Printed {
        self.spill().await;
        let Some(Spill { spool, state, .. }) = self.spill.take() else {
            return Printed { text: self.into_text(), whole: None };
        };
        let spooling = match state {
            Spilling::NotYet => return Printed { text: self.into_text(), whole: None },
            Spilling::Failed(why) => {
                return Printed { text: self.shown(&format!(" and could not be kept: {why}")), whole: None };
            }
            Spilling::Under(spooling) => spooling,
        };
        let over = spooling.left_out();
        match spooling.finish(name, "text/plain").await {
            Ok(whole) => {
                let mut said = format!(": {}", spool.how().whereabouts(&whole));
                if over > 0 {
                    said = format!("{said}; its last {} bytes were over the limit and are not in it", grouped(over));
                }
                Printed { text: self.shown(&said), whole: Some(whole) }
            }
            Err(error) => Printed { text: self.shown(&format!(" and could not be kept: {error}")), whole: None },
        }
    }

    /// As text, without a place for the rest.
    pub(crate) fn into_text(self) -> String {
        self.shown("")
    }

    fn shown(self, said: &str) -> String {
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
        format!("{}\n[… {} bytes left out{said} …]\n{}", text_of(head), grouped(dropped), text_of(tail))
    }
}

impl Spill {
    /// Takes bytes that come after what was held, which is taken too where it was not before.
    fn take(&mut self, head: &[u8], tail: &VecDeque<u8>, bytes: &[u8]) {
        match &self.state {
            Spilling::Failed(_) => return,
            Spilling::NotYet if self.waiting.is_empty() => {
                self.waiting.extend_from_slice(head);
                self.waiting.extend(tail);
            }
            Spilling::NotYet | Spilling::Under(_) => {}
        }
        self.waiting.extend_from_slice(bytes);
    }

    async fn write(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        if matches!(self.state, Spilling::NotYet) {
            self.state = match self.spool.begin().await {
                Ok(spooling) => Spilling::Under(Box::new(spooling)),
                Err(error) => Spilling::Failed(error.to_string()),
            };
        }
        let bytes = std::mem::take(&mut self.waiting);
        let Spilling::Under(spooling) = &mut self.state else { return };
        if let Err(error) = spooling.write(&bytes).await {
            // Its end is still read: the command must not wait for us.
            self.state = Spilling::Failed(error.to_string());
        }
    }
}

fn text_of(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, repeat};
    use tokio_util::sync::CancellationToken;
    use turnwright_core::UserId;
    use turnwright_engine::{LargeResults, Spool, SystemClock};
    use turnwright_testkit::MemoryArtifacts;

    use super::{LAST_BYTES, Output, READ_BYTES};

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

    #[tokio::test(start_paused = true)]
    async fn the_end_of_what_was_killed_is_read_however_long_keeping_it_takes() {
        let artifacts = Arc::new(MemoryArtifacts::default());
        artifacts.set_slow(Duration::from_secs(5));
        let spool = Spool::new(artifacts.clone(), Arc::new(SystemClock), UserId::local(), LargeResults::default());
        let mut output = Output::spilling(8, Some(&spool));
        let killed = CancellationToken::new();
        killed.cancel();
        let printed = [b"x".repeat(300_000), b"the end".to_vec()].concat();
        output.read_out(Some(printed.as_slice()), &killed).await;
        assert!(output.finish("stdout.txt").await.text.ends_with(" end"));
        let [(_, bytes)] = artifacts.files().try_into().unwrap();
        assert_eq!(bytes.len(), printed.len());
    }

    #[tokio::test(start_paused = true)]
    async fn what_others_hold_open_or_go_on_writing_ends_with_who_was_killed() {
        let killed = CancellationToken::new();
        killed.cancel();
        let (mut output, (open, _held)) = (Output::new(8), tokio::io::duplex(8));
        output.read_out(Some(open), &killed).await;
        assert_eq!(output.into_text(), "");
        let mut output = Output::new(2);
        output.read_out(Some(repeat(b'x').take(u64::MAX)), &killed).await;
        let read = LAST_BYTES.next_multiple_of(READ_BYTES);
        assert_eq!(output.dropped, u64::try_from(read).unwrap() - 2);
    }

    #[tokio::test]
    async fn bytes_that_are_not_text_are_replaced() {
        assert_eq!(kept(8, b"a\xffb").await, "a\u{fffd}b");
    }
}
