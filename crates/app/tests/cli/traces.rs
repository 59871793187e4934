//! Traces as a receiver gets them, and the log beside them.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Attribute;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde_json::json;
use turnwright_testkit::Port;
use turnwright_testkit::model_server::{ModelServer, Piece, finish_chunk, text_chunk};

use crate::questions::installed;
use crate::serve::Server;
use crate::support::{Place, follow, wait_for};

/// A server with one tool, which gives back the trace that it is told of.
const SERVER: &str = concat!(
    include_str!("../servers/small.py"),
    r#"
told = lambda params: "trace:" + params.get("_meta", {}).get("traceparent", "none")
serve(lambda: [tool("greet", "Greets")], told)
"#
);

/// Takes traces over HTTP.
struct Receiver {
    address: String,
    taken: Arc<Mutex<Vec<(String, ExportTraceServiceRequest)>>>,
}

impl Receiver {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let taken = Arc::new(Mutex::new(Vec::new()));
        let into = taken.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let (head, body) = request(&mut stream);
                into.lock().unwrap().push((head, ExportTraceServiceRequest::decode(body.as_slice()).unwrap()));
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").unwrap();
            }
        });
        Self { address, taken }
    }

    fn spans(&self) -> Vec<Span> {
        let taken = self.taken.lock().unwrap();
        let resources = taken.iter().flat_map(|(_, request)| &request.resource_spans);
        resources.flat_map(|resource| &resource.scope_spans).flat_map(|scope| scope.spans.clone()).collect()
    }
}

fn request(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let mut read = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).unwrap();
        read.extend_from_slice(&buffer[..count]);
        let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8(read[..end].to_vec()).unwrap();
        let lower = head.to_lowercase();
        let length = lower.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap().parse::<usize>().unwrap();
        while read.len() < end + 4 + length {
            let count = stream.read(&mut buffer).unwrap();
            read.extend_from_slice(&buffer[..count]);
        }
        return (head, read[end + 4..].to_vec());
    }
}

fn attribute(span: &Span, key: &str) -> Option<String> {
    let found = span.attributes.iter().find(|attribute| attribute.key == key)?;
    Some(match found.value.clone()?.value? {
        Attribute::StringValue(text) => text,
        Attribute::BoolValue(value) => value.to_string(),
        Attribute::IntValue(value) => value.to_string(),
        other => format!("{other:?}"),
    })
}

/// What an attribute is, as the conventions say it.
fn kind(span: &Span, key: &str) -> &'static str {
    let found = span.attributes.iter().find(|attribute| attribute.key == key);
    match found.and_then(|attribute| attribute.value.as_ref()?.value.as_ref()) {
        Some(Attribute::StringValue(_)) => "string",
        Some(Attribute::BoolValue(_)) => "boolean",
        Some(Attribute::IntValue(_)) => "int",
        Some(Attribute::DoubleValue(_)) => "double",
        Some(Attribute::ArrayValue(list)) => {
            let is_text = |value: &Option<Attribute>| matches!(value, Some(Attribute::StringValue(_)));
            if list.values.iter().all(|value| is_text(&value.value)) { "string[]" } else { "array" }
        }
        _ => "none",
    }
}

fn place(receiver: &Receiver, more: &str) -> Place {
    let config = format!(
        "approve = \"all\"\n[tools.filesystem]\nenabled = false\n[tools.command]\nenabled = false\n\
         [mcp.servers.probe]\ncommand = \"python3\"\nargs = [\"server.py\"]\n\
         [telemetry]\notlp_endpoint = \"http://{}\"\notlp_headers = {{ authorization = \"Bearer key\" }}\n{more}",
        receiver.address
    );
    let place = Place::with(&config);
    place.write("server.py", SERVER);
    place
}

