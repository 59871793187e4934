//! Requests over connections of their own, with a limit on each wait.

use std::io::{BufRead, BufReader, Error, Read, Result, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// An answer comes within it or not at all: whoever asked asks somebody else then.
const PATIENCE: Duration = Duration::from_secs(3);
const CONNECT: Duration = Duration::from_secs(2);

/// Who asks, and whom.
#[derive(Debug, Clone)]
pub(crate) struct Door {
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
}

/// What a request was answered with.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl Door {
    /// Sends a request with a body of JSON, and headers besides, each with its line end.
    pub(crate) fn ask(&self, head: &str, headers: &str, body: &Value) -> Result<Answer> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, mut reader) = self.open(head, headers, &body, PATIENCE)?;
        let mut text = String::new();
        reader.read_to_string(&mut text)?;
        Ok(Answer { status, body: serde_json::from_str(&text).unwrap_or(Value::String(text)) })
    }

    /// The same up to the body, whose reads wait so long.
    pub(crate) fn open(&self, head: &str, headers: &str, body: &str, wait: Duration) -> Result<(u16, BufReader<TcpStream>)> {
        let mut stream = TcpStream::connect_timeout(&self.address, CONNECT)?;
        stream.set_read_timeout(Some(wait))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let (address, length, token) = (self.address, body.len(), &self.token);
        let rest = format!(
            "Host: {address}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {length}"
        );
        // A body of HTTP/1.0 ends with its connection, so that it is read as it is.
        stream.write_all(format!("{head} HTTP/1.0\r\n{rest}\r\n{headers}\r\n{body}").as_bytes())?;
        let mut reader = BufReader::new(stream);
        let mut first = String::new();
        reader.read_line(&mut first)?;
        let status = first.split(' ').nth(1).and_then(|word| word.parse().ok());
        let mut line = String::new();
        while reader.read_line(&mut line)? > 2 {
            line.clear();
        }
        Ok((status.ok_or_else(|| Error::other(format!("no answer: {first:?}")))?, reader))
    }
}
