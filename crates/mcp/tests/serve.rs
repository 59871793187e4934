//! Our endpoint for MCP clients over HTTP, before something that has two tools.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use async_trait::async_trait;
use bytes::Bytes;
use http_body::{Body, Frame};
use serde_json::{Value, json};
use tokio::sync::watch;
use turnwright_core::{ContentBlock, Declared, ToolDefinition, text_of};
use turnwright_engine::{Documents, Icon, Reply, ToolFace, ToolOutput};
use turnwright_mcp::serve::{
    Asks, Backing, Happened, HttpEndpoint, Inquiry, Leave, OfferedCall, OfferedTool, Question, Refused, RunningCall,
    SessionKeeping,
};
use turnwright_testkit::{ManualClock, MemoryDocuments};

#[derive(Debug)]
struct Two {
    changes: watch::Sender<u64>,
    /// What was said to calls that another process waits for.
    joined: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl Backing for Two {
    async fn tools(&self) -> Vec<OfferedTool> {
        let tool = |name: &str, read_only| {
            let definition = Arc::new(ToolDefinition {
                name: format!("two__{name}"),
                source: "two".into(),
                tool: name.into(),
                title: None,
                description: String::new(),
                input_schema: json!({"type": "object", "$defs": {"x": {"x-unknown": 1}}}),
                annotations: Some(json!({"title": "A title", "readOnlyHint": false})),
                declared: Declared { read_only, ..Declared::default() },
            });
            let icon = Icon {
                src: "https://example.org/a.png".into(),
                mime_type: Some("image/png".into()),
                sizes: vec!["48x48".into()],
                theme: Some("dark".into()),
            };
            // Older clients are told of no other schema than of an object.
            let output_schema = if read_only { json!({"type": "array"}) } else { json!({"type": "object", "x-unknown": 2}) };
            let face = ToolFace { output_schema: Some(output_schema), icons: vec![icon], ..ToolFace::default() };
            OfferedTool { definition, face: Arc::new(face) }
        };
        vec![tool("one", true), tool("other", false)]
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    async fn begin(&self, call: OfferedCall) -> Result<Box<dyn RunningCall>, Refused> {
        match call.tool.as_str() {
            "two__one" => Ok(said(vec![Happened::Ended(ToolOutput {
                content: vec![ContentBlock::text(call.client)],
                structured_content: Some(json!([1])),
                is_error: false,
                diagnostic: None,
            })])),
            "two__other" => {
                let (text, elsewhere) = ("May it?".into(), "Ask elsewhere.".into());
                let question = Question { key: Question::key_of(1), leave: Leave::ToRun, text, elsewhere };
                Ok(said(vec![Happened::Ended(ToolOutput::text("it ran")), Happened::Asked(question)]))
            }
            "two__asks" => {
                let form = json!({"type": "object", "properties": {"who": {"type": "string"}}});
                let inquiry =
                    |id: &str, asks| Happened::Inquired(Inquiry { id: id.into(), message: "far asks: Who?".into(), asks });
                Ok(said(vec![
                    Happened::Ended(ToolOutput::text("")),
                    inquiry("visit", Asks::Visit("https://example.org/pay".into())),
                    inquiry("form", Asks::Form(form)),
                ]))
            }
            _ => Err(Refused::NoSuchTool(call.tool)),
        }
    }

    async fn find(&self, handle: &str, call: OfferedCall) -> Result<Box<dyn RunningCall>, Refused> {
        if handle == "the handle" { self.begin(call).await } else { Err(Refused::Other("there is no such call".into())) }
    }

    async fn join(&self, handle: &str, client: &str) -> Result<Box<dyn RunningCall>, Refused> {
        assert_eq!((handle, client), ("the handle", "tester"));
        let inquiry = |id: &str, message: &str| {
            let asks = Asks::Form(json!({"type": "object", "properties": {"who": {"type": "string"}}}));
            Happened::Inquired(Inquiry { id: id.into(), message: message.into(), asks })
        };
        let left = vec![inquiry("form", "far asks: Who?"), inquiry("earlier", "far asks: What?")];
        Ok(Box::new(Said { left, waits: false, joined: Some(Arc::clone(&self.joined)) }))
    }

    async fn lost(&self, client: &str, digest: &str, since_ms: u64) -> Option<(String, OfferedCall)> {
        let call = OfferedCall { client: client.to_owned(), tool: "two__one".to_owned(), arguments: serde_json::Map::new() };
        (digest == call.digest() && since_ms == 1).then(|| ("the handle".to_owned(), call))
    }
}

/// What is left to happen, the next at the end.
#[derive(Debug)]
struct Said {
    left: Vec<Happened>,
    /// It waits for the answer to what its tool asked.
    waits: bool,
    /// It is another process's, and what is said to it is written down.
    joined: Option<Arc<Mutex<Vec<String>>>>,
}

fn said(left: Vec<Happened>) -> Box<dyn RunningCall> {
    Box::new(Said { left, waits: false, joined: None })
}

#[async_trait]
impl RunningCall for Said {
    fn handle(&self) -> &'static str {
        "the handle"
    }

    async fn next(&mut self) -> Happened {
        if self.waits {
            return std::future::pending().await;
        }
        let happened = self.left.pop().unwrap();
        self.waits = self.joined.is_none() && matches!(happened, Happened::Inquired(_));
        happened
    }

    async fn decide(&mut self, may_run: bool) -> Result<(), String> {
        if !may_run {
            self.left = vec![Happened::Ended(ToolOutput { is_error: true, ..ToolOutput::text("it did not run") })];
        }
        Ok(())
    }

    async fn answer(&mut self, inquiry: &str, reply: Reply) -> Result<(), String> {
        self.waits = false;
        if let Some(joined) = &self.joined {
            let content = reply.content.clone().map(Value::Object).unwrap_or_default();
            joined.lock().unwrap().push(format!("{inquiry}: {} {content}", reply.action.as_str()));
        }
        if let Some(Happened::Ended(output)) = self.left.first_mut() {
            let content = reply.content.map(Value::Object).unwrap_or_default();
            let before = text_of(&output.content);
            *output = ToolOutput::text(format!("{before}{inquiry}: {} {content}. ", reply.action.as_str()));
        }
        Ok(())
    }

    async fn cancel(&mut self) {}

    async fn put_down(&mut self) -> ToolOutput {
        ToolOutput::text("this server is ending")
    }

    async fn leave(self: Box<Self>) {}
}

fn endpoint() -> (HttpEndpoint, watch::Sender<u64>) {
    let changes = watch::Sender::new(0);
    (HttpEndpoint::new(Arc::new(Two { changes: changes.clone(), joined: Arc::default() }), 1 << 20), changes)
}

/// Processes over the same data, and the time of their machines.
struct Processes {
    documents: Arc<MemoryDocuments>,
    clock: Arc<ManualClock>,
    joined: Arc<Mutex<Vec<String>>>,
}

impl Processes {
    fn new() -> Self {
        Self { documents: Arc::default(), clock: Arc::new(ManualClock::at(1)), joined: Arc::default() }
    }

