//! What can go wrong with a server, for its operator.

use std::path::PathBuf;
use std::time::Duration;

use turnwright_core::shell_word;

use crate::{OauthGrant, ServerConfig, TransportConfig};

/// Why a server is not there. Its text becomes the reason of
/// [`turnwright_engine::SourceState::Failing`], followed by the server's last log lines.
#[derive(Debug, thiserror::Error)]
pub enum McpError {
    /// There is no such program.
    #[error("the command `{command}` was not found; it must be a path, or a name in the PATH that servers are given")]
    CommandNotFound {
        /// As configured.
        command: String,
    },
    /// There is no such folder.
    #[error("the working directory {} does not exist", cwd.display())]
    NoWorkingDirectory {
        /// As configured.
        cwd: PathBuf,
    },
    /// The program could not be started.
    #[error("the command `{command}` could not be started: {source}")]
    Spawn {
        /// As configured.
        command: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The start took too long.
    #[error("it did not finish its start within {} ms: {waited_for}", limit.as_millis())]
    StartTimeout {
        /// The limit.
        limit: Duration,
        /// What did not come.
        waited_for: &'static str,
    },
    /// It ended while it was being started.
    #[error("it ended during its start ({how})")]
    EndedAtStart {
        /// Its exit code or signal.
        how: String,
    },
    /// No engine that could run its container.
    #[error(
        "no Docker engine answers at {address}: {reason}; is it running, and may this user use it? (`DOCKER_HOST` names \
         another)"
    )]
    NoEngine {
        /// Where it was looked for.
        address: String,
        /// What happened.
        reason: String,
    },
    /// Its image is not there.
    #[error(
        "the image `{image}` is not on this machine; fetch it with `docker pull {image}`, or set `docker.pull = \"missing\"`"
    )]
    NoImage {
        /// As configured.
        image: String,
    },
    /// Its container could not be started.
    #[error("the container of `{image}` could not be started: {message}")]
    Container {
        /// As configured.
        image: String,
        /// What the engine said.
        message: String,
    },
    /// Its address cannot be used.
    #[error("its address `{url}` cannot be used: {reason}")]
    BadAddress {
        /// As configured.
        url: String,
        /// What is wrong with it, or with a header.
        reason: String,
    },
    /// Nobody answers at its address.
    #[error("it cannot be reached at {url}: {reason}")]
    Unreachable {
        /// As configured.
        url: String,
        /// What happened.
        reason: String,
    },
    /// Whoever asks must sign in first, or the key that was given is not taken.
    #[error("it needs a sign-in: {reason}")]
    NeedsSignIn {
        /// What it said.
        reason: String,
        /// Its `WWW-Authenticate` header, where it sent one.
        challenge: Option<String>,
    },
    /// Signing in failed.
    #[error("the sign-in failed: {message}")]
    SignIn {
        /// What happened.
        message: String,
    },
    /// The opening of the protocol failed.
    #[error("it refused the handshake: {message}")]
    Handshake {
        /// What it said.
        message: String,
    },
    /// It speaks a version that nobody here knows.
    #[error("it speaks the protocol version `{version}`, known are {known}")]
    UnknownVersion {
        /// Its version.
        version: String,
        /// Those that are known.
        known: String,
    },
    /// Its tools could not be listed.
    #[error("its tools could not be listed: {message}")]
    List {
        /// What happened.
        message: String,
    },
    /// It ended while it was in use.
    #[error("it ended by itself ({how})")]
    Ended {
        /// Its exit code or signal.
        how: String,
    },
    /// It was ended because it did not work any more.
    #[error("it was ended because {why}")]
    Condemned {
        /// What was wrong.
        why: String,
    },
}

impl McpError {
    /// What it says to people who can do something about it, for this server.
    pub(crate) fn for_people(&self, config: &ServerConfig) -> String {
        let server = shell_word(&config.name);
        let signs_in_by_itself =
            matches!(&config.transport, TransportConfig::Http(http) if http.oauth.grant == OauthGrant::ClientCredentials);
        match self {
            Self::NeedsSignIn { reason, .. } if reason.contains("header") => self.to_string(),
            Self::NeedsSignIn { .. } if signs_in_by_itself => {
                format!("{self}; nobody can sign in there: look at the server's table `oauth`, by which its client does")
            }
            Self::NeedsSignIn { reason, .. } if reason.contains("token") => {
                format!("{self}; another sign-in (`turnwright mcp login {server}`) helps where it gives another one")
            }
            Self::NeedsSignIn { .. } => format!("{self}; `turnwright mcp login {server}` leads through it"),
            other => other.to_string(),
        }
    }
}
