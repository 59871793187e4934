//! The real binary and what goes wrong around it: each gives a message that names the value and what would be right, an
//! exit code, and loses nothing. `TURNWRIGHT_TEST_DATABASE=postgres` has it on PostgreSQL.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and bounds its own waits"
)]

mod apis;
mod chains;
mod providers;
#[allow(dead_code, reason = "each test binary uses its own part")]
#[path = "../cli/support.rs"]
mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use turnwright_testkit::model_server::{ModelServer, Piece, call_chunk, finish_chunk, results_shown, text_chunk};

/// No wait of these tests is longer; none is measured.
const LIMIT: Duration = Duration::from_mins(1);

/// A folder with a configuration, in which the binary runs.
struct World {
    folder: tempfile::TempDir,
    /// Where it is not in the folder.
    database: Option<String>,
}

/// How a run ended: exit code, standard output, standard error.
#[derive(Debug)]
struct Ran {
    code: i32,
    out: String,
    said: String,
}

impl Ran {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|_| panic!("{self:?}"))
    }
}

impl World {
    fn new(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("turnwright.toml"), config).unwrap();
        Self { folder, database: support::own_database() }
    }

    /// A world whose model is at this address; calls run without being asked about.
    fn with_model(base_url: &str, more: &str) -> Self {
        Self::with_api("openai-chat", base_url, more)
    }

    /// The same, over another API.
    fn with_api(dialect: &str, base_url: &str, more: &str) -> Self {
        Self::new(&format!(
            "model = \"p/m\"\napprove = \"all\"\n[providers.p]\ndialect = \"{dialect}\"\nbase_url = \"{base_url}\"\n\
             api_key = \"sk-secret-key-of-a-test\"\nmodels = [\"m\"]\nmax_retries = 0\n{more}"
        ))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_turnwright"));
        command.args(args).arg("--data-dir").arg(self.path("data"));
        command.current_dir(self.folder.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if name.ends_with("_API_KEY") || name.starts_with("TURNWRIGHT_") {
                command.env_remove(&*name);
            }
        }
        command.envs(self.database.iter().map(|address| ("TURNWRIGHT_DATABASE", address)));
        command
    }

    fn run(&self, args: &[&str]) -> Ran {
        ended(self.command(args).spawn().unwrap())
    }

    fn chat(&self) -> Ran {
        self.run(&["chat", "Go.", "--conversation", "c", "--output", "json"])
    }
}

fn ended(child: Child) -> Ran {
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ran { code: output.status.code().unwrap(), out: text(&output.stdout), said: text(&output.stderr) }
}

/// Asks for one call, then answers with what the call gave.
fn one_call(name: &'static str, arguments: &str) -> ModelServer {
    let arguments = arguments.to_owned();
    ModelServer::start(None, move |request| match results_shown(request) {
        0 => vec![call_chunk(0, name, &arguments), finish_chunk("tool_calls"), Piece::Done],
        _ => vec![text_chunk("Done."), finish_chunk("stop"), Piece::Done],
    })
    .unwrap()
}

/// The text of the one tool result in a printed turn.
fn result(printed: &Value) -> String {
    let tools: Vec<&Value> =
        printed["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "tool").collect();
    assert_eq!((tools.len(), &printed["status"]), (1, &json!("completed")), "{printed}");
    tools[0]["content"].as_str().unwrap().to_owned()
}

/// An endpoint that answers everything with these bytes. Ends with the process.
fn endpoint(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut length, mut line) = (0, String::new());
            while reader.read_line(&mut line).unwrap_or(0) > 2 {
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            reader.read_exact(&mut vec![0; length]).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    format!("http://{address}/v1")
}

/// Waits until `is_so`.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LIMIT, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn is_alive(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).is_ok_and(|stat| !stat.contains(") Z "))
}

/// The number that a process wrote of itself.
fn pid_in(file: &Path) -> String {
    wait_until("a process begins", || std::fs::read_to_string(file).is_ok_and(|text| text.ends_with('\n')));
    std::fs::read_to_string(file).unwrap()
}