    /// Another one, for the sessions of `owner`.
    fn start(&self, owner: &str) -> HttpEndpoint {
        let two = Two { changes: watch::Sender::new(0), joined: self.joined.clone() };
        let (documents, clock) = (self.documents.clone(), self.clock.clone());
        HttpEndpoint::new(Arc::new(two), 1 << 20).keeping_sessions(SessionKeeping { documents, clock, owner: owner.to_owned() })
    }
}

fn closes(session: &str) -> http::Request<Whole> {
    let close = http::Request::delete("http://localhost/mcp").header("Host", "localhost").header("Mcp-Session-Id", session);
    close.body(Whole(None)).unwrap()
}

/// A whole body.
struct Whole(Option<Bytes>);

impl Body for Whole {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }
}

fn request(method: &str, name: Option<&str>, mut params: Value, capabilities: &Value) -> http::Request<Whole> {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "tester", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    params.as_object_mut().unwrap().insert("_meta".into(), meta);
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let mut request = http::Request::post("http://localhost/mcp")
        .header("Host", "localhost")
        .header("Content-Type", "application/json")
        .header("Accept", "application/json, text/event-stream")
        .header("MCP-Protocol-Version", "2026-07-28")
        .header("Mcp-Method", method);
    if let Some(name) = name {
        request = request.header("Mcp-Name", name);
    }
    request.body(Whole(Some(message.to_string().into()))).unwrap()
}

