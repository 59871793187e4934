//! Secrets that tools, servers and providers repeat: in none of what is stored, told, logged or sent is any of them, whole, in part
//! or encoded.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde_json::json;
use turnwright_testkit::model_server::{ModelServer, Piece, call_chunk, finish_chunk, results_shown, text_chunk};

use crate::questions::{body, status};
use crate::serve::Server;
use crate::support::{Place, wait_for};

/// From the environment, given to commands.
const VAULT: &str = "hvs/7Yq0+pZx9RtLm4Kd2\"Wc8Q";
/// From a file, given to an MCP server.
const TOKEN: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
/// From the keyring, the provider's key.
const KEY: &str = "sk-proj-A1b2C3d4E5f6G7h8I9j0K1l2";

/// A server that says its secret in every way that it can: in its tool's description, its result, its log and its failure.
const SERVER: &str = concat!(
    include_str!("../servers/small.py"),
    r#"
import base64, os, sys, urllib.parse
S = os.environ["GITHUB_TOKEN"]
def say(params):
    sys.stderr.write("starting with " + S + "\n")
    sys.stderr.flush()
    ways = [S, S[:24], S[16:], S.encode().hex(), S.encode().hex().upper(), "".join("%%%02X" % c for c in S.encode()),
            "".join("\\u%04x" % ord(c) for c in S), json.dumps({"token": S})]
    for before in ["", "a", "ab"]:
        ways.append(base64.b64encode((before + S).encode()).decode())
        ways.append(base64.urlsafe_b64encode((before + S).encode()).decode())
    return "\n".join(ways)
serve(lambda: [tool("leak", "Knows " + S)], say)
"#
);

/// A command that says the secret of commands in many ways.
const COMMAND: &str = "printf '%s\\n' \"$VAULT_TOKEN\"; printf '%s' \"$VAULT_TOKEN\" | cut -c1-14; printf '%s' \"$VAULT_TOKEN\" | base64; \
     printf 'user:%s' \"$VAULT_TOKEN\" | base64 -w 8; printf '%s' \"$VAULT_TOKEN\" | od -An -tx1; printf '%s' \"$VAULT_TOKEN\" | tr a b >/dev/null; \
     printf '%s' \"$VAULT_TOKEN\" | sed 's/./&\\n/g' >&2; exit 3";

/// All that would tell of a secret: itself, its halves, and each of them encoded.
fn forms() -> Vec<String> {
    let mut forms = Vec::new();
    for secret in [VAULT, TOKEN, KEY] {
        let half = secret.len() / 2 + 1;
        for piece in [secret.get(..half).unwrap(), secret.get(secret.len() - half..).unwrap()] {
            forms.push(piece.to_owned());
            let hex = piece.bytes().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
            forms.push(hex.to_uppercase());
            forms.push(hex);
            forms.push(piece.bytes().fold(String::new(), |all, byte| all + &format!("%{byte:02X}")));
            forms.push(piece.chars().fold(String::new(), |all, char| all + &format!("\\u{:04x}", u32::from(char))));
            let json = serde_json::to_string(piece).unwrap();
            forms.push(json.trim_matches('"').to_owned());
            for before in ["", "a", "ab"] {
                let whole = format!("{before}{piece}");
                // What depends on the secret alone: not the first and the last characters.
                let inner = |encoded: String| encoded.get(4..encoded.len() - 5).unwrap().to_owned();
                forms.push(inner(STANDARD.encode(&whole)));
                forms.push(inner(URL_SAFE.encode(&whole)));
            }
        }
    }
    forms.sort();
    forms.dedup();
    forms
}

fn assert_tells_nothing(what: &str, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for form in forms() {
        if let Some(at) = text.find(&form) {
            let around: String =
                text.get(text.floor_char_boundary(at.saturating_sub(200))..).unwrap().chars().take(500).collect();
            panic!("{what} holds {form}: …{around}…");
        }
    }
}

fn assert_folder_tells_nothing(folder: &Path) -> usize {
    let mut looked = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            looked += assert_folder_tells_nothing(&path);
        } else {
            assert_tells_nothing(&path.display().to_string(), &std::fs::read(&path).unwrap_or_default());
            looked += 1;
        }
    }
    looked
}

/// Takes what is sent to it, whatever that is.
struct Receiver {
    address: String,
    taken: Arc<Mutex<Vec<u8>>>,
}

