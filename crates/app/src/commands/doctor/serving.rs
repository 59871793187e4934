//! `turnwright doctor --serving`: how the server that runs here is. For whoever watches over it where there is no other program
//! to ask with, such as in its image.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use turnwright_host::{Finding, Level, config};

use crate::cli::Everywhere;
use crate::exit::Failure;
use crate::opened;

/// How long the server may take to answer.
const WITHIN: Duration = Duration::from_secs(5);
/// The longest answer that is read.
const MAX_BYTES: u64 = 64 << 10;
/// What the findings are about.
const SUBJECT: &str = "server";

/// Asks the server at the configured address whether it is ready.
pub(super) async fn look(everywhere: &Everywhere) -> Result<Vec<Finding>, Failure> {
    let loaded = config::open(&opened::environment()?, &opened::overrides(everywhere))?;
    let server = &loaded.config.server;
    let address = address(&server.listen)?;
    let host = server.origin().and_then(|origin| origin.split_once("://")).map(|(_, authority)| authority.to_owned());
    let host = host.unwrap_or_else(|| address.to_string());
    let request = format!("GET {}/readyz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n", server.path());
    Ok(match tokio::time::timeout(WITHIN, ask(address, server.tls.is_some(), &request)).await {
        Ok(Ok(answer)) => findings(&answer),
        Ok(Err(error)) => vec![found(Level::Problem, format!("nothing answers at {address}: {error}"))],
        Err(_late) => vec![found(Level::Problem, format!("{address} did not answer within {} s", WITHIN.as_secs()))],
    })
}

/// Where the server is reached from here.
fn address(listen: &str) -> Result<SocketAddr, Failure> {
    let wrong = |why: String| Failure::usage(format!("`{listen}` is not an address to ask at: {why}"));
    let mut address = listen.to_socket_addrs().map_err(|error| wrong(error.to_string()))?.next();
    if let Some(address) = address.as_mut().filter(|address| address.ip().is_unspecified()) {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address.ok_or_else(|| wrong("it stands for none".to_owned()))
}

async fn ask(address: SocketAddr, speaks_tls: bool, request: &str) -> std::io::Result<String> {
    let stream = TcpStream::connect(address).await?;
    if speaks_tls {
        return answered(turnwright_server::connect_to_this_machine(stream).await?, request).await;
    }
    answered(stream, request).await
}

async fn answered(mut stream: impl AsyncRead + AsyncWrite + Unpin, request: &str) -> std::io::Result<String> {
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(MAX_BYTES).read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// What an answer of `/readyz` says.
fn findings(answer: &str) -> Vec<Finding> {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
    let status = head.split_whitespace().nth(1).unwrap_or_default();
    let body: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
    if status != "200" {
        let why = body.get("detail").and_then(|detail| detail.as_str()).unwrap_or("no reason was told");
        return vec![found(Level::Problem, format!("it answers {status}: {why}"))];
    }
    let degraded = body.get("degraded").and_then(|degraded| degraded.as_array()).into_iter().flatten();
    let notes = degraded.filter_map(|what| what.as_str()).map(|what| found(Level::Note, what.to_owned()));
    let ready = std::iter::once(found(Level::Ok, "it takes requests".to_owned()));
    ready.chain(notes).collect()
}

fn found(level: Level, text: String) -> Finding {
    Finding { subject: SUBJECT.to_owned(), level, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_asked_from_this_machine_wherever_it_listens() {
        let asked = |listen: &str| address(listen).unwrap().to_string();
        let table = [("0.0.0.0:8700", "127.0.0.1:8700"), ("[::]:1", "[::1]:1"), ("127.0.0.2:9", "127.0.0.2:9")];
        for (listen, expected) in table {
            assert_eq!(asked(listen), expected);
        }
        assert!(address("nowhere").is_err());
    }

    #[test]
    fn what_it_answers_is_told_in_words() {
        let told = |answer: &str| -> Vec<(Level, String)> {
            findings(answer).into_iter().map(|finding| (finding.level, finding.text)).collect()
        };
        let ok = || (Level::Ok, "it takes requests".to_owned());
        assert_eq!(told("HTTP/1.1 200 OK\r\n\r\n{\"status\":\"ready\"}"), [ok()]);
        let degraded = "HTTP/1.1 200 OK\r\n\r\n{\"status\":\"degraded\",\"degraded\":[\"NATS is gone\"]}";
        assert_eq!(told(degraded), [ok(), (Level::Note, "NATS is gone".to_owned())]);
        let ending = "HTTP/1.1 503 Service Unavailable\r\n\r\n{\"detail\":\"the server is ending\"}";
        assert_eq!(told(ending), [(Level::Problem, "it answers 503: the server is ending".to_owned())]);
    }
}
