//! Ollama's own format, `/api/chat`: it gives more than the compatible one. Context length, thinking, and an error instead
//! of a prompt that is silently cut.

mod message;
mod request;
mod stream;
mod wire;

use serde::Deserialize;
use turnwright_core::ProviderFailure;
use turnwright_core::prompt::Prompt;

use crate::dialect::{Dialect, ErrorResponse, HttpRequest, Offered, StreamDecoder, Target};
use crate::failure;
use crate::kept::Kept;
use crate::profile::Profile;

/// Ollama's format.
#[derive(Debug, Clone, Copy)]
pub struct Ollama;

impl Dialect for Ollama {
    fn name(&self) -> &'static str {
        "ollama"
    }

    fn request(&self, target: &Target<'_>, prompt: &Prompt<'_>, kept: &mut Kept) -> HttpRequest {
        request::request(target, prompt, kept)
    }

    fn decoder(&self, profile: &Profile, offered: &Offered) -> Box<dyn StreamDecoder> {
        Box::new(stream::OllamaDecoder::new(profile, offered))
    }

    fn failure(&self, response: &ErrorResponse<'_>) -> ProviderFailure {
        failure::of_response(response)
    }

    fn authorization(&self, key: &str) -> (&'static str, String) {
        ("authorization", format!("Bearer {key}"))
    }

    fn models_path(&self) -> &'static str {
        "/api/tags"
    }

    fn models(&self, body: &[u8]) -> Result<Vec<String>, ProviderFailure> {
        #[derive(Deserialize)]
        struct List {
            models: Vec<Model>,
        }
        #[derive(Deserialize)]
        struct Model {
            name: Option<String>,
            model: Option<String>,
        }
        let list: List =
            serde_json::from_slice(body).map_err(|_| failure::malformed("the provider's answer is no list of models", body))?;
        Ok(list.models.into_iter().filter_map(|model| model.name.or(model.model)).collect())
    }
}
