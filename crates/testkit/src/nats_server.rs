//! A NATS server of one's own, on a port of its own, which ends with its test.

use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::Port;

/// How long a server may take to listen.
const TRIES: u32 = 1_000;
const PAUSE: Duration = Duration::from_millis(20);

/// Whether the server keeps messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeps {
    /// It has `JetStream`.
    Messages,
    /// It has not.
    Nothing,
}

/// A server, whose port is its own also while it does not run. Dropped, it is killed.
#[derive(Debug)]
pub struct NatsServer {
    child: Option<Child>,
    program: PathBuf,
    arguments: Vec<String>,
    port: Port,
}

/// The program, where scripts/install-test-servers has installed it; says otherwise that the test is skipped, or fails where
/// that must not be.
///
/// # Errors
/// Where it is missing and `TURNWRIGHT_REQUIRE_TEST_SERVERS` is 1.
pub fn program() -> Result<Option<PathBuf>> {
    let cache = || {
        let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let base = base.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
        Some(base.join("turnwright/test-servers"))
    };
    let folder = std::env::var_os("TURNWRIGHT_TEST_SERVERS").map(PathBuf::from).or_else(cache);
    let found = folder.map(|folder| folder.join("nats/python/bin/nats-server")).filter(|program| program.exists());
    let is_required = std::env::var_os("TURNWRIGHT_REQUIRE_TEST_SERVERS").is_some_and(|value| value == "1");
    if found.is_none() && is_required {
        return Err(Error::other("there is no nats-server; run scripts/install-test-servers"));
    }
    Ok(found)
}

impl NatsServer {
    /// Starts one on loopback that keeps its data in `folder`, with more arguments.
    ///
    /// # Errors
    /// Where it does not listen.
    pub fn start(program: &Path, folder: &Path, keeps: Keeps, more: &[&str]) -> Result<Self> {
        let port = Port::reserve()?;
        let mut arguments = vec!["-a".to_owned(), "127.0.0.1".to_owned(), "-p".to_owned(), port.number().to_string()];
        if keeps == Keeps::Messages {
            arguments.extend(["-js".to_owned(), "-sd".to_owned(), folder.display().to_string()]);
        }
        arguments.extend(more.iter().map(|word| (*word).to_owned()));
        let mut server = Self { child: None, program: program.to_owned(), arguments, port };
        server.start_again()?;
        Ok(server)
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        format!("nats://{}", self.port.address())
    }

    /// The number of its process; none where it does not run.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Ends it with no time for anything.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.kill());
            drop(child.wait());
        }
    }

    /// Starts it again where it was.
    ///
    /// # Errors
    /// Where it does not listen.
    pub fn start_again(&mut self) -> Result<()> {
        self.kill();
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        for _ in 0..TRIES {
            if std::net::TcpStream::connect(self.port.address()).is_ok() {
                self.child = Some(child);
                return Ok(());
            }
            if child.try_wait()?.is_some() {
                return Err(Error::other("nats-server ended at its start"));
            }
            thread::sleep(PAUSE);
        }
        drop(child.kill());
        drop(child.wait());
        Err(Error::other("nats-server does not listen"))
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}