#[test]
fn a_turn_its_model_calls_and_its_tool_call_are_one_trace_that_the_mcp_server_is_told_of() {
    let receiver = Receiver::start();
    let ran = place(&receiver, "").run(&["chat", "please greet my secret friend"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let spans = receiver.spans();
    let named = |name: &str| spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("no {name}: {spans:?}"));
    let (turn, call, model) = (named("invoke_agent turnwright"), named("execute_tool probe__greet"), named("chat practice"));
    assert_eq!(spans.iter().filter(|span| span.name == "chat practice").count(), 2);
    for child in [call, model] {
        assert_eq!((&child.trace_id, &child.parent_span_id), (&turn.trace_id, &turn.span_id));
    }
    let hex = |bytes: &[u8]| bytes.iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
    let told = format!("trace:00-{}-{}-01", hex(&call.trace_id), hex(&call.span_id));
    assert!(ran.stdout.contains(&told), "{told} is not in {ran:?}");
    assert_eq!(attribute(call, "mcp.method.name").as_deref(), Some("tools/call"));
    assert_eq!(attribute(call, "gen_ai.tool.name").as_deref(), Some("probe__greet"));
    assert_eq!(attribute(call, "network.transport").as_deref(), Some("pipe"));
    assert!(attribute(call, "mcp.protocol.version").is_some() && attribute(call, "jsonrpc.request.id").is_some(), "{call:?}");
    assert_eq!(attribute(call, "mcp.session.id"), None);
    assert_eq!(attribute(model, "gen_ai.operation.name").as_deref(), Some("chat"));
    for (key, expected) in [
        ("gen_ai.request.model", "string"),
        ("gen_ai.request.stream", "boolean"),
        ("gen_ai.response.finish_reasons", "string[]"),
        ("gen_ai.response.time_to_first_chunk", "double"),
    ] {
        assert_eq!(kind(model, key), expected, "{key}: {model:?}");
    }
    assert_eq!(attribute(turn, "turnwright.turn.status").as_deref(), Some("completed"));
    for key in ["gen_ai.provider.name", "gen_ai.request.model"] {
        assert!(attribute(turn, key).is_some(), "{key}: {turn:?}");
        assert_eq!(attribute(turn, key), attribute(model, key));
    }
    assert!(!format!("{spans:?}").contains("secret"), "what was said is in {spans:?}");
    let taken = receiver.taken.lock().unwrap();
    assert!(taken.iter().all(|(head, _)| head.starts_with("POST /v1/traces ") && head.contains("Bearer key")), "{taken:?}");
}

/// The npm reference server on a port of this machine, which ends with the test.
struct Everything {
    child: Child,
    port: Port,
}

impl Everything {
    fn start(installed: &Path) -> Self {
        let port = Port::reserve().unwrap();
        let script = installed.join("npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
        let mut command = Command::new("node");
        command.arg(script).arg("streamableHttp").env("PORT", port.number().to_string());
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let said = follow(child.stderr.take().unwrap());
        wait_for("the server to listen", || said.lock().unwrap().contains("listening on port").then_some(()));
        Self { child, port }
    }
}

impl Drop for Everything {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Passes bytes on to a port, and keeps what clients sent.
fn recorded(port: u16) -> (u16, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().port();
    let sent = Arc::new(Mutex::new(Vec::new()));
    let into = sent.clone();
    thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, mut server) = (client.unwrap(), TcpStream::connect(("127.0.0.1", port)).unwrap());
            let (mut back_from, mut back_to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            thread::spawn(move || drop(std::io::copy(&mut back_from, &mut back_to)));
            let into = into.clone();
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(count @ 1..) = client.read(&mut buffer) {
                    into.lock().unwrap().extend_from_slice(&buffer[..count]);
                    if server.write_all(&buffer[..count]).is_err() {
                        break;
                    }
                }
            });
        }
    });
    (at, sent)
}

