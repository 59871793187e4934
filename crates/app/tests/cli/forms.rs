//! The forms of `--output`, and readers that go away.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{PRACTICE, Place, wait, wait_for};

#[test]
fn json_is_one_object_of_the_contract() {
    let ran = Place::new().run(&["chat", "read the file \"a.txt\"", "--conversation", "c", "--output", "json"]);
    assert_eq!((ran.code, ran.stderr.as_str(), ran.stdout.lines().count()), (Some(0), "", 1), "{ran:?}");
    let mut report: Value = serde_json::from_str(&ran.stdout).unwrap();
    for message in report["messages"].as_array_mut().unwrap() {
        assert!(message["timestamp"].as_str().unwrap().ends_with('Z'));
        message.as_object_mut().unwrap().remove("timestamp");
    }
    let answer = format!("{PRACTICE}`filesystem__read` answered: hello file");
    let call = json!({"id": "call_4_0", "type": "function",
                      "function": {"name": "filesystem__read", "arguments": "{\"path\":\"a.txt\"}"}});
    let expected = json!({
        "conversation_id": "c",
        "turn_id": "turn_1",
        "status": "completed",
        "finish_reason": "stop",
        "text": answer,
        "messages": [
            {"id": "msg_1", "role": "user", "content": "read the file \"a.txt\""},
            {"id": "msg_4", "role": "assistant", "content": null, "finish_reason": "tool_calls", "tool_calls": [call]},
            {"id": "msg_7", "role": "tool", "content": "hello file\n", "tool_call_id": "call_4_0",
             "name": "filesystem__read", "is_error": false},
            {"id": "msg_8", "role": "assistant", "content": answer, "finish_reason": "stop"},
        ],
        "usage": {"input_tokens": null, "output_tokens": null, "cached_input_tokens": null, "cache_write_tokens": null,
                  "reasoning_tokens": null, "cost_usd": null},
        "steps": 2,
        "waiting": [],
    });
    assert_eq!(report, expected);
}

#[test]
fn events_are_one_per_line_from_the_first_entry_to_the_end_of_the_turn() {
    let ran = Place::new().run(&["chat", "read the file \"a.txt\"", "--output", "events"]);
    let events: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let mut without_entries = kinds.clone();
    without_entries.retain(|kind| *kind != "entry" && *kind != "text.delta");
    let expected = [
        "turn.started",
        "step.started",
        "tool.input_started",
        "tool.input_delta",
        "step.finished",
        "tool.input_ready",
        "tool.approval_decided",
        "tool.started",
        "tool.finished",
        "step.started",
        "step.finished",
        "usage",
        "turn.finished",
    ];
    assert_eq!(without_entries, expected);
    let seqs: Vec<_> = events.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
}

#[test]
fn a_parked_turn_is_reported_with_what_waits() {
    let place = Place::new();
    let ran = place.run(&["chat", "write \"hi\" to file \"b.txt\"", "--conversation", "c", "--output", "json"]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let waiting = json!([{"id": "call_4_0", "approval_id": "appr_4_0", "name": "filesystem__write",
                          "arguments": "{\"path\":\"b.txt\",\"content\":\"hi\"}", "reason": "approval",
                          "rule": "approve mode ask",
                          "always": {"tool": "filesystem__write", "when": {"path": {"one_of": ["b.txt"]}}, "action": "allow",
                                     "text": "allow filesystem__write when path is \"b.txt\""}}]);
    assert_eq!((ran.code, &report["status"], &report["waiting"]), (Some(3), &json!("suspended"), &waiting));
}

#[test]
fn a_reader_that_goes_away_ends_the_printing_and_not_the_turn() {
    let place = Place::new();
    for form in ["text", "json", "events"] {
        let mut command = place.command(&["chat", "read the file \"a.txt\"", "--conversation", form, "--output", form]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let code = wait(&mut child);
        let mut stderr = String::new();
        std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut stderr).unwrap();
        assert_eq!(code, Some(0), "{form}: {stderr}");
        assert!(!stderr.contains("error") && !stderr.contains("panicked"), "{form}: {stderr}");
        let shown = place.json(&["conversations", "show", form, "--json"]);
        assert_eq!(shown["turn"]["status"], "completed", "{form}");
    }
}

#[test]
fn a_list_for_a_reader_that_goes_away_ends_quietly() {
    let place = Place::new();
    let mut command = place.command(&["tools", "list", "--json"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap()), (Some(0), String::new()));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let place = Place::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = place.command(&["tools", "list"]).stdin(Stdio::null()).stdout(full).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.starts_with("error: standard output cannot be written: "), "{stderr}");
}

#[test]
fn a_reader_that_does_not_read_cannot_hold_a_wish_to_stop_up() {
    let place = Place::new();
    // More than a pipe holds, and all of it shown.
    place.write("large.txt", "x".repeat(200_000));
    place.write("turnwright.toml", "[tools.artifact]\nshown_bytes = 1000000\n");
    for form in ["json", "events"] {
        let words = ["chat", "read the file \"large.txt\"", "--conversation", form, "--output", form];
        let mut child =
            place.command(&words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        wait_for("the turn", || {
            let shown = place.run(&["conversations", "show", form, "--json"]).stdout;
            shown.contains("\"completed\"").then_some(())
        });
        let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
        let code = wait_for("the end of the process", || {
            nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
            child.try_wait().unwrap()
        });
        assert_eq!(code.code(), Some(130), "{form}");
    }
}
