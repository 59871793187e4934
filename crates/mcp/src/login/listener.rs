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

/// What a visit with another state is told. It may be somebody's guess: it ends nothing.
const FOREIGN: &str = "This visit belongs to another sign-in than the one that Turnwright waits for (its `state` is another one), \
                       and is not taken. Open the address that Turnwright showed, and sign in there.";

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
    let url = url.filter(|url| url.path() == PATH);
    let is_ours = url.as_ref().is_some_and(|url| query(url, "state").as_deref() == Some(state));
    let (status, text) = match &url {
        Some(_) if is_ours => ("200 OK", "Turnwright has what it needs. This page can be closed."),
        Some(_) => ("400 Bad Request", FOREIGN),
        None => ("404 Not Found", "There is nothing here."),
    };
    if url.is_some() && !is_ours {
        tracing::warn!(
            "the browser came back with another `state` than it was sent away with: that visit is not taken, and the right one is \
             waited for. Open the address above anew if nothing else comes"
        );
    }
    let url = url.filter(|_| is_ours);
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

#[cfg(test)]
mod tests {
    use super::*;

    async fn get(listener: &Listener, target: &str) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, listener.port)).await.unwrap();
        stream.write_all(format!("GET {target} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, text) = answer.split_once("\r\n\r\n").unwrap();
        format!("{}: {text}", head.lines().next().unwrap())
    }

    #[tokio::test]
    async fn who_comes_with_another_state_is_told_so_and_ends_nothing() {
        let listener = Listener::bind(0).await.unwrap();
        let asks = async {
            let mut told = Vec::new();
            for target in
                ["/callback?code=x&state=guessed", "/callback?code=x", "/other?state=ours", "/callback?code=c&state=ours"]
            {
                told.push(get(&listener, target).await);
            }
            told
        };
        let (visit, told) = tokio::join!(listener.visit("ours"), asks);
        assert_eq!(visit.unwrap().query(), Some("code=c&state=ours"));
        let foreign = format!("HTTP/1.1 400 Bad Request: {FOREIGN}");
        let done = "HTTP/1.1 200 OK: Turnwright has what it needs. This page can be closed.";
        assert_eq!(told, [&foreign, &foreign, "HTTP/1.1 404 Not Found: There is nothing here.", done]);
    }
}
