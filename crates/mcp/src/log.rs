//! The last words of a server.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use turnwright_core::secrets::Secrets;
use turnwright_engine::{Clock, KnownSecrets};

use crate::list::capped_to;

/// Lines that are kept.
const MAX_LINES: usize = 200;
/// Bytes that are kept of a line.
pub(crate) const MAX_LINE_BYTES: usize = 4096;

/// A line that a server wrote, or that was written about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// When it came, in milliseconds since 1970 UTC.
    pub at_ms: u64,
    /// Where it came from.
    pub origin: LogOrigin,
    /// The line without its end; at most 4,096 bytes of it.
    pub text: String,
}

/// Where a log line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogOrigin {
    /// The server's standard error.
    Stderr,
    /// The server's standard output, where it was no message of the protocol.
    Stdout,
    /// A log message of the protocol (`notifications/message`).
    Message,
    /// The host, about the server.
    Host,
}

impl LogOrigin {
    /// The origin in one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stderr => "stderr",
            Self::Stdout => "stdout",
            Self::Message => "message",
            Self::Host => "host",
        }
    }
}

/// The last 200 lines of one server, over all of its restarts.
pub(crate) struct ServerLog {
    lines: Mutex<VecDeque<LogLine>>,
    clock: Arc<dyn Clock>,
    secrets: KnownSecrets,
    /// How many lines came since the server was started the last time.
    of_this_life: AtomicUsize,
    /// There is a new line.
    pub(crate) grew: Notify,
}

impl ServerLog {
    pub(crate) fn new(clock: Arc<dyn Clock>, secrets: KnownSecrets) -> Self {
        Self { lines: Mutex::new(VecDeque::new()), clock, secrets, of_this_life: AtomicUsize::new(0), grew: Notify::new() }
    }

    /// What may not be shown.
    pub(crate) fn secrets(&self) -> Arc<Secrets> {
        self.secrets.now()
    }

    /// Whether its last words are those of a program that could not load what it needs.
    pub(crate) fn misses_a_package(&self) -> bool {
        const SIGNS: [&str; 4] = ["ImportError: ", "ModuleNotFoundError: ", "ERR_MODULE_NOT_FOUND", "Cannot find module "];
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let mut last = lines.iter().rev().filter(|line| line.origin == LogOrigin::Stderr).take(10);
        last.any(|line| SIGNS.iter().any(|sign| line.text.contains(sign)))
    }

    /// Keeps a line; invalid UTF-8 is replaced, and what is beyond the cap is cut off.
    pub(crate) fn push_bytes(&self, origin: LogOrigin, line: &[u8]) {
        let kept = line.get(..MAX_LINE_BYTES).unwrap_or(line);
        self.push(origin, String::from_utf8_lossy(kept).trim_end());
    }

    pub(crate) fn push(&self, origin: LogOrigin, text: &str) {
        let secrets = self.secrets.now();
        let text = secrets.hide(text);
        let end = text.floor_char_boundary(MAX_LINE_BYTES);
        let text = text.get(..end).unwrap_or_default().to_owned();
        let line = LogLine { at_ms: self.clock.now_ms(), origin, text };
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == MAX_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
        self.of_this_life.fetch_add(1, Ordering::Relaxed);
        drop(lines);
        self.grew.notify_one();
    }

    /// The server is started anew: what it wrote before are not its last words any more.
    pub(crate) fn begin_life(&self) {
        self.of_this_life.store(0, Ordering::Relaxed);
    }

    pub(crate) fn lines(&self) -> Vec<LogLine> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// `text` with the last lines that the server itself wrote below it, of each as much as one can read.
    pub(crate) fn with_last_words(&self, text: &str) -> String {
        const LAST: usize = 10;
        const MOST_OF_A_LINE: usize = 300;
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let own: Vec<&str> = lines
            .iter()
            .rev()
            .take(self.of_this_life.load(Ordering::Relaxed))
            .filter(|line| line.origin != LogOrigin::Host && !line.text.is_empty())
            .take(LAST)
            .map(|line| line.text.as_str())
            .collect();
        if own.is_empty() {
            return text.to_owned();
        }
        let mut all = format!("{text}{LAST_LINES}");
        for line in own.into_iter().rev() {
            all.push('\n');
            all.push_str(&capped_to(line.to_owned(), MOST_OF_A_LINE));
        }
        all
    }
}

/// What stands between why a server failed and its last lines.
const LAST_LINES: &str = "; its last lines:";

/// Why a server failed, without what it wrote itself, which may be about anybody's calls.
pub fn without_last_lines(reason: &str) -> &str {
    reason.split_once(LAST_LINES).map_or(reason, |(reason, _)| reason)
}

impl fmt::Debug for ServerLog {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ServerLog").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Fixed;
    impl Clock for Fixed {
        fn now_ms(&self) -> u64 {
            7
        }
    }

    #[test]
    fn only_the_last_two_hundred_lines_are_kept_and_each_is_capped() {
        let log = ServerLog::new(Arc::new(Fixed), KnownSecrets::default());
        for number in 0..300 {
            log.push(LogOrigin::Stderr, &format!("line {number}"));
        }
        log.push(LogOrigin::Stdout, &"ä".repeat(MAX_LINE_BYTES));
        let lines = log.lines();
        assert_eq!(lines.len(), 200);
        assert_eq!(lines[0], LogLine { at_ms: 7, origin: LogOrigin::Stderr, text: "line 101".into() });
        assert_eq!(lines[199].text.len(), MAX_LINE_BYTES);
    }

    #[test]
    fn a_long_line_among_the_last_words_is_cut() {
        let log = ServerLog::new(Arc::new(Fixed), KnownSecrets::default());
        log.push(LogOrigin::Stdout, &"x".repeat(4000));
        assert_eq!(log.with_last_words("it ended"), format!("it ended; its last lines:\n{}…", "x".repeat(300)));
    }

    #[test]
    fn last_words_are_those_of_the_server() {
        let log = ServerLog::new(Arc::new(Fixed), KnownSecrets::default());
        log.push(LogOrigin::Stderr, "boom");
        log.push(LogOrigin::Host, "it ended");
        assert_eq!(log.with_last_words("it ended by itself"), "it ended by itself; its last lines:\nboom");
        log.begin_life();
        assert_eq!((log.with_last_words("it ended again"), log.lines().is_empty()), ("it ended again".to_owned(), false));
    }
}
