//! A model that goes in circles, through the real binary: it is told, a person is asked, the turn is stopped; and a process that
//! is killed on the way changes none of that.

use serde_json::{Value, json};
use turnwright_testkit::model_server::{ModelServer, Piece, call_chunk, finish_chunk, results_shown};

use crate::questions::{body, status, waiting};
use crate::serve::Server;
use crate::support::{LIMIT, Place, wait_for};

const SEND: &str = "POST /api/v1/conversations/c/messages";
const DECIDE: &str = "POST /api/v1/conversations/c/calls";

/// A model that reads the same file for as long as it may, in other words each time.
fn circling(stops: Option<&'static str>) -> ModelServer {
    ModelServer::start(stops, |request| {
        let shown = results_shown(request);
        let arguments = if shown.is_multiple_of(2) { r#"{"path":"a.txt"}"# } else { r#"{ "path" : "a.txt" }"# };
        let point = match shown {
            3 => "told",
            6 => "let go on",
            _ => "",
        };
        vec![Piece::Point(point), call_chunk(0, "filesystem__read", arguments), finish_chunk("tool_calls"), Piece::Done]
    })
    .unwrap()
}

fn place(model: &ModelServer, more: &str) -> Place {
    let place = Place::new();
    place.write(
        "turnwright.toml",
        format!(
            "model = \"scripted/m\"\n{more}[providers.scripted]\ndialect = \"openai-chat\"\nbase_url = \"{}\"\nmodels = [\"m\"]\n\
             max_retries = 0\n",
            model.base_url()
        ),
    );
    place
}

/// What a request shows of the results, the newest last.
fn results(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().cloned().unwrap_or_default();
    let results = messages.iter().filter(|message| message["role"] == "tool");
    results.map(|message| message["content"].as_str().unwrap_or_default().to_owned()).collect()
}

fn over(server: &Server) -> Value {
    wait_for("the end of the turn", || {
        let turn = body(&server.request("GET /api/v1/conversations/c", ""))["turn"].clone();
        (turn["status"] != "running" && turn["status"] != "suspended").then_some(turn)
    })
}

/// A turn to its end, killed at a point on its way and while it waits; the requests to the model, and what came of it.
fn lived(stop: Option<&'static str>) -> (Vec<Value>, Value) {
    let model = circling(stop);
    let place = place(&model, "");
    let mut server = Server::start(&place);
    server.ask("POST /api/v1/conversations", &json!({"id": "c"}));
    let sent = server.request(SEND, r#"{"content":"read it"}"#);
    assert_eq!(status(&sent), "202", "{sent}");
    let kill_at = |server: Server, point: &'static str| {
        if stop != Some(point) {
            return server;
        }
        assert!(model.wait_for(point, LIMIT), "{point} never came");
        server.kill();
        model.run_free();
        Server::start(&place)
    };
    server = kill_at(server, "told");
    let question = waiting(&server);
    assert_eq!((&question["reason"], &question["name"]), (&json!("loop"), &json!("filesystem__read")), "{question}");
    assert_eq!(question["rule"], "the model repeats itself: this 5 times in a row, with the same result");
    if stop.is_some() {
        server.kill();
        server = Server::start(&place);
        assert_eq!(waiting(&server), question);
    }
    let call = question["id"].as_str().unwrap();
    let decided = server.request(&format!("{DECIDE}/{call}/decision"), r#"{"decision":"allow"}"#);
    assert_eq!(status(&decided), "200", "{decided}");
    server = kill_at(server, "let go on");
    assert_eq!(over(&server)["status"], "stopped");
    let report = place.json(&["conversations", "show", "c", "--json"]);
    server.stop();
    (model.requests(), report)
}

#[test]
fn a_model_that_goes_in_circles_is_told_asked_about_and_stopped_wherever_its_process_is_killed() {
    let (requests, undisturbed) = lived(None);
    assert_eq!(requests.len(), 8);
    let last = results(requests.last().unwrap());
    let notes: Vec<bool> = last.iter().map(|result| result.starts_with("[Note: you have made this call")).collect();
    assert_eq!(notes, [false, false, true, true, true, true, true], "{last:?}");
    for request in &requests {
        assert_eq!(results(request), last[..results_shown(request)], "what was shown stays");
    }
    let messages = |report: &Value| {
        let messages = report["messages"].as_array().unwrap().iter();
        messages.map(|message| (message["role"].clone(), message["content"].clone())).collect::<Vec<_>>()
    };
    for stop in ["told", "let go on"] {
        let (again, report) = lived(Some(stop));
        let shown = |requests: &[Value]| requests.last().map(results);
        assert_eq!(shown(&again), shown(&requests), "killed at {stop}");
        assert_eq!(messages(&report), messages(&undisturbed), "killed at {stop}");
    }
}

#[test]
fn where_nobody_is_asked_the_turn_is_stopped_with_what_was_tried() {
    let model = circling(None);
    let place = place(&model, "approve = \"all\"\n");
    let ran = place.run(&["chat", "read it", "--conversation", "c", "--output", "json"]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        (ran.code, &report["status"], &report["stop"], &report["steps"]),
        (Some(1), &json!("stopped"), &json!("loop"), &json!(8))
    );
    let summary = report["stop_summary"].as_str().unwrap();
    let expected = "The model made the same call 8 times in a row, with the same result each time:\n- filesystem__read";
    assert!(summary.starts_with(expected) && summary.contains("success: hello file"), "{summary}");
    assert!(ran.stderr.contains("error: the model went in circles") && ran.stderr.contains(summary), "{}", ran.stderr);
    // It can be taken up again, and counts from the beginning.
    let again = place.run(&["chat", "--retry", "--conversation", "c"]);
    assert_eq!((again.code, model.requests().len()), (Some(1), 16), "{again:?}");
}

#[test]
fn every_stream_tells_what_was_tried() {
    let model = circling(None);
    let place = place(&model, "approve = \"all\"\n");
    let server = Server::start(&place);
    let chat =
        server.request("POST /v1/chat/completions", r#"{"model":"scripted/m","messages":[{"role":"user","content":"read"}]}"#);
    let said = body(&chat)["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
    assert!(said.contains("The model made the same call 8 times in a row"), "{said}");
    let ui = server.request(
        "POST /api/chat",
        r#"{"id":"ui","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"read"}]}]}"#,
    );
    assert!(ui.contains("data-notice") && ui.contains("The model made the same call 8 times in a row"), "{ui}");
    let chat = server.request("POST /api/v1/conversations/d/chat", r#"{"content":"read"}"#);
    let answer = body(&chat);
    assert_eq!((&answer["success"], &answer["turn"]["stop"]), (&json!(false), &json!("loop")), "{answer}");
    server.stop();
}

#[test]
fn it_can_be_off_and_a_wrong_number_is_told() {
    let model = circling(None);
    let off = place(&model, "approve = \"all\"\nmax_steps = 10\n[loops]\nnudge = 0\nask = 0\nstop = 0\n");
    let report = off.json(&["chat", "read it", "--output", "json"]);
    assert_eq!((&report["status"], &report["steps"]), (&json!("step_limit"), &json!(10)), "{report}");
    let wrong = place(&model, "[loops]\nstop = 1\n").run(&["config", "check"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("`loops.stop` is 1; it must be at least 2, or 0 for never"), "{}", wrong.stderr);
}
