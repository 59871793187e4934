//! A chain of models over three APIs, and what a person can do where it does not go on by itself.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use turnwright_testkit::model_server::{ModelServer, Piece};

use crate::apis::api::{ANTHROPIC, Api, CHAT, Call, GEMINI};
use crate::{Ran, World};

/// A model of `api` that gives these answers in turn, and well from then on.
fn model(api: &'static Api, answers: Vec<String>) -> ModelServer {
    let asked = AtomicUsize::new(0);
    let script = move |_: &Value| {
        let answer = answers.get(asked.fetch_add(1, Ordering::Relaxed)).cloned();
        vec![Piece::Raw(answer.unwrap_or_else(|| api.good(&format!("Done by {}.", api.dialect))))]
    };
    ModelServer::start(None, script).unwrap()
}

/// A world in which `p/m` of Anthropic falls back to `q/n` of Gemini, and that to `r/o` of Chat Completions.
struct Chain {
    p: ModelServer,
    q: ModelServer,
    r: ModelServer,
    world: World,
}

impl Chain {
    fn new(p: Vec<String>, q: Vec<String>) -> Self {
        let (p, q, r) = (model(&ANTHROPIC, p), model(&GEMINI, q), model(&CHAT, Vec::new()));
        let provider = |name: &str, dialect: &str, server: &ModelServer, model: &str| {
            let url = server.base_url();
            format!(
                "[providers.{name}]\ndialect = \"{dialect}\"\nbase_url = \"{url}\"\nmodels = [\"{model}\"]\nmax_retries = 0\n"
            )
        };
        let more = provider("q", "gemini", &q, "n") + &provider("r", "openai-chat", &r, "o");
        let world = World::with_api("anthropic", &p.base_url(), &format!("fallback = [\"q/n\", \"r/o\"]\n{more}"));
        Self { p, q, r, world }
    }

    fn asked(&self) -> [usize; 3] {
        [&self.p, &self.q, &self.r].map(|server| server.requests().len())
    }
}

fn text(ran: &Ran) -> Value {
    ran.json()["text"].clone()
}

fn overloaded() -> String {
    ANTHROPIC.response(
        "529 ",
        "application/json",
        "",
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
    )
}

fn exhausted() -> String {
    let body = r#"{"error":{"code":429,"message":"Slow down.","status":"RESOURCE_EXHAUSTED"}}"#;
    GEMINI.response("429 Too Many Requests", "application/json", "", body)
}

fn refused(status: &str, kind: &str) -> String {
    let body = json!({"type": "error", "error": {"type": kind, "message": "No."}, "request_id": "req_7"});
    ANTHROPIC.response(status, "application/json", "", &body.to_string())
}

#[test]
fn an_outage_of_any_kind_moves_on_from_one_api_to_the_next() {
    let as_event =
        ANTHROPIC.stream(vec![json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})]);
    let limit = ANTHROPIC.response(
        "429 Too Many Requests",
        "application/json",
        "retry-after: 500\r\n",
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"Slow down."}}"#,
    );
    let unavailable = r#"{"error":{"code":503,"message":"Busy.","status":"UNAVAILABLE"}}"#;
    let unavailable = GEMINI.response("503 Service Unavailable", "application/json", "", unavailable);
    let gateway = GEMINI.response("502 Bad Gateway", "text/html", "", "<html></html>");
    let table = [
        (overloaded(), unavailable, "provider `p` is overloaded", "provider `q` is overloaded"),
        (as_event, exhausted(), "provider `p` is overloaded", "provider `q` takes no more requests"),
        (limit, gateway, "provider `p` takes no more requests", "provider `q` failed (502)"),
        (ANTHROPIC.stream(Vec::new()), GEMINI.stream(Vec::new()), "provider `p` broke off", "provider `q` broke off"),
    ];
    for (p, q, first, second) in table {
        let chain = Chain::new(vec![p], vec![q]);
        let ran = chain.world.run(&["chat", "Go.", "--conversation", "c", "--output", "events"]);
        assert_eq!((ran.code, chain.asked()), (0, [1, 1, 1]), "{ran:?}");
        let events: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let notices: Vec<&str> =
            events.iter().filter(|event| event["type"] == "notice").filter_map(|event| event["text"].as_str()).collect();
        assert!(notices[0].contains(first) && notices[0].ends_with("going on with `q/n`"), "{notices:?}");
        assert!(notices[1].contains(second) && notices[1].ends_with("going on with `r/o`"), "{notices:?}");
        let origin = events.iter().find_map(|event| event.pointer("/entry/assistant/origin").cloned()).unwrap();
        assert_eq!(origin, json!({"dialect": "openai-chat", "provider": "r", "model": "o"}));
        // The next turn begins with the first model again, which is shown what the third said.
        let next = chain.world.run(&["chat", "And now?", "--conversation", "c", "--output", "json"]);
        assert_eq!((next.code, text(&next), chain.asked()), (0, json!("Done by anthropic."), [2, 1, 1]), "{next:?}");
        assert!(chain.p.requests()[1].to_string().contains("Done by openai-chat."));
    }
}

