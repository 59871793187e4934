//! The tools of all sources for MCP clients, over standard input and output and over HTTP, tried with the official client
//! libraries and a server that nobody here wrote (`scripts/install-test-servers`).
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and bounds its own waits"
)]

#[allow(dead_code, reason = "each test binary uses its own part")]
#[path = "../cli/support.rs"]
mod support;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use support::{Place, Ran, follow, wait, wait_for};

/// A place whose only server is server-everything. All its tools but one may run.
struct Offered {
    place: Place,
    installed: PathBuf,
}

/// `turnwright serve` of a place.
struct Server {
    child: Child,
    address: String,
}

fn installed() -> Option<PathBuf> {
    let folder = std::env::var_os("TURNWRIGHT_TEST_SERVERS").map(PathBuf::from).or_else(|| {
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
        Some(cache.join("turnwright/test-servers"))
    });
    let found = folder.filter(|folder| folder.join("installed").is_file());
    if found.is_none() {
        let is_required = std::env::var_os("TURNWRIGHT_REQUIRE_TEST_SERVERS").is_some_and(|value| value == "1");
        assert!(!is_required, "the test servers are not installed: run scripts/install-test-servers");
        println!("skipped: run scripts/install-test-servers");
    }
    found
}

impl Offered {
    fn new() -> Option<Self> {
        let installed = installed()?;
        let place = Place::new();
        let script = installed.join("npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
        // The folder among the arguments is ignored there, and tells whose process it is.
        let args = json!([script, "stdio", place.path("")]);
        let config = format!(
            "model = \"practice/practice\"\n\
             [mcp.servers.everything]\ncommand = \"node\"\nargs = {args}\n\
             [[approval.rules]]\ntool = \"everything__*\"\naction = \"allow\"\n\
             [[approval.rules]]\ntool = \"everything__get-sum\"\naction = \"ask\"\n"
        );
        place.write("turnwright.toml", config);
        Some(Self { place, installed })
    }

    /// What a client gives to reach `turnwright mcp serve`.
    fn program(&self) -> Vec<String> {
        let (config, data) = (self.place.path("turnwright.toml"), self.place.path("data"));
        let [config, data] = [config, data].map(|path| path.display().to_string());
        let mut words = vec![env!("CARGO_BIN_EXE_turnwright"), "--config", &config, "--data-dir", &data, "mcp", "serve"];
        // Clients hand on little of their environment.
        words.extend(self.place.database().map(|address| ["--database", address]).into_iter().flatten());
        words.into_iter().map(str::to_owned).collect()
    }

    fn python(&self, era: &str, target: &[String]) -> Command {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp_serve/client.py");
        let mut command = self.place.clean(Command::new(self.installed.join("python/bin/python")), &[]);
        command.arg(script).arg(era).args(target);
        command
    }

    fn node(&self, target: &[String]) -> Command {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp_serve/client.mjs");
        let mut command = self.place.clean(Command::new("node"), &[]);
        command.arg(script).arg(self.installed.join("npm/node_modules")).args(target);
        command
    }

    fn serve(&self) -> Server {
        let mut command = self.place.command(&["serve", "--listen", "127.0.0.1:0"]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = follow(child.stderr.take().unwrap());
        let address = wait_for("the address", || {
            let said = stderr.lock().unwrap();
            said.lines()
                .find_map(|line| Some(line.strip_prefix("listening on http://")?.to_owned()))
                .filter(|_| said.ends_with('\n'))
        });
        Server { child, address }
    }

    /// The processes that were started for this place.
    fn processes(&self) -> Vec<String> {
        let folder = self.place.path("").display().to_string();
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Ok(line) = std::fs::read(entry.path().join("cmdline")) else { continue };
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            if line.contains(folder.trim_end_matches('/')) {
                found.push(line);
            }
        }
        found
    }
}

impl Server {
    fn url(&self) -> Vec<String> {
        vec![format!("http://{}/mcp", self.address)]
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
        drop(self.child.wait());
    }
}

fn report(mut command: Command) -> Value {
    let ran = Ran::of(command.stdin(Stdio::null()).output().unwrap());
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

/// What the Python client sees of the tools in either era.
fn expected(version: &str) -> Value {
    let question =
        "May `everything__get-sum` run with {\"a\":1,\"b\":3}? rule 2 (ask everything__get-sum) wants a person to allow it.";
    let asked = json!([{
        "message": question,
        "schema": {
            "type": "object",
            "properties": {"decision": {
                "type": "string",
                "title": "Decision",
                "description": "allow: it runs once; deny: it does not run",
                "enum": ["allow", "deny"],
            }},
            "required": ["decision"],
        },
    }]);
    let denied = "This call was denied by the user: the person at mcp did not allow it. It did not run.";
    let denied = json!({"asked": asked, "result": {"error": true, "content": [denied], "structured": null}});
    json!({
        "version": version,
        "server": "turnwright",
        "echo_schema": {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {"message": {"type": "string", "description": "Message to echo"}},
            "required": ["message"],
        },
        "annotated": ["artifact__page"],
        "echo": {"error": false, "content": ["Echo: hi"], "structured": null},
        "image": [["image/png", "iVBOR"]],
        "links": ["demo://resource/dynamic/blob/1", "demo://resource/dynamic/text/2"],
        "structured": ["conditions", "humidity", "temperature"],
        "promised": ["conditions", "humidity", "temperature"],
        "link": ["Blob Resource 1", null, "Resource 1: plaintext resource", "text/plain", null],
        "not_asked": "❌ User declined to provide the requested information.",
        "filled": {
            "asked": [["everything asks: Please provide inputs for the following fields:", ["birthdate", "check"]]],
            "result": [
                "✅ User provided the requested information!",
                "User inputs:\n- Name: Ada\n- Favorite Integer: 42\n- Favorite Number: 3.14",
            ],
        },
        "invalid": {
            "error": true,
            "content": ["`everything__echo` did not run: the arguments do not fit the tool's schema: 3 is not of type \"string\" (at /message)."],
            "structured": null,
        },
        "progress": [[1.0, 3.0], [2.0, 3.0], [3.0, 3.0]],
        "unknown": -32602,
        "many": (0..20).map(|number| format!("Echo: {number}")).collect::<Vec<_>>(),
        "allowed": {"asked": asked, "result": {"error": false, "content": ["The sum of 1 and 3 is 4."], "structured": null}},
        "denied": denied,
        "declined": denied,
    })
}

fn python_sees_all(offered: &Offered, era: &str, version: &str, target: &[String]) {
    let mut saw = report(offered.python(era, target));
    let nobody_asked = saw.as_object_mut().unwrap().remove("nobody_asked").unwrap();
    assert_eq!(saw, expected(version));
    let text = nobody_asked["content"][0].as_str().unwrap();
    assert!(nobody_asked["error"] == true && text.contains("turnwright approvals decide call_"), "{text}");
    // The two calls that were stopped and the one that waits are stored as what they are.
    let waiting = offered.place.json(&["approvals", "list", "--json"]);
    assert_eq!(waiting.as_array().unwrap().len(), 1, "{waiting}");
}

#[test]
fn the_python_client_uses_every_kind_of_result_over_standard_input_in_both_eras() {
    for (era, version) in [("auto", "2026-07-28"), ("legacy", "2025-11-25")] {
        let Some(offered) = Offered::new() else { return };
        python_sees_all(&offered, era, version, &offered.program());
        assert_eq!(offered.processes(), Vec::<String>::new());
    }
}

#[test]
fn the_python_client_uses_every_kind_of_result_over_http_in_both_eras() {
    for (era, version) in [("auto", "2026-07-28"), ("legacy", "2025-11-25")] {
        let Some(offered) = Offered::new() else { return };
        let server = offered.serve();
        python_sees_all(&offered, era, version, &server.url());
    }
}

/// What the TypeScript client sees of the tools.
fn typescript_sees_all(offered: &Offered, target: &[String]) {
    let mut saw = report(offered.node(target));
    // This client looks at progress a moment after it has read it, and drops what came together with the result.
    let told = saw["progress"].take();
    assert!([json!([[1, 3], [2, 3], [3, 3]]), json!([[1, 3], [2, 3]])].contains(&told), "{told}");
    // Where another server process had a call of this conversation before, that is said first.
    let allowed = saw["allowed"]["text"].take();
    let is_elsewhere =
        allowed.as_str().unwrap().starts_with("Note: `everything` ran for this conversation in another server process");
    assert!(allowed == "The sum of 1 and 3 is 4." || (target.len() > 1 && is_elsewhere), "{allowed}");
    let question =
        "May `everything__get-sum` run with {\"a\":1,\"b\":3}? rule 2 (ask everything__get-sum) wants a person to allow it.";
    let denied = "This call was denied by the user: the person at official did not allow it. It did not run.";
    let expected = json!({
        "server": "turnwright",
        "has_echo": true,
        "echo": {"error": false, "text": "Echo: hi"},
        "image": "image/png",
        "structured": ["conditions", "humidity", "temperature"],
        "progress": null,
        "unknown": -32602,
        "stopped": "an error",
        "after": {"error": false, "text": "Echo: still here"},
        "allowed": {"asked": [question], "error": false, "text": null},
        "denied": {"asked": [question], "error": true, "text": denied},
        "cancelled": {"asked": [question], "error": true, "text": denied},
    });
    assert_eq!(saw, expected);
}

#[test]
fn the_typescript_client_uses_the_tools_over_both_transports() {
    let Some(offered) = Offered::new() else { return };
    let server = offered.serve();
    for target in [offered.program(), server.url()] {
        typescript_sees_all(&offered, &target);
    }
}

#[test]
fn the_typescript_client_has_one_session_with_all_servers_over_the_same_data() {
    let Some(offered) = Offered::new() else { return };
    let servers = [offered.serve(), offered.serve()];
    let urls: Vec<String> = servers.iter().flat_map(Server::url).collect();
    typescript_sees_all(&offered, &urls);
    // The call that it stopped at one server has ended at the other.
    let drives = |server: &Server| !get(&server.address, "/metrics").contains("turnwright_turns_driven 0\n");
    wait_for("the end of all turns", || (!servers.iter().any(drives)).then_some(()));
}

#[test]
fn a_client_that_is_killed_leaves_no_process_and_no_open_turn() {
    let Some(offered) = Offered::new() else { return };
    let mut command = offered.python("hang", &offered.program());
    let mut client = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(client.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "begun\n");
    assert!(offered.processes().len() >= 2);
    client.kill().unwrap();
    wait(&mut client);
    wait_for("the end of every process", || offered.processes().is_empty().then_some(()));
    let conversations = offered.place.json(&["conversations", "list", "--json"]);
    let id = conversations[0]["id"].as_str().unwrap();
    let ran = offered.place.run(&["conversations", "stop", id]);
    assert!(ran.code != Some(0) && ran.stderr.contains("no turn is open"), "{ran:?}");
}

#[test]
fn a_call_that_its_client_cannot_ask_about_runs_once_after_it_is_allowed_elsewhere() {
    let Some(offered) = Offered::new() else { return };
    let server = offered.serve();
    let call = || {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "everything__get-sum",
            "arguments": {"a": 20, "b": 22},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "plain", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        }});
        let answer = post(&server.address, &request.to_string());
        let data = answer
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .find(|data| data.contains("result"))
            .map(str::to_owned);
        let data = data.unwrap_or_else(|| panic!("{answer}"));
        let result: Value = serde_json::from_str(&data).unwrap();
        result["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned()
    };
    assert!(call().contains("cannot ask anybody"));
    // Asking again is no second question.
    assert!(call().contains("cannot ask anybody"));
    let waiting = offered.place.json(&["approvals", "list", "--json"]);
    let [only] = waiting.as_array().unwrap().as_slice() else { panic!("{waiting}") };
    let ran = offered.place.run(&["approvals", "decide", only["id"].as_str().unwrap(), "allow"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let text = wait_for("the result", || Some(call()).filter(|text| !text.contains("cannot ask anybody")));
    assert_eq!(text, "The sum of 20 and 22 is 42.");
    // It was given out: the next call is a new one.
    assert!(call().contains("cannot ask anybody"));
}

#[test]
fn a_call_that_runs_while_the_server_is_told_to_end_has_its_answer() {
    let place = Place::new();
    place.write(
        "turnwright.toml",
        "model = \"practice/practice\"\n[[approval.rules]]\ntool = \"command__run\"\naction = \"allow\"\n",
    );
    let offered = Offered { place, installed: PathBuf::new() };
    let mut server = offered.serve();
    let script = "touch began; while [ ! -e go ]; do sleep 0.01; done; echo it ran";
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "command__run",
        "arguments": {"command": script},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "plain", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }});
    let address = server.address.clone();
    let headers =
        format!("Host: {address}\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: command__run\r\n");
    let call = std::thread::spawn({
        let address = address.clone();
        move || send(&address, &headers, &request.to_string())
    });
    wait_for("the command", || offered.place.path("began").exists().then_some(()));
    let pid = nix::unistd::Pid::from_raw(i32::try_from(server.child.id()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    wait_for("the end to begin", || get(&address, "/readyz").starts_with("HTTP/1.1 503 ").then_some(()));
    offered.place.write("go", "");
    let answer = call.join().unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("it ran"), "{answer}");
    wait(&mut server.child);
}

