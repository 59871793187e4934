//! Finding what was said, and erasing it.

use std::path::Path;

use crate::support::Place;

/// The files of a folder, and of those in it, that hold a text.
fn holding(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            found.extend(holding(&path, text));
        } else if std::fs::read(&path).unwrap().windows(text.len()).any(|part| part == text.as_bytes()) {
            found.push(path.display().to_string());
        }
    }
    found
}

#[test]
fn what_was_said_is_found_and_after_a_purge_nowhere_in_the_data() {
    let place = Place::new();
    place.run(&["chat", "I like the vibraphone most", "--conversation", "one"]);
    place.run(&["chat", "and I the marimba", "--conversation", "two"]);
    let found = place.run(&["conversations", "search", "vibraphone", "like"]).stdout;
    assert!(found.starts_with("one  ") && found.contains("\n    msg_1: I like the vibraphone most\n"), "{found}");
    assert_eq!(found.lines().count(), 2, "{found}");
    let json = place.json(&["conversations", "search", "marimb", "--json"]);
    assert_eq!((&json[0]["id"], &json[0]["excerpt"]["message_id"]), (&"two".into(), &"msg_1".into()), "{json}");
    let nothing = place.run(&["conversations", "search", "\"glockenspiel\" OR *"]);
    assert_eq!((nothing.code, nothing.stdout.as_str(), nothing.stderr.as_str()), (Some(0), "", "nothing was found\n"));
    assert!(!holding(&place.path("data"), "vibraphone").is_empty());
    assert_eq!(place.run(&["conversations", "delete", "one", "--purge"]).code, Some(0));
    assert_eq!(holding(&place.path("data"), "vibraphone"), Vec::<String>::new());
    assert!(!holding(&place.path("data"), "marimba").is_empty());
}
