//! Where the browser comes back to: a port of this machine, for one visit.

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use reqwest::Url;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

const PATH: &str = "/callback";
/// The most of a request that is read, and how long it may take to come.
const MAX_HEAD_BYTES: u64 = 16 << 10;
const HEAD_LIMIT: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Debug)]
pub(super) struct Listener {
    listener: TcpListener,
    port: u16,
}

impl Listener {
    /// On this port, or on a free one where it is 0. This machine alone can reach it.
    pub(super) async fn bind(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port })
    }

    /// The address to come back to.
    pub(super) fn address(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// Waits for the visit that brings this `state`; every other one is sent away. Returns its whole address.
    pub(super) async fn visit(&self, state: &str) -> io::Result<Url> {
        // A browser opens connections ahead that it does not use: none may hold up the others.
        let mut visits = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept() => {
                    let (stream, _) = accepted?;
                    let (state, address) = (state.to_owned(), self.address());
                    visits.spawn(async move { tokio::time::timeout(HEAD_LIMIT, visited(stream, &address, &state)).await });
                }
                Some(visit) = visits.join_next() => {
                    if let Ok(Ok(Some(url))) = visit {
                        return Ok(url);
                    }
                }
            }
        }
    }
}

async fn visited(mut stream: TcpStream, address: &str, state: &str) -> Option<Url> {
    let mut head = Vec::new();
    let mut reading = (&mut stream).take(MAX_HEAD_BYTES);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if reading.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let head = String::from_utf8_lossy(&head);
    let target = head.strip_prefix("GET ").and_then(|rest| rest.split_whitespace().next());
    let url = target.and_then(|target| Url::parse(address).ok()?.join(target).ok());
    let url = url.filter(|url| url.path() == PATH && query(url, "state").as_deref() == Some(state));
    let (status, text) = match &url {
        Some(_) => ("200 OK", "Turnwright has what it needs. This page can be closed."),
        None => ("404 Not Found", "There is nothing here."),
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\ncache-control: no-store\r\n\
         referrer-policy: no-referrer\r\nconnection: close\r\n\r\n{text}",
        text.len()
    );
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
    url
}

/// A parameter of an address.
pub(super) fn query(url: &Url, name: &str) -> Option<String> {
    url.query_pairs().find(|(known, _)| known == name).map(|(_, value)| value.into_owned())
}
