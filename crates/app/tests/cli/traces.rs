//! Traces as a receiver gets them, and the log beside them.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Attribute;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

use crate::serve::Server;
use crate::support::Place;

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
    assert_eq!(attribute(model, "gen_ai.operation.name").as_deref(), Some("chat"));
    assert_eq!(attribute(turn, "turnwright.turn.status").as_deref(), Some("completed"));
    assert!(!format!("{spans:?}").contains("secret"), "what was said is in {spans:?}");
    let taken = receiver.taken.lock().unwrap();
    assert!(taken.iter().all(|(head, _)| head.starts_with("POST /v1/traces ") && head.contains("Bearer key")), "{taken:?}");
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
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let place = Place::with(&format!("[telemetry]\notlp_endpoint = \"http://{gone}\"\n"));
    let ran = place.run(&["chat", "read the file \"a.txt\""]);
    assert!(ran.code == Some(0) && ran.stdout.contains("hello file"), "{ran:?}");
}

#[test]
fn lines_of_the_log_name_the_request_the_conversation_and_the_turn_and_hold_nothing_that_was_said() {
    let place = Place::with("log_format = \"json\"\nlog_level = \"debug\"\n");
    let server = Server::start(&place);
    let head = "POST /api/v1/conversations/c/chat";
    let answer =
        server.request(&format!("{head} HTTP/1.1\r\nX-Request-Id: mine-1\r\nX-Unused: "), "{\"content\":\"secret word\"}");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let log = server.said();
    server.stop();
    let lines: Vec<serde_json::Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let spans = |line: &serde_json::Value| line["spans"].as_array().cloned().unwrap_or_default();
    let of = |line: &serde_json::Value, name: &str, key: &str| {
        spans(line).iter().find(|span| span["name"] == name).and_then(|span| span[key].as_str().map(str::to_owned))
    };
    assert!(lines.iter().any(|line| of(line, "request", "id").as_deref() == Some("mine-1")), "{log}");
    assert!(lines.iter().any(|line| of(line, "turn", "conversation").as_deref() == Some("c")), "{log}");
    assert!(!log.contains("secret word"), "{log}");
}
