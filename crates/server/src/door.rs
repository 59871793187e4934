//! The door of decisions: people come in, what tools start does not (law 6).
//!
//! Without logins a connection from this machine is a person's, unless the process at its other end belongs to a tool: it
//! descends from this process, or it or one of its ancestors carries the mark that every process of a tool is started with.
//! Nor is a process of this program a person: its commands work on the database, and what it asks over HTTP it asks for a
//! tool, or because an MCP server or its sign-in has led it here. Another one may be a client of `/mcp`, which asks its person.
//! The system tells who holds the other end of a loopback connection. Where it could show everybody who might and nobody does, a tool
//! has put it out of sight. Who has cut all ties (no ancestor, no mark) is not told apart; such a program can also write the database. On
//! systems without `/proc` nobody is told apart. Who comes by a proxy that says so is nobody here: at its other end may be anything of
//! this machine.

use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use axum::extract::{ConnectInfo, Request};
use axum::response::{IntoResponse, Response};
use http::{Extensions, Method};
use turnwright_engine::{Door, EngineError};
use turnwright_host::{lineage, mark_of};

use crate::auth::Auth;
use crate::error::ApiError;
use crate::forwarded::Client;

/// The connection that a request came by: the door of its engine. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Connection(Arc<Ends>);

#[derive(Debug)]
struct Ends {
    theirs: SocketAddr,
    /// Where it arrived; `None` where that is not known. One port of this machine may be that of connections to several others.
    ours: Option<SocketAddr>,
    /// Set once a person was found at the other end: nothing that a tool starts comes by the connection of a person's program.
    is_a_persons: OnceLock<()>,
}

impl Connection {
    /// The connection from this address to ours.
    pub(crate) fn new(theirs: SocketAddr, ours: Option<SocketAddr>) -> Self {
        Self(Arc::new(Ends { theirs, ours, is_a_persons: OnceLock::new() }))
    }

    /// The door of a request's engine; `None` where it is not known by which connection it came.
    pub(crate) fn door(auth: Auth, request: &Extensions) -> Option<Arc<dyn Door>> {
        if auth == Auth::Local && Client::of(request).is_handed_on() {
            return Some(Arc::new(ByProxy));
        }
        Self::of(request).map(|Self(ends)| ends as Arc<dyn Door>)
    }

    /// The door of a route for people alone.
    fn door_of(path: &str, auth: Auth, request: &Extensions) -> Option<Arc<dyn Door>> {
        let is_of_clients = path == "/mcp" && !(auth == Auth::Local && Client::of(request).is_handed_on());
        match Self::of(request).filter(|_| is_of_clients) {
            Some(Self(ends)) => Some(Arc::new(OfClients(ends))),
            None => Self::door(auth, request),
        }
    }

    /// The address at which a request arrived; `None` where that is not known.
    pub(crate) fn arrived_at(request: &Extensions) -> Option<IpAddr> {
        Self::of(request)?.0.ours.map(|ours| ours.ip().to_canonical())
    }

    fn of(extensions: &Extensions) -> Option<Self> {
        let named = || extensions.get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(theirs)| Self::new(*theirs, None));
        extensions.get::<Self>().cloned().or_else(named)
    }
}

#[async_trait]
impl Door for Ends {
    async fn open(&self) -> Result<(), String> {
        match self.look().await {
            Finding::Person | Finding::Hidden => Ok(()),
            Finding::Own | Finding::Another => {
                Err("this request comes from Turnwright itself, which a tool or an MCP server has led here".to_owned())
            }
            Finding::Tool => Err("this request comes from a process that a tool has started".to_owned()),
            Finding::Gone => Err("whoever sent this does not wait for the answer".to_owned()),
        }
    }
}

impl Ends {
    async fn look(&self) -> Finding {
        if self.is_a_persons.get().is_some() {
            return Finding::Person;
        }
        let (theirs, ours) = (self.theirs, self.ours);
        let found = tokio::task::spawn_blocking(move || holder_of(theirs, ours)).await.unwrap_or(Finding::Gone);
        if found == Finding::Person {
            self.is_a_persons.get_or_init(|| ());
        }
        found
    }
}

