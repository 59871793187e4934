//! A web server on loopback, and names that lead where a test says.

#![allow(clippy::format_push_string, reason = "texts of tests, made as they read best")]

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use turnwright_tools::net::Lookup;

/// What a site was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) method: String,
    /// With the query.
    pub(crate) path: String,
    /// By their names in small letters.
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: String,
}

/// An answer: its status, its headers and its body.
pub(crate) struct Reply(pub(crate) u16, pub(crate) Vec<(String, String)>, pub(crate) Vec<u8>);

impl Reply {
    pub(crate) fn ok(kind: &str, body: impl Into<Vec<u8>>) -> Self {
        Self(200, vec![("content-type".into(), kind.into())], body.into())
    }

    pub(crate) fn status(status: u16, body: &str) -> Self {
        Self(status, vec![("content-type".into(), "text/plain".into())], body.into())
    }

    pub(crate) fn to(location: &str) -> Self {
        Self(302, vec![("location".into(), location.into())], Vec::new())
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.1.push((name.into(), value.into()));
        self
    }
}

type Answers = dyn Fn(&Asked) -> Reply + Send + Sync;

/// A server that answers each connection once.
pub(crate) struct Site {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Site {
    pub(crate) fn new(answers: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        Self::at("127.0.0.1:0", answers)
    }

    pub(crate) fn at(address: &str, answers: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let site = Self { address: listener.local_addr().unwrap(), connections: Arc::default(), asked: Arc::default() };
        let (answers, connections, asked): (Arc<Answers>, _, _) =
            (Arc::new(answers), Arc::clone(&site.connections), Arc::clone(&site.asked));
        // It ends with the process of the test.
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let Ok(connection) = connection else { return };
                connections.fetch_add(1, Ordering::SeqCst);
                let (answers, asked) = (Arc::clone(&answers), Arc::clone(&asked));
                std::thread::spawn(move || drop(serve(connection, &*answers, &asked)));
            }
        });
        site
    }

    /// Who connected so far.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.path).collect()
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

fn serve(mut connection: TcpStream, answers: &Answers, asked: &Mutex<Vec<Asked>>) -> io::Result<()> {
    let (mut read, mut chunk) = (Vec::new(), [0; 4096]);
    let head = loop {
        if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        match connection.read(&mut chunk)? {
            0 => return Ok(()),
            count => read.extend_from_slice(&chunk[..count]),
        }
    };
    let text = String::from_utf8_lossy(&read[..head]).into_owned();
    let mut lines = text.lines();
    let mut first = lines.next().unwrap_or_default().split(' ');
    let (method, path) = (first.next().unwrap_or_default().to_owned(), first.next().unwrap_or_default().to_owned());
    let headers: HashMap<String, String> = lines
        .filter_map(|line| line.split_once(':').map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned())))
        .collect();
    let length: usize = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    while read.len() < head + 4 + length {
        match connection.read(&mut chunk)? {
            0 => break,
            count => read.extend_from_slice(&chunk[..count]),
        }
    }
    let body = String::from_utf8_lossy(&read[head + 4..]).into_owned();
    let request = Asked { method, path, headers, body };
    asked.lock().unwrap().push(request.clone());
    let Reply(status, headers, body) = answers(&request);
    let mut answer = format!("HTTP/1.1 {status} Status\r\nconnection: close\r\n");
    if !headers.iter().any(|(name, _)| name == "content-length") {
        answer += &format!("content-length: {}\r\n", body.len());
    }
    for (name, value) in headers {
        answer += &format!("{name}: {value}\r\n");
    }
    answer.push_str("\r\n");
    connection.write_all(answer.as_bytes())?;
    connection.write_all(&body)
}

/// Names, each with what it leads to the first time, the second time and so on; the last holds from then on.
#[derive(Debug, Default)]
pub(crate) struct Names {
    known: HashMap<String, Vec<Vec<IpAddr>>>,
    asked: Mutex<HashMap<String, usize>>,
}

impl Names {
    pub(crate) fn with(mut self, name: &str, answers: &[&[&str]]) -> Self {
        let answers = answers.iter().map(|answer| answer.iter().map(|address| address.parse().unwrap()).collect());
        self.known.insert(name.to_owned(), answers.collect());
        self
    }
}

#[async_trait]
impl Lookup for Names {
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let Some(answers) = self.known.get(name.trim_end_matches('.')) else {
            return Err(io::Error::other("no such name"));
        };
        let mut asked = self.asked.lock().unwrap();
        let times = asked.entry(name.to_owned()).or_default();
        let answer = answers[(*times).min(answers.len() - 1)].clone();
        *times += 1;
        Ok(answer)
    }
}
