//! The little that is needed of the Docker Engine's API, over its socket: <https://docs.docker.com/reference/api/engine/>.
//!
//! Paths carry no version: an engine answers those with its newest, and nothing here changed since 1.24.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use http::{Method, StatusCode, header};
use reqwest::{Client, Response, Upgraded};
use serde::Deserialize;
use serde_json::Value;

/// How long an engine may take to answer what it can answer at once.
const LIMIT: Duration = Duration::from_secs(30);
/// The most of an answer that is read.
const MAX_ANSWER_BYTES: usize = 8 << 20;

/// An engine.
#[derive(Debug, Clone)]
pub(crate) struct Engine {
    client: Client,
}

/// Why it did not do what it was asked for.
#[derive(Debug)]
pub(crate) enum EngineError {
    /// Nobody is there: what was asked for has not happened.
    Absent(String),
    /// No answer came, or none that can be used: what was asked for may have happened.
    Unclear(String),
    /// It refused.
    Refused {
        status: StatusCode,
        /// In its own words.
        message: String,
    },
}

/// How a container is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct State {
    pub(crate) exit_code: i64,
    #[serde(rename = "OOMKilled")]
    pub(crate) is_out_of_memory: bool,
}

impl Engine {
    /// The engine at `unix:///path`, which is not asked yet.
    pub(crate) fn at(address: &str) -> Result<Self, String> {
        let path = address.strip_prefix("unix://").filter(|path| path.starts_with('/'));
        let path = path.map(PathBuf::from).ok_or("only an engine with a socket, `unix:///PATH`, can be used")?;
        drop(rustls::crypto::ring::default_provider().install_default());
        let client = Client::builder().unix_socket(path).tls_certs_only([]).no_proxy().build();
        client.map(|client| Self { client }).map_err(|error| error.to_string())
    }

    /// Makes a container and gives its id.
    pub(crate) async fn create(&self, name: &str, body: &Value) -> Result<String, EngineError> {
        let path = format!("/containers/create?name={}", query(name));
        let created = self.json(Method::POST, &path, Some(body)).await?;
        match created.get("Id") {
            Some(Value::String(id)) => Ok(id.clone()),
            _ => Err(EngineError::Unclear("its answer names no container".to_owned())),
        }
    }