/// The door of `/mcp`: its clients ask their person about each call, also where another process of this program is one.
#[derive(Debug)]
struct OfClients(Arc<Ends>);

#[async_trait]
impl Door for OfClients {
    async fn open(&self) -> Result<(), String> {
        match self.0.look().await {
            Finding::Another => Ok(()),
            Finding::Person | Finding::Hidden | Finding::Own | Finding::Tool | Finding::Gone => self.0.open().await,
        }
    }
}

/// The door of what a proxy hands on where nobody signs in.
#[derive(Debug)]
struct ByProxy;

#[async_trait]
impl Door for ByProxy {
    async fn open(&self) -> Result<(), String> {
        let why = "this request comes by a proxy, and nobody signs in here, so it is not known whether a person sent it; let people \
                   sign in: `[server] auth = \"tokens\"`";
        Err(why.to_owned())
    }
}

/// Refuses what tools start where a request decides, or changes what decides. What is said and what turns are begun with is
/// looked at by the engine, which is given the same door.
pub(crate) async fn people_only(
    auth: Auth,
    request: &mut Request,
    next: impl AsyncFnOnce(&mut Request) -> Response,
) -> Response {
    if decides(request.method(), request.uri().path())
        && let Some(door) = Connection::door_of(request.uri().path(), auth, request.extensions())
        && let Err(why) = door.open().await
    {
        return ApiError::from(EngineError::PeopleOnly { why }).into_response();
    }
    next(request).await
}

/// Whether a route is for people alone, whatever is asked of it.
fn decides(method: &Method, path: &str) -> bool {
    if matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) {
        return false;
    }
    // Its clients are asked about their calls in the same session.
    if path == "/mcp" {
        return true;
    }
    // What deletes or hides, by whatever door.
    let is_change = *method != Method::POST;
    let Some(path) = path.strip_prefix("/api/v1/") else { return is_change };
    is_change
        || path.ends_with("/compact")
        || path.ends_with("/compact/undo")
        || path.ends_with("/decision")
        || path.ends_with("/answer")
        || path == "approvals/rules"
        || path == "tools/call"
        || path.starts_with("mcp/servers")
        || path.starts_with("users")
        || path.starts_with("tokens")
        || path.ends_with("/tools")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Finding {
    Person,
    /// Nobody was seen, and one who may be there hides what it holds: a person, as long as nothing else is known.
    Hidden,
    Tool,
    /// This very process.
    Own,
    /// Another process of this program.
    Another,
    /// Nobody holds the other end any more.
    Gone,
}

/// Who holds the other end of the connection from there to here.
fn holder_of(theirs: SocketAddr, ours: Option<SocketAddr>) -> Finding {
    if !Path::new("/proc/net/tcp").exists() {
        return Finding::Person;
    }
    let sockets = sockets_now(theirs, ours);
    if sockets.is_empty() {
        // It is at another machine, from where tools of this one do not ask; or it is here no more.
        return if theirs.ip().to_canonical().is_loopback() { Finding::Gone } else { Finding::Person };
    }
    let own_mark = mark_of(std::process::id());
    let is_tool = |process: u32| is_of_a_tool(process, own_mark.as_deref());
    if holds(std::process::id(), &sockets) == Some(true) {
        return Finding::Own;
    }
    let own_program = program_of(std::process::id());
    let (mut is_seen, mut may_hide) = (false, false);
    for process in processes() {
        match holds(process, &sockets) {
            Some(true) if is_tool(process) => return Finding::Tool,
            Some(true) if own_program.is_some() && program_of(process) == own_program => return Finding::Another,
            Some(true) => is_seen = true,
            // It hides what it holds: enough where it is known to be a tool's.
            None if !is_seen && is_child(process) => return Finding::Tool,
            None => may_hide |= user_of(process).is_some_and(|user| sockets.iter().any(|socket| socket.user == user)),
            Some(false) => {}
        }
    }
    if is_seen {
        return Finding::Person;
    }
    // It may have ended while it was looked for.
    let is_there = !sockets_now(theirs, ours).is_empty();
    if is_there && (may_hide || is_out_of_sight(&sockets)) { Finding::Hidden } else { Finding::Gone }
}

