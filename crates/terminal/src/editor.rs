//! Lines that a person types, on a thread of their own: waiting for keys must not keep turns from going on.

use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::mpsc;
use std::thread;

use nix::errno::Errno;
use nix::sys::termios::{FlushArg, LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcflush, tcgetattr, tcsetattr};
use rustyline::config::Behavior;
use rustyline::error::ReadlineError;
use rustyline::history::{History, SearchDirection};
use rustyline::{Config, DefaultEditor};
use tokio::sync::oneshot;

use crate::held::Typing;

/// What a person did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// Typed this.
    Text(String),
    /// Pressed Ctrl-C.
    Interrupted,
    /// Pressed Ctrl-D, or closed the terminal.
    End,
    /// The terminal cannot be read, for this reason.
    Failed(String),
}

/// Reads lines from the terminal, with history and the usual keys. Its thread starts with the first line.
///
/// While a line is read the terminal is in another mode; dropping this puts it back, also in the middle of a line.
#[derive(Debug, Default)]
pub struct LineEditor {
    requests: Option<mpsc::Sender<Request>>,
    before: Option<Termios>,
}

#[derive(Debug)]
struct Request {
    prompt: String,
    initial: String,
    wanted: Wanted,
    answer: oneshot::Sender<Line>,
}

/// What a line is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// To be said: it can be called back with the arrow keys, and may have been typed before it was wanted.
    Message,
    /// To decide what is asked: what was typed before that could be read decides nothing.
    Decision,
    /// What belongs to a decision.
    Detail,
}

impl LineEditor {
    /// The next line. `initial` stands there already and can be changed.
    pub(crate) async fn read(&mut self, prompt: &str, initial: &str, wanted: Wanted) -> Line {
        let (answer, line) = oneshot::channel();
        let request = Request { prompt: prompt.to_owned(), initial: initial.to_owned(), wanted, answer };
        if self.before.is_none() {
            self.before = tcgetattr(io::stdin()).ok();
        }
        let _typing = io::stderr().is_terminal().then(Typing::begin);
        let sent = match self.requests() {
            Ok(requests) => requests.send(request).map_err(|_gone| "the line editor has ended".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        let line = match sent {
            Ok(()) => line.await.unwrap_or(Line::End),
            Err(reason) => Line::Failed(reason),
        };
        self.before = None;
        line
    }

    fn requests(&mut self) -> io::Result<&mpsc::Sender<Request>> {
        if self.requests.is_none() {
            let (sender, receiver) = mpsc::channel();
            thread::Builder::new().name("lines".to_owned()).spawn(move || serve(&receiver))?;
            self.requests = Some(sender);
        }
        self.requests.as_ref().ok_or_else(|| io::Error::other("no line editor"))
    }
}

impl Drop for LineEditor {
    fn drop(&mut self) {
        if let Some(before) = self.before.take() {
            // Nobody is left to tell where this fails.
            let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &before);
            // The editor asked the terminal to mark what is pasted.
            drop(io::stderr().write_all(b"\x1b[?2004l\n"));
        }
    }
}

/// Reads lines until nobody asks any more.
fn serve(requests: &mpsc::Receiver<Request>) {
    let mut messages = new_editor();
    let mut answers = None;
    while let Ok(request) = requests.recv() {
        let editor = match request.wanted {
            Wanted::Message => &mut messages,
            Wanted::Decision => {
                // Where it is no terminal nothing was typed.
                let typed = take_typed(io::stdin()).unwrap_or_default();
                let _ = tcflush(io::stdin(), FlushArg::TCIFLUSH);
                if !typed.is_empty() {
                    if let Ok(messages) = &mut messages {
                        drop(messages.add_history_entry(&typed));
                    }
                    let note =
                        format!("note: typed before the question, and not sent (at the prompt the up arrow has it): {typed}\n");
                    drop(io::stderr().write_all(note.as_bytes()));
                }
                // Each keeps what it read beyond its lines: the other has that of the messages yet.
                answers.insert(new_editor())
            }
            Wanted::Detail => answers.get_or_insert_with(new_editor),
        };
        let line = loop {
            let read = match editor {
                Ok(known) => read(known, &request),
                Err(reason) => Read::Line(Line::Failed(reason.clone())),
            };
            match read {
                Read::Line(line) => break line,
                Read::Unreadable => {
                    let note = b"\nnote: what was typed is not UTF-8, and nothing of it was taken\n";
                    drop(io::stderr().write_all(note));
                    *editor = begin_anew(editor);
                }
            }
        };
        if request.answer.send(line).is_err() {
            return;
        }
    }
}

/// Takes what was typed and nobody has read, also of a line that is not ended.
fn take_typed(terminal: impl AsFd) -> nix::Result<String> {
    const MOST: usize = 64 * 1024;
    let before = tcgetattr(&terminal)?;
    let mut at_once = before.clone();
    at_once.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO);
    for (index, value) in [(SpecialCharacterIndices::VMIN, 0), (SpecialCharacterIndices::VTIME, 0)] {
        if let Some(place) = at_once.control_chars.get_mut(index as usize) {
            *place = value;
        }
    }
    tcsetattr(&terminal, SetArg::TCSANOW, &at_once)?;
    let mut typed = Vec::new();
    let mut chunk = [0; 4096];
    let read = loop {
        match nix::unistd::read(&terminal, &mut chunk) {
            Ok(count) if count > 0 && typed.len() < MOST => typed.extend(chunk.iter().take(count)),
            Err(Errno::EINTR) => {}
            Ok(_) | Err(Errno::EAGAIN) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    tcsetattr(&terminal, SetArg::TCSANOW, &before)?;
    read.map(|()| words(&typed))
}

/// The words among keys that were pressed: keys that are no letters say nothing.
fn words(keys: &[u8]) -> String {
    let text = String::from_utf8_lossy(keys).replace("\r\n", "\n").replace('\r', "\n");
    let mut words = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            // An arrow, or another key of several bytes: `ESC [ … letter`.
            '\x1b' => {
                let is_sequence = matches!(letters.next(), Some('[' | 'O'));
                if is_sequence {
                    letters.by_ref().find(|letter| ('@'..='~').contains(letter));
                }
            }
            '\n' => words.push('\n'),
            letter if letter.is_control() => {}
            letter => words.push(letter),
        }
    }
    words.trim().to_owned()
}

