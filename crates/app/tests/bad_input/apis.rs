//! Every API's own ways to fail: what reaches a person of each, and that the conversation can be gone on with.
//!
//! `api` says how each of them writes its answers and errors; here is what is told of them.

pub(crate) mod api;

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use turnwright_testkit::model_server::{ModelServer, Piece};

use crate::World;
use api::{Api, Call};

/// What comes of an answer.
pub(crate) enum Comes {
    /// The turn fails.
    Failure(Failure),
    /// Both calls run, and the turn is completed.
    TwoCalls,
}

/// A failure as it is told.
pub(crate) struct Failure {
    kind: &'static str,
    status: Option<u16>,
    /// A part of the message.
    says: String,
    /// A part of the hint.
    way_on: &'static str,
    /// What the model had said before.
    said: &'static str,
}

/// One answer, and what comes of it.
pub(crate) struct Row {
    name: &'static str,
    answer: String,
    comes: Comes,
}

fn fails(kind: &'static str, status: u16, says: &str, way_on: &'static str) -> Failure {
    Failure { kind, status: (status > 0).then_some(status), says: says.to_owned(), way_on, said: "" }
}

fn row(name: &'static str, answer: String, failure: Failure) -> Row {
    Row { name, answer, comes: Comes::Failure(failure) }
}

/// What any server, proxy or network may do, whatever API it is.
fn of_any(api: &Api) -> Vec<Row> {
    let half = api.stream((api.says)("Half"));
    // A length that the body does not reach: the connection breaks in its middle.
    let broken = half.replacen("connection: close\r\n", "connection: close\r\ncontent-length: 1000000\r\n", 1);
    let huge = api.stream((api.says)(&"x".repeat(50_000_000)));
    let after_half = |failure: Failure| Failure { said: "Half", ..failure };
    vec![
        row(
            "a page",
            api.response("200 OK", "text/html", "", "<html><title>Sign in</title></html>"),
            fails("malformed", 0, "no answer but an HTML page: Sign in; check base_url", "models check"),
        ),
        row(
            "a page of a gateway",
            api.response("502 Bad Gateway", "text/html", "", "<html><title>Bad gateway</title></html>"),
            fails("server", 502, "failed (502): an HTML page: Bad gateway", "--retry"),
        ),
        row("nothing", api.response("200 OK", "application/json", "", ""), fails("cut_off", 0, "broke off", "--retry")),
        row("nothing in a stream", api.stream(Vec::new()), fails("cut_off", 0, "broke off", "--retry")),
        row(
            "something else",
            api.response("200 OK", "application/pdf", "", "%PDF-1.4 no answer at all"),
            fails("malformed", 0, "something that is no answer: %PDF-1.4", "models check"),
        ),
        row(
            "a redirect",
            api.response("307 Temporary Redirect", "text/plain", "location: https://elsewhere.example/v1\r\n", ""),
            fails("not_found", 307, "it redirects to https://elsewhere.example/v1, and keys are not sent on", "models list"),
        ),
        row("an end in the middle", half, after_half(fails("cut_off", 0, "ended before its end", "--retry"))),
        row("a broken connection", broken, after_half(fails("cut_off", 0, "broke off", "--retry"))),
        row("one event of 50 MB", huge, fails("limit", 0, "over the limit of ", "--model")),
    ]
}

/// Calls that a careful server would not send so; they are two calls all the same.
fn odd_calls(api: &Api) -> Vec<Row> {
    let call = |index, id, word: &str| Call { index, id, arguments: json!({"command": format!("echo {word}")}).to_string() };
    let table = [
        ("an id that comes twice", [call(0, "call_a", "first"), call(1, "call_a", "second")]),
        ("an index of ten million", [call(3, "call_a", "first"), call(10_000_000, "call_b", "second")]),
        ("two calls of one index", [call(0, "call_a", "first"), call(0, "call_b", "second")]),
    ];
    let rows =
        table.into_iter().map(|(name, calls)| Row { name, answer: api.stream((api.calls)(&calls)), comes: Comes::TwoCalls });
    rows.collect()
}