impl Receiver {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let taken = Arc::new(Mutex::new(Vec::new()));
        let into = taken.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, into) = (stream.unwrap(), into.clone());
                thread::spawn(move || {
                    let (mut read, mut buffer, mut due) = (Vec::new(), [0; 4096], None);
                    while due.is_none_or(|due| read.len() < due) {
                        let count = stream.read(&mut buffer).unwrap_or(0);
                        if count == 0 {
                            break;
                        }
                        read.extend_from_slice(&buffer[..count]);
                        let text = String::from_utf8_lossy(&read).to_lowercase();
                        let length = text
                            .split_once("content-length: ")
                            .and_then(|(_, rest)| rest.lines().next()?.trim().parse::<usize>().ok());
                        if let (Some(end), Some(length)) = (read.windows(4).position(|four| four == b"\r\n\r\n"), length) {
                            due = Some(end + 4 + length);
                        }
                    }
                    into.lock().unwrap().extend_from_slice(&read);
                    drop(stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"));
                });
            }
        });
        Self { address, taken }
    }
}

/// A model that calls the two tools, says the key of its provider in pieces, and fails with it in the end.
fn model() -> ModelServer {
    ModelServer::start(None, |request| {
        if results_shown(request) == 0 {
            let (first, second) = KEY.split_at(11);
            let command = json!({"command": COMMAND}).to_string();
            let stolen = json!({"stolen": KEY}).to_string();
            vec![
                text_chunk(&format!("My key is {first}")),
                text_chunk(second.get(..5).unwrap()),
                text_chunk(&format!("{}, or {}.", second.get(5..).unwrap(), STANDARD.encode(KEY))),
                call_chunk(0, "leaky__leak", stolen.get(..15).unwrap()),
                call_chunk(0, "", stolen.get(15..).unwrap()),
                call_chunk(1, "command__run", &command),
                finish_chunk("tool_calls"),
                Piece::Done,
            ]
        } else {
            let error = json!({"error": {"message": format!("Incorrect API key provided: {KEY}"), "code": "invalid_api_key"}}).to_string();
            let length = error.len();
            vec![Piece::Raw(format!(
                "HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\nx-request-id: {KEY}\r\nContent-Length: {length}\r\n\
                 Connection: close\r\n\r\n{error}"
            ))]
        }
    })
    .unwrap()
}

fn place(model: &ModelServer, receiver: &Receiver) -> Place {
    let place = Place::new();
    place.write(
        "turnwright.toml",
        format!(
            "model = \"scripted/m\"\napprove = \"all\"\nlog_level = \"trace\"\n\
             [providers.scripted]\ndialect = \"openai-chat\"\nbase_url = \"{}\"\nmodels = [\"m\"]\nmax_retries = 0\n\
             api_key = \"${{keyring:scripted/me}}\"\n\
             [tools.command.env]\nVAULT_TOKEN = \"${{VAULT}}\"\n\
             [mcp.servers.leaky]\ncommand = \"python3\"\nargs = [\"server.py\"]\n\
             env = {{ GITHUB_TOKEN = {{ file = \"secrets/token\" }} }}\n\
             [telemetry]\notlp_endpoint = \"http://{}\"\ncontent = true\n",
            model.base_url(),
            receiver.address
        ),
    );
    place.write("server.py", SERVER);
    std::fs::create_dir(place.path("secrets")).unwrap();
    place.write("secrets/token", format!("{TOKEN}\n"));
    // What libsecret's tool prints for the entry that is asked for.
    std::fs::create_dir(place.path("bin")).unwrap();
    let tool = format!("#!/bin/sh\n[ \"$*\" = 'lookup service scripted username me' ] && printf %s '{KEY}'\n");
    place.write("bin/secret-tool", tool);
    let mut rights = std::fs::metadata(place.path("bin/secret-tool")).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut rights, 0o755);
    std::fs::set_permissions(place.path("bin/secret-tool"), rights).unwrap();
    let path = format!("{}:{}", place.path("bin").display(), std::env::var("PATH").unwrap());
    place.with_variable("PATH", &path).with_variable("VAULT", VAULT)
}