/// The messages of a response, as they come.
struct Messages<B> {
    body: Pin<Box<B>>,
    read: String,
}

impl<B: Body<Data = Bytes, Error = std::convert::Infallible>> Messages<B> {
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((event, rest)) = self.read.split_once("\n\n") {
                let data = event.lines().find_map(|line| line.strip_prefix("data: ")).map(str::to_owned);
                self.read = String::from(rest);
                // A stream that can be taken up again begins with an event that says nothing.
                if let Some(data) = data.filter(|data| !data.is_empty()) {
                    return Some(serde_json::from_str(&data).unwrap());
                }
                continue;
            }
            let frame = std::future::poll_fn(|context| self.body.as_mut().poll_frame(context)).await;
            let Some(Ok(frame)) = frame else {
                return serde_json::from_str(&std::mem::take(&mut self.read)).ok();
            };
            self.read.push_str(std::str::from_utf8(&frame.into_data().unwrap()).unwrap());
        }
    }
}

async fn asked(endpoint: &HttpEndpoint, request: http::Request<Whole>) -> Value {
    let body = Box::pin(endpoint.answer(request).await.into_body());
    Messages { body, read: String::new() }.next().await.unwrap()
}

async fn called(endpoint: &HttpEndpoint, params: Value, capabilities: Value) -> Value {
    let name = params.get("name").and_then(Value::as_str).unwrap().to_owned();
    asked(endpoint, request("tools/call", Some(&name), params, &capabilities)).await
}

#[tokio::test]
async fn tools_are_listed_with_their_schemas_as_they_are_and_what_the_operator_declares() {
    let (endpoint, _changes) = endpoint();
    let answer = asked(&endpoint, request("tools/list", None, json!({}), &json!({}))).await;
    let tool = |name: &str, read_only: bool, output_schema: Value| {
        json!({
            "name": name,
            "inputSchema": {"type": "object", "$defs": {"x": {"x-unknown": 1}}},
            "outputSchema": output_schema,
            "annotations": {"title": "A title", "readOnlyHint": read_only},
            "icons": [{"src": "https://example.org/a.png", "mimeType": "image/png", "sizes": ["48x48"], "theme": "dark"}],
        })
    };
    let other = asked(&endpoint, request("tools/list", None, json!({"cursor": "x"}), &json!({}))).await;
    assert_eq!(other.pointer("/error/code"), Some(&json!(-32602)), "{other}");
    let object = json!({"type": "object", "x-unknown": 2});
    let expected = [tool("two__one", true, json!({"type": "array"})), tool("two__other", false, object.clone())];
    assert_eq!(*answer.pointer("/result/tools").unwrap(), json!(expected));

    let session = opened(&endpoint, &json!({})).await;
    let listed = asked(&endpoint, legacy(&session, &json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}))).await;
    let schemas = ["/result/tools/0/outputSchema", "/result/tools/1/outputSchema"].map(|at| listed.pointer(at));
    assert_eq!(schemas, [None, Some(&object)], "{listed}");
}

/// A request of a client with sessions; of none yet where this is empty.
fn legacy(session: &str, message: &Value) -> http::Request<Whole> {
    let request = http::Request::post("http://localhost/mcp")
        .header("Host", "localhost")
        .header("Content-Type", "application/json")
        .header("Accept", "application/json, text/event-stream");
    let request = if session.is_empty() { request } else { request.header("Mcp-Session-Id", session) };
    request.body(Whole(Some(message.to_string().into()))).unwrap()
}

fn initialize(capabilities: &Value) -> http::Request<Whole> {
    let params = json!({
        "protocolVersion": "2025-11-25",
        "clientInfo": {"name": "tester", "version": "1"},
        "capabilities": capabilities,
    });
    legacy("", &json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}))
}