#[test]
fn a_chain_that_is_moved_along_in_the_middle_of_a_turn_brings_its_calls_and_results() {
    let call = Call { index: 0, id: "toolu_a", arguments: json!({"command": "echo found"}).to_string() };
    let asks = ANTHROPIC.stream((ANTHROPIC.calls)(&[call]));
    let chain = Chain::new(vec![asks, overloaded()], vec![exhausted()]);
    let ran = chain.world.chat();
    assert_eq!((ran.code, text(&ran), chain.asked()), (0, json!("Done by openai-chat."), [2, 1, 1]), "{ran:?}");
    let shown = [&chain.p.requests()[1], &chain.q.requests()[0], &chain.r.requests()[0]].map(Value::to_string);
    for shown in shown {
        assert!(shown.contains("echo found") && shown.contains("found\\\\n"), "{shown}");
    }
    assert_eq!(chain.q.requests()[0]["contents"].as_array().map(Vec::len), Some(3));
    assert_eq!(chain.r.requests()[0]["messages"][2]["role"], "tool");
}

#[test]
fn what_was_refused_or_begun_is_not_passed_on_and_can_be_asked_again_or_of_another() {
    let half = ANTHROPIC.stream((ANTHROPIC.says)("Half"));
    let table = [
        (refused("400 Bad Request", "invalid_request_error"), "invalid_request"),
        (refused("401 Unauthorized", "authentication_error"), "auth"),
        (refused("402 Payment Required", "billing_error"), "quota"),
        (refused("403 Forbidden", "permission_error"), "permission"),
        (refused("404 Not Found", "not_found_error"), "not_found"),
        (half, "cut_off"),
    ];
    for (answer, kind) in table {
        let chain = Chain::new(vec![answer], Vec::new());
        let ran = chain.world.chat();
        assert_eq!((ran.code, &ran.json()["error"]["kind"]), (1, &json!(kind)), "{ran:?}");
        assert_eq!(chain.asked(), [1, 0, 0], "{kind}");
        let retry = ["chat", "--conversation", "c", "--retry", "--output", "json"];
        let other = chain.world.run(&[retry.as_slice(), &["--model", "q/n"]].concat());
        assert_eq!((other.code, text(&other), chain.asked()), (0, json!("Done by gemini."), [1, 1, 0]), "{kind}: {other:?}");
        let next = chain.world.run(&["chat", "And now?", "--conversation", "c", "--output", "json", "--model", "p/m"]);
        assert_eq!((next.code, text(&next)), (0, json!("Done by anthropic.")), "{kind}: {next:?}");
        let shown = chain.p.requests()[1].to_string();
        assert!(shown.contains("Done by gemini.") && !shown.contains("Half"), "{kind}: {shown}");
    }
}

#[test]
fn a_chain_at_its_end_fails_the_turn_and_a_retry_begins_with_its_first_model() {
    let chain = Chain::new(vec![overloaded()], vec![exhausted()]);
    let world = &chain.world;
    let config = std::fs::read_to_string(world.path("turnwright.toml")).unwrap();
    std::fs::write(world.path("turnwright.toml"), config.replace("fallback = [\"q/n\", \"r/o\"]", "fallback = [\"q/n\"]"))
        .unwrap();
    let ran = world.chat();
    let printed = ran.json();
    assert_eq!((ran.code, &printed["error"]["kind"]), (1, &json!("rate_limit")), "{ran:?}");
    assert!(ran.said.contains("; failed before it: `p/m`") && ran.said.contains("--retry"), "{ran:?}");
    let retried = world.run(&["chat", "--conversation", "c", "--retry", "--output", "json"]);
    assert_eq!((retried.code, text(&retried), chain.asked()), (0, json!("Done by anthropic."), [2, 1, 0]), "{retried:?}");
}
