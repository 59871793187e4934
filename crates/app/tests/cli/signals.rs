//! Wishes to stop.

use std::io::Write;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::serve::Server;
use crate::support::{Place, follow, wait, wait_for};

fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
}

/// Whether a process of these words runs, in whatever namespace.
fn runs(words: &str) -> bool {
    let wanted = words.replace(' ', "\0") + "\0";
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok()).any(|found| found == wanted.as_bytes())
}

/// Those of these signals that are heard: what `nohup` starts ignores SIGHUP with all that it starts itself.
fn heard(signals: &[Signal]) -> Vec<Signal> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or("0");
    let ignores_hangups = u64::from_str_radix(mask.trim(), 16).unwrap() & 1 != 0;
    if ignores_hangups {
        println!("skipped: SIGHUP is ignored by all that these tests start; run them without nohup");
    }
    signals.iter().copied().filter(|signal| *signal != Signal::SIGHUP || !ignores_hangups).collect()
}

#[test]
fn a_signal_cancels_the_turn_and_waits_for_its_end() {
    for signal in heard(&[Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]) {
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

#[test]
fn a_turn_that_a_server_drives_outlives_a_chat_that_only_follows_it() {
    let place = Place::with("approve = \"all\"\n");
    let server = Server::start(&place);
    server.ask("POST /api/v1/conversations", &json!({"id": "c"}));
    let content = "run the command \"touch began; while [ ! -e go ]; do sleep 0.05; done\"";
    server.ask("POST /api/v1/conversations/c/messages", &json!({"content": content}));
    wait_for("the command", || place.path("began").exists().then_some(()));
    for signal in heard(&[Signal::SIGTERM, Signal::SIGHUP]) {
        let mut command = place.command(&["chat", "--conversation", "c"]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = follow(child.stderr.take().unwrap());
        wait_for("the call that it tells of", || stderr.lock().unwrap().contains("command__run").then_some(()));
        send(&child, signal);
        assert_eq!(wait(&mut child), Some(130), "{}", stderr.lock().unwrap());
        wait_for("the last words", || {
            stderr.lock().unwrap().ends_with("note: left; the turn goes on without this process\n").then_some(())
        });
        let shown = place.json(&["conversations", "show", "c", "--json"]);
        assert_eq!(shown["turn"]["status"], "running", "{shown}");
    }
    place.write("go", "");
    wait_for("the end of the turn", || {
        let shown = place.json(&["conversations", "show", "c", "--json"]);
        (shown["turn"]["status"] == "completed").then_some(())
    });
    server.stop();
}

#[test]
fn a_server_without_a_certificate_ends_in_order_when_its_terminal_is_closed() {
    for hangup in heard(&[Signal::SIGHUP]) {
        let place = Place::new();
        let server = Server::start(&place);
        server.signal(hangup);
        server.end();
    }
}

#[test]
fn a_second_signal_waits_for_nothing_and_ends_what_runs() {
    let place = Place::with("approve = \"all\"\n[server]\ngrace_ms = 3600000\n");
    let server = Server::start(&place);
    server.ask("POST /api/v1/conversations", &json!({"id": "c"}));
    // Told from all others by how long it sleeps.
    let command = format!("sleep 3600.{}", std::process::id());
    server.ask("POST /api/v1/conversations/c/messages", &json!({"content": format!("run the command \"exec {command}\"")}));
    wait_for("the command", || runs(&command).then_some(()));
    let mut half_sent = std::net::TcpStream::connect(server.address()).unwrap();
    let head = format!("POST /api/v1/conversations HTTP/1.1\r\nHost: {}\r\nContent-Length: 100\r\n\r\n{{", server.address());
    half_sent.write_all(head.as_bytes()).unwrap();
    server.signal(Signal::SIGTERM);
    wait_for("that it ends", || server.said().contains("turns come to the end of their step").then_some(()));
    server.signal(Signal::SIGTERM);
    let said = server.end();
    assert!(!said.contains("were still open"), "it waited for a connection: {said}");
    wait_for("the end of the command", || (!runs(&command)).then_some(()));
    let shown = place.json(&["conversations", "show", "c", "--json"]);
    assert_eq!(shown["turn"]["status"], "running", "{shown}");
}

#[test]
fn a_server_that_nohup_started_outlives_its_terminal() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let place = Place::new();
    let line = "trap '' HUP; exec \"$0\" serve --listen 127.0.0.1:0";
    let words = ["-c", line, env!("CARGO_BIN_EXE_turnwright")];
    let server = Server::of(place.clean(Command::new("/bin/sh"), &words), "http");
    server.signal(Signal::SIGHUP);
    // It would be over by then.
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert!(server.request("GET /healthz", "").starts_with("HTTP/1.1 200"));
    server.stop();
}

#[test]
fn a_service_without_a_certificate_goes_on_when_it_is_to_read_again() {
    let place = Place::new();
    let line = "export SYSTEMD_EXEC_PID=$$; exec \"$0\" serve --listen 127.0.0.1:0";
    let words = ["-c", line, env!("CARGO_BIN_EXE_turnwright")];
    let server = Server::of(place.clean(Command::new("/bin/sh"), &words), "http");
    server.signal(Signal::SIGHUP);
    wait_for("what it says of it", || server.said().contains("there is no certificate to read again").then_some(()));
    assert!(server.request("GET /healthz", "").starts_with("HTTP/1.1 200"));
    server.stop();
}
