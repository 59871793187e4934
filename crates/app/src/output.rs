//! Writing to standard output and standard error, where somebody may have stopped reading.

use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;

use crate::hiding::hidden;
use serde::Serialize;
use turnwright_terminal::{Piece, Screen, Stream, clean_json_lines, clean_text};

/// Standard output. Once nobody reads it any more it takes text and drops it: the work goes on to its end.
pub(crate) struct Output {
    writer: Box<dyn Write + Send>,
    is_terminal: bool,
    /// Whether whoever reads may be slow, so that writing must not keep turns from going on.
    may_block: bool,
    state: io::Result<()>,
}

impl Output {
    /// Standard output of this process.
    pub(crate) fn standard() -> Self {
        let stdout = io::stdout();
        let kind = stdout.as_fd().try_clone_to_owned().and_then(|handle| File::from(handle).metadata());
        let may_block = kind.is_ok_and(|kind| kind.file_type().is_fifo() || kind.file_type().is_socket());
        Self { is_terminal: stdout.is_terminal(), writer: Box::new(stdout), may_block, state: Ok(()) }
    }

    /// Whether a person reads it.
    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Writes text as it is.
    pub(crate) fn write(&mut self, text: &str) {
        if self.state.is_ok() {
            self.state = self.writer.write_all(text.as_bytes());
        }
    }

    /// Writes a line; what would drive a terminal is made visible there.
    pub(crate) fn line(&mut self, line: &str) {
        if self.is_terminal {
            self.write(&clean_text(line));
        } else {
            self.write(line);
        }
        self.write("\n");
    }

    /// Writes lines.
    pub(crate) fn lines(&mut self, lines: &[String]) {
        for line in lines {
            self.line(line);
        }
    }

    /// Writes a value as JSON for people, over several lines. What would drive a terminal is written as JSON can write it, everywhere:
    /// it says the same.
    pub(crate) fn json_pretty(&mut self, value: &impl Serialize) {
        match serde_json::to_string_pretty(value) {
            Ok(text) => self.write(&format!("{}\n", clean_json_lines(&text))),
            Err(error) => self.state = Err(error.into()),
        }
    }

    pub(crate) fn flush(&mut self) {
        if self.state.is_ok() {
            self.state = self.writer.flush();
        }
    }

    /// Writes text and sees to it that it is read at once, without keeping the thread where the reader may be slow.
    pub(crate) async fn tell(&mut self, text: String) {
        if self.may_block && self.state.is_ok() {
            let mut writer = std::mem::replace(&mut self.writer, Box::new(io::sink()));
            let written = tokio::task::spawn_blocking(move || {
                let result = writer.write_all(text.as_bytes()).and_then(|()| writer.flush());
                (writer, result)
            });
            match written.await {
                Ok((writer, result)) => {
                    self.writer = writer;
                    self.state = result;
                }
                Err(error) => self.state = Err(io::Error::other(error)),
            }
        } else {
            self.write(&text);
            self.flush();
        }
    }

    /// Writes what is left. That nobody reads any more is no error.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.flush();
        match self.state {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

impl Screen for &mut Output {
    async fn show(&mut self, pieces: Vec<Piece>) {
        for piece in pieces {
            match piece.stream {
                Stream::Answer => self.tell(piece.text).await,
                Stream::Aside => drop(io::stderr().write_all(piece.text.as_bytes())),
            }
        }
    }
}

/// Says a line beside the output. Where nobody listens any more, the exit code still says how it went.
pub(crate) fn say(line: &str) {
    drop(writeln!(io::stderr(), "{}", clean_text(&hidden(line))));
}
