//! `/readyz` where nothing can be stored: what it says, and that nothing is lost meanwhile.

use std::process::Command;

use serde_json::{Value, json};
use turnwright_testkit::model_server::{ModelServer, Piece, finish_chunk, text_chunk};

use crate::serve::Server;
use crate::support::{LIMIT, Place, own_schema, test_postgres, wait_for};
use crate::way::Way;

/// The status of an answer, and what it says.
fn ready(server: &Server) -> (u16, Value) {
    let answer = server.request("GET /readyz", "");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), serde_json::from_str(body).unwrap())
}

/// What anybody hears, whatever the database says and wherever it is.
const NOTHING_STORED: &str =
    "nothing can be stored: the server's database cannot be used at the moment; the server's log says why";

/// Where the model stops until it is let go on.
const MIDDLE: &str = "the middle of an answer";

#[test]
fn while_the_database_is_out_of_reach_a_server_is_not_ready_and_nothing_is_lost() {
    let Some(server) = test_postgres() else { return };
    let way = Way::to(&server);
    let address = own_schema(&way.address);
    let model = ModelServer::start([MIDDLE], |_| {
        vec![text_chunk("All "), Piece::Point(MIDDLE), text_chunk("there."), finish_chunk("stop"), Piece::Done]
    })
    .unwrap();
    let place = Place::new().with_variable("TURNWRIGHT_DATABASE", &address);
    let config = format!(
        "model = \"p/m\"\n[providers.p]\ndialect = \"openai-chat\"\nbase_url = \"{}\"\nmodels = [\"m\"]\n",
        model.base_url()
    );
    place.write("turnwright.toml", config);
    let server = Server::start(&place);
    assert_eq!(ready(&server), (200, json!({"status": "ready"})));
    server.ask("POST /api/v1/conversations", &json!({"id": "c"}));
    server.ask("POST /api/v1/conversations/c/messages", &json!({"content": "Is all there?"}));
    assert!(model.wait_for(MIDDLE, LIMIT));

    way.break_off();
    let said = wait_for("the server to say so", || Some(ready(&server)).filter(|(status, _)| *status == 503)).1;
    let detail = said["detail"].as_str().unwrap();
    assert_eq!(said["code"], "not_ready");
    assert_eq!(detail, NOTHING_STORED);
    let logged =
        || server.said().contains("nothing can be stored: the database `postgres://turnwright:***@127.0.0.1:").then_some(());
    wait_for("the log to say where the database is", logged);
    // The model says the rest to a server that cannot store it.
    model.run_free();
    let refused = server.request("POST /api/v1/conversations/c/messages", &json!({"content": "And this?"}).to_string());
    assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("store_unusable"), "{refused}");
    assert!(!refused.contains("127.0.0.1") && !refused.contains("postgres"), "clients are not told where it is: {refused}");

    way.mend();
    wait_for("the server to be ready", || (ready(&server) == (200, json!({"status": "ready"}))).then_some(()));
    let messages = wait_for("the answer", || {
        let told = server.ask("GET /api/v1/conversations/c/messages", &Value::Null);
        Some(told["data"].clone()).filter(|messages| messages.as_array().unwrap().len() >= 2)
    });
    let said: Vec<&str> = messages.as_array().unwrap().iter().map(|message| message["content"].as_str().unwrap()).collect();
    assert_eq!(said, ["Is all there?", "All there."]);
    assert!(!server.said().contains("tw-test-password"), "{}", server.said());
    server.stop();
}

#[test]
fn a_server_that_has_no_room_for_its_file_is_not_ready_until_it_has() {
    let place = Place::new().with_variable("TURNWRIGHT_DATABASE", "");
    // Who writes beyond a limit is told so by an error, as where a disk is full, and not ended by the system.
    let words = ["-c", "trap '' XFSZ; exec \"$0\" serve --listen 127.0.0.1:0", env!("CARGO_BIN_EXE_turnwright")];
    let server = Server::of(place.clean(Command::new("sh"), &words), "http");
    let limit = |most: &str| {
        let words = ["--pid", &server.pid().to_string(), &format!("--fsize={most}:")];
        assert!(Command::new("prlimit").args(words).status().unwrap().success());
    };
    server.ask("POST /api/v1/conversations/c/chat", &json!({"content": "What is it?"}));
    assert_eq!(ready(&server), (200, json!({"status": "ready"})));
    limit(&std::fs::metadata(place.path("data/turnwright.db-wal")).unwrap().len().to_string());
    let said = wait_for("the server to say so", || Some(ready(&server)).filter(|(status, _)| *status == 503)).1;
    let detail = said["detail"].as_str().unwrap();
    assert_eq!(detail, NOTHING_STORED);
    wait_for("the log to name the file", || server.said().contains("turnwright.db").then_some(()));
    let refused = server.request("POST /api/v1/conversations/c/messages", &json!({"content": "And this?"}).to_string());
    assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("store_unusable"), "{refused}");
    limit("unlimited");
    wait_for("the server to be ready", || (ready(&server) == (200, json!({"status": "ready"}))).then_some(()));
    let told = server.ask("POST /api/v1/conversations/c/chat", &json!({"content": "And this?"}));
    assert_eq!(told["turn"]["status"], "completed", "{told}");
    let messages = server.ask("GET /api/v1/conversations/c/messages", &Value::Null);
    assert_eq!(messages["data"].as_array().unwrap().len(), 4, "what was refused is not there: {messages}");
    server.stop();
}
