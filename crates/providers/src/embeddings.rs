//! Vectors of texts over HTTP.

use async_trait::async_trait;
use reqwest::header::HeaderMap;
use reqwest::{Client, Url};
use tokio::sync::OnceCell;
use tokio::time::timeout;
use turnwright_dialects::embeddings::{MAX_EMBEDDINGS_BYTES, read, request};
use turnwright_engine::knowledge::Embedder;
use turnwright_network::reason;

use crate::explain::redact;
use crate::{EndpointConfig, client};

/// How much of a refusal is repeated, in characters.
const MOST_SAID: usize = 300;

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

    async fn ask(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, String> {
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
                return Err(format!("its answer is longer than {MAX_EMBEDDINGS_BYTES} bytes, the limit"));
            }
            body.extend_from_slice(&part);
        }
        if !status.is_success() {
            let said: String = String::from_utf8_lossy(&body).split_whitespace().collect::<Vec<_>>().join(" ");
            let said: String = said.chars().take(MOST_SAID).collect();
            return Err(format!("it answered {status}: {said}"));
        }
        read(dialect, &body, texts.len())
    }
}

#[async_trait]
impl Embedder for HttpEmbedder {
    fn name(&self) -> &str {
        &self.name
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, String> {
        self.ask(texts).await.map_err(|why| redact(&self.config, format!("the embedding model `{}`: {why}", self.name)))
    }
}
