//! The server: where it listens, and how it ends.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use turnwright_testkit::Port;

use crate::questions::installed;
use crate::support::{Place, Ran, follow, wait, wait_for};

pub(crate) struct Server {
    child: Child,
    address: String,
    stderr: Arc<Mutex<String>>,
}

impl Server {
    pub(crate) fn start(place: &Place) -> Self {
        Self::start_with(place, "127.0.0.1:0", "http")
    }

    /// The same over another database than the place's.
    pub(crate) fn start_over(place: &Place, database: &str) -> Self {
        Self::of(place.command(&["serve", "--listen", "127.0.0.1:0", "--database", database]), "http")
    }

    /// The same at an address that is known.
    pub(crate) fn start_at(place: &Place, address: &str) -> Self {
        Self::start_with(place, address, "http")
    }

    /// One whose configuration names a certificate.
    pub(crate) fn start_over_tls(place: &Place) -> Self {
        Self::start_with(place, "127.0.0.1:0", "https")
    }

    fn start_with(place: &Place, address: &str, scheme: &str) -> Self {
        Self::of(place.command(&["serve", "--listen", address]), scheme)
    }

    /// A process that serves.
    pub(crate) fn of(mut command: Command, scheme: &str) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = follow(child.stderr.take().unwrap());
        let address = wait_for("the address", || {
            let said = stderr.lock().unwrap();
            // A line of its own, or of a log in JSON.
            let listening = format!("listening on {scheme}://");
            let line = said.lines().find_map(|line| Some(line.split_once(&listening)?.1))?;
            let authority = line.split(['/', '"']).next()?.to_owned();
            said.ends_with('\n').then_some(authority)
        });
        Self { child, address, stderr }
    }

    /// Where it listens, `127.0.0.1:PORT`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn request(&self, head: &str, body: &str) -> String {
        request(&self.address, head, body)
    }

    /// What is there for whoever has this token.
    pub(crate) fn look(&self, path: &str, token: &str) -> String {
        request_with(&self.address, &format!("GET {path}"), &format!("Authorization: Bearer {token}\r\n"), "")
    }

    /// Asks for JSON with JSON; anything but success fails the test.
    pub(crate) fn ask(&self, head: &str, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answer = self.request(head, &body);
        let (status, rest) = answer.split_once("\r\n\r\n").unwrap();
        assert!(status.starts_with("HTTP/1.1 2"), "{head}: {answer}");
        serde_json::from_str(rest).unwrap_or(Value::Null)
    }

    /// Allows the one call of a conversation that waits.
    pub(crate) fn allow(&self, conversation: &str) {
        let waiting = self.ask(&format!("GET /api/v1/conversations/{conversation}/calls"), &Value::Null);
        let call = waiting["data"][0]["id"].as_str().unwrap();
        let path = format!("POST /api/v1/conversations/{conversation}/calls/{call}/decision");
        self.ask(&path, &serde_json::json!({"decision": "allow"}));
    }

    /// Where clients of OpenAI's APIs find it.
    pub(crate) fn base_url(&self) -> String {
        format!("{}/v1", self.root())
    }

    /// What it said so far.
    pub(crate) fn said(&self) -> String {
        self.stderr.lock().unwrap().clone()
    }

    /// Where it is.
    pub(crate) fn root(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
    }

    /// Ends it with no time for anything.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn stop(self) {
        self.signal(Signal::SIGTERM);
        self.end();
    }

    /// Waits for the end of one that was told to end already: told again, it would not wait for what runs. What it logged.
    pub(crate) fn end(mut self) -> String {
        let code = wait(&mut self.child);
        let said = self.said();
        assert_eq!(code, Some(0), "{said}");
        said
    }
}

/// What comes of a request to whoever is at an address.
pub(crate) fn request(address: &str, head: &str, body: &str) -> String {
    request_with(address, head, "", body)
}