/// Whether people may be at these sockets whose processes the system does not show here: those of other users, and from within a
/// container all that is outside.
fn is_out_of_sight(sockets: &[Socket]) -> bool {
    const ROOT: u32 = 0;
    let own = user_of(std::process::id());
    let is_ours = |socket: &Socket| own == Some(ROOT) || own == Some(socket.user);
    !sockets.iter().all(is_ours) || !sees_all_processes()
}

/// Whether this process is in the system's first namespace of processes, in which all of them are: its number is the same everywhere
/// (`PROC_PID_INIT_INO` of Linux).
fn sees_all_processes() -> bool {
    std::fs::read_link("/proc/self/ns/pid").is_ok_and(|namespace| namespace.as_os_str() == "pid:[4026531836]")
}

/// The end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Socket {
    /// What stands for it among the files of a process.
    link: OsString,
    /// Whose it is.
    user: u32,
}

/// The living ends at one address that are connected to the other, or to any.
fn sockets_now(at: SocketAddr, to: Option<SocketAddr>) -> Vec<Socket> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().filter_map(|table| std::fs::read_to_string(table).ok());
    tables.flat_map(|table| sockets_between(&table, at, to)).collect()
}

/// The same of one of the system's tables.
fn sockets_between(table: &str, at: SocketAddr, to: Option<SocketAddr>) -> Vec<Socket> {
    let socket = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        let is_there = is_written(fields.next()?, at);
        let is_connected = fields.next().is_some_and(|written| to.is_none_or(|to| is_written(written, to)));
        let user = fields.nth(4)?.parse().ok()?;
        let inode = fields.nth(1)?;
        (is_there && is_connected && inode != "0").then(|| Socket { link: format!("socket:[{inode}]").into(), user })
    };
    table.lines().skip(1).filter_map(socket).collect()
}

/// Whether an address of the system's table is this one. It writes each four bytes as a number of the machine.
fn is_written(written: &str, address: SocketAddr) -> bool {
    let Some((written, port)) = written.split_once(':') else { return false };
    if u16::from_str_radix(port, 16) != Ok(address.port()) {
        return false;
    }
    let numbers: Option<Vec<[u8; 4]>> = written
        .as_bytes()
        .chunks(8)
        .map(|part| u32::from_str_radix(std::str::from_utf8(part).ok()?, 16).ok().map(u32::to_ne_bytes))
        .collect();
    let Some(bytes) = numbers.map(|numbers| numbers.concat()) else { return false };
    let ip: Option<IpAddr> = match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(Into::into),
        16 => <[u8; 16]>::try_from(bytes).ok().map(Into::into),
        _ => None,
    };
    ip.is_some_and(|ip| ip.to_canonical() == address.ip().to_canonical())
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Whether a process holds one of these; `None` where it cannot be looked at.
fn holds(process: u32, sockets: &[Socket]) -> Option<bool> {
    let mut held = std::fs::read_dir(format!("/proc/{process}/fd")).ok()?.flatten();
    Some(held.any(|entry| {
        std::fs::read_link(entry.path()).is_ok_and(|target| sockets.iter().any(|socket| target.as_os_str() == socket.link))
    }))
}

/// As whom a process acts.
fn user_of(process: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_whitespace().nth(1)?.parse().ok()
}

/// The file that a process runs, also where another has been put in its place since.
fn program_of(process: u32) -> Option<String> {
    let path = std::fs::read_link(format!("/proc/{process}/exe")).ok()?;
    let path = path.to_str()?;
    Some(path.strip_suffix(" (deleted)").unwrap_or(path).to_owned())
}

fn is_of_a_tool(process: u32, own_mark: Option<&str>) -> bool {
    let own = std::process::id();
    // Where this process is itself started by a tool of another, its mark is on everything around.
    let is_foreign = |mark: String| Some(mark.as_str()) != own_mark;
    lineage(process).any(|at| at == own || mark_of(at).is_some_and(is_foreign))
}

