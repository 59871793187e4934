//! Our endpoint for MCP clients over HTTP, before something that has two tools.
#![expect(clippy::unwrap_used, reason = "helpers of tests; clippy excuses only the test functions themselves")]

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use bytes::Bytes;
use http_body::{Body, Frame};
use serde_json::{Value, json};
use tokio::sync::watch;
use turnwright_core::{ContentBlock, Declared, ToolDefinition};
use turnwright_engine::ToolOutput;
use turnwright_mcp::serve::{Backing, Happened, HttpEndpoint, OfferedCall, Question, Refused, RunningCall};

#[derive(Debug)]
struct Two {
    changes: watch::Sender<u64>,
}

#[async_trait]
impl Backing for Two {
    async fn tools(&self) -> Vec<Arc<ToolDefinition>> {
        let tool = |name: &str, read_only| {
            Arc::new(ToolDefinition {
                name: format!("two__{name}"),
                source: "two".into(),
                tool: name.into(),
                title: None,
                description: String::new(),
                input_schema: json!({"type": "object", "$defs": {"x": {"x-unknown": 1}}}),
                annotations: Some(json!({"title": "A title", "readOnlyHint": false})),
                declared: Declared { read_only, ..Declared::default() },
            })
        };
        vec![tool("one", true), tool("other", false)]
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    async fn begin(&self, call: OfferedCall) -> Result<Box<dyn RunningCall>, Refused> {
        match call.tool.as_str() {
            "two__one" => Ok(Box::new(Said(vec![Happened::Ended(ToolOutput {
                content: vec![ContentBlock::text(call.client)],
                structured_content: Some(json!([1])),
                is_error: false,
                diagnostic: None,
            })]))),
            "two__other" => {
                let question = Question { text: "May it?".into(), elsewhere: "Ask elsewhere.".into() };
                Ok(Box::new(Said(vec![Happened::Ended(ToolOutput::text("it ran")), Happened::Asked(question)])))
            }
            _ => Err(Refused::NoSuchTool(call.tool)),
        }
    }

    async fn find(&self, handle: &str, call: OfferedCall) -> Result<Box<dyn RunningCall>, Refused> {
        if handle == "the handle" { self.begin(call).await } else { Err(Refused::Other("there is no such call".into())) }
    }
}

/// What is left to happen, the next at the end.
#[derive(Debug)]
struct Said(Vec<Happened>);

#[async_trait]
impl RunningCall for Said {
    fn handle(&self) -> &'static str {
        "the handle"
    }

    async fn next(&mut self) -> Happened {
        self.0.pop().unwrap()
    }

    async fn decide(&mut self, may_run: bool) -> Result<(), String> {
        if !may_run {
            self.0 = vec![Happened::Ended(ToolOutput { is_error: true, ..ToolOutput::text("it did not run") })];
        }
        Ok(())
    }

    async fn cancel(&mut self) {}

    fn leave(self: Box<Self>) {}
}

fn endpoint() -> (HttpEndpoint, watch::Sender<u64>) {
    let changes = watch::Sender::new(0);
    (HttpEndpoint::new(Arc::new(Two { changes: changes.clone() }), 1 << 20), changes)
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
                if let Some(data) = data {
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
    let tool = |name: &str, read_only: bool| {
        json!({
            "name": name,
            "inputSchema": {"type": "object", "$defs": {"x": {"x-unknown": 1}}},
            "annotations": {"title": "A title", "readOnlyHint": read_only},
        })
    };
    assert_eq!(*answer.pointer("/result/tools").unwrap(), json!([tool("two__one", true), tool("two__other", false)]));
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
