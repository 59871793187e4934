//! Deciding about calls, each step in a process of its own.

use serde_json::json;

use crate::support::{PRACTICE, Place, Ran};

#[test]
fn a_turn_that_parks_says_how_to_decide_and_a_later_process_ends_it() {
    let place = Place::new();
    let ran = place.run(&["chat", "write \"hi\" to file \"b.txt\"", "--conversation", "c", "--config", "turnwright.toml"]);
    let stderr = "waiting: filesystem__write {\"path\":\"b.txt\",\"content\":\"hi\"} waits to be allowed (approve mode ask)\n\
                  hint: turnwright approvals decide call_4_0 allow --conversation c --config turnwright.toml\n"
        .to_owned();
    assert_eq!(ran, Ran { code: Some(3), stdout: String::new(), stderr });
    assert!(!place.path("b.txt").exists());

    let waiting = json!([{"id": "call_4_0", "conversation_id": "c", "name": "filesystem__write",
                          "arguments": "{\"path\":\"b.txt\",\"content\":\"hi\"}", "reason": "approval",
                          "rule": "approve mode ask"}]);
    assert_eq!(place.json(&["approvals", "list", "--json"]), waiting);

    let ran = place.run(&["approvals", "decide", "call_4_0", "allow", "--conversation", "c"]);
    assert_eq!((ran.code, ran.stdout.starts_with(PRACTICE)), (Some(0), true), "{ran:?}");
    assert!(ran.stderr.starts_with("→ filesystem__write {\"path\":\"b.txt\",\"content\":\"hi\"}\n"), "{ran:?}");
    assert_eq!(std::fs::read_to_string(place.path("b.txt")).unwrap(), "hi");
    assert_eq!(place.json(&["approvals", "list", "--json"]), json!([]));
}

#[test]
fn the_call_alone_is_enough_where_only_one_is_called_so() {
    let place = Place::new();
    place.park("one");
    let ran = place.run(&["approvals", "decide", "call_4_0", "deny", "--reason", "not now"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("denied by the user: not now"), "{ran:?}");
    assert!(!place.path("b.txt").exists());

    place.park("two");
    place.park("three");
    let ran = place.run(&["approvals", "decide", "call_4_0", "allow"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.starts_with("error: `call_4_0` waits in several conversations: "), "{ran:?}");
}

#[test]
fn a_person_may_change_the_arguments_and_they_must_fit() {
    let place = Place::new();
    place.park("c");
    let wrong = place.run(&["approvals", "decide", "call_4_0", "allow", "--arguments", "{\"path\":\"c.txt\"}"]);
    let stderr = "error: the arguments do not fit the tool's schema: \"content\" is a required property\n".to_owned();
    assert_eq!(wrong, Ran { code: Some(2), stdout: String::new(), stderr });
    let changed = "{\"path\":\"c.txt\",\"content\":\"changed\"}";
    assert_eq!(place.run(&["approvals", "decide", "call_4_0", "allow", "--arguments", changed]).code, Some(0));
    assert_eq!(std::fs::read_to_string(place.path("c.txt")).unwrap(), "changed");
    assert!(!place.path("b.txt").exists());
}

#[test]
fn what_does_not_wait_cannot_be_decided() {
    let place = Place::new();
    let ran = place.run(&["approvals", "decide", "call_4_0", "allow"]);
    let stderr =
        "error: no call `call_4_0` waits for a decision\nhint: `turnwright approvals list` shows what waits\n".to_owned();
    assert_eq!(ran, Ran { code: Some(2), stdout: String::new(), stderr });
    place.park("c");
    assert_eq!(place.run(&["approvals", "decide", "call_4_0", "happened"]).code, Some(1));
}

#[test]
fn a_parked_turn_stays_parked_until_somebody_decides() {
    let place = Place::new();
    place.park("c");
    let ran = place.run(&["chat", "--conversation", "c"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""), "{ran:?}");
    let held = place.run(&["chat", "and more", "--conversation", "c"]);
    assert_eq!((held.code, held.stdout.as_str()), (Some(3), ""), "{held:?}");
    assert_eq!(place.run(&["approvals", "decide", "call_4_0", "allow"]).code, Some(0));
    let roles = place.json(&["conversations", "show", "c", "--json"])["messages"].clone();
    let roles: Vec<_> = roles.as_array().unwrap().iter().map(|message| message["role"].clone()).collect();
    assert_eq!(roles.last().unwrap(), "assistant");
}

#[test]
fn where_nothing_is_open_the_last_answer_is_told_again() {
    let place = Place::new();
    let first = place.run(&["chat", "read the file \"a.txt\"", "--conversation", "c"]);
    let again = place.run(&["chat", "--continue"]);
    assert_eq!((again.code, &again.stdout), (Some(0), &first.stdout));
    assert!(again.stderr.starts_with("note: no turn is open; this is how the last one ended\n"), "{again:?}");
}
