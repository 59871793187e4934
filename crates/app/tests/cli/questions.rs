//! What MCP servers ask of people, through the real binary and with servers that nobody here wrote: `asks` speaks 2026-07-28 and
//! its calls end to ask, `everything` asks over its open call.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use turnwright_testkit::model_server::ModelServer;

use crate::interactive::Terminal;
use crate::scripted::{asks_once, chosen};
use crate::serve::Server;
use crate::support::{Place, wait_for};

/// The folder of `scripts/install-test-servers`.
pub(crate) fn installed() -> Option<PathBuf> {
    let folder = std::env::var_os("TURNWRIGHT_TEST_SERVERS").map(PathBuf::from).or_else(|| {
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        Some(cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?.join("turnwright/test-servers"))
    });
    let found = folder.filter(|folder| folder.join("installed").is_file());
    if found.is_none() {
        assert!(
            std::env::var_os("TURNWRIGHT_REQUIRE_TEST_SERVERS").is_none_or(|value| value != "1"),
            "the test servers are not installed: run scripts/install-test-servers"
        );
        println!("skipped: the test servers are not installed");
    }
    found
}

/// A place whose model asks for this tool once and then says what it gave.
fn place(tool: &'static str, arguments: &'static str, approve: &str) -> Option<(Place, ModelServer)> {
    let installed = installed()?;
    let model = asks_once(tool, arguments);
    let asks = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mcp/tests/servers/asks.py");
    let python = installed.join("python/bin/python");
    let everything = installed.join("npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let place = Place::new();
    let server = if tool.starts_with("asks__") {
        format!("[mcp.servers.asks]\ncommand = \"{}\"\nargs = [\"{}\"]\n", python.display(), asks.display())
    } else {
        format!("[mcp.servers.everything]\ncommand = \"node\"\nargs = [\"{}\"]\n", everything.display())
    };
    place.write("turnwright.toml", chosen(&model, approve) + &server);
    Some((place, model))
}

const BOOK: (&str, &str) = ("asks__book", r#"{"town":"Oslo"}"#);
const FORM: (&str, &str) = ("everything__trigger-elicitation-request", "{}");

pub(crate) fn body(answer: &str) -> Value {
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

pub(crate) fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap()
}

/// What waits in the conversation `c`, waited for.
pub(crate) fn waiting(server: &Server) -> Value {
    wait_for("a question", || {
        let waiting = body(&server.request("GET /api/v1/conversations/c/calls", ""))["data"][0].clone();
        waiting.is_object().then_some(waiting)
    })
}

/// The last message of the conversation `c`, once its turn is over.
pub(crate) fn said(server: &Server) -> String {
    wait_for("the end of the turn", || {
        let conversation = body(&server.request("GET /api/v1/conversations/c", ""));
        let is_over = conversation["turn"]["status"] == "completed";
        let messages = body(&server.request("GET /api/v1/conversations/c/messages", ""));
        let last = messages["data"].as_array()?.last()?["content"].as_str()?.to_owned();
        is_over.then_some(last)
    })
}

pub(crate) const ANSWER: &str = "POST /api/v1/conversations/c/questions/question_4_0_0/answer";

#[test]
fn a_question_that_holds_nothing_is_answered_after_the_server_was_killed() {
    let Some((place, _model)) = place(BOOK.0, BOOK.1, "all") else { return };
    let server = Server::start(&place);
    let parked = body(&server.request("POST /api/v1/conversations/c/chat", r#"{"content":"book"}"#));
    assert_eq!(parked["turn"]["status"], "suspended", "{parked}");
    let before = waiting(&server);
    assert_eq!(
        (
            before["id"].as_str(),
            before["reason"].as_str(),
            &before["question"]["server"],
            &before["question"]["holds_connection"]
        ),
        (Some("question_4_0_0"), Some("question"), &json!("asks"), &json!(false))
    );
    // SIGKILL.
    drop(server);

    let server = Server::start(&place);
    assert_eq!(waiting(&server), before);
    let wrong = server.request(ANSWER, r#"{"action":"accept","content":{"name":"A","nights":99}}"#);
    assert_eq!((status(&wrong), &body(&wrong)["errors"][0]["field"]), ("422", &json!("name")), "{wrong}");
    let accepted = server.request(ANSWER, r#"{"action":"accept","content":{"name":"Ann"}}"#);
    let content = json!({"name": "Ann", "nights": 2, "breakfast": false});
    assert_eq!((status(&accepted), &body(&accepted)["content"]), ("200", &content), "{accepted}");
    assert_eq!(said(&server), "It said: booked Oslo for Ann, 2 nights, breakfast False");
    assert_eq!(status(&server.request(ANSWER, r#"{"action":"cancel"}"#)), "409");
    server.stop();
}

#[test]
fn a_question_over_an_open_call_is_answered_and_is_closed_when_the_server_is_killed() {
    let Some((place, _model)) = place(FORM.0, FORM.1, "all") else { return };
    let server = Server::start(&place);
    server.request("POST /api/v1/conversations", r#"{"id":"c"}"#);
    server.request("POST /api/v1/conversations/c/messages", r#"{"content":"ask"}"#);
    let asked = waiting(&server);
    assert_eq!((&asked["question"]["holds_connection"], asked["question"]["expires_at"].is_string()), (&json!(true), true));
    let accepted = server.request(ANSWER, r#"{"action":"accept","content":{"name":"Ann"}}"#);
    assert_eq!(body(&accepted)["content"]["integer"], 42, "{accepted}");
    assert!(said(&server).contains("User provided the requested information"));

    server.request("POST /api/v1/conversations/c/messages", r#"{"content":"ask again"}"#);
    let asked = waiting(&server);
    drop(server);
    let server = Server::start(&place);
    assert!(said(&server).contains("it may or may not have happened"), "nobody knows how far the call came");
    assert_eq!(body(&server.request("GET /api/v1/approvals", ""))["data"], json!([]));
    let late = format!("POST /api/v1/conversations/c/questions/{}/answer", asked["id"].as_str().unwrap());
    assert_eq!(status(&server.request(&late, r#"{"action":"decline"}"#)), "409");
    server.stop();
}

#[test]
fn the_command_line_says_what_waits_and_answers_it() {
    let Some((place, _model)) = place(BOOK.0, BOOK.1, "all") else { return };
    let ran = place.run(&["chat", "book", "--conversation", "c"]);
    let stderr = "waiting: asks asks, for asks__book: Who travels to Oslo?\n\
                  hint: turnwright approvals answer question_4_0_0 --conversation c --accept name=VALUE\n\
                  hint: turnwright approvals answer question_4_0_0 --conversation c --decline\n";
    assert!(ran.code == Some(3) && ran.stderr.ends_with(stderr), "{ran:?}");
    let listed = place.run(&["approvals", "list"]).stdout;
    assert!(listed.contains("question_4_0_0  -  c  question  asks asks: Who travels to Oslo?"), "{listed}");
    assert_eq!(place.json(&["approvals", "list", "--json"])[0]["question"]["message"], "Who travels to Oslo?");
    let wrong = place.run(&["approvals", "answer", "question_4_0_0", "--accept", "name=Ann", "nights=99"]);
    assert_eq!((wrong.code, wrong.stderr.as_str()), (Some(2), "error: `nights` must be 1 to 30, not 99\n"));
    let unknown = place.run(&["approvals", "answer", "question_4_0_0", "--accept", "hat=big"]);
    let stderr = "error: the form has no field `hat`\n\
                  hint: its fields: name (at least 2 characters); nights (a whole number, 1 to 30); breakfast (yes or no)\n";
    assert_eq!((unknown.code, unknown.stderr.as_str()), (Some(2), stderr));
    let nothing = place.run(&["approvals", "answer", "question_4_0_0"]);
    assert_eq!(nothing.code, Some(2), "{nothing:?}");
    let answered = place.run(&["approvals", "answer", "question_4_0_0", "--accept", "name=Ann", "nights=3", "breakfast=yes"]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    assert_eq!(answered.stdout, "It said: booked Oslo for Ann, 3 nights, breakfast True\n");
    let again = place.run(&["approvals", "answer", "question_4_0_0", "--decline"]);
    let stderr =
        "error: no question `question_4_0_0` waits for an answer\nhint: `turnwright approvals list` shows what waits\n";
    assert_eq!((again.code, again.stderr.as_str()), (Some(2), stderr));
}

#[test]
fn where_nobody_is_there_a_question_over_an_open_call_is_declined_at_once() {
    let Some((unattended, _model)) = place(FORM.0, FORM.1, "all") else { return };
    let ran = unattended.run(&["chat", "ask"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("User declined"), "{ran:?}");
    assert!(ran.stderr.contains("note: a tool asked for something and nobody is here to ask; it was told no\n"), "{ran:?}");
    let Some((place, _model)) = place(BOOK.0, BOOK.1, "none") else { return };
    let config = std::fs::read_to_string(place.path("turnwright.toml")).unwrap();
    place.write("turnwright.toml", format!("{config}[[approval.rules]]\ntool = \"*\"\naction = \"allow\"\n"));
    let ran = place.run(&["chat", "book"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("nobody is here to ask"), "{ran:?}");
}

#[test]
fn a_chat_on_a_terminal_asks_field_by_field() {
    let Some((place, _model)) = place(BOOK.0, BOOK.1, "all") else { return };
    let mut terminal = Terminal::start(&place, &["chat"]);
    terminal.type_line("> ", "book");
    terminal.see("asks asks, for asks__book: Who travels to Oslo?");
    terminal.type_line("Your name (at least 2 characters): ", "A");
    terminal.see("it must have at least 2 characters, not 1");
    terminal.type_line("Your name (at least 2 characters): ", "Ann");
    terminal.type_line("Nights (a whole number, 1 to 30) [2]: ", "");
    terminal.type_line("Breakfast (yes or no) [no]: ", "yes");
    terminal.see("send this? [y]es, [e]dit again, [n]o, [c]ancel, [l]ater, [s]top the turn");
    terminal.type_line("your choice: ", "y");
    terminal.see("It said: booked Oslo for Ann, 2 nights, breakfast True");
    terminal.type_line("> ", "book");
    terminal.type_line("Your name (at least 2 characters): ", "/later");
    terminal.see("note: the turn waits");
    terminal.type_line("> ", "/stop");
    terminal.see("note: the turn was stopped");
    terminal.type_line("> ", "/quit");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn a_chat_on_a_terminal_answers_over_the_open_call() {
    let Some((place, _model)) = place(FORM.0, FORM.1, "all") else { return };
    let mut terminal = Terminal::start(&place, &["chat"]);
    terminal.type_line("> ", "ask");
    terminal
        .see("everything asks, for everything__trigger-elicitation-request: Please provide inputs for the following fields:");
    terminal.see("The tool waits on its open connection");
    terminal.see("Your full, legal name");
    terminal.type_line("String: ", "/decline");
    terminal.see("User declined");
    terminal.type_line("> ", "/quit");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn a_question_over_the_open_call_that_is_put_off_is_answered_elsewhere() {
    let Some((place, _model)) = place(FORM.0, FORM.1, "all") else { return };
    let mut terminal = Terminal::start(&place, &["chat", "--conversation", "c", "--config", "turnwright.toml"]);
    terminal.type_line("> ", "ask");
    terminal.type_line("String: ", "/later");
    terminal.see("note: the call waits for an answer from elsewhere, for 10 minutes at most; Ctrl-C stops the turn");
    terminal
        .see("hint: turnwright approvals answer question_4_0_0 --conversation c --config turnwright.toml --accept name=VALUE");
    terminal.see("hint: turnwright approvals answer question_4_0_0 --conversation c --config turnwright.toml --decline");
    let answered = place.run(&["approvals", "answer", "question_4_0_0", "--conversation", "c", "--decline"]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    terminal.see("User declined");
    terminal.type_line("> ", "/quit");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn an_address_is_shown_whole_with_its_host_and_not_opened() {
    let Some((place, _model)) = place("asks__pay", "{}", "all") else { return };
    let mut terminal = Terminal::start(&place, &["chat"]);
    terminal.type_line("> ", "pay");
    terminal.see("asks asks, for asks__pay: Pay 5 EUR.");
    terminal.see("It wants this address to be opened in a browser:");
    terminal.see("  https://pay.example.org/i/7?x=1");
    terminal.see("  host: pay.example.org");
    terminal.see("open it yourself, then: [y]es I did, [n]o, [c]ancel, [l]ater, [s]top the turn");
    terminal.type_line("your choice: ", "y");
    terminal.see("It said: invoice 7: accept");
    terminal.type_line("> ", "/quit");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn an_address_is_answered_by_its_server_once_it_is_done_there() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mcp/tests/servers/misbehave.py");
    for (mode, said_at_the_end) in [("completes", r#"It said: {"action": "accept"}"#), ("completes_later", "It said: paid")] {
        let model = asks_once("pays__t", "{}");
        let place = Place::new();
        let pays = format!("[mcp.servers.pays]\ncommand = \"python3\"\nargs = [\"{}\", \"{mode}\"]\n", script.display());
        place.write("turnwright.toml", chosen(&model, "all") + &pays);
        let server = Server::start(&place);
        server.request("POST /api/v1/conversations", r#"{"id":"c"}"#);
        server.request("POST /api/v1/conversations/c/messages", r#"{"content":"pay"}"#);
        assert_eq!(said(&server), said_at_the_end);
        assert_eq!(body(&server.request("GET /api/v1/approvals", ""))["data"], json!([]));
        server.stop();
    }
}
