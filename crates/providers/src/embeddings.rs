//! Vectors of texts over HTTP.

use async_trait::async_trait;
use reqwest::header::HeaderMap;
use reqwest::{Client, StatusCode, Url};
use tokio::sync::OnceCell;
use tokio::time::timeout;
use turnwright_dialects::embeddings::{MAX_EMBEDDINGS_BYTES, read, request};
use turnwright_engine::knowledge::{Embedder, NotEmbedded};
use turnwright_network::reason;

use crate::explain::redact;
use crate::{EndpointConfig, client};

/// How much of a refusal is repeated, in characters.
const MOST_SAID: usize = 300;

/// How endpoints say that a text is too long, or that they do not take it for another reason. 500 is llama.cpp's word.
const REFUSES_TEXTS: [StatusCode; 4] = [
    StatusCode::BAD_REQUEST,
    StatusCode::PAYLOAD_TOO_LARGE,
    StatusCode::UNPROCESSABLE_ENTITY,
    StatusCode::INTERNAL_SERVER_ERROR,
];

/// A model of an endpoint that turns texts into vectors. Its client is made when it is first used.
#[derive(Debug)]
pub struct HttpEmbedder {
    config: EndpointConfig,
    model: String,
    name: String,
    connection: OnceCell<(Client, Url, HeaderMap)>,
}

impl HttpEmbedder {
    /// The model `model` of this endpoint.
    pub fn new(config: EndpointConfig, model: &str) -> Self {
        let name = format!("{}/{model}", config.name);
        Self { config, model: model.to_owned(), name, connection: OnceCell::new() }
    }

    async fn connection(&self) -> Result<&(Client, Url, HeaderMap), String> {
        let connect = || async {
            let made = async {
                Ok((client::client(&self.config).await?, client::base(&self.config)?, client::headers(&self.config)?))
            };
            made.await.map_err(|failure: turnwright_core::ProviderFailure| failure.message)
        };
        self.connection.get_or_try_init(connect).await
    }

    async fn ask(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, NotEmbedded> {
        let dialect = self.config.dialect.name();
        let asked = request(dialect, &self.model, texts)?;
        let (client, base, headers) = self.connection().await?;
        let body = serde_json::to_vec(&asked.body).map_err(|error| error.to_string())?;
        let sent = client.post(client::url(base, &asked.path)).headers(headers.clone()).body(body).send();
        let mut response = timeout(self.config.timeouts.headers, sent)
            .await
            .map_err(|_| "it did not answer in time".to_owned())?
            .map_err(|error| format!("it cannot be reached: {}", self.config.network.reason(&error)))?;
        let status = response.status();
        let mut body = Vec::new();
        while let Some(part) = timeout(self.config.timeouts.idle, response.chunk())
            .await
            .map_err(|_| "its answer stopped".to_owned())?
            .map_err(|error| format!("its answer broke off: {}", reason(&error)))?
        {
            if body.len().saturating_add(part.len()) > MAX_EMBEDDINGS_BYTES {
                return Err(format!("its answer is longer than {MAX_EMBEDDINGS_BYTES} bytes, the limit").into());
            }
            body.extend_from_slice(&part);
        }
        if !status.is_success() {
            let said: String = String::from_utf8_lossy(&body).split_whitespace().collect::<Vec<_>>().join(" ");
            let said: String = said.chars().take(MOST_SAID).collect();
            let is_of_the_texts = REFUSES_TEXTS.contains(&status);
            return Err(NotEmbedded { why: format!("it answered {status}: {said}"), is_of_the_texts });
        }
        Ok(read(dialect, &body, texts.len())?)
    }
}

#[async_trait]
impl Embedder for HttpEmbedder {
    fn name(&self) -> &str {
        &self.name
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, NotEmbedded> {
        let told = |NotEmbedded { why, is_of_the_texts }| {
            let why = redact(&self.config, format!("the embedding model `{}`: {why}", self.name));
            NotEmbedded { why, is_of_the_texts }
        };
        self.ask(texts).await.map_err(told)
    }
}