/// The same with more headers, each with the end of its line.
pub(crate) fn request_with(address: &str, head: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let rest = format!("Host: {address}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close");
    stream.write_all(format!("{head} HTTP/1.1\r\n{headers}{rest}\r\n\r\n{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn an_address_that_others_can_reach_is_refused() {
    let ran = Place::new().run(&["serve", "--listen", "0.0.0.0:0"]);
    let stderr = "error: 0.0.0.0:0 can be reached from other machines, and nobody has to sign in, so it does not listen there\n\
                  hint: write `auth = \"tokens\"` below `[server]`, then `turnwright users add NAME --role admin` and \
                  `turnwright users token NAME`; or listen at 127.0.0.1\n";
    assert_eq!(ran, Ran { code: Some(2), stdout: String::new(), stderr: stderr.to_owned() });
}

#[test]
fn a_server_that_runs_here_is_asked_how_it_is_without_another_program() {
    let place = Place::new();
    let server = Server::start(&place);
    place.write("turnwright.toml", format!("model = \"practice/practice\"\n[server]\nlisten = \"{}\"\n", server.address()));
    let ran = place.run(&["doctor", "--serving"]);
    assert!(ran.code == Some(0) && ran.stdout.contains("it takes requests"), "{ran:?}");
    let address = server.address().to_owned();
    server.stop();
    let ran = place.run(&["doctor", "--serving"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.contains(&format!("nothing answers at {address}: ")), "{ran:?}");
}

#[test]
fn a_port_that_is_taken_is_told() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ran = Place::new().run(&["serve", "--listen", &address]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.starts_with(&format!("error: cannot listen at {address}: ")), "{ran:?}");
}

#[test]
fn it_answers_and_ends_when_it_is_told_to() {
    let place = Place::new();
    let server = Server::start(&place);
    let answer = server.request("POST /api/v1/conversations/c/chat", "{\"content\":\"read the file \\\"a.txt\\\"\"}");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("hello file"), "{answer}");
    server.stop();
    assert_eq!(place.json(&["conversations", "show", "c", "--json"])["turn"]["status"], "completed");
}

#[test]
fn a_decision_in_another_process_moves_the_turn_of_a_server_on() {
    let place = Place::new();
    let server = Server::start(&place);
    let body = "{\"content\":\"write \\\"hi\\\" to file \\\"b.txt\\\"\"}";
    let answer = server.request("POST /api/v1/conversations/c/chat", body);
    assert!(answer.contains("\"suspended\""), "{answer}");
    let ran = place.run(&["approvals", "decide", "call_4_0", "allow"]);
    let stderr = "note: decided; the process that holds the conversation goes on with it\n".to_owned();
    assert_eq!(ran, Ran { code: Some(0), stdout: String::new(), stderr });
    wait_for("the file", || place.path("b.txt").exists().then_some(()));
    server.stop();
}

#[test]
fn a_turn_that_a_server_left_open_goes_on_with_the_next_one() {
    let place = Place::with("approve = \"all\"\n[tools.command]\nmax_timeout_ms = 60000\n[server]\ngrace_ms = 200\n");
    let server = Server::start(&place);
    let body = "{\"content\":\"run the command \\\"touch began; sleep 60\\\"\"}";
    assert!(server.request("POST /api/v1/conversations", "{\"id\":\"c\"}").starts_with("HTTP/1.1 201"));
    assert!(server.request("POST /api/v1/conversations/c/messages", body).starts_with("HTTP/1.1 202"));
    wait_for("the command", || place.path("began").exists().then_some(()));
    server.stop();
    let shown = place.json(&["conversations", "show", "c", "--json"]);
    assert_eq!(shown["turn"]["status"], "running", "{shown}");
    let next = Server::start(&place);
    wait_for("the end of the turn", || {
        let shown = place.json(&["conversations", "show", "c", "--json"]);
        (shown["turn"]["status"] != "running").then_some(())
    });
    next.stop();
}

#[test]
fn a_server_that_is_told_to_end_ends_its_streams_with_a_hint_and_leaves_no_process() {
    let Some(installed) = installed() else { return };
    let asks = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mcp/tests/servers/asks.py");
    let python = installed.join("python/bin/python");
    let place = Place::with(&format!(
        "approve = \"all\"\n[tools.command]\nmax_timeout_ms = 60000\nsandbox = \"off\"\n[server]\ngrace_ms = 200\n\
         [mcp.servers.asks]\ncommand = \"{}\"\nargs = [\"{}\"]\n",
        python.display(),
        asks.display()
    ));
    let server = Server::start(&place);
    server.ask("POST /api/v1/conversations", &json!({"id": "c"}));
    let body = json!({"content": "run the command \"echo $$ > running; exec sleep 60\""});
    server.ask("POST /api/v1/conversations/c/messages", &body);
    let command = wait_for("the command", || {
        std::fs::read_to_string(place.path("running")).ok().filter(|pid| pid.ends_with('\n'))?.trim().parse().ok()
    });
    let child = wait_for("the MCP server", || children(server.pid()).into_iter().find(|pid| is_like(*pid, "asks.py")));
    let streams = ["events", "stream"].map(|kind| {
        let path = format!("/api/v1/conversations/c/{kind}");
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", server.address()).as_bytes()).unwrap();
        let mut head = [0; 12];
        stream.read_exact(&mut head).unwrap();
        assert_eq!(&head, b"HTTP/1.0 200", "{kind}");
        stream
    });
    server.stop();
    for mut stream in streams {
        let mut told = String::new();
        stream.read_to_string(&mut told).unwrap();
        assert!(told.ends_with("\n\nretry: 1000\n\n"), "{told}");
    }
    for pid in [command, child] {
        wait_for("the end of what it started", || (!Path::new("/proc").join(u32::to_string(&pid)).exists()).then_some(()));
    }
}

/// The processes that a process started, and those that they did.
fn children(parent: u32) -> Vec<u32> {
    let path = format!("/proc/{parent}/task");
    let tasks = std::fs::read_dir(path).into_iter().flatten().flatten();
    let own = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let own: Vec<u32> =
        own.flat_map(|pids| pids.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect();
    own.iter().copied().flat_map(|pid| std::iter::once(pid).chain(children(pid))).collect()
}

/// Whether this is among the words that a process was started with.
fn is_like(pid: u32, word: &str) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(word))
}

