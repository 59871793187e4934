//! Two servers on one database: what reaches one of them reaches the turn that runs in the other.

use serde_json::{Value, json};
use turnwright_testkit::model_server::{ModelServer, Piece, call_chunk, finish_chunk, results_shown, text_chunk};

use crate::serve::Server;
use crate::support::{Place, wait_for};
use crate::watching::Watcher;

/// Runs until it is let go.
const HOLD: &str = "echo $$ > running; while [ ! -e go ]; do sleep 0.05; done; echo once >> effects";

/// A place whose model asks for these calls, then says what it was told last; and two servers in it.
pub(crate) fn two(calls: impl Fn() -> Vec<Piece> + Send + Sync + 'static) -> (Place, ModelServer, Server, Server) {
    let model = ModelServer::start([], move |request| {
        let messages = request["messages"].as_array().unwrap();
        let asked = messages.iter().any(|message| message["tool_calls"].is_array());
        if !asked && results_shown(request) == 0 {
            return [calls(), vec![finish_chunk("tool_calls"), Piece::Done]].concat();
        }
        let last = messages.last().unwrap()["content"].to_string();
        vec![text_chunk(&format!("Told {last}")), finish_chunk("stop"), Piece::Done]
    })
    .unwrap();
    let place = Place::new();
    let config = format!(
        "model = \"p/m\"\n[providers.p]\ndialect = \"openai-chat\"\nbase_url = \"{}\"\nmodels = [\"m\"]\n\
         [[approval.rules]]\ntool = \"command__run\"\naction = \"allow\"\n\
         [tools.command]\nsandbox = \"off\"\n",
        model.base_url()
    );
    place.write("turnwright.toml", config);
    let (first, second) = (Server::start(&place), Server::start(&place));
    (place, model, first, second)
}

fn hold() -> Piece {
    call_chunk(0, "command__run", &json!({"command": HOLD}).to_string())
}

/// Begins the turn at `server` and waits until its command runs; the command's process.
fn begin(place: &Place, server: &Server) -> String {
    server.ask("POST /api/v1/conversations", &json!({"id": "c"}));
    server.ask("POST /api/v1/conversations/c/messages", &json!({"content": "Go."}));
    wait_for("the command", || std::fs::read_to_string(place.path("running")).ok().filter(|pid| pid.ends_with('\n')))
}

fn watch(server: &Server) -> Watcher {
    Watcher::open(server.address(), "/api/v1/conversations/c/events", None).unwrap()
}

/// What both servers tell of the turn's end, which is the same.
fn ended(mut watchers: [Watcher; 2]) -> Value {
    let [one, other] = watchers.each_mut().map(|watcher| watcher.until("turn.finished").pop().unwrap());
    assert_eq!(one, other);
    one
}

fn effects(place: &Place) -> String {
    std::fs::read_to_string(place.path("effects")).unwrap_or_default()
}

#[test]
fn a_stop_at_one_ends_the_turn_and_the_tool_in_the_other() {
    let (place, _model, first, second) = two(|| vec![hold()]);
    let pid = begin(&place, &first);
    let watchers = [watch(&first), watch(&second)];
    second.ask("POST /api/v1/conversations/c/cancel", &json!({}));
    assert_eq!(ended(watchers)["status"], "cancelled");
    wait_for("the end of the command", || (!std::path::Path::new("/proc").join(pid.trim()).exists()).then_some(()));
    assert_eq!(effects(&place), "");
    first.stop();
    second.stop();
}

#[test]
fn a_decision_at_one_lets_a_call_run_in_the_other_beside_one_that_runs() {
    let (place, _model, first, second) =
        two(|| vec![hold(), call_chunk(1, "filesystem__write", "{\"path\":\"b.txt\",\"content\":\"hi\"}")]);
    begin(&place, &first);
    let watchers = [watch(&first), watch(&second)];
    second.allow("c");
    wait_for("the file", || place.path("b.txt").exists().then_some(()));
    assert_eq!(effects(&place), "", "the other call still runs");
    place.write("go", "");
    assert_eq!(ended(watchers)["status"], "completed");
    assert_eq!(effects(&place), "once\n");
    first.stop();
    second.stop();
}

#[test]
fn of_two_decisions_at_both_one_counts_and_the_call_runs_once() {
    let (place, _model, first, second) = two(|| {
        vec![
            call_chunk(0, "command__run", "{\"command\":\"echo once >> effects\"}"),
            call_chunk(1, "filesystem__write", "{\"path\":\"b.txt\",\"content\":\"hi\"}"),
        ]
    });
    let asked = first.ask("POST /api/v1/conversations/c/chat", &json!({"content": "Go."}));
    let call = asked["turn"]["waiting"][0]["id"].as_str().unwrap().to_owned();
    let watchers = [watch(&first), watch(&second)];
    let path = format!("POST /api/v1/conversations/c/calls/{call}/decision");
    let answers = std::thread::scope(|scope| {
        [(&first, "allow"), (&second, "deny")]
            .map(|(server, word)| (server, json!({"decision": word}).to_string()))
            .map(|(server, body)| {
                let path = &path;
                scope.spawn(move || server.request(path, &body))
            })
            .map(|thread| thread.join().unwrap())
    });
    let statuses = answers.each_ref().map(|answer| answer.get(9..12).unwrap().to_owned());
    let mut sorted = statuses.clone();
    sorted.sort();
    assert_eq!(sorted, ["200", "409"], "{answers:?}");
    assert_eq!(ended(watchers)["status"], "completed");
    assert_eq!(place.path("b.txt").exists(), statuses[0] == "200", "what the first answer said happened");
    assert_eq!(effects(&place), "once\n");
    first.stop();
    second.stop();
}

#[test]
fn what_is_said_at_one_is_answered_by_the_turn_in_the_other() {
    let (place, model, first, second) = two(|| vec![hold()]);
    begin(&place, &first);
    let watchers = [watch(&first), watch(&second)];
    second.ask("POST /api/v1/conversations/c/messages", &json!({"content": "Use blue."}));
    place.write("go", "");
    assert_eq!(ended(watchers)["status"], "completed");
    let said = second.ask("GET /api/v1/conversations/c/messages", &Value::Null);
    assert_eq!(said["data"].as_array().unwrap().last().unwrap()["content"], "Told \"Use blue.\"", "{said}");
    assert_eq!(model.requests().len(), 2, "it was seen at the next step");
    first.stop();
    second.stop();
}