/// Opens a session of a client that can do this.
async fn opened(endpoint: &HttpEndpoint, capabilities: &Value) -> String {
    let response = endpoint.answer(initialize(capabilities)).await;
    let session = response.headers().get("mcp-session-id").unwrap().to_str().unwrap().to_owned();
    let mut messages = Messages { body: Box::pin(response.into_body()), read: String::new() };
    assert!(messages.next().await.is_some_and(|answer| answer.get("result").is_some()));
    let message = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(endpoint.answer(legacy(&session, &message)).await.status(), 202);
    session
}

#[tokio::test]
async fn more_sessions_than_there_is_room_for_are_refused_and_one_that_is_closed_makes_room() {
    let (endpoint, _changes) = endpoint();
    let endpoint = endpoint.with_max_sessions(2);
    let first = opened(&endpoint, &json!({})).await;
    opened(&endpoint, &json!({})).await;
    let refused = endpoint.answer(initialize(&json!({}))).await;
    assert_eq!(
        (refused.status(), refused.headers().get("retry-after").unwrap().to_str().unwrap()),
        (503.try_into().unwrap(), "60")
    );
    let mut messages = Messages { body: Box::pin(refused.into_body()), read: String::new() };
    let message = "2 sessions are open, which is the limit; close one that is not used, or try again later";
    let expected = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": message}});
    assert_eq!(messages.next().await, Some(expected));
    // Who has one, and who needs none, is served.
    let ping = json!({"jsonrpc": "2.0", "id": 3, "method": "ping"});
    assert!(asked(&endpoint, legacy(&first, &ping)).await.get("result").is_some());
    assert!(called(&endpoint, json!({"name": "two__one"}), json!({})).await.get("result").is_some());
    endpoint.answer(closes(&first)).await;
    opened(&endpoint, &json!({})).await;
}

#[tokio::test]
async fn a_session_that_was_opened_at_one_process_is_gone_on_with_at_every_other_and_by_nobody_else() {
    let processes = Processes::new();
    let (one, other) = (processes.start("ann"), processes.start("ann"));
    let session = opened(&one, &json!({})).await;
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "two__one", "arguments": {}}});
    let answer = asked(&other, legacy(&session, &call)).await;
    assert_eq!(answer.pointer("/result/content/0/text"), Some(&json!("tester")), "{answer}");
    let ping = json!({"jsonrpc": "2.0", "id": 8, "method": "ping"});
    let status = async |endpoint: &HttpEndpoint, session: &str| endpoint.answer(legacy(session, &ping)).await.status().as_u16();
    assert_eq!(status(&processes.start("ben"), &session).await, 404);
    // Who is full says so, whether the session is new or only new there.
    assert_eq!(status(&processes.start("ann").with_max_sessions(0), &session).await, 503);
    processes.clock.advance(23 * 3_600_000);
    assert_eq!(status(&processes.start("ann"), &session).await, 200);
    processes.clock.advance(2 * 3_600_000);
    assert_eq!(status(&processes.start("ann"), &session).await, 404);
    // Its place is needed no more.
    let third = processes.start("ann");
    let next = opened(&third, &json!({})).await;
    assert_eq!(processes.documents.documents("mcp_session").await.unwrap().len(), 1);
    // Nobody else ends it, and it is ended once.
    let ends = async |endpoint: &HttpEndpoint| endpoint.answer(closes(&next)).await.status().as_u16();
    assert_eq!(ends(&processes.start("ben")).await, 404);
    assert_eq!(status(&third, &next).await, 200);
    assert_eq!([ends(&processes.start("ann")).await, ends(&processes.start("ann")).await], [204, 404]);
    assert_eq!(status(&other, &next).await, 404);
}

