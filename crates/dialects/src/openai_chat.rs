//! Chat Completions: the format of OpenAI's `/chat/completions`, which nearly every other server speaks too.

mod calls;
mod message;
mod reasoning;
mod request;
mod settings;
mod stream;
mod wire;

use serde::Deserialize;
use turnwright_core::ProviderFailure;
use turnwright_core::prompt::Prompt;

use crate::dialect::{Dialect, ErrorResponse, HttpRequest, Offered, StreamDecoder, Target};
use crate::failure;
use crate::kept::Kept;
use crate::profile::Profile;

pub(crate) use message::Writer;
pub(crate) use request::Tools;

/// The Chat Completions format.
#[derive(Debug, Clone, Copy)]
pub struct OpenAiChat;

impl Dialect for OpenAiChat {
    fn name(&self) -> &'static str {
        "openai-chat"
    }

    fn request(&self, target: &Target<'_>, prompt: &Prompt<'_>, kept: &mut Kept) -> HttpRequest {
        request::request(target, prompt, kept)
    }

    fn decoder(&self, profile: &Profile, offered: &Offered) -> Box<dyn StreamDecoder> {
        Box::new(stream::ChatDecoder::new(profile, offered))
    }

    fn failure(&self, response: &ErrorResponse<'_>) -> ProviderFailure {
        failure::of_response(response)
    }

    fn authorization(&self, key: &str) -> (&'static str, String) {
        ("authorization", format!("Bearer {key}"))
    }

    fn models_path(&self) -> &'static str {
        "/models"
    }

    fn models(&self, body: &[u8]) -> Result<Vec<String>, ProviderFailure> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum List {
            Bare(Vec<Model>),
            Wrapped { data: Option<Vec<Model>>, models: Option<Vec<Model>> },
        }
        #[derive(Deserialize)]
        struct Model {
            id: Option<String>,
            name: Option<String>,
        }
        let list = match serde_json::from_slice(body) {
            Ok(List::Bare(list)) => Some(list),
            Ok(List::Wrapped { data, models }) => data.or(models),
            Err(_) => None,
        };
        let list = list.ok_or_else(|| failure::malformed("the provider's answer is no list of models", body))?;
        Ok(list.into_iter().filter_map(|model| model.id.or(model.name)).collect())
    }
}