#[test]
fn what_a_client_is_asked_when_it_says_nothing_more_waits_elsewhere() {
    let place = Place::new();
    place.write("turnwright.toml", "model = \"practice/practice\"\n");
    let mut command = place.command(&["mcp", "serve"]);
    let mut serving = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
    let opening = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "c", "version": "1"}});
    let call = json!({"name": "command__run", "arguments": {"command": "touch ran"}});
    let mut input = serving.stdin.take().unwrap();
    for message in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}),
    ] {
        writeln!(input, "{message}").unwrap();
    }
    let mut lines = BufReader::new(serving.stdout.take().unwrap()).lines().map(|line| line.unwrap());
    assert!(lines.any(|line| line.contains("elicitation/create")));
    drop(input);
    let answer = lines.find(|line| line.contains("\"id\":2")).unwrap();
    assert!(answer.contains("approvals decide"), "{answer}");
    assert_eq!(wait(&mut serving), Some(0));
    let waiting = place.json(&["approvals", "list", "--json"]);
    assert_eq!((&waiting[0]["name"], waiting.as_array().unwrap().len()), (&json!("command__run"), 1), "{waiting}");
    assert!(!place.path("ran").exists());
    // What is said to be typed reaches this data without the variables of the one that said it.
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    let words = text.lines().find_map(|line| line.strip_prefix("turnwright ")).unwrap();
    let mut decide = place.command(&words.split(' ').collect::<Vec<_>>());
    let decided = decide.env_remove("TURNWRIGHT_DATA_DIR").output().unwrap();
    assert!(decided.status.success(), "{words}: {decided:?}");
    assert!(place.path("ran").exists());
}