#[tokio::test]
async fn who_comes_back_to_another_process_gets_the_answer_to_what_was_asked_of_the_one_that_is_gone() {
    let processes = Processes::new();
    let (first, second) = (processes.start("ada"), processes.start("ada"));
    let session = opened(&first, &json!({})).await;
    let answer = json!([{"type": "text", "text": "tester"}]);
    for (tool, answer, code) in [("two__one", Some(answer), None), ("two__other", None, Some(json!(-32603)))] {
        let params = json!({"name": tool, "arguments": {}});
        let call = json!({"jsonrpc": "2.0", "id": "a 7", "method": "tools/call", "params": params});
        let mut body = Box::pin(first.answer(legacy(&session, &call)).await.into_body());
        let frame = std::future::poll_fn(|context| body.as_mut().poll_frame(context)).await.unwrap().unwrap();
        let event = String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap();
        let event = event.lines().find_map(|line| line.strip_prefix("id:")).unwrap().trim();
        let back = http::Request::get("http://localhost/mcp")
            .header("Host", "localhost")
            .header("Accept", "text/event-stream")
            .header("Mcp-Session-Id", &session)
            .header("Last-Event-ID", event);
        let told = asked(&second, back.body(Whole(None)).unwrap()).await;
        assert_eq!(told["id"], json!("a 7"), "{told}");
        assert_eq!((told.pointer("/result/content"), told.pointer("/error/code")), (answer.as_ref(), code.as_ref()), "{told}");
    }
}

#[tokio::test]
async fn params_that_are_not_understood_are_not_taken_for_an_unknown_method() {
    let (endpoint, _changes) = endpoint();
    let session = opened(&endpoint, &json!({})).await;
    for (method, params, code) in
        [("tools/call", json!({"name": 1}), -32602), ("tools/call", json!([]), -32600), ("tools/none", json!({}), -32601)]
    {
        let answer =
            asked(&endpoint, legacy(&session, &json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))).await;
        assert_eq!(answer["error"]["code"], json!(code), "{answer}");
    }
}

#[tokio::test]
async fn what_a_client_answers_at_another_process_reaches_the_call_that_asked_and_no_other() {
    let processes = Processes::new();
    let (one, other) = (processes.start("ann"), processes.start("ann"));
    let session = opened(&one, &json!({"elicitation": {}})).await;
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "two__asks", "arguments": {}}});
    let mut asks = Vec::new();
    for endpoint in [&one, &other] {
        let body = Box::pin(endpoint.answer(legacy(&session, &call)).await.into_body());
        let mut messages = Messages { body, read: String::new() };
        let asked = messages.next().await.unwrap();
        asks.push((asked.get("id").unwrap().clone(), messages));
    }
    assert_ne!(asks[0].0, asks[1].0, "two questions of one session");
    let said = json!({"jsonrpc": "2.0", "id": asks[0].0, "result": {"action": "accept", "content": {"who": "me"}}});
    assert_eq!(other.answer(legacy(&session, &said)).await.status(), 202);
    assert_eq!(*processes.joined.lock().unwrap(), ["form: accept {\"who\":\"me\"}"]);
    // The other's own question is open still.
    let said = json!({"jsonrpc": "2.0", "id": asks[1].0, "result": {"action": "decline"}});
    assert_eq!(other.answer(legacy(&session, &said)).await.status(), 202);
    let answer = asks[1].1.next().await.unwrap();
    assert_eq!(answer.pointer("/result/content/0/text"), Some(&json!("form: decline null. visit: decline null. ")), "{answer}");
    assert_eq!(processes.joined.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn what_a_tool_asks_is_asked_of_the_clients_person_and_refused_where_the_client_cannot() {
    let (endpoint, _changes) = endpoint();
    let call = |more: Value| {
        let mut params = json!({"name": "two__asks"});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    };
    let answer = called(&endpoint, call(json!({})), json!({})).await;
    let said = |answer: &Value| answer.pointer("/result/content/0/text").unwrap().as_str().unwrap().to_owned();
    assert_eq!(said(&answer), "form: decline null. visit: decline null. ");

    let can = json!({"elicitation": {"form": {}, "url": {}}});
    let answer = called(&endpoint, call(json!({})), can.clone()).await;
    let asked_for = answer.pointer("/result/inputRequests/form/params").unwrap();
    let expected = [json!("form"), json!("far asks: Who?"), json!({"who": {"type": "string"}})];
    let found = ["/mode", "/message", "/requestedSchema/properties"].map(|at| asked_for.pointer(at).unwrap().clone());
    assert_eq!(found, expected, "{answer}");
    let mut responses = json!({"form": {"action": "accept", "content": {"who": "me"}}});
    let state = answer.pointer("/result/requestState").unwrap().clone();
    let again = call(json!({"inputResponses": responses, "requestState": state}));
    let answer = called(&endpoint, again, can.clone()).await;
    let asked_for = answer.pointer("/result/inputRequests/visit/params").unwrap();
    assert_eq!((asked_for.get("mode"), asked_for.get("url")), (Some(&json!("url")), Some(&json!("https://example.org/pay"))));
    responses["visit"] = json!({"action": "cancel"});
    let again = call(json!({"inputResponses": responses, "requestState": state}));
    let answer = called(&endpoint, again, can).await;
    assert_eq!(said(&answer), "form: accept {\"who\":\"me\"}. visit: cancel null. ");
}

#[tokio::test]
async fn a_client_with_a_session_is_asked_within_its_call() {
    let (endpoint, _changes) = endpoint();
    let session = opened(&endpoint, &json!({"elicitation": {}})).await;
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "two__asks", "arguments": {}}});
    let body = Box::pin(endpoint.answer(legacy(&session, &call)).await.into_body());
    let mut messages = Messages { body, read: String::new() };
    let asks = messages.next().await.unwrap();
    assert_eq!(
        (asks.get("method"), asks.pointer("/params/message")),
        (Some(&json!("elicitation/create")), Some(&json!("far asks: Who?")))
    );
    let said = json!({"jsonrpc": "2.0", "id": asks.get("id"), "result": {"action": "accept", "content": {"who": "me"}}});
    assert_eq!(endpoint.answer(legacy(&session, &said)).await.status(), 202);
    let answer = messages.next().await.unwrap();
    // It shows no addresses.
    let expected = "form: accept {\"who\":\"me\"}. visit: decline null. ";
    assert_eq!(answer.pointer("/result/content/0/text"), Some(&json!(expected)), "{answer}");
}

