//! Providers that fail in every way: what a person is told, and that the conversation can be gone on with.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use turnwright_testkit::model_server::{ModelServer, Piece, call_chunk, finish_chunk, results_shown, text_chunk};

use crate::{Ran, World};

/// A raw response that ends its connection.
fn response(status: &str, headers: &str, body: &str) -> Vec<Piece> {
    let length = body.len();
    vec![Piece::Raw(format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{body}"))]
}

fn refusal(status: &str, headers: &str, message: &str, code: &str) -> Vec<Piece> {
    let body = json!({"error": {"message": message, "type": "some_error", "code": code}}).to_string();
    response(status, &format!("content-type: application/json\r\nx-request-id: req_7\r\n{headers}"), &body)
}

fn good() -> Vec<Piece> {
    vec![text_chunk("Done."), finish_chunk("stop"), Piece::Done]
}

/// A model that answers so for so many requests, and well from then on.
fn failing(answers: Vec<Vec<Piece>>) -> ModelServer {
    let asked = AtomicUsize::new(0);
    let script = move |_: &Value| answers.get(asked.fetch_add(1, Ordering::Relaxed)).cloned().unwrap_or_else(good);
    ModelServer::start(None, script).unwrap()
}

#[test]
fn a_turn_that_failed_is_taken_up_again_and_what_was_cut_off_is_not_shown_again() {
    let model = failing(vec![vec![text_chunk("Half"), Piece::Cut]]);
    let world = World::with_model(&model.base_url(), "");
    assert_eq!(world.chat().code, 1);
    let retry = ["chat", "--conversation", "c", "--retry", "--output", "json"];
    let retried = world.run(&retry);
    assert_eq!((retried.code, &retried.json()["text"]), (0, &json!("Done.")), "{retried:?}");
    let asked = model.requests();
    assert_eq!(asked[0]["messages"], asked[1]["messages"], "the model is asked the same");
    let again = world.run(&retry);
    assert_eq!((again.code, again.out.as_str()), (1, ""), "{again:?}");
    assert!(again.said.contains("the last turn of c ended well, there is nothing to retry"), "{again:?}");
}

#[test]
fn a_delay_that_a_provider_asks_for_is_kept_and_the_call_made_again() {
    let model = failing(vec![refusal("429 Too Many Requests", "retry-after-ms: 20\r\n", "Slow down", "rate_limit_exceeded")]);
    let retries = "[providers.q]\ndialect = \"openai-chat\"\nbase_url = \"URL\"\nmodels = [\"m\"]\nmax_retries = 1\n";
    let world = World::with_model("http://127.0.0.1:9/v1", &retries.replace("URL", &model.base_url()));
    let ran = world.run(&["chat", "Go.", "--model", "q/m", "--output", "json"]);
    assert_eq!((ran.code, &ran.json()["text"]), (0, &json!("Done.")), "{ran:?}");
    assert_eq!(model.requests().len(), 2);
}

/// A world in which `p` falls back to `q/n`, and that to `r/o`.
fn chain(p: &ModelServer, q: &ModelServer, r: &ModelServer) -> World {
    let provider = |name: &str, server: &ModelServer, model: &str, more: &str| {
        let url = server.base_url();
        format!(
            "[providers.{name}]\ndialect = \"openai-chat\"\nbase_url = \"{url}\"\nmodels = [\"{model}\"]\nmax_retries = 0\n{more}"
        )
    };
    let more = provider("q", q, "n", "") + &provider("r", r, "o", "");
    World::with_model(&p.base_url(), &format!("fallback = [\"q/n\", \"r/o\"]\n{more}"))
}

fn events(ran: &Ran) -> Vec<Value> {
    ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn where_two_models_of_a_chain_are_not_available_the_third_answers() {
    let p = failing(vec![refusal("503 Service Unavailable", "", "Busy", "")]);
    let q = failing(vec![refusal("429 Too Many Requests", "", "Slow down", "")]);
    let r = failing(Vec::new());
    let world = chain(&p, &q, &r);
    let ran = world.run(&["chat", "Go.", "--conversation", "c", "--output", "events"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let events = events(&ran);
    let notices: Vec<&str> =
        events.iter().filter(|event| event["type"] == "notice").filter_map(|e| e["text"].as_str()).collect();
    assert_eq!(notices.len(), 2, "{notices:?}");
    assert!(
        notices[0].contains("provider `p` is overloaded (503 some_error)") && notices[0].ends_with("going on with `q/n`"),
        "{notices:?}"
    );
    assert!(notices[1].contains("provider `q` takes no more") && notices[1].ends_with("going on with `r/o`"), "{notices:?}");
    let origin = events.iter().find_map(|event| event.pointer("/entry/assistant/origin").cloned()).unwrap();
    assert_eq!((&origin["provider"], &origin["model"]), (&json!("r"), &json!("o")));
    assert_eq!([p.requests().len(), q.requests().len(), r.requests().len()], [1, 1, 1]);
    assert_eq!(r.requests()[0]["model"], "o");
}

#[test]
fn a_refused_request_stays_with_its_model_and_another_can_be_chosen() {
    let p = failing(vec![refusal("400 Bad Request", "", "No such parameter", "")]);
    let (q, r) = (failing(Vec::new()), failing(Vec::new()));
    let world = chain(&p, &q, &r);
    let ran = world.chat();
    assert_eq!((ran.code, &ran.json()["error"]["kind"]), (1, &json!("invalid_request")), "{ran:?}");
    assert_eq!([q.requests().len(), r.requests().len()], [0, 0]);
    let retried = world.run(&["chat", "--conversation", "c", "--retry", "--model", "r/o", "--output", "json"]);
    assert_eq!((retried.code, &retried.json()["text"]), (0, &json!("Done.")), "{retried:?}");
    assert_eq!(r.requests().len(), 1);
}

#[test]
fn a_conversation_that_becomes_too_long_is_summed_up_once_and_goes_on() {
    let is_summary =
        |request: &Value| request["messages"][0]["content"].as_str().is_some_and(|text| text.contains("transcript"));
    let model = ModelServer::start(None, move |request| {
        let shown = request["messages"].to_string();
        match results_shown(request) {
            _ if is_summary(request) => vec![text_chunk("It was found."), finish_chunk("stop"), Piece::Done],
            _ if shown.contains("It was found.") => good(),
            0 => vec![call_chunk(0, "command__run", r#"{"command": "echo found"}"#), finish_chunk("tool_calls"), Piece::Done],
            _ => refusal("400 Bad Request", "", "prompt is too long: 9 tokens > 8 maximum", ""),
        }
    })
    .unwrap();
    let world = World::with_model(&model.base_url(), "");
    let ran = world.chat();
    assert_eq!((ran.code, &ran.json()["text"]), (0, &json!("Done.")), "{ran:?}");
    assert_eq!(model.requests().len(), 4);
    let kept = world.run(&["conversations", "show", "c"]);
    assert!(kept.out.contains("found"), "the conversation is as it was: {kept:?}");
}

#[test]
fn a_conversation_that_becomes_too_long_again_is_summed_up_again_in_the_same_turn() {
    let summaries = AtomicUsize::new(0);
    let too_long = || refusal("400 Bad Request", "", "prompt is too long: 9 tokens > 8 maximum", "");
    let call = || vec![call_chunk(0, "command__run", r#"{"command": "echo found"}"#), finish_chunk("tool_calls"), Piece::Done];
    let model = ModelServer::start(None, move |request| {
        let shown = request["messages"].to_string();
        if request["messages"][0]["content"].as_str().is_some_and(|text| text.contains("transcript")) {
            let number = summaries.fetch_add(1, Ordering::Relaxed);
            return vec![text_chunk(&format!("Summary {number}.")), finish_chunk("stop"), Piece::Done];
        }
        match results_shown(request) {
            _ if shown.contains("Summary 2.") => good(),
            0 => call(),
            _ => too_long(),
        }
    })
    .unwrap();
    let world = World::with_model(&model.base_url(), "");
    let ran = world.chat();
    assert_eq!((ran.code, &ran.json()["text"]), (0, &json!("Done.")), "{ran:?}");
    // Three times a call, a request that is too long and a summary; then the answer.
    assert_eq!(model.requests().len(), 10);
}

#[test]
fn a_model_that_does_not_begin_or_falls_silent_is_given_up_and_another_can_be_asked() {
    for (answer, waits, says) in [
        (vec![Piece::Point("asked")], "start_ms = 400", "no response within 0.4 s"),
        (vec![text_chunk("Half"), Piece::Point("asked")], "idle_ms = 400", "nothing came for 0.4 s"),
    ] {
        let silent = ModelServer::start(["asked"], move |_| answer.clone()).unwrap();
        let other = failing(Vec::new());
        let url = other.base_url();
        let more = format!("{waits}\n[providers.q]\ndialect = \"openai-chat\"\nbase_url = \"{url}\"\nmodels = [\"n\"]\n");
        let world = World::with_model(&silent.base_url(), &more);
        let ran = world.chat();
        assert_eq!((ran.code, &ran.json()["error"]["kind"]), (1, &json!("timeout")), "{ran:?}");
        assert!(ran.said.contains(says) && ran.said.contains("--retry"), "{ran:?}");
        let retried = world.run(&["chat", "--conversation", "c", "--retry", "--model", "q/n", "--output", "json"]);
        assert_eq!((retried.code, &retried.json()["text"]), (0, &json!("Done.")), "{retried:?}");
    }
}

#[test]
fn a_chain_that_leads_nowhere_or_back_is_an_error_of_the_configuration() {
    let provider = |name: &str, fallback: &str| {
        format!(
            "[providers.{name}]\ndialect = \"openai-chat\"\nbase_url = \"http://127.0.0.1:9/v1\"\nmodels = [\"m\"]\nfallback = [{fallback}]\n"
        )
    };
    let table = [
        (
            provider("a", "\"b/m\"") + &provider("b", "\"a/m\""),
            "`providers.a.fallback` leads back to where it began: a → b → a",
        ),
        (provider("a", "\"b/x\"") + &provider("b", ""), "`providers.a.fallback[0]` is \"b/x\"; the models of `b` are `m`"),
        (provider("a", "\"bb/m\"") + &provider("b", ""), "there is no provider `bb`"),
    ];
    for (config, said) in table {
        let checked = World::new(&config).run(&["config", "check"]);
        assert_eq!(checked.code, 2, "{checked:?}");
        assert!(checked.said.contains(said), "{checked:?}");
    }
}
