//! Results of any size, through the binary: what is shown, what is kept, what it takes.

use serde_json::{Value, json};
use turnwright_testkit::model_server::{ModelServer, Piece, call_chunk, finish_chunk, text_chunk};

use crate::serve::Server;
use crate::support::Place;

/// Prints 200 MB: two million lines of a hundred bytes, each with its number.
const PRINTS: &str = "awk 'BEGIN { for (n = 0; n < 2000000; n++) printf \"%07d %091d\\n\", n, 0 }'";
/// How many bytes it prints.
const PRINTED: u64 = 200_000_000;
/// How much more memory that may take than the server had before, in KiB. All of it at once would be 195,000.
const MOST_MORE_KIB: u64 = 96 * 1024;

fn call(place: &Place, tool: &str, arguments: &Value) -> Value {
    place.json(&["tools", "call", tool, "--arguments", &arguments.to_string(), "--approve", "all"])
}

/// The text of the block at `at` of a result.
fn text(result: &Value, at: usize) -> &str {
    result["content"][at]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}

/// A model that calls `command__run` with what it is told, and answers once it has the result.
fn script(request: &Value) -> Vec<Piece> {
    let messages = request["messages"].as_array().unwrap();
    let last = &messages[messages.len() - 1];
    let arguments = last["content"].as_str().or_else(|| last["content"][0]["text"].as_str()).unwrap_or_default();
    if last["role"] == "user" {
        vec![call_chunk(0, "command__run", arguments), finish_chunk("tool_calls"), Piece::Done]
    } else {
        vec![text_chunk("Done."), finish_chunk("stop"), Piece::Done]
    }
}

/// The most memory that a process ever had, in KiB.
fn peak_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn of_200_megabytes_a_model_is_shown_both_ends_and_reads_any_part_while_memory_stays_bounded() {
    let model = ModelServer::start([], script).unwrap();
    let place = Place::new();
    let config = format!(
        "model = \"p/m\"\napprove = \"all\"\n[providers.p]\ndialect = \"openai-chat\"\nbase_url = \"{}\"\nmodels = [\"m\"]\n\
         [tools.command]\ntimeout_ms = 300000\n",
        model.base_url()
    );
    place.write("turnwright.toml", config);
    let server = Server::start(&place);
    let ask = |arguments: Value| server.ask("POST /api/v1/conversations/big/chat", &json!({"content": arguments.to_string()}));
    let _warm = ask(json!({"command": "echo hello"}));
    let before = peak_kib(server.pid());
    let answered = ask(json!({"command": PRINTS}));
    let more = peak_kib(server.pid()) - before;
    assert_eq!(answered["success"], true, "{answered}");
    assert!(more < MOST_MORE_KIB, "200 MB took {more} KiB");

    // The whole of it is there, and its parts are exact.
    let messages = server.ask("GET /api/v1/conversations/big/messages", &Value::Null);
    let said = messages.to_string();
    let at = said.find("art_").unwrap_or_else(|| panic!("{said}"));
    let id = said.get(at..at + 36).unwrap();
    assert!(said.contains("0000000 00") && said.contains("1999999 00"), "both ends are shown");
    assert!(said.len() < 200_000, "{}", said.len());
    let zeros = "0".repeat(91);
    let page = call(&place, "artifact__page", &json!({"artifact": id, "offset": 123_456_700, "limit": 200}));
    assert_eq!(text(&page, 0), format!("1234567 {zeros}\n1234568 {zeros}\n"));
    let page = call(&place, "artifact__page", &json!({"artifact": id, "line": -1}));
    assert_eq!(text(&page, 0), format!("1999999 {zeros}\n"));
    assert!(text(&page, 1).contains("bytes 199,999,900 up to 200,000,000 of 200,000,000; this is the end"), "{page}");
    let found = call(&place, "artifact__search", &json!({"artifact": id, "pattern": "^19999(98|99) "}));
    assert_eq!(
        text(&found, 0),
        format!("1999999 (offset 199999800): 1999998 {zeros}\n2000000 (offset 199999900): 1999999 {zeros}")
    );

    // A client reads parts of it as of any file.
    let part = server.request(&format!("GET /api/v1/artifacts/{id} HTTP/1.1\r\nRange: bytes=199999900-\r\nX-Last: is"), "");
    assert!(part.starts_with("HTTP/1.1 206"), "{part}");
    assert!(part.contains(&format!("content-range: bytes 199999900-199999999/{PRINTED}")), "{part}");
    assert!(part.ends_with(&format!("1999999 {zeros}\n")), "{part}");
    let peak = peak_kib(server.pid()) - before;
    assert!(peak < MOST_MORE_KIB, "reading it took {peak} KiB");

    // It goes with its conversation.
    server.ask("DELETE /api/v1/conversations/big", &Value::Null);
    let gone = server.request(&format!("GET /api/v1/artifacts/{id}"), "");
    assert!(gone.starts_with("HTTP/1.1 404"), "{gone}");
    server.stop();
}

#[test]
fn what_a_program_prints_as_json_is_asked_by_a_path() {
    let config = "[tools.executable.rows]\ncommand = \"python3\"\nargs = [\"-c\", \"import json; print(json.dumps({'rows': \
        [{'id': n, 'name': 'row %d' % n} for n in range(20000)]}))\"]\ndescription = \"Gives rows.\"\nschema = { type = \"object\" }\n\
        read_only = true\n[tools.artifact]\nshown_bytes = 8192\n";
    let place = Place::with(config);
    let result = call(&place, "executable__rows", &json!({}));
    assert_eq!(result["structured_content"], Value::Null, "{result}");
    assert!(text(&result, 0).len() < 8_192 && text(&result, 0).contains("artifact__query takes values out of its JSON"));
    let link = &result["content"][1];
    assert_eq!(
        (&link["type"], &link["mimeType"], &link["name"]),
        (&json!("resource_link"), &json!("application/json"), &json!("executable__rows.json"))
    );
    let id = link["uri"].as_str().unwrap().trim_start_matches("artifact:");
    let names = call(&place, "artifact__query", &json!({"artifact": id, "path": "$.rows[?@.id >= 19998].name"}));
    assert_eq!((text(&names, 0), text(&names, 1)), ("\"row 19998\"\n\"row 19999\"", "[2 values, the last ones]"));
}

#[test]
fn what_is_shown_and_whether_it_is_read_on_is_configured() {
    let place = Place::with("[tools.artifact]\nenabled = false\nshown_bytes = 4096\n");
    place.write("long.txt", "a line of a file\n".repeat(1_000));
    let result = call(&place, "filesystem__read", &json!({"path": "long.txt"}));
    assert!(text(&result, 0).len() < 4_096 && text(&result, 0).contains("left out: the whole is kept as `art_"), "{result}");
    let listed = place.run(&["tools", "list"]);
    assert!(!listed.stdout.contains("artifact__"), "{listed:?}");
    let wrong = Place::with("[tools.artifact]\nshown_bytes = 5\n").run(&["config", "check"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    let said = wrong.stdout + &wrong.stderr;
    assert!(
        said.contains("`tools.artifact.shown_bytes` is 5") || said.contains("`shown_bytes` in [tools.artifact] is 5"),
        "{said}"
    );
}
