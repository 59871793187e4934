//! A model endpoint over HTTP (Chat Completions) that answers by script and can stop at named points.
//!
//! For tests that run the real binary: whoever kills it at an instant must know that the instant has come.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

/// One piece of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// Says that this instant has come, and waits there until [`ModelServer::run_free`] where the test wants to stop at it.
    Point(&'static str),
    /// Says nothing for so long: a model at its own pace.
    Pause(Duration),
    /// One event of the stream.
    Chunk(Value),
    /// The stream's end marker.
    Done,
    /// A whole response, head and body, as it is; the connection ends after it.
    Raw(String),
    /// Cuts the connection here.
    Cut,
}

type Script = Box<dyn Fn(&Value) -> Vec<Piece> + Send + Sync>;

/// A scripted endpoint on loopback. Ends when it is dropped.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

struct Shared {
    script: Script,
    state: Mutex<State>,
    changed: Condvar,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("state", &self.state).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct State {
    stops: HashSet<&'static str>,
    reached: HashSet<&'static str>,
    requests: Vec<Value>,
    bodies: Vec<String>,
    is_over: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks a point, and waits there where the test wants that.
    fn pass(&self, point: &'static str) {
        let mut state = self.lock();
        state.reached.insert(point);
        self.changed.notify_all();
        while state.stops.contains(point) && !state.is_over {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl ModelServer {
    /// An endpoint that answers each request body by `script`, stopping at the points in `stops`.
    ///
    /// # Errors
    /// Where no loopback port can be had.
    pub fn start(
        stops: impl IntoIterator<Item = &'static str>,
        script: impl Fn(&Value) -> Vec<Piece> + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        Self::start_at(Ipv4Addr::LOCALHOST.into(), stops, script)
    }

    /// The same at another address of this machine.
    ///
    /// # Errors
    /// Where it has no such address.
    pub fn start_at(
        address: IpAddr,
        stops: impl IntoIterator<Item = &'static str>,
        script: impl Fn(&Value) -> Vec<Piece> + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let listener = TcpListener::bind((address, 0))?;
        let address = listener.local_addr()?;
        let state = State { stops: stops.into_iter().collect(), ..State::default() };
        let shared = Arc::new(Shared { script: Box::new(script), state: Mutex::new(state), changed: Condvar::new() });
        let inside = shared.clone();
        let acceptor = std::thread::spawn(move || {
            let mut served = Vec::new();
            for stream in listener.incoming() {
                if inside.lock().is_over {
                    break;
                }
                let Ok(stream) = stream else { continue };
                let inside = inside.clone();
                served.push(std::thread::spawn(move || drop(serve(&stream, &inside))));
            }
            for thread in served {
                let _ended = thread.join();
            }
        });
        Ok(Self { address, shared, acceptor: Some(acceptor) })
    }

    /// The `base_url` of a provider that asks it.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Waits until a point is reached; whether it was within `limit`.
    pub fn wait_for(&self, point: &str, limit: Duration) -> bool {
        let state = self.shared.lock();
        let waited = self.shared.changed.wait_timeout_while(state, limit, |state| !state.reached.contains(point));
        let (_state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        !timeout.timed_out()
    }

    /// Stops nowhere any more.
    pub fn run_free(&self) {
        self.shared.lock().stops.clear();
        self.shared.changed.notify_all();
    }

    /// The bodies of the requests so far.
    pub fn requests(&self) -> Vec<Value> {
        self.shared.lock().requests.clone()
    }

    /// The same, byte for byte.
    pub fn bodies(&self) -> Vec<String> {
        self.shared.lock().bodies.clone()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.run_free();
        // Wakes the acceptor, which then sees that it is over.
        drop(TcpStream::connect(self.address));
        if let Some(acceptor) = self.acceptor.take() {
            let _ended = acceptor.join();
        }
    }
}

/// Serves requests until the connection is closed.
fn serve(stream: &TcpStream, shared: &Shared) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = stream.try_clone()?;
    loop {
        let Some((text, body)) = request(&mut reader)? else { return Ok(()) };
        {
            let mut state = shared.lock();
            state.requests.push(body.clone());
            state.bodies.push(text);
        }
        let mut has_begun = false;
        let mut begin = |writer: &mut TcpStream| -> std::io::Result<()> {
            if !std::mem::replace(&mut has_begun, true) {
                writer
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")?;
            }
            Ok(())
        };
        for piece in (shared.script)(&body) {
            match piece {
                Piece::Point(point) => shared.pass(point),
                Piece::Pause(time) => std::thread::sleep(time),
                Piece::Chunk(value) => {
                    begin(&mut writer)?;
                    chunk(&mut writer, &format!("data: {value}\n\n"))?;
                }
                Piece::Done => {
                    begin(&mut writer)?;
                    chunk(&mut writer, "data: [DONE]\n\n")?;
                }
                Piece::Raw(response) => {
                    writer.write_all(response.as_bytes())?;
                    return stream.shutdown(std::net::Shutdown::Write);
                }
                Piece::Cut => return stream.shutdown(std::net::Shutdown::Both),
            }
        }
        begin(&mut writer)?;
        writer.write_all(b"0\r\n\r\n")?;
    }
}

fn chunk(writer: &mut TcpStream, text: &str) -> std::io::Result<()> {
    write!(writer, "{:x}\r\n{text}\r\n", text.len())?;
    writer.flush()
}

/// The next request's body, as it came and read as JSON; `None` at the end of the connection.
fn request(reader: &mut impl BufRead) -> std::io::Result<Option<(String, Value)>> {
    let mut length = 0;
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        match line.trim_end().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.trim().parse().unwrap_or(0),
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let text = String::from_utf8_lossy(&body).into_owned();
    Ok(serde_json::from_str(&text).ok().map(|value| (text, value)))
}

/// A chunk with text.
pub fn text_chunk(text: &str) -> Piece {
    Piece::Chunk(json!({"choices": [{"index": 0, "delta": {"content": text}}]}))
}

/// A chunk that begins a call, or goes on with its arguments where `name` is empty.
pub fn call_chunk(index: u32, name: &str, arguments: &str) -> Piece {
    let call = if name.is_empty() {
        json!({"index": index, "function": {"arguments": arguments}})
    } else {
        json!({"index": index, "id": format!("call_{index}"), "type": "function", "function": {"name": name, "arguments": arguments}})
    };
    Piece::Chunk(json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}))
}

/// A chunk with a finish reason.
pub fn finish_chunk(reason: &str) -> Piece {
    Piece::Chunk(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}))
}

/// How many tool results a request shows after its last user message.
pub fn results_shown(request: &Value) -> usize {
    let messages = request.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    messages.iter().rev().take_while(|message| message["role"] != "user").filter(|message| message["role"] == "tool").count()
}