#[test]
fn a_call_over_http_names_the_server_and_the_session_and_the_server_is_told_of_the_trace() {
    let Some(installed) = installed() else { return };
    let everything = Everything::start(&installed);
    let (port, sent) = recorded(everything.port.number());
    let receiver = Receiver::start();
    let place = Place::with(&format!(
        "approve = \"all\"\n[tools.filesystem]\nenabled = false\n[tools.command]\nenabled = false\n\
         [mcp.servers.far]\nurl = \"http://127.0.0.1:{port}/mcp\"\n\
         [telemetry]\notlp_endpoint = \"http://{}\"\n",
        receiver.address
    ));
    let ran = place.run(&["chat", "please echo the message \"hello\""]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let spans = receiver.spans();
    let call = spans.iter().find(|span| span.name == "execute_tool far__echo").unwrap_or_else(|| panic!("{ran:?} {spans:?}"));
    let port = port.to_string();
    for (key, value) in [
        ("mcp.method.name", "tools/call"),
        ("network.transport", "tcp"),
        ("network.protocol.name", "http"),
        ("server.address", "127.0.0.1"),
        ("server.port", &port),
    ] {
        assert_eq!(attribute(call, key).as_deref(), Some(value), "{key} of {call:?}");
    }
    let sent = String::from_utf8_lossy(&sent.lock().unwrap()).into_owned();
    let session = attribute(call, "mcp.session.id").unwrap();
    assert!(sent.contains(&format!("mcp-session-id: {session}")), "{session} is not in {sent}");
    let version = attribute(call, "mcp.protocol.version").unwrap();
    assert!(sent.contains(&format!("mcp-protocol-version: {version}")), "{version} is not in {sent}");
    let hex = |bytes: &[u8]| bytes.iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
    let told = format!("\"traceparent\":\"00-{}-{}-01\"", hex(&call.trace_id), hex(&call.span_id));
    assert!(sent.contains(&told), "{told} is not in {sent}");
}

#[test]
fn the_model_that_answered_is_told_beside_the_one_that_was_asked() {
    let model = ModelServer::start([], |_| {
        let chunk = json!({"model": "m-2026-01-01", "choices": [{"index": 0, "delta": {"content": "Hello."}}]});
        vec![Piece::Chunk(chunk), finish_chunk("stop"), Piece::Done]
    })
    .unwrap();
    let receiver = Receiver::start();
    let provider = format!("[providers.p]\ndialect = \"openai-chat\"\nbase_url = \"{}\"\nmodels = [\"m\"]\n", model.base_url());
    let ran = place(&receiver, &provider).run(&["chat", "hello", "--model", "p/m"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Hello.\n"), "{ran:?}");
    let spans = receiver.spans();
    let call = spans.iter().find(|span| span.name == "chat m").unwrap_or_else(|| panic!("{spans:?}"));
    let told = ["gen_ai.request.model", "gen_ai.response.model"].map(|key| (attribute(call, key).unwrap(), kind(call, key)));
    assert_eq!(told, [("m".to_owned(), "string"), ("m-2026-01-01".to_owned(), "string")]);
}

#[test]
fn what_was_said_is_traced_where_that_is_asked_for() {
    let receiver = Receiver::start();
    let ran = place(&receiver, "content = true\n").run(&["chat", "please greet my secret friend"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let spans = receiver.spans();
    let all = |key: &str| spans.iter().filter_map(|span| attribute(span, key)).collect::<Vec<_>>().join("\n");
    assert!(all("gen_ai.input.messages").contains("secret friend"), "{spans:?}");
    assert!(all("gen_ai.output.messages").contains("probe__greet"), "{spans:?}");
    assert!(all("gen_ai.tool.call.result").contains("trace:00-"), "{spans:?}");
}

#[test]
fn a_receiver_that_is_not_there_hinders_nothing() {
    let gone = Port::reserve().unwrap();
    let place = Place::with(&format!("[telemetry]\notlp_endpoint = \"http://{}\"\n", gone.address()));
    let ran = place.run(&["chat", "read the file \"a.txt\""]);
    assert!(ran.code == Some(0) && ran.stdout.contains("hello file"), "{ran:?}");
    let told: Vec<_> = ran.stderr.lines().filter(|line| line.contains("traces cannot be sent")).collect();
    let why = format!("http://{}/v1/traces does not answer: Connection refused", gone.address());
    assert!(told.len() == 1 && told[0].contains(" WARN ") && told[0].contains(&why), "{ran:?}");
}

#[test]
fn lines_of_the_log_name_the_request_the_conversation_and_the_turn_and_hold_nothing_that_was_said() {
    let place = Place::with("log_format = \"json\"\nlog_level = \"debug\"\n");
    let server = Server::start(&place);
    let head = "POST /api/v1/conversations/c/chat";
    let answer =
        server.request(&format!("{head} HTTP/1.1\r\nX-Request-Id: mine-1\r\nX-Unused: "), "{\"content\":\"secret word\"}");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // The answer may be here before the last line is.
    let log = wait_for("the line of the turn's end", || Some(server.said()).filter(|log| log.contains("the turn is over")));
    server.stop();
    let lines: Vec<serde_json::Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let said = |text: &str| lines.iter().any(|line| line["message"].as_str().is_some_and(|message| message.starts_with(text)));
    assert!(said("listening on http://"), "{log}");
    let spans = |line: &serde_json::Value| line["spans"].as_array().cloned().unwrap_or_default();
    let of = |line: &serde_json::Value, name: &str, key: &str| {
        spans(line).iter().find(|span| span["name"] == name).and_then(|span| span[key].as_str().map(str::to_owned))
    };
    assert!(lines.iter().any(|line| of(line, "request", "id").as_deref() == Some("mine-1")), "{log}");
    assert!(lines.iter().any(|line| of(line, "turn", "conversation").as_deref() == Some("c")), "{log}");
    let over = lines.iter().find(|line| line["message"] == "the turn is over").unwrap();
    assert_eq!(of(over, "request", "id").as_deref(), Some("mine-1"), "{log}");
    let turn = of(over, "turn", "turn").unwrap();
    assert!(answer.contains(&format!("\"{turn}\"")), "{turn}: {answer}");
    assert!(!log.contains("secret word"), "{log}");
}

#[test]
fn what_a_provider_repeats_of_what_it_was_sent_is_not_logged_and_each_of_its_calls_is_counted() {
    let has_failed = AtomicBool::new(false);
    let model = ModelServer::start([], move |request| {
        let asked = request["messages"].to_string();
        let refusal = |status: &str| {
            let body = json!({"error": {"message": format!("Invalid prompt:\nforged line\n{asked}")}}).to_string();
            let head = format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}", body.len());
            vec![Piece::Raw(format!("{head}\r\nConnection: close\r\n\r\n{body}"))]
        };
        if asked.contains("transcript") {
            return refusal("400 Bad Request");
        }
        if !has_failed.swap(true, Ordering::Relaxed) {
            return refusal("500 Internal Server Error");
        }
        vec![text_chunk("Hello."), finish_chunk("stop"), Piece::Done]
    })
    .unwrap();
    let provider = format!("[providers.p]\ndialect = \"openai-chat\"\nbase_url = \"{}\"\nmodels = [\"m\"]\n", model.base_url());
    let place = Place::new();
    place.write("turnwright.toml", format!("model = \"p/m\"\nlog_level = \"debug\"\n{provider}"));
    let server = Server::start(&place);
    for _ in 0..4 {
        let answer = server.request("POST /api/v1/conversations/c/chat", "{\"content\":\"secret word\"}");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    server.request("POST /api/v1/conversations/c/compact", "");
    let log = wait_for("a summary without the model", || Some(server.said()).filter(|log| log.contains("no summary from")));
    let metrics = server.request("GET /metrics", "");
    server.stop();
    let is_told = log.contains("is tried again") && log.contains("a model call failed") && log.contains("status=400");
    assert!(is_told && !log.contains("secret word") && !log.lines().any(|line| line.starts_with("forged")), "{log}");
    for (outcome, count) in [("complete", 4), ("invalid_request", 1)] {
        let line = format!("turnwright_model_calls_total{{provider=\"p\",model=\"m\",outcome=\"{outcome}\"}} {count}");
        assert!(metrics.contains(&line), "{line}: {metrics}");
    }
}
