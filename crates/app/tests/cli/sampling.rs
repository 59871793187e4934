//! What MCP servers want models to be asked, and the folders that they are told of, through the real binary and with servers that
//! nobody here wrote.

use serde_json::{Value, json};
use turnwright_testkit::model_server::{ModelServer, Piece, call_chunk, finish_chunk, results_shown, text_chunk};

use crate::questions::{ANSWER, body, installed, said, status, waiting};
use crate::serve::Server;
use crate::support::Place;

const RHYME: (&str, &str) = ("asks__rhyme", r#"{"word":"June"}"#);
const TRIGGER: (&str, &str) = ("everything__trigger-sampling-request", r#"{"prompt":"2+2?","maxTokens":20}"#);

/// Whether a request is what a tool wanted to be asked: it is told nothing of the conversation, and offered no tools.
fn is_a_tools(request: &Value) -> bool {
    let messages = request["messages"].to_string();
    (messages.contains("rhymes with") || messages.contains("2+2?")) && request["tools"].is_null()
}

/// A place whose model calls this tool once, answers `moon` to what the tool wants it to be asked, and says what the tool gave.
fn place((tool, arguments): (&'static str, &'static str), more: &str) -> Option<(Place, ModelServer)> {
    let installed = installed()?;
    let model = ModelServer::start(None, move |request| {
        if is_a_tools(request) {
            return vec![text_chunk("moon"), finish_chunk("stop"), Piece::Done];
        }
        if results_shown(request) == 0 {
            return vec![call_chunk(0, tool, arguments), finish_chunk("tool_calls"), Piece::Done];
        }
        let messages = request["messages"].as_array().cloned().unwrap_or_default();
        let said = messages.iter().rev().find_map(|message| (message["role"] == "tool").then(|| message["content"].clone()));
        let said = said.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
        vec![text_chunk(&format!("It said: {said}")), finish_chunk("stop"), Piece::Done]
    })
    .unwrap();
    let server = tool.split("__").next().unwrap();
    let (command, script) = if server == "asks" {
        let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../mcp/tests/servers/asks.py");
        (installed.join("python/bin/python").display().to_string(), script)
    } else {
        ("node".to_owned(), installed.join("npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js"))
    };
    let place = Place::new();
    place.write(
        "turnwright.toml",
        format!(
            "model = \"scripted/m\"\n[providers.scripted]\ndialect = \"openai-chat\"\nbase_url = \"{}\"\nmodels = [\"m\"]\n\
             max_retries = 0\n[[approval.rules]]\ntool = \"*\"\naction = \"allow\"\n[mcp.servers.{server}]\n\
             command = \"{command}\"\nargs = [\"{}\"]\n{more}",
            model.base_url(),
            script.display(),
        ),
    );
    Some((place, model))
}

fn asked_for_tools(model: &ModelServer) -> usize {
    model.requests().iter().filter(|request| is_a_tools(request)).count()
}

#[test]
fn a_question_to_a_model_waits_over_a_kill_and_is_paid_for_once() {
    let Some((place, model)) = place(RHYME, "sampling = { allow = true }\n") else { return };
    let server = Server::start(&place);
    let parked = body(&server.request("POST /api/v1/conversations/c/chat", r#"{"content":"rhyme"}"#));
    assert_eq!(parked["turn"]["status"], "suspended", "{parked}");
    let before = waiting(&server);
    let sampling = json!({
        "model": "scripted/m", "system_prompt": "One word.", "max_tokens": 50,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "What rhymes with June?"}]}],
    });
    assert_eq!(
        (&before["question"]["mode"], &before["question"]["server"], &before["question"]["sampling"]),
        (&json!("sampling"), &json!("asks"), &sampling),
    );
    assert_eq!(asked_for_tools(&model), 0, "nobody has allowed it");
    // SIGKILL.
    drop(server);
    let server = Server::start(&place);
    assert_eq!(waiting(&server), before);
    let accepted = server.request(ANSWER, r#"{"action":"accept"}"#);
    assert_eq!(status(&accepted), "200", "{accepted}");
    assert_eq!(said(&server), "It said: June rhymes with moon, says m");
    assert_eq!(asked_for_tools(&model), 1);
    assert_eq!(status(&server.request(ANSWER, r#"{"action":"decline"}"#)), "409");
    server.stop();
}

#[test]
fn a_question_to_a_model_over_an_open_call_is_allowed_while_it_runs() {
    let Some((place, model)) = place(TRIGGER, "sampling = { allow = true }\n") else { return };
    let server = Server::start(&place);
    server.request("POST /api/v1/conversations", r#"{"id":"c"}"#);
    server.request("POST /api/v1/conversations/c/messages", r#"{"content":"ask"}"#);
    let asked = waiting(&server);
    assert_eq!(
        (&asked["question"]["holds_connection"], &asked["question"]["sampling"]["max_tokens"]),
        (&json!(true), &json!(20))
    );
    assert_eq!(status(&server.request(ANSWER, r#"{"action":"accept"}"#)), "200");
    let said = said(&server);
    assert!(said.contains("\"text\": \"moon\"") && said.contains("\"stopReason\": \"endTurn\""), "{said}");
    assert_eq!(asked_for_tools(&model), 1);
    server.stop();
}

#[test]
fn the_command_line_shows_what_a_model_is_to_be_asked() {
    let Some((place, _model)) = place(RHYME, "sampling = { allow = true }\n") else { return };
    let ran = place.run(&["chat", "rhyme", "--conversation", "c"]);
    let stderr = "waiting: asks asks, for asks__rhyme: May a model be asked this?\n\
                  It wants scripted/m to be asked, at your cost, for at most 50 tokens:\n  system: One word.\n  \
                  user: What rhymes with June?\n\
                  hint: turnwright approvals answer question_4_0_0 --conversation c --accept\n\
                  hint: turnwright approvals answer question_4_0_0 --conversation c --decline\n";
    assert!(ran.code == Some(3) && ran.stderr.ends_with(stderr), "{ran:?}");
    let declined = place.run(&["approvals", "answer", "question_4_0_0", "--decline"]);
    let said = "It said: ERROR: The tool `rhyme` of the MCP server `asks` wants an answer of a model first, and that was not allowed. It did \
                not finish.\n";
    assert_eq!((declined.code, declined.stdout.as_str()), (Some(0), said), "{declined:?}");
    let ran = place.run(&["chat", "rhyme", "--conversation", "d", "--approve", "all", "--output", "json"]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(report["text"], "It said: June rhymes with moon, says m", "{ran:?}");
}

#[test]
fn a_server_that_may_not_have_models_asked_is_not_told_that_it_could() {
    for more in ["", "sampling = { allow = false }\n"] {
        let Some((place, model)) = place(RHYME, more) else { return };
        let ran = place.run(&["chat", "rhyme", "--approve", "all"]);
        assert!(ran.stdout.contains("asks for more input by `sampling/createMessage`, which was not offered to it"), "{ran:?}");
        assert_eq!(asked_for_tools(&model), 0);
    }
}

#[test]
fn a_server_is_told_the_folders_of_its_configuration() {
    let Some((place, _model)) = place(("asks__where", "{}"), "roots = [\"notes\"]\n") else { return };
    let ran = place.run(&["chat", "where?"]);
    let notes = place.path("notes").display().to_string();
    assert_eq!(ran.stdout, format!("It said: looking: notes at file://{notes}\n"), "{ran:?}");
    let wrong = place.path("turnwright.toml");
    let config = std::fs::read_to_string(&wrong)
        .unwrap()
        .replace("roots = [\"notes\"]", "roots = [7]\nsampling = { alow = true, max_requests = 0 }");
    std::fs::write(&wrong, config).unwrap();
    let told = place.run(&["config", "check"]).stderr;
    for problem in [
        "`mcp.servers.asks.roots[0]` is 7; it must be a string",
        "unknown key `alow` in [mcp.servers.asks.sampling]; did you mean `allow`?",
        "`mcp.servers.asks.sampling.max_requests` is 0; it must be",
    ] {
        assert!(told.contains(problem), "{told}");
    }
}