#[tokio::test]
async fn a_result_keeps_its_structured_content_and_the_client_its_name() {
    let (endpoint, _changes) = endpoint();
    let answer = called(&endpoint, json!({"name": "two__one"}), json!({})).await;
    let result = answer.get("result").unwrap();
    let found = [result.pointer("/content/0/text"), result.get("structuredContent"), result.get("isError")];
    assert_eq!(found, [Some(&json!("tester")), Some(&json!([1])), Some(&json!(false))]);
}

#[tokio::test]
async fn a_client_without_forms_is_told_where_to_allow_the_call() {
    let (endpoint, _changes) = endpoint();
    let answer = called(&endpoint, json!({"name": "two__other"}), json!({})).await;
    let found = [answer.pointer("/result/content/0/text"), answer.pointer("/result/isError")];
    assert_eq!(found, [Some(&json!("Ask elsewhere.")), Some(&json!(true))]);
}

#[tokio::test]
async fn a_client_with_forms_is_asked_and_what_its_person_says_is_done() {
    let (endpoint, _changes) = endpoint();
    let can = json!({"elicitation": {"form": {}}});
    let answer = called(&endpoint, json!({"name": "two__other"}), can.clone()).await;
    let state = answer.pointer("/result/requestState").unwrap();
    let question = answer.pointer("/result/inputRequests/approval/params/message");
    assert_eq!((state, question), (&json!("the handle"), Some(&json!("May it?"))), "{answer}");
    for (decision, expected) in [("allow", "it ran"), ("deny", "it did not run")] {
        let input = json!({"approval": {"action": "accept", "content": {"decision": decision}}});
        let again = json!({"name": "two__other", "inputResponses": input, "requestState": state});
        let answer = called(&endpoint, again, can.clone()).await;
        assert_eq!(answer.pointer("/result/content/0/text"), Some(&json!(expected)), "{answer}");
    }
}

#[tokio::test]
async fn the_state_of_no_call_is_refused() {
    let (endpoint, _changes) = endpoint();
    let again = json!({"name": "two__other", "requestState": "guessed"});
    let answer = called(&endpoint, again, json!({})).await;
    assert_eq!(answer.pointer("/result/content/0/text"), Some(&json!("there is no such call")), "{answer}");
}