#[test]
fn below_a_path_the_page_finds_its_modules_and_the_start_tells_where_it_is() {
    let place = Place::with("[server]\nbase_path = \"/turnwright\"\n");
    let server = Server::start(&place);
    let told = format!("listening on http://{}/turnwright\n", server.address());
    assert!(server.said().contains(&told), "{}", server.said());
    let page = server.request("GET /turnwright/", "");
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    let (_, html) = page.split_once("\r\n\r\n").unwrap();
    // Everything that the page names is looked for from where it is.
    let named =
        html.split('"').filter_map(|word| word.strip_prefix("./").or(Some(word)).filter(|word| word.starts_with("page/")));
    let mut count = 0;
    for name in named.filter(|name| !name.ends_with('/')) {
        let file = server.request(&format!("GET /turnwright/{name}"), "");
        assert!(file.starts_with("HTTP/1.1 200"), "{name}: {file}");
        count += 1;
    }
    assert!(!html.contains("\"/page/"), "{html}");
    if count == 0 {
        println!("skipped in part: the page is not made here (`cargo xtask page`)");
    }
    let made = server.request("POST /turnwright/api/v1/conversations", "{}");
    assert!(made.to_ascii_lowercase().contains("\nlocation: /turnwright/api/v1/conversations/"), "{made}");
    server.stop();
}

#[test]
fn links_name_an_address_that_can_be_opened() {
    let link = |more: &str| {
        let place = Place::with(&format!("[server]\nauth = \"tokens\"\n{more}"));
        let ran = place.run(&["users", "link", "local"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.stdout.split_once("?code=").unwrap().0.to_owned()
    };
    assert_eq!(link("listen = \"0.0.0.0:8700\""), "http://localhost:8700/login");
    assert_eq!(link("listen = \"[::]:8700\"\nbase_path = \"/tw\""), "http://localhost:8700/tw/login");
    assert_eq!(link("listen = \"10.1.2.3:8700\""), "http://10.1.2.3:8700/login");
    assert_eq!(link("public_url = \"https://tw.example/\""), "https://tw.example/login");
    assert_eq!(link("public_url = \"https://tw.example/tw/\""), "https://tw.example/tw/login");
    assert_eq!(link("public_url = \"https://tw.example\"\nbase_path = \"/tw/\""), "https://tw.example/tw/login");
}

#[test]
fn a_base_path_that_cannot_be_is_told() {
    let says = |more: &str, expected: &str| {
        let ran = Place::with(&format!("[server]\n{more}\n")).run(&["config", "check"]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(expected), "{ran:?}");
    };
    for path in ["turnwright", "/", "/a//b", "/a b", "/a/../b", "/a?b"] {
        says(&format!("base_path = \"{path}\""), "a path of letters, digits and `-_.~`, such as `/turnwright`");
    }
    says("base_path = \"/api\"", "a path that does not begin with one of the server's own, as `/api` is");
    says("public_url = \"https://tw.example/v1\"", "the path of `server.public_url` is `/v1`; it must be a path that does not");
    says(
        "public_url = \"https://tw.example/a\"\nbase_path = \"/b\"",
        "the path of `server.public_url` is `/a`, and `server.base_path` is `/b`; one of them is enough",
    );
}

#[test]
fn models_that_are_configured_are_named_in_the_metrics_also_where_they_never_answered() {
    let port = Port::reserve().unwrap();
    let gone = port.address();
    let place = Place::with(&format!(
        "[providers.p]\ndialect = \"openai-chat\"\nbase_url = \"http://{gone}/v1\"\nmodels = [\"a\", \"b\"]\nmax_retries = 0\n"
    ));
    let server = Server::start(&place);
    for model in ["b", "made-up"] {
        let asked = json!({"model": format!("p/{model}"), "messages": [{"role": "user", "content": "hello"}]});
        server.request("POST /v1/chat/completions", &asked.to_string());
    }
    let told = server.request("GET /metrics", "");
    for model in ["b", "other"] {
        let counted = format!("turnwright_model_calls_total{{provider=\"p\",model=\"{model}\",outcome=\"");
        assert!(told.contains(&counted), "{counted} is not in {told}");
    }
    assert!(!told.contains("made-up"), "{told}");
    server.stop();
}
