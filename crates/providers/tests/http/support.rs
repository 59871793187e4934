//! A server that plays a script for each connection, and what asks it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use turnwright_core::prompt::{Prompt, PromptMessage};
use turnwright_core::{ContentBlock, ModelRef, ProviderFailure, Seq, StreamDelta, TurnSettings, UserMessage};
use turnwright_dialects::by_name;
use turnwright_engine::{ModelStream, Provider, SystemClock};
use turnwright_providers::{EndpointConfig, HttpProvider, Timeouts};

/// One thing that the server does once a request came.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// Writes bytes at once.
    Write(Vec<u8>),
    /// Waits for another request on the same connection.
    NextRequest,
    /// Says nothing for so long, as a slow server does.
    Pause(Duration),
    /// Says nothing more, until the client closes the connection; then tells the test.
    Hold(Arc<Notify>),
}

pub(crate) fn write(text: impl Into<Vec<u8>>) -> Act {
    Act::Write(text.into())
}

/// A response with its length.
pub(crate) fn response(status: &str, headers: &str, body: &str) -> Act {
    write(format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}\r\n{body}", body.len()))
}

pub(crate) const STREAM_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-request-id: req_1\r\nconnection: close\r\n\r\n";

pub(crate) fn text_event(text: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
}

pub(crate) const END: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// A good answer.
pub(crate) fn good() -> Vec<Act> {
    vec![write(format!("{STREAM_HEAD}{}{END}", text_event("hello")))]
}

/// The server; it ends with the test.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) base_url: String,
    requests: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

impl Server {
    /// Plays `scripts`, one for each connection.
    pub(crate) async fn start(scripts: Vec<Vec<Act>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            for script in scripts {
                let (stream, _) = listener.accept().await.unwrap();
                connections.spawn(play(stream, script, Arc::clone(&seen)));
            }
            // A connection too many is refused.
            drop(listener);
            while connections.join_next().await.is_some() {}
        });
        Self { base_url, requests, _tasks: tasks }
    }

    /// The requests so far, head and body.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    pub(crate) fn config(&self) -> EndpointConfig {
        EndpointConfig { max_retries: 0, ..EndpointConfig::new("local", by_name("openai-chat").unwrap(), &self.base_url) }
    }

    pub(crate) fn provider(&self) -> HttpProvider {
        provider(self.config())
    }
}

async fn play(mut stream: TcpStream, script: Vec<Act>, seen: Arc<Mutex<Vec<String>>>) {
    let request = read_request(&mut stream).await;
    seen.lock().unwrap().push(request);
    for act in script {
        match act {
            Act::Write(bytes) => {
                if stream.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            Act::NextRequest => {
                let request = read_request(&mut stream).await;
                seen.lock().unwrap().push(request);
            }
            Act::Pause(time) => tokio::time::sleep(time).await,
            Act::Hold(closed) => {
                let mut rest = [0; 1];
                while matches!(stream.read(&mut rest).await, Ok(1..)) {}
                closed.notify_one();
            }
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> String {
    let mut request = Vec::new();
    loop {
        let mut bytes = [0; 4096];
        let count = stream.read(&mut bytes).await.unwrap_or(0);
        request.extend_from_slice(&bytes[..count]);
        let text = String::from_utf8_lossy(&request).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            assert!(count > 0, "a request that ends in its head: {text}");
            continue;
        };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |n| n.parse().unwrap());
        if body.len() >= length {
            return text;
        }
    }
}

pub(crate) fn provider(config: EndpointConfig) -> HttpProvider {
    HttpProvider::new(config, Arc::new(SystemClock))
}

pub(crate) fn short_timeouts() -> Timeouts {
    Timeouts { headers: Duration::from_millis(50), idle: Duration::from_millis(50), ..Timeouts::default() }
}

/// Asks the model `m` something.
pub(crate) fn ask(provider: &HttpProvider) -> ModelStream {
    let settings = TurnSettings::new(ModelRef::new("local", "m"));
    let user = UserMessage { content: vec![ContentBlock::text("Hi")], settings: settings.clone() };
    let prompt = Prompt {
        conversation: None,
        settings: &settings,
        messages: vec![PromptMessage::User { seq: Seq::FIRST, message: &user }],
        tools: &[],
        allow_calls: true,
        has_open_demand: false,
    };
    provider.call("m", &prompt).unwrap()
}

/// All that came of a call.
#[derive(Debug)]
pub(crate) struct Came {
    pub(crate) batches: Vec<Vec<StreamDelta>>,
    pub(crate) failure: Option<ProviderFailure>,
}

impl Came {
    pub(crate) fn text(&self) -> String {
        let texts = self.batches.iter().flatten().filter_map(|delta| match delta {
            StreamDelta::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    pub(crate) fn notices(&self) -> Vec<String> {
        let notices = self.batches.iter().flatten().filter_map(|delta| match delta {
            StreamDelta::Notice(text) => Some(text.clone()),
            _ => None,
        });
        notices.collect()
    }

    pub(crate) fn failed(self) -> ProviderFailure {
        self.failure.expect("a failure")
    }
}

pub(crate) async fn collect(mut stream: ModelStream) -> Came {
    let mut came = Came { batches: Vec::new(), failure: None };
    while let Some(item) = stream.next().await {
        assert!(came.failure.is_none(), "something came after a failure");
        match item {
            Ok(batch) => came.batches.push(batch),
            Err(failure) => came.failure = Some(failure),
        }
    }
    came
}

/// What comes of one question to a server that plays `script`.
pub(crate) async fn ask_script(script: Vec<Act>) -> Came {
    let server = Server::start(vec![script]).await;
    collect(ask(&server.provider())).await
}
