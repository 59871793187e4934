//! What MCP servers have besides tools: on the command line, over the API, and for models.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::serve::Server;
use crate::support::Place;

/// The server of another crate's tests that has resources and prompts.
fn place(era: &str) -> Place {
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../mcp/tests/servers/offers.py");
    Place::with(&format!(
        "[mcp.servers.own]\ncommand = \"python3\"\nargs = [\"{}\", \"{era}\", \"\"]\nlog_level = \"info\"\n",
        script.display()
    ))
}

#[test]
fn resources_are_listed_and_read_on_the_command_line() {
    for era in ["legacy", "modern"] {
        let place = place(era);
        let listed = place.run(&["mcp", "resources", "own"]);
        assert_eq!((listed.code, listed.stderr.as_str()), (Some(0), ""), "{era}");
        let lines: Vec<&str> = listed.stdout.lines().collect();
        assert_eq!(
            (lines.len(), lines[0], lines[5]),
            (6, "note://0         text/plain  note 0", "note://{number}              notes")
        );
        let read = place.run(&["mcp", "resources", "own", "note://3"]);
        assert_eq!((read.code, read.stdout.as_str()), (Some(0), "the text of note://3\nmore\n"), "{era}");
        let none = place.run(&["mcp", "resources", "own", "file:///x"]);
        assert_eq!(none.code, Some(1));
        assert!(
            none.stderr.starts_with("error: `resources/read` of the MCP server `own` was refused: Resource not found"),
            "{none:?}"
        );
    }
    let none = place("legacy").run(&["mcp", "resources", "other"]);
    assert_eq!((none.code, none.stderr.as_str()), (Some(2), "error: there is no MCP server `other`\nhint: there are: own\n"));
}

#[test]
fn a_resource_is_read_again_when_it_changes() {
    let place = place("legacy");
    let mut command = place.command(&["mcp", "resources", "own", "note://3", "--follow", "--json"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert_eq!(first, "[\n");
    assert_eq!(child.try_wait().unwrap(), None, "it stays until it is ended");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn prompts_are_listed_and_got_on_the_command_line() {
    let place = place("modern");
    let listed = place.run(&["mcp", "prompts", "own"]);
    assert_eq!(listed.stdout, "review  code [style]  Reviews code.\n", "{listed:?}");
    let got = place.run(&["mcp", "prompts", "own", "review", "code=a = b"]);
    assert_eq!(got.stdout.lines().next(), Some("user: Review: a = b"), "{got:?}");
    let wrong = place.run(&["mcp", "prompts", "own", "review", "code"]);
    let told = "error: `code` is no argument of a prompt\nhint: an argument is given as NAME=VALUE\n";
    assert_eq!((wrong.code, wrong.stderr.as_str()), (Some(2), told));
}

#[test]
fn models_are_offered_resources_where_a_server_has_any() {
    let place = place("modern");
    let called = place.json(&["tools", "call", "resources__read", "--arguments", r#"{"server": "own", "uri": "note://1"}"#]);
    assert_eq!(called["outcome"], "success", "read-only: nobody is asked");
    assert_eq!(called["content"][0]["resource"]["text"], "the text of note://1");
    let names = |place: &Place| place.run(&["tools", "list"]).stdout.contains("resources__");
    assert!(names(&place) && !names(&Place::new()));
}

#[test]
fn the_api_lists_reads_gets_and_completes() {
    let place = place("legacy");
    let server = Server::start(&place);
    let ask = |head: &str, body: &Value| -> (String, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answer = server.request(head, &body);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let body = body.find('{').and_then(|start| Some(body.get(start..=body.rfind('}')?)?.to_owned()));
        (head.split(' ').nth(1).unwrap().to_owned(), serde_json::from_str(&body.unwrap_or_default()).unwrap_or_default())
    };
    let at = "/api/v1/mcp/servers/own";
    let (status, resources) = ask(&format!("GET {at}/resources"), &Value::Null);
    assert_eq!((status.as_str(), resources["data"].as_array().map(Vec::len)), ("200", Some(5)), "{resources}");
    let (_, first) = ask(&format!("GET {at}/resources?limit=3"), &Value::Null);
    let (cursor, mut paged) = (first["next_cursor"].as_str().unwrap(), first["data"].as_array().unwrap().clone());
    let (_, rest) = ask(&format!("GET {at}/resources?limit=3&cursor={cursor}"), &Value::Null);
    paged.extend(rest["data"].as_array().unwrap().iter().cloned());
    assert_eq!(
        (&Value::from(paged), &rest["has_more"]),
        (&resources["data"], &json!(false)),
        "page by page it is the same list"
    );
    let (_, templates) = ask(&format!("GET {at}/resource_templates"), &Value::Null);
    assert_eq!(templates["data"][0]["uri_template"], "note://{number}");
    let (_, prompts) = ask(&format!("GET {at}/prompts"), &Value::Null);
    assert_eq!(prompts["data"][0]["arguments"][0], json!({"name": "code", "description": null, "required": true}));
    let (_, read) = ask(&format!("POST {at}/resources/read"), &json!({"uri": "note://2"}));
    let part = json!({"uri": "note://2", "mime_type": "text/plain", "text": "the text of note://2", "blob": null});
    assert_eq!(read["contents"][0], part);
    let (status, refused) = ask(&format!("POST {at}/resources/read"), &json!({"uri": "file:///x"}));
    assert_eq!((status.as_str(), &refused["code"]), ("404", &json!("not_found")));
    let (_, got) = ask(&format!("POST {at}/prompts/get"), &json!({"name": "review", "arguments": {"code": "x"}}));
    assert_eq!(got["messages"][0], json!({"role": "user", "content": {"type": "text", "text": "Review: x"}}));
    let (status, _) = ask(&format!("POST {at}/prompts/get"), &json!({"name": "review"}));
    assert_eq!(status, "422");
    let of = json!({"ref": {"type": "ref/prompt", "name": "review"}, "argument": {"name": "style", "value": "py"}});
    let (_, completed) = ask(&format!("POST {at}/complete"), &of);
    assert_eq!(completed, json!({"values": ["python"], "has_more": false}));
    let (status, _) = ask("GET /api/v1/mcp/servers/other/prompts", &Value::Null);
    assert_eq!(status, "404");
    server.stop();
}
