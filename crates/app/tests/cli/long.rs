//! Conversations that are long for their model, and more tools than it can be told, as an endpoint sees it.

use serde_json::{Value, json};
use turnwright_testkit::model_server::{ModelServer, Piece, call_chunk, finish_chunk, results_shown, text_chunk};

use crate::serve::Server;
use crate::support::Place;

fn says(text: &str) -> Vec<Piece> {
    vec![text_chunk(text), finish_chunk("stop"), Piece::Done]
}

/// A model that sums up what it is asked to, and answers everything else with a word.
fn brief() -> ModelServer {
    let answer = |request: &Value| says(if is_for_summary(request) { "They counted." } else { "Yes." });
    ModelServer::start(None, answer).unwrap()
}

fn is_for_summary(request: &Value) -> bool {
    request["messages"][0]["content"].as_str().is_some_and(|system| system.contains("Write a summary"))
}

fn place(endpoint: &ModelServer, more: &str) -> Place {
    let place = Place::with("");
    let url = endpoint.base_url();
    place.write(
        "turnwright.toml",
        format!(
            "model = \"p/m\"\napprove = \"all\"\n[providers.p]\ndialect = \"openai-chat\"\nbase_url = \"{url}\"\nmodels = [\"m\"]\n{more}"
        ),
    );
    place
}

fn say(place: &Place, text: &str) -> Value {
    place.json(&["chat", text, "--conversation", "c", "--output", "json", "--tools", "none__*"])
}

#[test]
fn a_conversation_is_compacted_by_hand_and_taken_back_from_the_command_line_and_over_http() {
    let endpoint = brief();
    let place = place(&endpoint, "");
    let created = place.run(&["chat", "one", "--output", "json"]);
    let id = serde_json::from_str::<Value>(&created.stdout).unwrap()["conversation_id"].as_str().unwrap().to_owned();
    let made = place.json(&["conversations", "compact", &id, "--json"]);
    assert_eq!((&made["summary"], &made["model"]), (&json!("They counted."), &json!("p/m")));
    assert_eq!(place.run(&["chat", "two", "--conversation", &id]).code, Some(0));
    let last = endpoint.bodies().pop().unwrap();
    assert!(last.contains("They counted.") && !last.contains("\"one\""), "{last}");
    // What was said is there all the same.
    let shown = place.json(&["conversations", "show", &id, "--json"]);
    assert_eq!(shown["messages"][0]["content"], "one");
    assert!(shown["length"]["tokens"].is_u64(), "{shown}");
    assert_eq!(place.run(&["conversations", "compact", &id, "--undo"]).code, Some(0));
    assert_eq!(place.run(&["chat", "three", "--conversation", &id]).code, Some(0));
    let last = endpoint.bodies().pop().unwrap();
    assert!(!last.contains("They counted.") && last.contains("\"one\""), "{last}");
    let again = place.run(&["conversations", "compact", &id, "--undo"]);
    assert_eq!(again.code, Some(2));
    assert!(again.stderr.contains("no summary to take back"), "{}", again.stderr);

    let server = Server::start(&place);
    let url = format!("/api/v1/conversations/{id}/compact");
    let body = |answer: &str| -> Value { serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap() };
    assert_eq!(body(&server.request(&format!("GET {url}"), ""))["summary"], Value::Null);
    assert_eq!(body(&server.request(&format!("POST {url}"), "{}"))["summary"]["text"], "They counted.");
    assert_eq!(body(&server.request(&format!("GET {url}"), ""))["summary"]["model"], "p/m");
    assert_eq!(body(&server.request(&format!("POST {url}/undo"), ""))["summary"], Value::Null);
    let nothing = server.request(&format!("POST {url}/undo"), "");
    assert!(nothing.starts_with("HTTP/1.1 422") || nothing.starts_with("HTTP/1.1 400"), "{nothing}");
    server.stop();
}

#[test]
fn what_is_longer_than_the_window_is_compacted_before_the_endpoint_sees_it() {
    let endpoint = brief();
    let place = place(&endpoint, "[models.\"p/m\"]\ncontext_window = 3000\nmax_output_tokens = 500\n");
    assert_eq!(place.run(&["chat", "hello", "--conversation", "c", "--tools", "none__*"]).code, Some(0));
    let long = |word: &str| format!("{word} ").repeat(1_500);
    for word in ["apples", "pears", "plums"] {
        assert_eq!(say(&place, &long(word))["status"], "completed");
    }
    let sizes: Vec<usize> = endpoint
        .requests()
        .iter()
        .filter(|request| !is_for_summary(request))
        .map(|request| request.to_string().len())
        .collect();
    assert!(sizes.iter().all(|size| *size < 20_000), "{sizes:?}");
    assert!(endpoint.requests().iter().any(is_for_summary));
    let shown = place.run(&["conversations", "show", "c"]);
    assert!(shown.stderr.contains("tokens for p/m, estimated; compacted above 2440"), "{}", shown.stderr);
    assert!(place.run(&["models", "list"]).stdout.contains("tokens estimated"));
}

const SERVER: &str = concat!(
    include_str!("../servers/small.py"),
    r#"
others = [tool("archive_%d" % n, "Puts papers into box %d. " % n + "It is a box. " * 20) for n in range(400)]
serve(lambda: [tool("send_letter", "Sends a letter to somebody")] + others, lambda params: "sent")
"#
);

#[test]
fn of_many_tools_the_endpoint_is_told_the_search_and_what_was_found() {
    let endpoint = ModelServer::start(None, |request: &Value| match results_shown(request) {
        0 => vec![call_chunk(0, "tools__search", r#"{"query":"write a letter"}"#), finish_chunk("tool_calls"), Piece::Done],
        1 => vec![call_chunk(0, "s__send_letter", "{}"), finish_chunk("tool_calls"), Piece::Done],
        _ => says("Sent."),
    })
    .unwrap();
    let place =
        place(&endpoint, "[tools.search]\nresults = 1\n[mcp.servers.s]\ncommand = \"python3\"\nargs = [\"server.py\"]\n");
    place.write("server.py", SERVER);
    let done = place.run(&["chat", "write to Ana", "--conversation", "c"]);
    assert_eq!((done.code, done.stdout.trim()), (Some(0), "Sent."), "{}", done.stderr);
    let offered = |request: &Value| -> Vec<String> {
        let tools = request["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
    };
    let requests = endpoint.requests();
    assert_eq!(offered(&requests[0]), ["tools__search"]);
    assert!(requests[0]["tools"].to_string().len() < 3_000, "{}", requests[0]["tools"]);
    assert_eq!(offered(&requests[1]), ["tools__search", "s__send_letter"]);
    assert_eq!(offered(&requests[2]), offered(&requests[1]));
    // Another process goes on with what was found; people see all.
    assert_eq!(place.run(&["chat", "and to Bob", "--conversation", "c"]).code, Some(0));
    assert_eq!(offered(&endpoint.requests()[3]), ["tools__search", "s__send_letter"]);
    assert!(place.json(&["tools", "list", "--json"]).as_array().unwrap().len() > 400);
}

#[test]
fn a_share_or_a_glob_that_is_none_is_named() {
    let place = Place::with("[tools.search]\nabove_percent = 101\n");
    let ran = place.run(&["config", "check"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("tools.search.above_percent") && ran.stderr.contains("101"), "{}", ran.stderr);
    let place = Place::with("[tools.search]\nalways = [\"a[\"]\nresult = 3\n");
    let ran = place.run(&["config", "check"]);
    assert!(ran.stderr.contains("a glob") && ran.stderr.contains("did you mean `results`"), "{}", ran.stderr);
}
