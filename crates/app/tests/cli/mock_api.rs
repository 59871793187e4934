//! An HTTP API on loopback that answers as a test says.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

/// What it was asked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Asked {
    /// The method and the path with its query: `GET /a?b=c`.
    pub(crate) line: String,
    pub(crate) authorization: Option<String>,
    /// Whom it was sent to, `ADDRESS:PORT`.
    pub(crate) host: String,
    /// Null where there was none, or it was no JSON.
    pub(crate) body: Value,
    /// The body as it came.
    pub(crate) text: String,
}

/// Answers each connection once; ends with the process.
pub(crate) struct MockApi {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl MockApi {
    pub(crate) fn new(answers: impl Fn(&Asked) -> (u16, Value) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (answers, told) = (Arc::new(answers), Arc::clone(&asked));
        thread::spawn(move || {
            for connection in listener.incoming() {
                let (answers, told) = (Arc::clone(&answers), Arc::clone(&told));
                thread::spawn(move || serve(connection.unwrap(), &*answers, &told));
            }
        });
        Self { address, asked }
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// What it was asked, without who asked.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.line).collect()
    }
}

fn serve(mut connection: TcpStream, answers: &dyn Fn(&Asked) -> (u16, Value), told: &Mutex<Vec<Asked>>) {
    let mut reader = BufReader::new(connection.try_clone().unwrap());
    let mut first = String::new();
    if reader.read_line(&mut first).unwrap() == 0 {
        return;
    }
    let (mut length, mut authorization, mut host) = (0, None, String::new());
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim_end().split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.parse().unwrap(),
            Some((name, value)) if name.eq_ignore_ascii_case("host") => value.clone_into(&mut host),
            Some((name, value)) if name.eq_ignore_ascii_case("authorization") => authorization = Some(value.to_owned()),
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let line = first.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
    let text = String::from_utf8_lossy(&body).into_owned();
    let asked = Asked { line, authorization, host, body: serde_json::from_slice(&body).unwrap_or_default(), text };
    told.lock().unwrap().push(asked.clone());
    let (status, body) = answers(&asked);
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let head = format!(
        "HTTP/1.1 {status} Status\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    connection.write_all((head + &body).as_bytes()).unwrap();
}
