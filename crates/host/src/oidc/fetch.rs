//! Asking an identity provider.

use std::fmt::Write;
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use reqwest::{Client, RequestBuilder, redirect};
use serde::de::DeserializeOwned;
use tokio::sync::OnceCell;
use turnwright_network::{Network, made};

/// How long an answer may take.
const ANSWER_TIME: Duration = Duration::from_secs(10);
/// The largest answer, in bytes.
const MAX_BYTES: usize = 1 << 20;

/// Why there is no answer that can be used.
#[derive(Debug)]
pub(super) struct Unanswered {
    why: String,
    /// Whether the answer is of whom was meant, and is no: it would be the same at any other address.
    pub(super) is_refusal: bool,
}

impl Unanswered {
    fn here(why: String) -> Self {
        Self { why, is_refusal: false }
    }
}

impl From<Unanswered> for String {
    fn from(unanswered: Unanswered) -> Self {
        unanswered.why
    }
}

/// Asks, with one client for all questions.
#[derive(Debug)]
pub(super) struct Fetch {
    client: OnceCell<Client>,
    network: Network,
}

impl Fetch {
    pub(super) fn new(network: Network) -> Self {
        Self { client: OnceCell::new(), network }
    }

    pub(super) async fn get<T: DeserializeOwned>(&self, address: &str, token: Option<&str>) -> Result<T, Unanswered> {
        let mut request = self.client().await?.get(address);
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        asked(&self.network, request, address).await
    }

    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        address: &str,
        form: &str,
        basic: Option<&str>,
    ) -> Result<T, Unanswered> {
        let request = self.client().await?.post(address).header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        let request = match basic {
            Some(basic) => request.header(AUTHORIZATION, basic),
            None => request,
        };
        asked(&self.network, request.body(form.to_owned()), address).await
    }

    async fn client(&self) -> Result<&Client, Unanswered> {
        let make = || async {
            let builder = self.network.client().redirect(redirect::Policy::none()).timeout(ANSWER_TIME);
            made(builder).await.map_err(|why| Unanswered::here(format!("cannot be asked: {why}")))
        };
        self.client.get_or_try_init(make).await
    }
}

async fn asked<T: DeserializeOwned>(network: &Network, request: RequestBuilder, address: &str) -> Result<T, Unanswered> {
    // Of what fails no more is told than where: an answer may repeat secrets.
    let unread = |error: reqwest::Error| Unanswered::here(format!("does not answer at {address}: {}", network.reason(&error)));
    let mut response = request.header(ACCEPT, "application/json").send().await.map_err(unread)?;
    let status = response.status();
    let mut body = Vec::new();
    while let Some(part) = response.chunk().await.map_err(unread)? {
        body.extend_from_slice(&part);
        if body.len() > MAX_BYTES {
            return Err(Unanswered::here(format!("answers at {address} with more than {MAX_BYTES} bytes")));
        }
    }
    if !status.is_success() {
        let said: Option<serde_json::Value> = serde_json::from_slice(&body).ok();
        let error = said.as_ref().and_then(|said| said.get("error")?.as_str());
        // As RFC 6749, section 5.2 has it. What is not there says so in JSON too.
        let is_refusal = matches!(status.as_u16(), 401 | 403 | 429) || (status.as_u16() == 400 && error.is_some());
        let error = error.unwrap_or("no error that is understood");
        return Err(Unanswered { why: format!("refuses at {address} with {} ({error})", status.as_u16()), is_refusal });
    }
    let other = |error| Unanswered::here(format!("answers at {address} with something else than expected: {error}"));
    serde_json::from_slice(&body).map_err(other)
}

/// Fields as a form sends them.
pub(super) fn form(fields: &[(&str, &str)]) -> String {
    let pairs: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    pairs.join("&")
}

/// A text as a part of a form.
pub(crate) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to memory does not fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}
