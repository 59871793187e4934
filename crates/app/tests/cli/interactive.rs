//! The chat on a terminal, by keys and what is on the screen.

use std::fs::File;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use nix::pty::{Winsize, openpty};
use turnwright_testkit::model_server::{ModelServer, Piece, call_chunk, finish_chunk, text_chunk};

use crate::scripted::chosen;
use crate::support::{LIMIT, Place, follow, wait, wait_for};

/// The binary on a terminal of its own.
pub(crate) struct Terminal {
    child: Child,
    keys: File,
    screen: Arc<Mutex<String>>,
    /// How much of the screen was waited for.
    seen: usize,
}

impl Terminal {
    pub(crate) fn start(place: &Place, words: &[&str]) -> Self {
        let size = Winsize { ws_row: 40, ws_col: 200, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(&size, None).unwrap();
        let end = || Stdio::from(pty.slave.try_clone().unwrap());
        // A session of its own: the terminal from which the tests are run is not the chat's.
        let mut command = place.clean(Command::new("setsid"), &[&[env!("CARGO_BIN_EXE_turnwright")], words].concat());
        let child = command.env("NO_COLOR", "1").stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        let keys = File::from(pty.master);
        let screen = follow(keys.try_clone().unwrap());
        Self { child, keys, screen, seen: 0 }
    }

    /// Waits until a text stands on the screen, after what was waited for before.
    pub(crate) fn see(&mut self, text: &str) {
        let screen = self.screen.clone();
        let seen = self.seen;
        let shown = || screen.lock().unwrap().get(seen..).unwrap().to_owned();
        let begun = std::time::Instant::now();
        loop {
            if let Some(at) = shown().find(text) {
                self.seen += at + text.len();
                return;
            }
            assert!(begun.elapsed() < LIMIT, "no {text:?} in {:?}", shown());
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    pub(crate) fn press(&mut self, keys: impl AsRef<[u8]>) {
        self.keys.write_all(keys.as_ref()).unwrap();
    }

    /// Waits for the prompt and types a line.
    pub(crate) fn type_line(&mut self, prompt: &str, line: &str) {
        self.see(prompt);
        self.press(format!("{line}\r"));
    }

    pub(crate) fn end(&mut self) -> Option<i32> {
        wait(&mut self.child)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn lines_that_arrive_at_once_are_said_one_after_the_other() {
    let place = Place::new();
    let names = ["first", "second", "third"];
    for name in names {
        std::fs::write(place.path(&format!("{name}.txt")), format!("in the {name}")).unwrap();
    }
    let mut terminal = Terminal::start(&place, &["chat"]);
    terminal.see("> ");
    terminal.press(names.map(|name| format!("read the file \"{name}.txt\"\r")).concat());
    for name in names {
        terminal.see(&format!("answered: in the {name}"));
    }
    terminal.type_line("> ", "/quit");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn what_was_typed_before_a_call_is_asked_about_decides_nothing() {
    let model = ModelServer::start(["asked"], |request| {
        let newest = request["messages"].as_array().and_then(|messages| messages.last()).map(ToString::to_string);
        if !newest.is_some_and(|newest| newest.contains("write it")) {
            return vec![text_chunk("well"), finish_chunk("stop"), Piece::Done];
        }
        let call = call_chunk(0, "filesystem__write", "{\"path\":\"b.txt\",\"content\":\"hi\"}");
        vec![Piece::Point("asked"), call, finish_chunk("tool_calls"), Piece::Done]
    });
    let (place, model) = (Place::new(), model.unwrap());
    place.write("turnwright.toml", chosen(&model, "ask"));
    let mut terminal = Terminal::start(&place, &["chat"]);
    terminal.see("> ");
    // One with the message, one when that is read already.
    terminal.press("write it\ry\r");
    assert!(model.wait_for("asked", LIMIT));
    terminal.press("yes\r");
    terminal.see("yes");
    model.run_free();
    terminal.see("filesystem__write wants to run");
    terminal.see("and not sent (at the prompt the up arrow has it): yes");
    terminal.type_line("your choice: ", "no not that");
    terminal.see("well");
    terminal.press("/quit\r");
    assert_eq!(terminal.end(), Some(0));
    assert!(!place.path("b.txt").exists());
}

#[test]
fn what_is_not_utf_8_is_asked_for_again_and_the_chat_goes_on() {
    let place = Place::new();
    let mut terminal = Terminal::start(&place, &["chat"]);
    terminal.type_line("> ", "write \"hi\" to file \"b.txt\"");
    terminal.see("your choice: ");
    // The rest of such a line is no answer of its own.
    terminal.press(b"n caf\xe9!\ry\r");
    terminal.see("note: what was typed is not UTF-8, and nothing of it was taken");
    terminal.type_line("your choice: ", "no not that");
    terminal.see("denied by the user: not that");
    terminal.see("> ");
    terminal.press(b"caf\xe9\r");
    terminal.see("note: what was typed is not UTF-8, and nothing of it was taken");
    terminal.type_line("> ", "/quit");
    assert_eq!(terminal.end(), Some(0));
    assert!(!place.path("b.txt").exists());
}

#[test]
fn a_chat_answers_asks_and_is_left() {
    let place = Place::new();
    let mut terminal = Terminal::start(&place, &["chat", "--config", "turnwright.toml"]);
    terminal.see("practice/practice answers in a new conversation; /help says what there is");
    terminal.type_line("> ", "read the file \"a.txt\"");
    terminal.see("→ filesystem__read {\"path\":\"a.txt\"}");
    terminal.see("✓ filesystem__read (");
    terminal.see("answered: hello file");
    terminal.type_line("> ", "write \"hi\" to file \"b.txt\"");
    terminal.see("filesystem__write wants to run with");
    terminal.see("\"content\": \"hi\"");
    terminal.see("[w]hy, [l]ater, [s]top the turn\r\n");
    terminal.type_line("your choice: ", "why");
    terminal.see("asked by: approve mode ask");
    terminal.see("elsewhere: turnwright approvals decide call_");
    terminal.see(" allow --approval appr_");
    terminal.see(" --config turnwright.toml");
    terminal.type_line("your choice: ", "e");
    terminal.see("arguments: ");
    terminal.press("\x7f\x7f there\"}\r");
    terminal.see("✓ filesystem__write (");
    assert_eq!(std::fs::read_to_string(place.path("b.txt")).unwrap(), "hi there");
    terminal.type_line("> ", "/stop");
    terminal.see("note: no turn is open");
    terminal.type_line("> ", "/quit");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn a_call_may_be_denied_decided_later_or_stopped() {
    let place = Place::new();
    let mut terminal = Terminal::start(&place, &["chat", "--conversation", "c"]);
    terminal.type_line("> ", "write \"hi\" to file \"b.txt\"");
    terminal.type_line("your choice: ", "no use another file");
    terminal.see("denied by the user: use another file");
    terminal.type_line("> ", "write \"hi\" to file \"b.txt\"");
    terminal.type_line("your choice: ", "later");
    terminal.see("note: the turn waits");
    terminal.type_line("> ", "/stop");
    terminal.see("note: the turn was stopped");
    terminal.see("> ");
    terminal.press("\x04");
    assert_eq!(terminal.end(), Some(0));
    assert!(!place.path("b.txt").exists());
}

#[test]
fn ctrl_c_stops_the_turn_and_pressed_twice_leaves() {
    let place = Place::with("approve = \"all\"\n");
    let mut terminal = Terminal::start(&place, &["chat"]);
    terminal.type_line("> ", "run the command \"touch began; sleep 60\"");
    wait_for("the command", || place.path("began").exists().then_some(()));
    let pid = nix::unistd::Pid::from_raw(i32::try_from(terminal.child.id()).unwrap());
    // The terminal of a session without one sends no signal for the key.
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    terminal.see("note: stopping; once more leaves at once");
    terminal.see("note: the turn was stopped");
    terminal.see("> ");
    terminal.press("\x03");
    terminal.see("once more leaves");
    terminal.see("> ");
    terminal.press("\x03");
    assert_eq!(terminal.end(), Some(130));
}

#[test]
fn one_message_on_a_terminal_asks_there() {
    let place = Place::new();
    let mut terminal = Terminal::start(&place, &["chat", "write \"hi\" to file \"b.txt\""]);
    terminal.type_line("your choice: ", "yes");
    terminal.see("✓ filesystem__write (");
    assert_eq!(terminal.end(), Some(0));
    assert_eq!(std::fs::read_to_string(place.path("b.txt")).unwrap(), "hi");
}

#[test]
fn what_would_drive_the_terminal_is_made_visible() {
    let place = Place::with("approve = \"all\"\n");
    place.write("evil.txt", "red \x1b[31m and gone \x1b[2J\u{9b}2J");
    let mut terminal = Terminal::start(&place, &["chat", "read the file \"evil.txt\""]);
    terminal.see("red ␛[31m and gone ␛[2J\\u{9b}2J");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn a_machine_form_needs_a_message() {
    let place = Place::new();
    let mut terminal = Terminal::start(&place, &["chat", "--output", "json"]);
    terminal.see("error: --output json and --output events answer one message and there is none");
    assert_eq!(terminal.end(), Some(2));
}