    /// Its input and output, which must be taken before its start lest the first lines are lost.
    pub(crate) async fn attach(&self, id: &str) -> Result<Upgraded, EngineError> {
        let path = format!("/containers/{id}/attach?stream=1&stdin=1&stdout=1&stderr=1");
        let request = self.client.post(address(&path)).header(header::CONNECTION, "Upgrade").header(header::UPGRADE, "tcp");
        let response = request.send().await.map_err(|error| unanswered(&error))?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(refused(response).await);
        }
        response.upgrade().await.map_err(|error| unanswered(&error))
    }

    /// Starts it.
    pub(crate) async fn start(&self, id: &str) -> Result<(), EngineError> {
        self.json(Method::POST, &format!("/containers/{id}/start"), None).await.map(drop)
    }

    /// Waits, as long as it takes, until it does not run.
    pub(crate) async fn ended(&self, id: &str) -> Result<(), EngineError> {
        let waiting = self.client.post(address(&format!("/containers/{id}/wait")));
        let response = waiting.send().await.map_err(|error| unanswered(&error))?;
        if response.status().is_success() { body(response).await.map(drop) } else { Err(refused(response).await) }
    }

    /// How it is.
    pub(crate) async fn state(&self, id: &str) -> Result<State, EngineError> {
        let inspected = self.json(Method::GET, &format!("/containers/{id}/json"), None).await?;
        let state = inspected.get("State").cloned().unwrap_or_default();
        serde_json::from_value(state).map_err(|error| EngineError::Unclear(error.to_string()))
    }

    /// Asks it to end, and ends it after `grace`.
    pub(crate) async fn stop(&self, id: &str, grace: Duration) -> Result<(), EngineError> {
        let path = format!("/containers/{id}/stop?t={}", grace.as_secs().max(1));
        self.json(Method::POST, &path, None).await.map(drop)
    }

    /// Removes it, running or not. One that is gone already is no error.
    pub(crate) async fn remove(&self, id: &str) -> Result<(), EngineError> {
        match self.json(Method::DELETE, &format!("/containers/{id}?force=1&v=1"), None).await {
            // Somebody else is removing it.
            Err(EngineError::Refused { status: StatusCode::NOT_FOUND | StatusCode::CONFLICT, .. }) | Ok(_) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The ids of the containers with this label, running or not.
    pub(crate) async fn labelled(&self, label: &str, value: &str) -> Result<Vec<String>, EngineError> {
        let filters = serde_json::json!({ "label": [format!("{label}={value}")] }).to_string();
        let path = format!("/containers/json?all=1&filters={}", query(&filters));
        let Value::Array(found) = self.json(Method::GET, &path, None).await? else { return Ok(Vec::new()) };
        Ok(found.iter().filter_map(|container| Some(container.get("Id")?.as_str()?.to_owned())).collect())
    }

    /// Fetches an image, as long as it takes; a name without a tag means its newest.
    pub(crate) async fn fetch(&self, image: &str) -> Result<(), EngineError> {
        let name = image.rsplit('/').next().unwrap_or(image);
        let tag = if name.contains([':', '@']) { "" } else { "&tag=latest" };
        let asked = self.client.post(address(&format!("/images/create?fromImage={}{tag}", query(image))));
        let response = asked.send().await.map_err(|error| unanswered(&error))?;
        let status = response.status();
        if !status.is_success() {
            return Err(refused(response).await);
        }
        // Its progress comes as one JSON object after the other; a failure is among them, since the status was sent before.
        for line in body(response).await?.split(|byte| *byte == b'\n') {
            if let Ok(Failed { error }) = serde_json::from_slice(line) {
                return Err(EngineError::Refused { status, message: error });
            }
        }
        Ok(())
    }

    async fn json(&self, method: Method, path: &str, sent: Option<&Value>) -> Result<Value, EngineError> {
        let mut request = self.client.request(method, address(path)).timeout(LIMIT);
        if let Some(sent) = sent {
            request = request.header(header::CONTENT_TYPE, "application/json").body(sent.to_string());
        }
        let response = request.send().await.map_err(|error| unanswered(&error))?;
        if !(response.status().is_success() || response.status() == StatusCode::NOT_MODIFIED) {
            return Err(refused(response).await);
        }
        // Some answers have no body.
        Ok(serde_json::from_slice(&body(response).await?).unwrap_or_default())
    }
}

#[derive(Deserialize)]
struct Failed {
    error: String,
}

#[derive(Deserialize)]
struct Refusal {
    message: String,
}

fn address(path: &str) -> String {
    // The host is not looked up: all goes to the socket.
    format!("http://docker{path}")
}

/// A value as part of a query.
fn query(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            other => drop(write!(out, "%{other:02X}")),
        }
    }
    out
}

fn unanswered(error: &reqwest::Error) -> EngineError {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    if error.is_connect() { EngineError::Absent(cause.to_string()) } else { EngineError::Unclear(cause.to_string()) }
}

async fn refused(response: Response) -> EngineError {
    let status = response.status();
    let message = match body(response).await {
        Ok(body) => serde_json::from_slice(&body).map_or_else(|_| status.to_string(), |Refusal { message }| message),
        Err(_) => status.to_string(),
    };
    EngineError::Refused { status, message }
}

async fn body(mut response: Response) -> Result<Vec<u8>, EngineError> {
    let mut read = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| unanswered(&error))? {
        read.extend_from_slice(&chunk);
        if read.len() > MAX_ANSWER_BYTES {
            return Err(EngineError::Unclear("its answer is too long".to_owned()));
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_a_query_holds_nothing_that_means_something_there() {
        assert_eq!(query("a/b:1&t={\"x\"}"), "a%2Fb%3A1%26t%3D%7B%22x%22%7D");
    }

    #[test]
    fn an_engine_without_a_socket_is_refused() {
        for address in ["tcp://127.0.0.1:2375", "ssh://host", "unix://relative", ""] {
            assert!(Engine::at(address).is_err(), "{address}");
        }
    }
}
