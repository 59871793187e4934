//! The commands that look at things.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use serde_json::{Value, json};
use turnwright_testkit::Port;

use crate::support::{PRACTICE, Place, Ran};

#[test]
fn the_version_needs_no_configuration() {
    let place = Place::with("this is not TOML");
    let ran = place.run(&["--version"]);
    let stdout = format!("turnwright {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(ran, Ran { code: Some(0), stdout, stderr: String::new() });
}

#[test]
fn tools_are_listed_and_shown() {
    let place = Place::new();
    let listed = place.json(&["tools", "list", "--json"]);
    let names: Vec<_> = listed.as_array().unwrap().iter().map(|tool| tool["id"].as_str().unwrap()).collect();
    assert!(names.contains(&"filesystem__read") && names.contains(&"command__run"), "{names:?}");
    let shown = place.json(&["tools", "show", "filesystem__read", "--json"]);
    assert_eq!((&shown["server_id"], &shown["read_only"]), (&json!("filesystem"), &json!(true)));
    assert!(place.run(&["tools", "list"]).stdout.contains("\nfilesystem__read     read-only  Reads a file"));
    let none = place.run(&["tools", "show", "filesystem__red"]);
    let stderr = "error: there is no tool `filesystem__red`; did you mean `filesystem__read`?\n\
                  hint: `turnwright tools list` shows those that there are\n";
    assert_eq!(none, Ran { code: Some(2), stdout: String::new(), stderr: stderr.to_owned() });
}

#[test]
fn a_tool_is_shown_with_what_each_api_is_told_of_its_schema() {
    let place = Place::new();
    let shown = place.json(&["tools", "show", "filesystem__read", "--json"]);
    let schemas = shown["schemas"].as_array().unwrap();
    let readers: Vec<_> = schemas.iter().map(|sent| sent["reader"].as_str().unwrap()).collect();
    assert_eq!(readers, ["openai", "anthropic", "gemini", "compatible"]);
    let mut expected = Vec::new();
    for (reader, sent) in readers.iter().zip(schemas) {
        match sent["strict"].as_bool() {
            Some(true) => expected.push(format!("{reader}: strict")),
            Some(false) => expected.push(format!("{reader}: loose, since {}", sent["because"].as_str().unwrap())),
            None => assert_eq!(sent["because"], json!(null)),
        }
        let losses = sent["losses"].as_array().unwrap().iter();
        expected.extend(losses.map(|loss| format!("{reader}: loses {}", loss.as_str().unwrap())));
    }
    assert!(expected[0].starts_with("openai: "), "{expected:?}");
    let told = place.run(&["tools", "show", "filesystem__read"]).stdout;
    assert!(told.ends_with(&format!("}}\n{}\n", expected.join("\n"))), "{told}");
}

#[test]
fn the_built_in_tools_reach_every_api_whole() {
    let place = Place::new();
    for tool in place.json(&["tools", "list", "--json"]).as_array().unwrap() {
        let shown = place.json(&["tools", "show", tool["id"].as_str().unwrap(), "--json"]);
        for sent in shown["schemas"].as_array().unwrap() {
            assert_eq!(sent["losses"], json!([]), "{}: {sent}", tool["id"]);
        }
    }
}

#[test]
fn a_tool_runs_by_hand_under_the_policy() {
    let place = Place::new();
    let mut read = place.json(&["tools", "call", "filesystem__read", "--arguments", "{\"path\":\"a.txt\"}"]);
    assert!(read["duration_ms"].take().is_u64());
    let expected = json!({"outcome": "success", "is_error": false, "content": [{"type": "text", "text": "hello file\n"}],
                          "structured_content": null, "duration_ms": null});
    assert_eq!(read, expected);

    let write = ["tools", "call", "filesystem__write", "--arguments", "{\"path\":\"b.txt\",\"content\":\"x\"}"];
    let denied = place.run(&write);
    assert_eq!((denied.code, denied.stdout.contains("\"outcome\": \"denied\"")), (Some(1), true), "{denied:?}");
    assert!(!place.path("b.txt").exists());
    assert_eq!(place.run(&[write.as_slice(), &["--approve"]].concat()).code, Some(0));
    assert_eq!(std::fs::read_to_string(place.path("b.txt")).unwrap(), "x");

    let wrong = place.run(&["tools", "call", "filesystem__read", "--arguments", "{\"pth\":1}"]);
    assert_eq!((wrong.code, wrong.stdout.contains("\"invalid_arguments\"")), (Some(1), true), "{wrong:?}");
    let missing = place.run(&["tools", "call", "filesystem__read", "--arguments", "{\"path\":\"nope\"}"]);
    let missing: Value = serde_json::from_str(&missing.stdout).unwrap();
    let failure = json!({"error": true, "type": "not_found", "message": "there is no `nope`"});
    assert_eq!((&missing["outcome"], &missing["structured_content"]), (&json!("not_found"), &failure), "{missing}");
    assert_eq!(missing["content"], json!([{"type": "text", "text": failure.to_string()}]));
    let unknown = |name: &str, near: &str| {
        let hint = "hint: `turnwright tools list` shows those that there are";
        let stderr = format!("error: there is no tool `{name}`{near}\n{hint}\n");
        assert_eq!(place.run(&["tools", "call", name]), Ran { code: Some(2), stdout: String::new(), stderr });
    };
    unknown("nothing__here", "");
    unknown("filesystem__rea", "; did you mean `filesystem__read`?");
}

#[test]
fn models_are_listed_and_checked() {
    let place = Place::new();
    let listed = place.json(&["models", "list", "--json"]);
    let practice = listed.as_array().unwrap().iter().find(|model| model["id"] == "practice/practice").unwrap();
    assert_eq!(practice["is_default"], true);
    let mut checked = place.json(&["models", "check", "--json"]);
    assert!(checked["duration_ms"].take().is_u64());
    let expected = json!({"model": "practice/practice", "ok": true, "text": false, "called_tool": true,
                          "recovered_from_text": false, "usage_reported": false, "duration_ms": null, "findings": [], "profile": {}});
    assert_eq!(checked, expected);
    assert_eq!(place.run(&["models", "check", "practice/other"]).code, Some(1));
    assert_eq!(place.run(&["models", "check", "nobody/x"]).code, Some(2));
}

#[test]
fn a_list_of_models_says_what_is_known_of_them() {
    let config = "[providers.openai]\napi_key = \"k\"\nmodels = [\"gpt-4.1\"]\n\
                  [models.\"openai/gpt-4.1\"]\nmax_output_tokens = 500\n";
    let place = Place::with(config);
    let listed = place.json(&["models", "list", "--json"]);
    let model = &listed.as_array().unwrap()[0];
    let known = ["id", "context_window", "max_output_tokens", "images", "reasoning"].map(|key| model[key].clone());
    assert_eq!(json!(known), json!(["openai/gpt-4.1", 1_047_576, 500, true, "never"]));
    let prices = json!({"input": 2.0, "cached_input": 0.5, "cache_write": null, "output": 8.0, "long_prompts": null});
    assert_eq!(model["prices"], prices);
    assert!(model["catalogue_date"].as_str().is_some_and(|date| date.starts_with("20")), "{model}");
    let ran = place.run(&["models", "list"]);
    let note = format!("note: limits and prices are those of {}, ", model["catalogue_date"].as_str().unwrap());
    assert!(ran.stderr.contains(&note), "{}", ran.stderr);
    let lines = ran.stdout;
    let expected = "openai/gpt-4.1              configuration  1.04M context  500 output  images, PDF  \
                    tokens counted (o200k_base)  $2 in, $8 out\n";
    assert!(lines.starts_with(expected), "{lines}");
}

#[test]
fn conversations_are_listed_shown_and_deleted() {
    let place = Place::new();
    place.run(&["chat", "hello there", "--conversation", "one"]);
    place.run(&["chat", "read the file \"a.txt\"", "--conversation", "two"]);
    let listed = place.run(&["conversations", "list"]).stdout;
    let rows: Vec<Vec<_>> = listed.lines().map(|line| line.split("  ").collect()).collect();
    assert_eq!((rows[0][0], rows[0][2], rows[1][0], rows[1][2]), ("two", "read the file \"a.txt\"", "one", "hello there"));

    let shown = place.run(&["conversations", "show", "two"]).stdout;
    let expected = format!(
        "\nuser: read the file \"a.txt\"\n\nassistant calls filesystem__read {{\"path\":\"a.txt\"}}\n\n\
         filesystem__read: hello file\n\n\nassistant: {PRACTICE}`filesystem__read` answered: hello file\n"
    );
    assert_eq!(shown.split_once('\n').unwrap().1, expected);

    assert_eq!(place.run(&["conversations", "delete", "two"]).code, Some(0));
    let gone = place.run(&["conversations", "show", "two"]);
    let stderr = "error: there is no conversation `two`\nhint: `turnwright conversations list` shows those that there are\n";
    assert_eq!(gone, Ran { code: Some(2), stdout: String::new(), stderr: stderr.to_owned() });
}

#[test]
fn doctor_says_what_is_found_and_fails_where_something_is_wrong() {
    let place = Place::new();
    let found = place.json(&["doctor", "--json"]);
    let model = found.as_array().unwrap().iter().find(|finding| finding["subject"] == "model").unwrap();
    assert_eq!(model["level"], "ok");
    let broken = Place::with("[mcp.servers.none]\ncommand = \"no-such-program-anywhere\"\n");
    let ran = broken.run(&["doctor"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.contains("problem  MCP server none"), "{ran:?}");
    let ran = Place::with("nothing = 1\n").run(&["doctor"]);
    assert_eq!((ran.code, ran.stdout.starts_with("problem  configuration")), (Some(2), true), "{ran:?}");
}

#[test]
fn doctor_asks_where_the_configuration_names_the_models_too() {
    let port = Port::reserve().unwrap();
    let provider = |name: &str, address: &str| {
        format!("[providers.{name}]\ndialect = \"openai-chat\"\nbase_url = \"{address}\"\nmodels = [\"m\"]\n")
    };
    let gone = format!("http://127.0.0.1:{}/v1", port.number());
    // Whatever it says to a question for its models: it is there.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let there = format!("http://{}/v1", listener.local_addr().unwrap());
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]).unwrap();
        stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").unwrap();
    });
    let place = Place::with(&(provider("gone", &gone) + &provider("there", &there)));
    let ran = place.run(&["doctor"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let of = |name: &str| ran.stdout.lines().find(|line| line.contains(&format!("provider {name}"))).unwrap();
    assert!(of("gone").starts_with("problem ") && of("gone").contains("Connection refused"), "{ran:?}");
    assert!(of("there").starts_with("ok ") && of("there").contains("1 model, from configuration"), "{ran:?}");
}

/// A server of another crate's tests that misbehaves in one way.
fn misbehaving(mode: &str, argument: &str) -> Place {
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../mcp/tests/servers/misbehave.py");
    Place::with(&format!(
        "[mcp.servers.bad]\ncommand = \"python3\"\nargs = [\"{}\", \"{mode}\", \"{argument}\"]\n",
        script.display()
    ))
}

#[test]
fn a_tool_that_is_set_aside_is_told_once_and_briefly() {
    for (mode, argument, told) in [
        ("deep_tool", "100", "u of bad: it is nested more than 64 levels deep".to_owned()),
        ("long_name", "5000", format!("{}… of bad: its name is 5000 bytes long, limit 1024", "n".repeat(100))),
        (
            "far_schema",
            "https://example.test/schema.json",
            "u of bad: its input schema refers to `https://example.test/schema.json`, which is not part of it: nothing is fetched"
                .to_owned(),
        ),
    ] {
        let listed = misbehaving(mode, argument).run(&["tools", "list"]);
        assert_eq!((listed.code, listed.stderr), (Some(0), format!("warning: set aside: {told}\n")), "{mode}");
        assert!(listed.stdout.contains("bad__t") && !listed.stdout.contains("bad__u"), "{}", listed.stdout);
    }
}

#[test]
fn what_a_server_says_of_its_tools_is_shown() {
    let place = misbehaving("promises", "");
    let shown = place.json(&["tools", "show", "bad__t", "--json"]);
    let schema = json!({"type": "object", "properties": {"celsius": {"type": "number"}}, "required": ["celsius"]});
    assert_eq!((&shown["output_schema"], &shown["visibility"]), (&schema, &json!(["model", "app"])));
    let icon = json!({"src": "data:image/png;base64,AA==", "mime_type": "image/png", "sizes": ["48x48"], "theme": null});
    assert_eq!(shown["icons"], json!([icon]));
    let told = place.run(&["tools", "show", "bad__t"]).stdout;
    assert!(told.contains("icon: data:image/png;base64,AA==\n") && told.contains("structured result:\n"), "{told}");
    let called = place.run(&["tools", "call", "bad__t", "--arguments", r#"{"celsius": "warm"}"#, "--approve", "all"]);
    let note = "note: the result does not fit the tool's outputSchema: at /celsius: \"warm\" is not of type \"number\"\n";
    assert_eq!((called.code, called.stderr.as_str()), (Some(0), note));
    let hidden = misbehaving("pages", "").run(&["tools", "show", "bad__u"]);
    assert_eq!(hidden.stderr, "error: `bad__u` is for its server's own pages alone: models are not offered it\n");
}

#[test]
fn a_server_that_does_not_run_is_told_of_once() {
    let place = Place::with("[mcp.servers.none]\ncommand = \"no-such-program-anywhere\"\n");
    let reason =
        "the command `no-such-program-anywhere` was not found; it must be a path, or a name in the PATH that servers are given";
    let listed = place.run(&["tools", "list"]);
    assert_eq!((listed.code, listed.stderr), (Some(0), format!("warning: none does not run: {reason}\n")));
    let checked = place.run(&["mcp", "check", "none"]);
    assert_eq!((checked.code, checked.stderr.as_str()), (Some(1), ""));
    let looked = place.run(&["doctor"]);
    assert_eq!((looked.code, looked.stderr.as_str(), looked.stdout.matches(reason).count()), (Some(1), "", 1), "{looked:?}");
}

#[test]
fn a_server_that_is_left_out_is_listed_with_the_reason() {
    let place = Place::with(
        "[mcp]\nfiles = [\"servers.json\"]\n[mcp.servers.keyed]\ncommand = \"python3\"\nenv = { KEY = \"${NOT_SET_KEY}\" }\n\
         [mcp.servers.filed]\ncommand = \"python3\"\nenv_file = \"missing.env\"\n",
    );
    place.write("servers.json", r#"{"mcpServers": {"far": {"url": "https://${NOT_SET_HOST}/mcp"}}}"#);
    let listed = place.json(&["mcp", "list", "--json"]);
    let listed = listed.as_array().unwrap();
    let told: Vec<_> =
        listed.iter().map(|server| (server["name"].as_str().unwrap(), server["state"].as_str().unwrap())).collect();
    assert_eq!(told, [("filed", "failing"), ("keyed", "failing"), ("far", "failing")]);
    let words = ["missing.env", "the variable NOT_SET_KEY is not set", "the variable NOT_SET_HOST is not set"];
    for (server, words) in listed.iter().zip(words) {
        let reason = server["reason"].as_str().unwrap();
        assert!(reason.contains(words), "{reason}");
        let checked = place.run(&["mcp", "check", server["name"].as_str().unwrap()]);
        assert!(checked.code == Some(1) && checked.stdout.contains(reason), "{checked:?}");
    }
    let looked = place.run(&["doctor"]);
    assert_eq!(looked.stdout.matches("NOT_SET_KEY is not set").count(), 1, "{looked:?}");
}

#[test]
fn mcp_servers_are_listed_and_checked() {
    let place = Place::with("[mcp.servers.none]\ncommand = \"no-such-program-anywhere\"\nargs = [\"x\"]\n");
    let listed = place.json(&["mcp", "list", "--json"]);
    assert_eq!((&listed[0]["name"], &listed[0]["transport"]), (&json!("none"), &json!("no-such-program-anywhere x")));
    let checked = place.run(&["mcp", "check", "none"]);
    assert_eq!((checked.code, checked.stdout.starts_with("none is failing: ")), (Some(1), true), "{checked:?}");
    let unknown = place.run(&["mcp", "check", "other"]);
    assert_eq!(
        (unknown.code, unknown.stderr.as_str()),
        (Some(2), "error: there is no MCP server `other`\nhint: there are: none\n")
    );
}

#[test]
fn hints_name_the_data_that_they_are_about() {
    let place = Place::new();
    let ran = |words: &[&str]| place.run(&[&["--data-dir", "other data"], words].concat());
    assert_eq!(ran(&["chat", "hi", "--conversation", "c"]).code, Some(0));
    let forked = ran(&["conversations", "fork", "c"]);
    let hint = format!("turnwright chat --conversation {} --data-dir 'other data'\n", forked.stdout.trim());
    assert!(forked.stderr.ends_with(&hint), "{forked:?}");
    let added = ran(&["users", "add", "bob"]).stderr;
    assert!(added.contains("`turnwright users link bob --data-dir 'other data'`"), "{added}");
    assert!(added.contains("`turnwright users token bob --data-dir 'other data'`"), "{added}");
    let added = ran(&["mcp", "add", "notes", "--", "true"]).stderr;
    assert!(added.contains("`turnwright mcp check notes --data-dir 'other data'`"), "{added}");
}