#[test]
fn nothing_that_is_stored_told_logged_or_sent_holds_a_secret() {
    let (model, receiver) = (model(), Receiver::start());
    let place = place(&model, &receiver);
    let ran = place.run(&["chat", "tell me", "--conversation", "c", "--output", "events"]);
    assert!(ran.stdout.contains("[secret]") && ran.code == Some(1), "{ran:?}");
    assert_tells_nothing("what chat prints", ran.stdout.as_bytes());
    assert_tells_nothing("what chat logs", ran.stderr.as_bytes());

    // The provider was asked with the true key, and shown nothing of the tools' secrets.
    let last = model.bodies().last().cloned().unwrap();
    assert_tells_nothing("what the provider is sent", last.as_bytes());
    assert!(last.matches("[secret]").count() >= 10, "{last}");

    let server = Server::start(&place);
    let failed = server.request("POST /api/v1/conversations/d/chat", r#"{"content":"tell me"}"#);
    assert_eq!(body(&failed)["turn"]["status"], "failed", "{failed}");
    let chat =
        server.request("POST /v1/chat/completions", r#"{"model":"scripted/m","messages":[{"role":"user","content":"go"}]}"#);
    assert_ne!(status(&chat), "200", "{chat}");
    let mut answers = vec![failed, chat];
    for path in [
        "/api/v1/conversations/c",
        "/api/v1/conversations/c/messages",
        "/api/v1/conversations/d/messages",
        "/api/v1/conversations/d/messages?format=openai",
        "/api/v1/tools",
        "/api/v1/mcp/servers",
        "/api/v1/mcp/servers/leaky",
        "/api/v1/mcp/servers/leaky/logs",
        "/api/v1/conversations?q=secret",
        "/metrics",
    ] {
        let answer = server.request(&format!("GET {path}"), "");
        assert!(status(&answer) == "200", "{path}: {answer}");
        answers.push(answer);
    }
    let logs = answers.iter().find(|answer| answer.contains("starting with")).expect("the server's log is shown");
    assert!(logs.contains("starting with [secret]"), "{logs}");
    for answer in &answers {
        assert_tells_nothing("an answer", answer.as_bytes());
    }
    let said = server.said();
    assert!(said.len() > 1_000, "{said}");
    assert_tells_nothing("the log", said.as_bytes());
    server.stop();
    let called = place.run(&["tools", "call", "leaky__leak", "--arguments", "{}"]);
    assert!(called.stdout.contains("[secret]"), "{called:?}");
    assert_tells_nothing("what a tool prints", called.stdout.as_bytes());

    assert!(assert_folder_tells_nothing(&place.path("data")) >= 3);
    wait_for("the traces", || (receiver.taken.lock().unwrap().len() > 2_000).then_some(()));
    let taken = receiver.taken.lock().unwrap().clone();
    assert!(String::from_utf8_lossy(&taken).contains("[secret]"), "the content is traced");
    assert_tells_nothing("the traces", &taken);
}

#[test]
fn what_a_person_says_stays_as_they_said_it() {
    let place = Place::new().with_variable("OPENAI_API_KEY", KEY);
    let said = format!("my key is {KEY}");
    place.run(&["chat", &said, "--conversation", "c"]);
    let shown = place.json(&["conversations", "show", "c", "--json"]);
    assert_eq!(shown["messages"][0]["content"], said);
}

#[test]
fn a_secret_that_cannot_be_had_is_told_with_its_place() {
    let check = |config: &str| {
        let place = Place::with(config);
        let ran = place.run(&["config", "check"]);
        (ran.code, ran.stderr)
    };
    let provider = "[providers.a]\ndialect = \"openai-chat\"\nbase_url = \"http://127.0.0.1:1\"\n";
    let (code, told) = check(&format!("{provider}api_key = \"${{file:nowhere}}\"\n"));
    assert_eq!(code, Some(2));
    assert!(
        told.contains("turnwright.toml:5: `providers.a.api_key`: the file ") && told.contains("nowhere cannot be used"),
        "{told}"
    );
    let (code, told) = check(&format!("{provider}api_key = {{ keyring = \"a/b\" }}\n"));
    assert_eq!(code, Some(2));
    assert!(told.contains("the keyring cannot be asked") || told.contains("the keyring holds nothing"), "{told}");
    let (code, told) = check(&format!("{provider}api_key = \"${{keyring:a}}\"\n"));
    assert_eq!(code, Some(2));
    assert!(told.contains("write `${keyring:SERVICE/NAME}`"), "{told}");
    let (code, told) = check("[mcp.servers.a]\ncommand = \"true\"\nenv = { API_KEY = { file = \"nowhere\" } }\n");
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("until then this server is left out"), "{told}");
}

#[test]
fn a_secret_that_is_too_short_to_be_hidden_is_told_once_the_configuration_is_checked() {
    let place =
        Place::with("[providers.a]\ndialect = \"openai-chat\"\nbase_url = \"http://127.0.0.1:1\"\napi_key = \"abc12\"\n");
    let ran = place.run(&["config", "check"]);
    let warning = "`providers.a.api_key` is 5 bytes long; a secret under 8 is not hidden where somebody repeats it";
    assert!(ran.code == Some(0) && ran.stderr.contains(warning), "{ran:?}");
    assert!(!place.run(&["chat", "hello"]).stderr.contains("bytes long"), "only then");
}
