//! Finding what was said, and erasing it.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Place, test_postgres};

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

/// The tables of a schema that hold a text in any row, as it is or in bytes.
fn tables_holding(schema: &str, text: &str) -> Vec<String> {
    let bytes = text.bytes().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
    let look = format!(
        "SELECT format('SELECT %L FROM %I.%I AS held WHERE held::text ~* %L LIMIT 1', table_name, table_schema, table_name, \
         '{text}|{bytes}') FROM information_schema.tables WHERE table_schema = '{schema}' \\gexec\n"
    );
    let mut psql = Command::new("psql");
    psql.args(["--no-psqlrc", "--tuples-only", "--no-align", "--quiet", "--set", "ON_ERROR_STOP=1"])
        .arg(test_postgres().unwrap());
    let mut child = psql.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(look.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Where the data of a place hold a text.
fn kept(place: &Place, text: &str) -> Vec<String> {
    let mut found = holding(&place.path("data"), text);
    if let Some(address) = place.database() {
        found.extend(tables_holding(address.split_once("?schema=").unwrap().1, text));
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
    assert!(!kept(&place, "vibraphon").is_empty());
    assert_eq!(place.run(&["conversations", "delete", "one", "--purge"]).code, Some(0));
    assert_eq!(kept(&place, "vibraphon"), Vec::<String>::new());
    assert!(!kept(&place, "marimba").is_empty());
}
