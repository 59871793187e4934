//! A watcher of a conversation: its event stream, read frame by frame.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::support::LIMIT;

/// An open event stream.
pub(crate) struct Watcher {
    reader: BufReader<TcpStream>,
}

/// One server-sent event.
#[derive(Debug, PartialEq)]
pub(crate) struct Told {
    /// Where to come back to.
    pub(crate) id: String,
    pub(crate) event: Value,
}

impl Watcher {
    /// Watches at `address`, as whoever saw the event with this id last; `None` where nobody answers or it is refused.
    pub(crate) fn open(address: &str, path: &str, last: Option<&str>) -> Option<Self> {
        let mut stream = TcpStream::connect(address).ok()?;
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let last = last.map_or(String::new(), |id| format!("Last-Event-ID: {id}\r\n"));
        // A body of HTTP/1.0 ends with its connection, so that it is read as it is.
        stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n{last}\r\n").as_bytes()).ok()?;
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while reader.read_line(&mut head).ok()? > 2 {}
        // A proxy has a version of its own.
        let is_open = head.split_whitespace().nth(1) == Some("200");
        is_open.then_some(Self { reader })
    }

    /// The next event; `None` where the stream ended.
    pub(crate) fn next(&mut self) -> Option<Told> {
        let (mut id, mut line) = (String::new(), String::new());
        loop {
            line.clear();
            // What was cut off in the middle of a line does not count.
            if self.reader.read_line(&mut line).ok()? == 0 || !line.ends_with('\n') {
                return None;
            }
            if let Some(value) = line.strip_prefix("id: ") {
                value.trim_end().clone_into(&mut id);
            } else if let Some(data) = line.strip_prefix("data: ") {
                let data = data.trim_end();
                // What ends a stream of the AI SDK is no JSON.
                let event = if data == "[DONE]" { Value::from(data) } else { serde_json::from_str(data).unwrap() };
                return Some(Told { id, event });
            }
        }
    }

    /// All events up to the first of this type.
    pub(crate) fn until(&mut self, kind: &str) -> Vec<Value> {
        let mut events: Vec<Value> = Vec::new();
        while events.last().is_none_or(|event| event["type"] != kind) {
            events.push(self.next().unwrap_or_else(|| panic!("no {kind} after {events:?}")).event);
        }
        events
    }
}
