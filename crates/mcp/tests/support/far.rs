//! Servers with an address.

use std::path::Path;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use turnwright_mcp::{HttpConfig, ServerConfig};
use turnwright_testkit::Port;

use super::{Fixture, LONG, installed, quick, started};

/// The server at an address, asked with these headers.
pub(crate) fn at(url: &str, headers: &[(&str, &str)]) -> ServerConfig {
    let mut http = HttpConfig::new(url);
    http.headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let mut config = ServerConfig::new("far", http);
    quick(&mut config);
    config
}

/// A server's process, with the port that is its own.
type Running = (Child, Port);

/// The npm reference server on a port of this machine; `None` where it is not installed.
pub(crate) async fn everything() -> Option<(Running, Fixture)> {
    everything_over("streamableHttp", "mcp").await
}

/// The same over this transport of its, at this path.
pub(crate) async fn everything_over(transport: &str, path: &str) -> Option<(Running, Fixture)> {
    let script = installed()?.join("npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let port = Port::reserve().unwrap();
    let mut command = Command::new("node");
    command.arg(script).arg(transport).env("PORT", port.number().to_string());
    let child = listening(command).await;
    let fixture = started(at(&format!("http://{}/{path}", port.address()), &[])).await;
    Some(((child, port), fixture))
}

/// A server of the official Python library, which speaks 2026-07-28; `None` where that is not installed.
pub(crate) async fn modern() -> Option<(Running, Fixture)> {
    let python = installed()?.join("python/bin/python");
    let port = Port::reserve().unwrap();
    let mut command = Command::new(python);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/modern_http.py")).arg(port.number().to_string());
    let child = listening(command).await;
    let fixture = started(at(&format!("http://{}/mcp", port.address()), &[])).await;
    Some(((child, port), fixture))
}

/// Starts a server and waits until it says that it listens.
async fn listening(mut command: Command) -> Child {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let listening = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if ["listening on port", "running on port", "running on http"].iter().any(|sign| line.contains(sign)) {
                return;
            }
        }
        panic!("it ended");
    };
    tokio::time::timeout(LONG, listening).await.expect("it listens");
    // Whoever has no reader for what it says stands still one day.
    tokio::runtime::Handle::current().spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    child
}
