//! Lines that a person types, on a thread of their own: waiting for keys must not keep turns from going on.

use std::io::{self, Write};
use std::sync::mpsc;
use std::thread;

use nix::sys::termios::{FlushArg, SetArg, Termios, tcflush, tcgetattr, tcsetattr};
use rustyline::config::Behavior;
use rustyline::error::ReadlineError;
use rustyline::{Config, DefaultEditor};
use tokio::sync::oneshot;

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
                let _ = tcflush(io::stdin(), FlushArg::TCIFLUSH);
                // Each keeps what it read beyond its lines: the other has that of the messages yet.
                answers.insert(new_editor())
            }
            Wanted::Detail => answers.get_or_insert_with(new_editor),
        };
        let line = match editor {
            Ok(editor) => read(editor, &request),
            Err(reason) => Line::Failed(reason.clone()),
        };
        if request.answer.send(line).is_err() {
            return;
        }
    }
}

fn new_editor() -> Result<DefaultEditor, String> {
    let config = Config::builder().behavior(Behavior::PreferTerm).auto_add_history(false).build();
    DefaultEditor::with_config(config).map_err(|error| error.to_string())
}

fn read(editor: &mut DefaultEditor, request: &Request) -> Line {
    loop {
        return match editor.readline_with_initial(&request.prompt, (&request.initial, "")) {
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
            Err(error) => Line::Failed(error.to_string()),
        };
    }
}
