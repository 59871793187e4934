//! Commands in their sandbox, through the binary.

use serde_json::{Value, json};

use crate::support::{Place, Ran};

const REQUIRED: &str = "[tools.command]\nsandbox = \"required\"\n";

/// What `doctor` says of the sandbox: the level and the words.
fn doctor(place: &Place) -> (String, String) {
    let findings = place.json(&["doctor", "--json"]);
    let found = findings.as_array().unwrap().iter().find(|finding| finding["subject"] == "sandbox").unwrap();
    let text = |name: &str| found[name].as_str().unwrap().to_owned();
    (text("level"), text("text"))
}

fn run(place: &Place, line: &str) -> Value {
    place.json(&["tools", "call", "command__run", "--arguments", &json!({"command": line}).to_string(), "--approve", "all"])
}

#[test]
fn a_command_writes_to_its_root_and_neither_beside_it_nor_to_the_network() {
    let place = Place::new();
    let (level, text) = doctor(&place);
    if level != "ok" {
        return println!("skipped: {text}");
    }
    let beside = place.path("../beside.txt");
    let answered = run(&place, "echo in > in.txt; cat in.txt; echo out > ../beside.txt; echo $?");
    assert_eq!(answered["structured_content"]["stdout"].as_str().unwrap().lines().next(), Some("in"), "{answered}");
    assert!(!beside.exists());
    let sockets = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = sockets.local_addr().unwrap().port();
    let line = format!("perl -MIO::Socket -e 'IO::Socket::INET->new(\"127.0.0.1:{port}\") and print \"REACHED\"'; echo done");
    let answered = run(&place, &line);
    assert_eq!(answered["structured_content"]["stdout"], "done\n", "{answered}");
}

#[test]
fn where_the_configuration_requires_a_sandbox_nothing_runs_without() {
    let place = Place::with(REQUIRED);
    let (level, text) = doctor(&place);
    let answered = run(&place, "echo ran");
    match level.as_str() {
        "ok" => {
            assert!(text.contains("without network"), "{text}");
            assert_eq!(answered["structured_content"]["stdout"], "ran\n", "{answered}");
        }
        "problem" => {
            assert!(text.starts_with("no command runs: a sandbox is required"), "{text}");
            assert!(answered.to_string().contains("the configuration requires a sandbox"), "{answered}");
        }
        other => panic!("{other}: {text}"),
    }
    let off = Place::with("[tools.command]\nsandbox = \"off\"\n");
    assert_eq!(doctor(&off).0, "note");
    let wrong = Place::with("[tools.command]\nsandbox = \"maybe\"\n").run(&["doctor"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}

#[test]
fn the_helper_that_confines_runs_nothing_without_orders() {
    let place = Place::new();
    for words in [&["__sandbox"][..], &["__sandbox", "{}", "true"], &["__sandbox", "not JSON", "true"]] {
        let Ran { code, stdout, stderr } = place.run(words);
        assert_eq!((code, stdout.as_str()), (Some(126), ""));
        assert!(stderr.starts_with("the command could not be confined: "), "{stderr}");
    }
}
