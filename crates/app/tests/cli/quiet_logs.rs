//! What the log holds of turns: that they happen, and nothing of what is said and done in them.

use serde_json::json;
use turnwright_testkit::model_server::{ModelServer, Piece, call_chunk, finish_chunk, results_shown, text_chunk};

use crate::scripted::chosen;
use crate::serve::Server;
use crate::support::Place;

const KEY: &str = "sk-proj-Q7w8E9r0T1y2U3i4O5p6";
const VAULT: &str = "hvs.Z1x2C3v4B5n6M7a8S9d0";

/// What stands in the prompt, the arguments, the file that is read, the answer and a provider's refusal.
const SAID: [&str; 5] = ["amber lantern", "birch harbour", "cobalt thistle", "dune orchard", "ember quarry"];

/// A model that runs a command and answers, and refuses to answer the second time, quoting what it was sent.
fn model() -> ModelServer {
    let [_, argument, _, answer, refusal] = SAID;
    ModelServer::start(None, move |request| {
        let text = request.to_string();
        if text.contains("refuse") {
            let error = json!({"error": {"message": format!("{refusal}: {text}")}}).to_string();
            let head =
                format!("HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: {}\r\n", error.len());
            return vec![Piece::Raw(format!("{head}Connection: close\r\n\r\n{error}"))];
        }
        if results_shown(request) == 0 {
            let arguments = json!({"command": format!("echo {argument}; echo $VAULT_TOKEN; cat held.txt")}).to_string();
            return vec![call_chunk(0, "command__run", &arguments), finish_chunk("tool_calls"), Piece::Done];
        }
        vec![text_chunk(answer), finish_chunk("stop"), Piece::Done]
    })
    .unwrap()
}

#[test]
fn neither_secrets_nor_what_is_said_nor_arguments_nor_results_are_logged_also_not_for_debugging() {
    let [prompt, argument, held, answer, refusal] = SAID;
    for level in ["", "log_level = \"debug\"\n"] {
        let model = model();
        let place = Place::new().with_variable("MODEL_KEY", KEY).with_variable("VAULT", VAULT);
        let config = format!("{level}{}api_key = \"${{MODEL_KEY}}\"\n[tools.command.env]\n", chosen(&model, "all"));
        place.write("turnwright.toml", config + "VAULT_TOKEN = \"${VAULT}\"\n");
        place.write("held.txt", held);
        let server = Server::start(&place);
        let say = |conversation: &str, text: &str| {
            let path = format!("POST /api/v1/conversations/{conversation}/chat");
            server.ask(&path, &json!({"content": text})).to_string()
        };
        let told = say("c", prompt);
        for said in [prompt, argument, held, answer] {
            assert!(told.contains(said), "the turn had {said}: {told}");
        }
        assert!(say("d", &format!("refuse {prompt}")).contains(refusal));
        let log = server.said();
        assert!(log.contains("conversation=c turn=turn_1"), "{log}");
        for hidden in SAID.into_iter().chain([KEY, VAULT]) {
            assert!(!log.contains(hidden), "{hidden}: {log}");
        }
        server.stop();
    }
}
