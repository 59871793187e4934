//! Whoever reads the output stops reading.

use std::io::Read;
use std::process::Stdio;

use crate::support::{Place, wait};

/// Runs the binary, reads so many bytes of its output, closes that and does the rest; the exit code and what was said beside
/// the output.
fn closed_after(bytes: usize, place: &Place, words: &[&str], rest: impl FnOnce()) -> (Option<i32>, String) {
    let mut command = place.command(words);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut vec![0; bytes]).unwrap();
    drop(stdout);
    rest();
    let mut stderr = child.stderr.take().unwrap();
    let code = wait(&mut child);
    let mut said = String::new();
    stderr.read_to_string(&mut said).unwrap();
    (code, said)
}

#[test]
fn output_that_nobody_reads_any_more_is_no_error() {
    let place = Place::with("approve = \"all\"\n");
    let quiet = (Some(0), String::new());
    assert_eq!(closed_after(0, &place, &["tools", "list"], || {}), quiet);
    assert_eq!(closed_after(0, &place, &["tools", "list", "--json"], || {}), quiet);

    // More than a pipe holds, so that the rest meets the closed end.
    place.write("long.txt", "word ".repeat(100_000));
    place.run(&["chat", "hello", "--attach", "long.txt", "--conversation", "long"]);
    assert_eq!(closed_after(1, &place, &["conversations", "show", "long", "--json"], || {}), quiet);
}

#[test]
fn a_turn_goes_on_where_nobody_reads_its_answer_any_more() {
    let place = Place::with("approve = \"all\"\n");
    let held = "run the command \"while [ ! -e go ]; do sleep 0.05; done\"";
    let words = ["chat", held, "--conversation", "c", "--output", "events"];
    let ended = closed_after(1, &place, &words, || place.write("go", ""));
    assert_eq!(ended, (Some(0), String::new()));
    assert_eq!(place.json(&["conversations", "show", "c", "--json"])["turn"]["status"], "completed");
}