/// A model that answers so at first, and well from then on.
fn model(api: &'static Api, first: String) -> ModelServer {
    let asked = AtomicUsize::new(0);
    let good = api.good("Done.");
    let script = move |_: &Value| {
        let is_first = asked.fetch_add(1, Ordering::Relaxed) == 0;
        vec![Piece::Raw(if is_first { first.clone() } else { good.clone() })]
    };
    ModelServer::start(None, script).unwrap()
}

fn check(api: &'static Api, row: Row) {
    let story = format!("{} of {}", row.name, api.dialect);
    let has_request = !matches!(&row.comes, Comes::Failure(failure) if failure.status == Some(307));
    let model = model(api, row.answer);
    let world = World::with_api(api.dialect, &model.base_url(), "");
    let ran = world.chat();
    let printed = ran.json();
    assert!(!ran.said.contains("sk-secret") && !ran.out.contains("sk-secret"), "{story}: {ran:?}");
    match row.comes {
        Comes::TwoCalls => {
            assert_eq!((ran.code, &printed["text"]), (0, &json!("Done.")), "{story}: {ran:?}");
            let asked = model.requests();
            assert_eq!(asked.len(), 2, "{story}");
            // What a command printed is text of its own; what was asked for is `echo first`.
            let shown = asked[1].to_string().replace("echo ", "echo_");
            assert!(["first\\", "second\\"].iter().all(|word| shown.contains(word)), "{story}: {shown}");
        }
        Comes::Failure(failure) => {
            assert_eq!((ran.code, &printed["status"]), (1, &json!("failed")), "{story}: {ran:?}");
            let error = &printed["error"];
            let status = failure.status.map_or(Value::Null, Value::from);
            assert_eq!((&error["kind"], &error["status"]), (&json!(failure.kind), &status), "{story}: {ran:?}");
            assert_eq!(printed["text"], failure.said, "{story}: {ran:?}");
            let message = error["message"].as_str().unwrap();
            assert!(message.contains(&failure.says) && ran.said.contains(&failure.says), "{story}: {ran:?}");
            assert!(ran.said.contains("hint: ") && ran.said.contains(failure.way_on), "{story}: {ran:?}");
            if api.request_id.is_some() && has_request {
                assert_eq!(error["request_id"], "req_7", "{story}: {ran:?}");
                assert!(ran.said.contains("(request req_7)"), "{story}: {ran:?}");
            }
            let again = world.run(&["chat", "And now?", "--conversation", "c", "--output", "json"]);
            assert_eq!((again.code, &again.json()["text"]), (0, &json!("Done.")), "{story}: {again:?}");
            let asked = model.requests();
            let last = asked.last().unwrap().to_string();
            assert!(last.contains("Go.") && last.contains("And now?"), "{story}: {last}");
            return;
        }
    }
    let more = world.run(&["chat", "And now?", "--conversation", "c", "--output", "json"]);
    assert_eq!((more.code, &more.json()["text"]), (0, &json!("Done.")), "{story}: {more:?}");
}

fn check_all(api: &'static Api) {
    for row in (api.refusals)(api).into_iter().chain(of_any(api)).chain(odd_calls(api)) {
        check(api, row);
    }
}

#[test]
fn every_failure_of_chat_completions_is_told_and_gone_on_from() {
    check_all(&api::CHAT);
}

#[test]
fn every_failure_of_responses_is_told_and_gone_on_from() {
    check_all(&api::RESPONSES);
}

#[test]
fn every_failure_of_anthropic_is_told_and_gone_on_from() {
    check_all(&api::ANTHROPIC);
}

#[test]
fn every_failure_of_gemini_is_told_and_gone_on_from() {
    check_all(&api::GEMINI);
}

#[test]
fn every_failure_of_ollama_is_told_and_gone_on_from() {
    check_all(&api::OLLAMA);
}