#[test]
fn an_unknown_key_and_a_missing_variable_are_named_with_their_lines() {
    let world = World::new("modle = \"p/m\"\n[providers.p]\ndialect = \"openai-chat\"\napi_key = \"${NO_SUCH_VARIABLE}\"\n");
    let ran = world.run(&["chat", "Hi"]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{ran:?}");
    assert!(ran.said.contains("turnwright.toml:1: unknown key `modle` at the top level; did you mean `model`?"), "{ran:?}");
    let variable = "turnwright.toml:4: `providers.p.api_key`: the variable NO_SUCH_VARIABLE is not set";
    assert!(ran.said.contains(variable), "{ran:?}");
    assert!(!world.path("data").exists(), "nothing is made of a configuration that is wrong");
}

#[test]
fn a_provider_that_refuses_answers_html_or_breaks_off_fails_the_turn_in_plain_words() {
    let refusal = "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n\
                   {\"error\":{\"message\":\"Incorrect API key provided\",\"code\":\"invalid_api_key\"}}";
    let page = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n<html><title>Sign in</title></html>";
    let cut = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
               data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel\"}}]}\n\n";
    let table = [
        (refusal, "auth", "provider `p` refused the key (401 invalid_api_key)", ""),
        (page, "malformed", "no answer but an HTML page: Sign in; check base_url", ""),
        (cut, "cut_off", "the provider's answer ended before its end", "Hel"),
    ];
    for (answer, kind, said, text) in table {
        let world = World::with_model(&endpoint(answer), "");
        let ran = world.chat();
        let printed = ran.json();
        assert_eq!((ran.code, &printed["status"]), (1, &json!("failed")), "{ran:?}");
        assert_eq!((&printed["error"]["kind"], &printed["text"]), (&json!(kind), &json!(text)), "{ran:?}");
        assert!(ran.said.contains(said) && printed["error"]["message"].as_str().unwrap().contains(said), "{ran:?}");
        assert!(!ran.said.contains("sk-secret") && !ran.out.contains("sk-secret"), "{ran:?}");
        let kept = world.run(&["conversations", "show", "c"]);
        assert!(kept.out.contains("user: Go."), "{kept:?}");
    }
}

#[test]
fn a_call_that_cannot_run_or_fails_is_told_to_the_model_and_the_turn_goes_on() {
    let table = [
        ("filesystem__read", "{path: oops", "the arguments are not valid JSON"),
        ("filesystem__read", r#"{"pth": "x"}"#, "\"path\" is a required property"),
        ("no__such", "{}", "There is no tool `no__such`"),
        ("filesystem__read", r#"{"path": "no-such-file"}"#, "there is no `no-such-file`"),
        ("command__run", r#"{"command": "echo broken >&2; exit 7"}"#, "\"exit_code\":7"),
        ("command__run", r#"{"command": "sleep 1000", "timeout_ms": 100}"#, "did not end within 100 ms and was killed"),
    ];
    for (name, arguments, told) in table {
        let model = one_call(name, arguments);
        let ran = World::with_model(&model.base_url(), "").chat();
        let printed = ran.json();
        assert_eq!((ran.code, &printed["text"]), (0, &json!("Done.")), "{name}: {ran:?}");
        assert!(result(&printed).contains(told), "{name}: {printed}");
        assert_eq!(printed["messages"][1]["tool_calls"][0]["function"]["arguments"], arguments, "as it came");
        assert!(model.requests()[1].to_string().contains("tool"), "the model is told");
    }
}

#[test]
fn a_command_that_prints_100_megabytes_gives_its_beginning_and_its_end() {
    let line = "echo first; head -c 100000000 /dev/zero | tr '\\0' x; echo; echo last";
    let line = json!({"command": line, "timeout_ms": 300_000}).to_string();
    let model = one_call("command__run", &line);
    let ran = World::with_model(&model.base_url(), "").chat();
    let content: Value = serde_json::from_str(&result(&ran.json())).unwrap();
    let printed = content["stdout"].as_str().unwrap();
    assert!(printed.starts_with("first\n") && printed.ends_with("last\n") && printed.len() < 1_000_000, "{}", printed.len());
}

const SERVER: &str = concat!(
    include_str!("../servers/small.py"),
    r#"
if sys.argv[1] == "dies":
    sys.exit("no DATABASE_URL")
print("INFO: starting", flush=True)
note("server.pid", os.getpid())
serve(lambda: [tool("greet", "Greets")], lambda params: "hello", lambda: print("DEBUG: answering", flush=True))
"#
);

#[test]
fn an_mcp_server_that_is_not_there_or_dies_is_told_with_its_reason_and_one_that_prints_log_lines_works() {
    let table = [
        ("no-such-program", "x", "the command `no-such-program` was not found", "There is no tool `s__greet`"),
        ("python3", "dies", "it ended during its start (exit code 1); its last lines:\\nno DATABASE_URL", "There is no tool"),
        ("python3", "noisy", "", "hello"),
    ];
    for (command, mode, said, told) in table {
        let server = format!("[mcp.servers.s]\ncommand = \"{command}\"\nargs = [\"server.py\", \"{mode}\"]\n");
        let model = one_call("s__greet", "{}");
        let world = World::with_model(&model.base_url(), &server);
        std::fs::write(world.path("server.py"), SERVER).unwrap();
        let ran = world.chat();
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.said.contains(said), "{ran:?}");
        assert!(result(&ran.json()).contains(told), "{ran:?}");
        let checked = world.run(&["mcp", "check", "s"]);
        assert_eq!(checked.code, i32::from(mode != "noisy"), "{checked:?}");
    }
}

#[test]
fn a_database_file_that_cannot_be_used_is_named_and_left_as_it_is() {
    let world = World { database: None, ..World::new("model = \"practice/practice\"\n") };
    assert_eq!(world.run(&["chat", "Hi", "--conversation", "c"]).code, 0);
    let file = world.path("data/turnwright.db");
    let good = std::fs::read(&file).unwrap();
    let mut newer = good.clone();
    // The schema's number (SQLite file format, section 1.3, offset 60).
    newer[60..64].copy_from_slice(&999_u32.to_be_bytes());
    let table = [
        (newer, "was written by a newer version of turnwright; use that version or newer"),
        (b"not a database at all".to_vec(), "is not a SQLite database; name another file or move this one away"),
    ];
    for (bytes, said) in table {
        std::fs::write(&file, &bytes).unwrap();
        let ran = world.run(&["chat", "Hi", "--conversation", "c"]);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{ran:?}");
        assert!(ran.said.contains("data/turnwright.db") && ran.said.contains(said), "{ran:?}");
        assert_eq!(std::fs::read(&file).unwrap(), bytes, "it is left as it is");
    }
    std::fs::write(&file, good).unwrap();
    assert!(world.run(&["conversations", "show", "c"]).out.contains("user: Hi"));
}

#[test]
fn nothing_of_a_killed_process_is_left_after_the_next_start_and_a_second_one_touches_nothing_of_the_first() {
    let line = "echo $$ > command.pid; (setsid sh -c 'echo $$ > escaped.pid; exec sleep 1000' &); sleep 1000";
    let model = one_call("command__run", &json!({"command": line}).to_string());
    // In a sandbox all of the command ends with its host.
    let server =
        "[tools.command]\nsandbox = \"off\"\n[mcp.servers.s]\ncommand = \"python3\"\nargs = [\"server.py\", \"noisy\"]\n";
    let world = World::with_model(&model.base_url(), server);
    std::fs::write(world.path("server.py"), SERVER).unwrap();
    std::fs::write(world.path("other.toml"), "model = \"practice/practice\"\n").unwrap();
    let mut first = world.command(&["chat", "Go.", "--conversation", "c"]).spawn().unwrap();
    let pids = ["command.pid", "escaped.pid", "server.pid"].map(|name| pid_in(&world.path(name)));
    let other = ["chat", "Hi", "--config", "other.toml", "--conversation", "d"];
    let second = world.run(&other);
    assert_eq!(second.code, 0, "{second:?}");
    assert!(pids.iter().all(|pid| is_alive(pid)), "a second process swept what a living one runs");
    assert!(first.try_wait().unwrap().is_none());
    // This is SIGKILL: the first process ends nothing itself.
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(is_alive(&pids[1]));
    let is_swept = || {
        assert_eq!(world.run(&other).code, 0);
        pids.iter().all(|pid| !is_alive(pid))
    };
    match &world.database {
        None => assert!(is_swept(), "{pids:?}"),
        // Nobody knows there that it is gone before its lease has run out.
        Some(_) => wait_until("what it left behind is ended", is_swept),
    }
    let resumed = world.run(&["chat", "--conversation", "c", "--output", "json"]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert!(result(&resumed.json()).contains("it may or may not have happened"), "{resumed:?}");
}