#[test]
fn requests_of_other_pages_and_for_other_hosts_are_refused() {
    let place = Place::new();
    let offered = Offered { place, installed: PathBuf::new() };
    let server = offered.serve();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let heads = [("evil.example", None), (server.address.as_str(), Some("http://evil.example"))];
    for (host, origin) in heads {
        let origin = origin.map(|origin| format!("Origin: {origin}\r\n")).unwrap_or_default();
        let answer = send(&server.address, &format!("Host: {host}\r\n{origin}"), &hello);
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    }
}

#[test]
fn we_are_a_client_of_ourselves_over_both_transports() {
    let Some(offered) = Offered::new() else { return };
    let server = offered.serve();
    let inner = offered.program();
    let outer = Place::new();
    let config = format!(
        "model = \"practice/practice\"\n\
         [mcp.servers.pipe]\ncommand = {:?}\nargs = {:?}\n\
         [mcp.servers.web]\nurl = {:?}\n",
        inner[0],
        &inner[1..],
        server.url()[0]
    );
    outer.write("turnwright.toml", config);
    let arguments = json!({"message": "through two hosts"}).to_string();
    for name in ["pipe", "web"] {
        let checked = outer.json(&["mcp", "check", name, "--json"]);
        assert_eq!((&checked["state"], &checked["protocol"]["version"]), (&json!("ready"), &json!("2026-07-28")), "{checked}");
        let tool = format!("{name}__everything__echo");
        let called = outer.json(&["tools", "call", &tool, "--arguments", &arguments, "--approve", "all"]);
        assert_eq!(called["content"], json!([{"type": "text", "text": "Echo: through two hosts"}]), "{called}");
    }
}

fn post(address: &str, body: &str) -> String {
    let headers = format!(
        "Host: {address}\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: everything__get-sum\r\n"
    );
    send(address, &headers, body)
}

fn get(address: &str, path: &str) -> String {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn send(address: &str, headers: &str, body: &str) -> String {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let fixed = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nConnection: close";
    let length = body.len();
    stream
        .write_all(format!("POST /mcp HTTP/1.1\r\n{headers}{fixed}\r\nContent-Length: {length}\r\n\r\n{body}").as_bytes())
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