#[tokio::test]
async fn who_listens_is_told_when_the_tools_change_and_when_the_serving_ends() {
    let (endpoint, changes) = endpoint();
    let listen = request("subscriptions/listen", None, json!({"notifications": {"toolsListChanged": true}}), &json!({}));
    let mut messages = Messages { body: Box::pin(endpoint.answer(listen).await.into_body()), read: String::new() };
    let method = |message: Option<Value>| message.and_then(|message| message.get("method").cloned());
    assert_eq!(method(messages.next().await), Some(json!("notifications/subscriptions/acknowledged")));
    // The acknowledgement may come before the listening.
    while changes.receiver_count() == 0 {
        tokio::task::yield_now().await;
    }
    changes.send_modify(|count| *count += 1);
    assert_eq!(method(messages.next().await), Some(json!("notifications/tools/list_changed")));
    endpoint.end().await;
    assert!(messages.next().await.is_none_or(|message| message.get("result").is_some()));
}

#[tokio::test]
async fn a_batch_of_2025_03_26_is_answered_message_by_message() {
    let (endpoint, _changes) = endpoint();
    let session = opened(&endpoint, &json!({})).await;
    let call = json!({"jsonrpc": "2.0", "id": "b", "method": "tools/call", "params": {"name": "two__one", "arguments": {}}});
    let gone = json!({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": {"name": "two__gone"}});
    let notice = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}});
    let ping = json!({"jsonrpc": "2.0", "id": "a", "method": "ping"});
    let response = endpoint.answer(legacy(&session, &json!([ping, notice, call, 7, gone]))).await;
    assert_eq!(response.headers().get("content-type").unwrap(), "text/event-stream");
    let mut messages = Messages { body: Box::pin(response.into_body()), read: String::new() };
    let mut said = Vec::new();
    while let Some(message) = messages.next().await {
        let id = message["id"].as_str().unwrap_or_default().to_owned();
        said.push((id, message["result"]["content"][0]["text"].clone(), message["error"]["code"].clone()));
    }
    said.sort_by(|a, b| a.0.cmp(&b.0));
    let none = Value::Null;
    let expected = [
        (String::new(), none.clone(), json!(-32600)),
        ("a".to_owned(), none.clone(), none.clone()),
        ("b".to_owned(), json!("tester"), none.clone()),
        ("c".to_owned(), none, json!(-32602)),
    ];
    assert_eq!(said, expected);

    assert_eq!(endpoint.answer(legacy(&session, &json!([notice]))).await.status(), 202);
    let mut late = legacy(&session, &json!([ping]));
    late.headers_mut().insert("mcp-protocol-version", "2025-11-25".parse().unwrap());
    let error = json!({"code": -32600, "message": "batches are of 2025-03-26 alone; send each message by itself"});
    assert_eq!(asked(&endpoint, late).await, json!({"jsonrpc": "2.0", "id": null, "error": error}));
}

#[tokio::test]
async fn what_is_no_message_is_refused_with_an_error_of_the_protocol() {
    let (endpoint, _changes) = endpoint();
    let session = opened(&endpoint, &json!({})).await;
    let sent = |session: &str, text: &str| {
        let mut request = legacy(session, &Value::Null);
        *request.body_mut() = Whole(Some(text.to_owned().into()));
        request
    };
    let cases = [
        (sent(&session, "<html>"), 400, -32700, "this is not JSON: expected value at line 1 column 1"),
        (sent(&session, r#"{"id": 7}"#), 400, -32600, "this is no JSON-RPC message"),
        (sent(&session, "[]"), 400, -32600, "the batch is empty"),
        (sent("gone", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#), 404, -32600, "Not Found: Session not found"),
        (sent("gone", r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#), 404, -32600, "Not Found: Session not found"),
        (sent(&session, &" ".repeat((1 << 20) + 1)), 413, -32600, "the request is longer than 1048576 bytes"),
    ];
    for (request, status, code, message) in cases {
        let response = endpoint.answer(request).await;
        let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
        assert_eq!((response.status().as_u16(), kind.as_str()), (status, "application/json"), "{message}");
        let error = Messages { body: Box::pin(response.into_body()), read: String::new() }.next().await.unwrap();
        assert_eq!((&error["error"]["code"], &error["error"]["message"]), (&json!(code), &json!(message)));
    }
}
