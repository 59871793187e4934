//! How a server is reached.

use std::fmt;
use std::path::PathBuf;

use turnwright_core::secrets::{OfPath, Secrets, in_addresses};

use super::docker::DockerConfig;
use crate::secrets;

/// What stands for a secret wherever it is shown.
const MASK: &str = "***";

/// How a server is reached: one of the keys `command`, `url` and `image`.
#[derive(Debug, Clone, PartialEq)]
pub enum TransportConfig {
    /// A child process, over its standard input and output.
    Stdio(StdioConfig),
    /// An address, over streamable HTTP.
    Http(HttpConfig),
    /// A Docker container, over its standard input and output.
    Docker(DockerConfig),
}

impl fmt::Display for TransportConfig {
    /// As a person would name it: a command line, an address. Holds no variable and no header, and `***` in the place of each
    /// secret.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, args) = match self {
            Self::Stdio(stdio) => (&stdio.command, stdio.args.as_slice()),
            Self::Http(http) => (&http.url, [].as_slice()),
            Self::Docker(docker) => (&docker.image, docker.args.as_slice()),
        };
        let mut secrets = secrets::of(self);
        // A shorter one would be found in everything.
        secrets.retain(|secret| secret.len() >= Secrets::MIN_BYTES);
        for (at, part) in std::iter::once(first).chain(args).enumerate() {
            let shown = secrets.iter().fold(shown_address(part), |shown, secret| shown.replace(secret, MASK));
            write!(formatter, "{}{shown}", if at == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}

/// A program that talks over its standard input and output.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct StdioConfig {
    /// The program: a path, or a name that is looked up in the `PATH` that the server gets.
    pub command: String,
    /// The program's arguments.
    pub args: Vec<String>,
    /// Variables added to the inherited ones. Values may be secret: they are never shown.
    pub env: Vec<(String, String)>,
    /// Where it runs; the host's working directory where none is given.
    pub cwd: Option<PathBuf>,
}

impl StdioConfig {
    /// A program without arguments.
    pub fn new(command: impl Into<String>) -> Self {
        Self { command: command.into(), ..Self::default() }
    }
}

impl From<StdioConfig> for TransportConfig {
    fn from(stdio: StdioConfig) -> Self {
        Self::Stdio(stdio)
    }
}

impl fmt::Debug for StdioConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("StdioConfig")
            .field("command", &self.command)
            .field("args", &self.args)
            .field("env", &names(&self.env))
            .field("cwd", &self.cwd)
            .finish()
    }
}

/// A server with an address.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpConfig {
    /// The address of its endpoint, with `http://` or `https://`.
    pub url: String,
    /// Headers of each request. Values may be secret: they are never shown, and go to this address alone.
    pub headers: Vec<(String, String)>,
    /// How to sign in, where what the server says of itself is not enough.
    pub oauth: OauthConfig,
}

/// How to sign in to a server, where what it says of itself is not enough.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct OauthConfig {
    /// The client's id at the authorization server, where it was given one by hand.
    pub client_id: Option<String>,
    /// The secret that belongs to it.
    pub client_secret: Option<String>,
    /// The address of a document that describes this client, which is its id then.
    pub client_metadata_url: Option<String>,
    /// Who signs in.
    pub grant: OauthGrant,
    /// What to ask for, where the server does not say.
    pub scopes: Vec<String>,
    /// The port of this machine that the browser comes back to; a free one where it is 0.
    pub redirect_port: u16,
}

/// Who signs in to a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OauthGrant {
    /// A person, in the browser.
    #[default]
    Person,
    /// The client itself, with its id and secret.
    ClientCredentials,
}

impl HttpConfig {
    /// An address without headers of its own.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), headers: Vec::new(), oauth: OauthConfig::default() }
    }
}

impl From<HttpConfig> for TransportConfig {
    fn from(http: HttpConfig) -> Self {
        Self::Http(http)
    }
}

impl fmt::Debug for HttpConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HttpConfig")
            .field("url", &self.url)
            .field("headers", &names(&self.headers))
            .field("oauth", &self.oauth)
            .finish()
    }
}

impl fmt::Debug for OauthConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("OauthConfig")
            .field("client_id", &self.client_id)
            .field("client_secret", &self.client_secret.as_ref().map(|_| "***"))
            .field("client_metadata_url", &self.client_metadata_url)
            .field("grant", &self.grant)
            .field("scopes", &self.scopes)
            .field("redirect_port", &self.redirect_port)
            .finish()
    }
}

/// A text without what may be secret in its addresses.
pub(crate) fn shown_address(text: &str) -> String {
    in_addresses(text, OfPath::Keys, |_| MASK.to_owned())
}

pub(super) fn names(pairs: &[(String, String)]) -> Vec<&str> {
    pairs.iter().map(|(name, _)| name.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_secret_is_never_shown() {
        let mut stdio = StdioConfig::new("server");
        stdio.args = ["--quiet", "--token", "open-sesame", "postgres://me:word@host/name", "--api-key=open-sesame"]
            .map(str::to_owned)
            .into();
        stdio.env = vec![("API_KEY".into(), "hidden".into())];
        let mut http = HttpConfig::new("https://me:word@example.org/mcp?key=word&one=1");
        http.headers = vec![("Authorization".into(), "hidden".into())];
        http.oauth.client_secret = Some("hidden".into());
        let mut docker = DockerConfig::new("mcp/time");
        docker.env = vec![("API_KEY".into(), "hidden".into())];
        let all: [(TransportConfig, &str); 3] = [
            (stdio.into(), "server --quiet --token *** postgres://me:***@host/name --api-key=***"),
            (http.into(), "https://***@example.org/mcp?key=***&one=***"),
            (docker.into(), "mcp/time"),
        ];
        for (transport, named) in all {
            assert_eq!(transport.to_string(), named);
            assert!(!format!("{transport:?}").contains("hidden"), "{transport:?}");
        }
    }
}