/// Whether a process descends from this one.
fn is_child(process: u32) -> bool {
    let own = std::process::id();
    lineage(process).any(|at| at == own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_process_asks_of_itself_is_no_persons() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, theirs) = listener.accept().unwrap();
        if !Path::new("/proc/net/tcp").exists() {
            return;
        }
        let ours = server.local_addr().ok();
        assert_eq!((holder_of(theirs, ours), holder_of(theirs, None)), (Finding::Own, Finding::Own));
        drop(client);
        assert_eq!(holder_of(theirs, ours), Finding::Gone);
    }

    /// The system gives the same port to connections that lead elsewhere.
    #[test]
    fn another_connection_from_the_same_port_is_not_taken_for_the_one_that_asks() {
        let hex = |ip: [u8; 4], port: u16| format!("{:08X}:{port:04X}", u32::from_ne_bytes(ip));
        let row = |local: &str, far: &str, inode: u32| {
            format!("   0: {local} {far} 01 00000000:00000000 00:00000000 00000000  1000        0 {inode} 1 0 20 4 30 10 -1\n")
        };
        let (person, server) = (hex([127, 0, 0, 1], 40_000), hex([127, 0, 0, 1], 8_700));
        let (database, other) = (hex([127, 0, 0, 1], 5_432), hex([127, 0, 0, 2], 8_700));
        let table = [
            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n".to_owned(),
            row(&person, &database, 1),
            row(&person, &other, 2),
            row(&person, &server, 3),
            row(&server, &person, 4),
            row(&database, &person, 5),
        ]
        .concat();
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        let links = |ours: Option<&str>| {
            let sockets = sockets_between(&table, at("127.0.0.1:40000"), ours.map(at));
            assert!(sockets.iter().all(|socket| socket.user == 1000), "{sockets:?}");
            sockets.into_iter().map(|socket| socket.link).collect::<Vec<_>>()
        };
        assert_eq!(links(Some("127.0.0.1:8700")), ["socket:[3]"]);
        assert_eq!(links(Some("[::ffff:127.0.0.1]:8700")), ["socket:[3]"]);
        assert_eq!(links(None), ["socket:[1]", "socket:[2]", "socket:[3]"]);
    }

    #[test]
    fn what_decides_is_for_people() {
        let table = [
            (Method::POST, "/api/v1/conversations/c/calls/call_1_0/decision", true),
            (Method::POST, "/api/v1/conversations/c/questions/question_1_0_0/answer", true),
            (Method::POST, "/api/v1/approvals/rules", true),
            (Method::DELETE, "/api/v1/approvals/rules/rule_1", true),
            (Method::POST, "/api/v1/mcp/servers/x/tools/approve", true),
            (Method::PATCH, "/api/v1/conversations/c", true),
            (Method::GET, "/api/v1/approvals", false),
            (Method::POST, "/api/v1/approvals/explain", false),
            (Method::POST, "/api/v1/conversations/c/chat", false),
            (Method::POST, "/v1/chat/completions", false),
            (Method::POST, "/mcp", true),
            (Method::POST, "/api/v1/tools/call", true),
            (Method::POST, "/api/v1/conversations/c/tools", true),
            (Method::POST, "/api/v1/mcp/servers", true),
            (Method::POST, "/api/v1/mcp/servers/x/start", true),
            (Method::POST, "/api/v1/mcp/servers/x/sign_in", true),
            (Method::POST, "/api/v1/mcp/servers/x/apps/call", true),
            (Method::PUT, "/api/v1/providers/x", true),
            (Method::DELETE, "/api/v1/providers/x", true),
            (Method::POST, "/api/v1/users", true),
            (Method::POST, "/api/v1/users/u/links", true),
            (Method::POST, "/api/v1/users/u/tokens", true),
            (Method::POST, "/api/v1/tokens", true),
            (Method::DELETE, "/api/v1/tokens/t", true),
            (Method::PUT, "/api/v1/memory", true),
            (Method::DELETE, "/api/v1/conversations/c/messages/msg_1", true),
            (Method::DELETE, "/v1/responses/resp_c.1", true),
            (Method::GET, "/v1/responses/resp_c.1", false),
            (Method::POST, "/v1/responses", false),
            (Method::POST, "/api/v1/conversations/c/compact", true),
            (Method::POST, "/api/v1/conversations/c/compact/undo", true),
        ];
        for (method, path, expected) in table {
            assert_eq!(decides(&method, path), expected, "{method} {path}");
        }
    }
}
