//! What may be spent on models, through the real binary: turns that are stopped, processes that are killed, and what is told.

use agent_client_protocol::v1::schema::{PermissionOptionKind, StopReason};
use serde_json::{Value, json};
use turnwright_testkit::model_server::{ModelServer, Piece, call_chunk, finish_chunk, results_shown, text_chunk};

use crate::editor;
use crate::questions::{body, status};
use crate::serve::Server;
use crate::support::{LIMIT, Place, wait_for};

const SEND: &str = "POST /api/v1/conversations/c/messages";

/// What an answer takes, as the endpoint tells it: 1,000 tokens, 0.0019 dollars.
fn usage() -> Piece {
    Piece::Chunk(json!({"choices": [], "usage": {"prompt_tokens": 900, "completion_tokens": 100, "total_tokens": 1000}}))
}

/// A model that reads the file again and again, other parts each time; it answers at once where it is asked to be short.
fn reader(stop: Option<&'static str>) -> ModelServer {
    ModelServer::start(stop, |request| {
        let shown = results_shown(request);
        let is_short =
            request["messages"].as_array().is_some_and(|all| all.iter().any(|message| message["content"] == "short"));
        let point = if shown == 1 { "second" } else { "" };
        let mut pieces = vec![Piece::Point(point)];
        if is_short {
            pieces.extend([text_chunk("Short."), finish_chunk("stop")]);
        } else {
            let arguments = format!(r#"{{"path":"a.txt","offset":{}}}"#, shown + 1);
            pieces.extend([call_chunk(0, "filesystem__read", &arguments), finish_chunk("tool_calls")]);
        }
        pieces.extend([usage(), Piece::Done]);
        pieces
    })
    .unwrap()
}

/// `top` comes before the tables of the file, `budgets` is one of them.
fn place(model: &ModelServer, budgets: &str) -> Place {
    let place = Place::new();
    place.write(
        "turnwright.toml",
        format!(
            "model = \"scripted/m\"\napprove = \"all\"\n{budgets}[providers.scripted]\ndialect = \"openai-chat\"\nbase_url = \"{}\"\n\
             models = [\"m\"]\nmax_retries = 0\n[models.\"scripted/m\"]\nmax_output_tokens = 500\nprices = {{ input = 1, output = 10 }}\n",
            model.base_url()
        ),
    );
    place
}

fn report(place: &Place, words: &[&str]) -> (Option<i32>, Value, String) {
    let ran = place.run(words);
    (ran.code, serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}")), ran.stderr)
}

fn over(server: &Server) -> Value {
    wait_for("the end of the turn", || {
        let turn = body(&server.request("GET /api/v1/conversations/c", ""))["turn"].clone();
        (turn["status"] != "running" && turn["status"] != "suspended").then_some(turn)
    })
}

fn budgets(server: &Server) -> Vec<Value> {
    let usage = server.ask("GET /api/v1/usage?conversation=c", &Value::Null);
    usage["budgets"].as_array().cloned().unwrap_or_default()
}

#[test]
fn a_turn_that_reaches_its_budget_is_stopped_with_what_was_done_and_the_next_is_answered() {
    let model = reader(None);
    let place = place(&model, "[budgets]\nturn = { usd = 0.01 }\n");
    let (code, told, stderr) = report(&place, &["chat", "read it", "--conversation", "c", "--output", "json"]);
    assert_eq!((code, &told["status"], &told["stop"]), (Some(1), &json!("stopped"), &json!("budget")), "{told}");
    // Each answer is 0.0019 dollars; the fifth fits, and then 256 tokens and the prompt do not.
    let stop = &told["stop_budget"];
    assert_eq!((&stop["budget"], &stop["unit"], &stop["limit"]), (&json!("turn"), &json!("usd"), &json!(0.01)));
    assert_eq!((&stop["spent"], &stop["resets_at"]), (&told["usage"]["cost_usd"], &Value::Null), "{told}");
    let summary = told["stop_summary"].as_str().unwrap();
    assert!(summary.starts_with("Stopped: this turn's budget (`budgets.turn`) is 0.01 USD, of which"), "{summary}");
    assert!(summary.contains("- filesystem__read {\"path\":\"a.txt\",\"offset\":1}: success:"), "{summary}");
    assert!(stderr.contains("budgets.turn") && stderr.contains("hint: `[budgets]`"), "{stderr}");
    assert!(model.requests().iter().all(|request| {
        request["max_completion_tokens"].as_u64().or(request["max_tokens"].as_u64()).is_some_and(|most| most <= 500)
    }));
    // A turn of its own has its own.
    let (code, told, _) = report(&place, &["chat", "short", "--conversation", "c", "--output", "json"]);
    assert_eq!((code, &told["status"], &told["text"]), (Some(0), &json!("completed"), &json!("Short.")), "{told}");
}

#[test]
fn what_a_user_spent_is_counted_over_processes_and_what_was_written_is_kept() {
    let model = reader(None);
    let place = place(&model, "[budgets]\nuser_day = { tokens = 6000 }\n");
    let (code, told, _) = report(&place, &["chat", "short", "--conversation", "a", "--output", "json"]);
    assert_eq!((code, &told["status"]), (Some(0), &json!("completed")), "{told}");
    let (code, told, _) = report(&place, &["chat", "short", "--conversation", "b", "--output", "json"]);
    assert_eq!((code, &told["status"]), (Some(0), &json!("completed")), "{told}");
    let asked = model.requests().len();
    let (code, told, stderr) = report(&place, &["chat", "short", "--conversation", "c", "--output", "json"]);
    assert_eq!((code, &told["stop"], &told["stop_budget"]["spent"]), (Some(1), &json!("budget"), &json!(2000.0)), "{told}");
    assert!(told["stop_budget"]["resets_at"].as_str().is_some_and(|at| at.ends_with("T00:00:00.000Z")), "{told}");
    assert!(stderr.contains("It begins anew on ") && stderr.contains("What you wrote is kept"), "{stderr}");
    assert_eq!(model.requests().len(), asked, "no model was asked");
    assert_eq!(told["messages"][0]["content"], "short", "{told}");
    let server = Server::start(&place);
    let expected = json!({"usd": 0.0038, "tokens": 2000});
    let day = budgets(&server)[0].clone();
    assert_eq!((&day["id"], &day["spent"], &day["limit"]["tokens"]), (&json!("user_day"), &expected, &json!(6000)), "{day}");
    server.stop();
    // With a higher limit what was written is answered.
    let config = std::fs::read_to_string(place.path("turnwright.toml")).unwrap();
    place.write("turnwright.toml", config.replace("tokens = 6000", "tokens = 9000"));
    let (code, told, _) = report(&place, &["chat", "--retry", "--conversation", "c", "--output", "json"]);
    assert_eq!((code, &told["text"]), (Some(0), &json!("Short.")), "{told}");
}

#[test]
fn a_process_that_is_killed_while_the_model_answers_forgets_nothing_and_counts_nothing_twice() {
    let model = reader(Some("second"));
    let place = place(&model, "[budgets]\nturn = { tokens = 6000 }\nuser_month = { tokens = 50000 }\n");
    let server = Server::start(&place);
    server.ask("POST /api/v1/conversations", &json!({"id": "c"}));
    let sent = server.request(SEND, r#"{"content":"read it"}"#);
    assert_eq!(status(&sent), "202", "{sent}");
    assert!(model.wait_for("second", LIMIT), "the model was asked a second time");
    let of = |all: &[Value], id: &str| all.iter().find(|budget| budget["id"] == id).cloned().unwrap_or_default();
    let before = budgets(&server);
    let reserved = of(&before, "user_month")["reserved"]["tokens"].as_u64().unwrap();
    assert_eq!((&of(&before, "turn")["spent"]["tokens"], reserved > 500), (&json!(1000), true), "{before:?}");
    server.kill();
    // Another process sees what the dead one holds.
    model.run_free();
    let server = Server::start(&place);
    let ended = over(&server);
    assert_eq!(ended["status"], "stopped", "{ended}");
    let after = budgets(&server);
    let (turn, month) = (of(&after, "turn"), of(&after, "user_month"));
    assert_eq!((&month["reserved"]["tokens"], &turn["reserved"]["tokens"]), (&json!(0), &json!(0)), "{after:?}");
    assert_eq!(month["spent"], turn["spent"], "the ledger and the journal say the same");
    server.stop();
    let told = place.json(&["conversations", "show", "c", "--json"]);
    let messages = told["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "assistant").count() as u64;
    // Each answer that came, and once what was reserved for the one that was lost.
    assert_eq!(month["spent"]["tokens"].as_u64(), Some(messages * 1000 + reserved), "{after:?}");
    assert!(month["spent"]["tokens"].as_u64().unwrap() <= 6000 + reserved);
}

#[test]
fn every_stream_tells_which_budget_it_was() {
    let model = reader(None);
    let place = place(&model, "[budgets]\nturn = { tokens = 1500 }\n");
    let server = Server::start(&place);
    let chat =
        server.request("POST /v1/chat/completions", r#"{"model":"scripted/m","messages":[{"role":"user","content":"read"}]}"#);
    let said = body(&chat)["choices"][0]["message"]["content"].as_str().unwrap_or_default().to_owned();
    assert!(said.contains("this turn's budget"), "{chat}");
    let ended = json!({"status": "stopped", "stop": "budget"});
    let is_told = |told: &Value| (&told["status"], &told["stop"]) == (&ended["status"], &ended["stop"]);
    assert!(is_told(&body(&chat)["turnwright"]), "{chat}");
    let streamed = server.request(
        "POST /v1/chat/completions",
        r#"{"model":"scripted/m","stream":true,"messages":[{"role":"user","content":"read"}]}"#,
    );
    assert!(streamed.contains(r#""turnwright":{"status":"stopped","stop":"budget"}"#), "{streamed}");
    let responses = server.request("POST /v1/responses", r#"{"model":"scripted/m","input":"read"}"#);
    let response = body(&responses);
    assert_eq!((&response["status"], &response["error"]["code"]), (&json!("incomplete"), &json!("budget")), "{responses}");
    assert!(response["error"]["message"].as_str().unwrap().contains("this turn's budget"), "{responses}");
    // `max_output_tokens` would have a client ask again with more of them.
    assert_eq!(response["incomplete_details"], json!({"reason": "budget"}));
    assert!(is_told(&response["turnwright"]), "{responses}");
    let ui = server.request(
        "POST /api/chat",
        r#"{"id":"ui","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"read"}]}]}"#,
    );
    assert!(ui.contains(r#""data-notice","data":{"level":"warning","stop":"budget","text":"#), "{ui}");
    assert!(ui.contains("this turn's budget"), "{ui}");
    let ag_ui = server.request(
        "POST /ag-ui",
        r#"{"threadId":"ag","runId":"r","state":{},"tools":[],"context":[],"forwardedProps":{},"messages":[{"id":"m","role":"user","content":"read"}]}"#,
    );
    assert!(ag_ui.contains("this turn's budget") && ag_ui.contains(r#""stop":"budget""#), "{ag_ui}");
    let chat = server.request("POST /api/v1/conversations/d/chat", r#"{"content":"read"}"#);
    let answer = body(&chat);
    assert_eq!((&answer["success"], &answer["turn"]["stop"]), (&json!(false), &json!("budget")), "{answer}");
    assert_eq!(answer["turn"]["stop_budget"]["unit"], "tokens", "{answer}");
    server.stop();
}

#[tokio::test]
async fn an_editor_is_told_which_budget_stopped_its_turn_and_may_go_on() {
    let model = reader(None);
    let place = place(&model, "[budgets]\nturn = { tokens = 6000 }\n");
    let told = editor::with_agent(&place, PermissionOptionKind::RejectOnce, async |agent, told| {
        let session = editor::session(&agent, &place).await?;
        let answered = editor::answered(&agent, &session, "read").await?;
        assert_eq!(answered.stop_reason, StopReason::MaxTurnRequests);
        assert_eq!(answered.meta.unwrap()["turnwright"], json!({"stop": "budget"}));
        let stopped = editor::text(&told);
        assert!(stopped.contains("this turn's budget (`budgets.turn`) is 6000 tokens"), "{stopped}");
        assert_eq!(editor::prompt(&agent, &session, "short").await?, StopReason::EndTurn);
        Ok(told)
    })
    .await
    .unwrap();
    assert!(editor::text(&told).ends_with("Short."), "{told:?}");
}

#[test]
fn a_limit_in_dollars_that_nothing_would_be_asked_under_is_a_warning() {
    let place = Place::new();
    let provider = "[providers.here]\ndialect = \"openai-chat\"\nbase_url = \"http://127.0.0.1:9/v1\"\nmodels = [\"m\"]\n";
    place.write("turnwright.toml", format!("[budgets]\nday = {{ usd = 1 }}\n{provider}"));
    let ran = place.run(&["config", "check"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let told = format!("{}{}", ran.stdout, ran.stderr);
    assert!(told.contains("`budgets.day.usd` limits dollars, and no price is known of `here/m`"), "{ran:?}");
}

#[test]
fn wrong_budgets_are_told_with_what_would_be_right() {
    let rows = [
        ("turn = { usd = 0 }", "`budgets.turn.usd` is 0; it must be above 0; leave it out for no limit"),
        ("day = { usd = -1.5 }", "`budgets.day.usd` is -1.5; it must be above 0"),
        ("conversation = { tokens = 0 }", "budgets.conversation.tokens"),
        ("user_day = {}", "`budgets.user_day` has no limit; it must have `usd`, `tokens` or both"),
        ("user_dya = { usd = 1 }", "user_day"),
        ("turn = { dollars = 1 }", "known: `usd`, `tokens`"),
        ("users.ann.user_month = { usd = 0 }", "`budgets.users.ann.user_month.usd` is 0"),
        ("users.ann.day = { usd = 1 }", "user_day"),
    ];
    for (line, expected) in rows {
        let place = Place::new();
        place.write("turnwright.toml", format!("[budgets]\n{line}\n"));
        let ran = place.run(&["config", "check"]);
        assert_eq!(ran.code, Some(2), "{line}: {ran:?}");
        assert!(ran.stderr.contains(expected), "{line}: {}", ran.stderr);
    }
}

#[test]
fn the_practice_model_costs_nothing_and_answers_under_a_budget_in_dollars() {
    let ran = Place::with("[budgets]\nturn = { usd = 0.01 }\n").run(&["chat", "read the file \"a.txt\""]);
    assert_eq!((ran.code, ran.stdout.contains("hello file")), (Some(0), true), "{ran:?}");
}
