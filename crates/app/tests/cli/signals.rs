//! Wishes to stop.

use std::process::{Child, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{Place, follow, wait, wait_for};

fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
}

#[test]
fn a_signal_cancels_the_turn_and_waits_for_its_end() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let place = Place::with("approve = \"all\"\n");
        let mut command = place.command(&["chat", "run the command \"touch began; sleep 60\"", "--conversation", "c"]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = follow(child.stderr.take().unwrap());
        wait_for("the command", || place.path("began").exists().then_some(()));
        send(&child, signal);
        assert_eq!(wait(&mut child), Some(130), "{}", stderr.lock().unwrap());
        let said = wait_for("the last words", || {
            let said = stderr.lock().unwrap().clone();
            said.ends_with("note: the turn was stopped\n").then_some(said)
        });
        assert!(said.contains("note: stopping; once more leaves at once\n"), "{said}");
        let shown = place.json(&["conversations", "show", "c", "--json"]);
        assert_eq!(shown["turn"]["status"], "cancelled");
    }
}