fn new_editor() -> Result<DefaultEditor, String> {
    let config = Config::builder().behavior(Behavior::PreferTerm).auto_add_history(false).build();
    DefaultEditor::with_config(config).map_err(|error| error.to_string())
}

/// An editor in the place of one whose input cannot be read on: the rest of that line would be taken for one of its own.
fn begin_anew(before: &Result<DefaultEditor, String>) -> Result<DefaultEditor, String> {
    let mut editor = new_editor()?;
    if let Ok(before) = before {
        let history = before.history();
        let known = (0..history.len()).filter_map(|index| history.get(index, SearchDirection::Forward).ok()?);
        // A history that takes no more is no reason not to go on.
        known.for_each(|known| drop(editor.add_history_entry(known.entry.as_ref())));
    }
    drop(take_typed(io::stdin()));
    Ok(editor)
}

/// What came of reading a line.
enum Read {
    Line(Line),
    /// Something else than text was typed.
    Unreadable,
}

fn read(editor: &mut DefaultEditor, request: &Request) -> Read {
    loop {
        return Read::Line(match editor.readline_with_initial(&request.prompt, (&request.initial, "")) {
            Ok(line) => {
                if request.wanted == Wanted::Message && !line.trim().is_empty() {
                    // A history that takes no more is no reason not to go on.
                    drop(editor.add_history_entry(&line));
                }
                Line::Text(line)
            }
            Err(ReadlineError::Interrupted) => Line::Interrupted,
            Err(ReadlineError::Eof) => Line::End,
            // The window changed its size in the middle of a key.
            Err(ReadlineError::Signal(_)) => continue,
            Err(ReadlineError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => return Read::Unreadable,
            Err(error) => Line::Failed(error.to_string()),
        });
    }
}

#[cfg(test)]
mod tests {
    use nix::pty::openpty;

    use super::*;

    #[test]
    fn what_was_typed_and_not_read_is_taken_also_of_a_line_that_is_not_ended() {
        let pty = openpty(None, None).unwrap();
        let before = tcgetattr(&pty.slave).unwrap();
        assert_eq!(take_typed(&pty.slave).unwrap(), "");
        nix::unistd::write(&pty.master, b"use b.txt\rinstead").unwrap();
        // The terminal hands keys on in its own time.
        let mut typed = String::new();
        while !typed.ends_with("instead") {
            typed.push_str(&take_typed(&pty.slave).unwrap());
            thread::yield_now();
        }
        assert_eq!(typed.replace('\n', ""), "use b.txtinstead");
        assert_eq!(tcgetattr(&pty.slave).unwrap(), before);
    }

    #[test]
    fn of_keys_the_words_are_kept() {
        for (keys, expected) in [
            ("use b.txt instead\r", "use b.txt instead"),
            ("one\r\ntwo\n", "one\ntwo"),
            ("a\x1b[A\x1b[1;5Cb\x1bOPc\x07\x7f", "abc"),
            ("\x1b", ""),
            ("\r\r", ""),
        ] {
            assert_eq!(words(keys.as_bytes()), expected, "{keys:?}");
        }
    }
}
