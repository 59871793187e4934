//! Programs of the configuration as tools, through the binary.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::serve::Server;
use crate::support::Place;

/// A program in Python as an operator writes it: it says what it is, and does it.
const WEATHER: &str = r#"#!/usr/bin/env python3
import json, sys
if sys.argv[1:] == ["--schema"]:
    print(json.dumps({
        "description": "Tells the weather in a city.",
        "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    }))
else:
    city = json.load(sys.stdin)["city"]
    if city == "Nowhere":
        sys.exit("there is no such city")
    print(json.dumps({"city": city, "sky": "clear"}))
"#;

const CONFIG: &str = "[tools.executable.weather]\ncommand = \"./weather\"\nread_only = true\n\
    [tools.executable.count]\ncommand = \"wc\"\nargs = [\"-c\"]\ndescription = \"Counts the bytes of what it is given.\"\n\
    sandbox = \"preferred\"\nschema = { type = \"object\", properties = { text = { type = \"string\" } } }\n\
    [tools.executable.missing]\ncommand = \"./not-there\"\ndescription = \"Is not there.\"\nschema = { type = \"object\" }\n\
    [tools.executable.mute]\ncommand = \"true\"\n";

fn place() -> Place {
    let place = Place::with(CONFIG);
    place.write("weather", WEATHER);
    std::fs::set_permissions(place.path("weather"), std::fs::Permissions::from_mode(0o755)).unwrap();
    place
}

fn call(place: &Place, tool: &str, arguments: &Value) -> Value {
    place.json(&["tools", "call", tool, "--arguments", &arguments.to_string(), "--approve", "all"])
}

#[test]
fn a_program_says_what_it_is_and_answers_in_json() {
    let place = place();
    let shown = place.json(&["tools", "show", "executable__weather", "--json"]);
    assert_eq!((&shown["description"], &shown["read_only"]), (&json!("Tells the weather in a city."), &json!(true)));
    let answered = call(&place, "executable__weather", &json!({"city": "Köln"}));
    assert_eq!(answered["structured_content"], json!({"city": "Köln", "sky": "clear"}), "{answered}");
    let counted = call(&place, "executable__count", &json!({"text": "abc"}));
    assert_eq!(counted["structured_content"], json!(14), "{counted}");
}

#[test]
fn a_turn_calls_it_and_answers_with_what_it_says() {
    let ran = place().run(&["chat", "tool executable__weather {\"city\": \"Bonn\"}"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("clear"), "{ran:?}");
}

#[test]
fn what_goes_wrong_is_told_to_the_model_and_to_the_operator() {
    let place = place();
    let failed = call(&place, "executable__weather", &json!({"city": "Nowhere"}));
    assert!(failed["is_error"] == true && failed.to_string().contains("there is no such city"), "{failed}");
    let refused = call(&place, "executable__weather", &json!({"town": "Bonn"}));
    assert_eq!(refused["is_error"], true, "{refused}");
    let missing = call(&place, "executable__missing", &json!({}));
    assert!(missing.to_string().contains("there is no program"), "{missing}");
    // One that does not say what it is is not offered, and the reason is told.
    let listed = place.run(&["tools", "list"]);
    assert!(!listed.stdout.contains("executable__mute"), "{listed:?}");
    let said = "`true --schema`: the tool's program ended well and printed nothing";
    assert!(listed.stderr.contains(said) || listed.stdout.contains(said), "{listed:?}");
    let wrong = Place::with("[tools.executable.x]\nargs = []\n").run(&["doctor"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.stdout.contains("[tools.executable.x] has no `command`"), "{wrong:?}");
}

#[test]
fn a_result_is_given_again_for_as_long_as_the_operator_says() {
    let config = "[tools.executable.count]\ncommand = \"sh\"\nargs = [\"-c\", \"echo run >> ran; wc -l < ran\"]\n\
        description = \"Counts its runs.\"\nschema = { type = \"object\" }\nread_only = true\n";
    for (cache, runs) in [("cache_ttl_ms = 600000\n", 1), ("", 2)] {
        let place = Place::with(&format!("{config}{cache}"));
        let server = Server::start(&place);
        for conversation in ["one", "two"] {
            let asked = format!("POST /api/v1/conversations/{conversation}/chat");
            let answered = server.ask(&asked, &json!({"content": "tool executable__count {}"}));
            assert_eq!(answered["success"], true, "{answered}");
        }
        server.stop();
        assert_eq!(std::fs::read_to_string(place.path("ran")).unwrap().lines().count(), runs, "{cache}");
    }
}
