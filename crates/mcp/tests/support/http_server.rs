//! An HTTP server on this machine that answers MCP requests as a test wants it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

/// A request as it came: its method, what it asks for, its headers in small letters, its body, and that as JSON where it is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Asked {
    pub(crate) verb: String,
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) text: String,
    pub(crate) body: Value,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The method of the protocol; empty where the body names none.
    pub(crate) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }
}

/// What is answered.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: &'static str,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
    /// How long it takes.
    pub(crate) after: Duration,
}

/// The status of an answer that never comes.
const NEVER: &str = "never";

impl Answer {
    pub(crate) fn status(status: &'static str) -> Self {
        Self { status, headers: Vec::new(), body: String::new(), after: Duration::ZERO }
    }

    /// Nothing, for ever.
    pub(crate) fn never() -> Self {
        Self::status(NEVER)
    }

    /// A body of this media type.
    pub(crate) fn of_type(status: &'static str, kind: &str, body: impl Into<String>) -> Self {
        Self { body: body.into(), ..Self::status(status).with("content-type", kind) }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The result of a request.
    pub(crate) fn result(asked: &Asked, result: &Value) -> Self {
        let body = json!({"jsonrpc": "2.0", "id": asked.body["id"], "result": result}).to_string();
        Self::of_type("200 OK", "application/json", body)
    }
}

/// A server of the handshake era with one tool, `t`, which says `ok`. For tests that change one thing.
pub(crate) fn usual(asked: &Asked) -> Answer {
    let result = match (asked.verb.as_str(), asked.method()) {
        ("POST", "initialize") => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "small", "version": "1"}}),
        ("POST", "tools/list") => json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}),
        ("POST", "tools/call") => json!({"content": [{"type": "text", "text": "ok"}]}),
        ("POST", method) if method.starts_with("notifications/") => return Answer::status("202 Accepted"),
        ("POST", _) => return Answer::status("400 Bad Request"),
        _ => return Answer::status("405 Method Not Allowed"),
    };
    Answer::result(asked, &result)
}

/// See the module. Ends with this value.
#[derive(Debug)]
pub(crate) struct HttpServer {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    _accepting: AbortOnDropHandle<()>,
}

impl HttpServer {
    pub(crate) async fn start(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let (asked, answer) = (Arc::new(Mutex::default()), Arc::new(answer));
        let seen = Arc::clone(&asked);
        let accepting = AbortOnDropHandle::new(tokio::runtime::Handle::current().spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                connections.spawn(async move { serve(stream, &seen, &*answer).await });
            }
        }));
        Self { url, asked, _accepting: accepting }
    }

    /// All requests so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

async fn serve(stream: TcpStream, seen: &Mutex<Vec<Asked>>, answer: &(dyn Fn(&Asked) -> Answer + Send + Sync)) {
    let mut stream = BufReader::new(stream);
    while let Some(asked) = read(&mut stream).await {
        seen.lock().unwrap().push(asked.clone());
        let Answer { status, headers, body, after } = answer(&asked);
        tokio::time::sleep(after).await;
        if status == NEVER {
            std::future::pending::<()>().await;
        }
        let mut text = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in headers {
            text.extend([name, ": ", value.as_str(), "\r\n"]);
        }
        text.extend(["\r\n", &body]);
        if stream.get_mut().write_all(text.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Asked> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok().filter(|read| *read > 0)?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (verb, target) = (words.next()?, words.next()?);
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, value)| value.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await.ok()?;
    let text = String::from_utf8_lossy(&body).into_owned();
    Some(Asked { verb, target, headers, text, body: serde_json::from_slice(&body).unwrap_or_default() })
}
