//! Gemini: the `generateContent` format of Google's Gemini API and of Vertex AI.

mod calls;
mod mend;
mod message;
mod model;
mod request;
mod stream;
mod wire;

use serde::Deserialize;
use turnwright_core::prompt::Prompt;
use turnwright_core::{NativeBlock, ProviderFailure};

use crate::dialect::{Dialect, ErrorResponse, HttpRequest, Mended, Offered, StreamDecoder, Target};
use crate::failure::{self, malformed};
use crate::kept::Kept;
use crate::profile::Profile;

pub(crate) use message::{NO_SIGNATURE, Writer};
pub(crate) use model::Model;

/// The Gemini format.
#[derive(Debug, Clone, Copy)]
pub struct Gemini;

impl Dialect for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn request(&self, target: &Target<'_>, prompt: &Prompt<'_>, kept: &mut Kept) -> HttpRequest {
        request::request(target, prompt, kept)
    }

    fn mended(&self, body: &[u8], failure: &ProviderFailure) -> Option<Mended> {
        mend::is_refused(failure).then(|| mend::without_signatures(body, usize::MAX)).flatten()
    }

    fn still_mended(&self, body: &[u8], messages: usize) -> Option<Vec<u8>> {
        mend::without_signatures(body, messages).map(|mended| mended.body)
    }

    fn decoder(&self, _profile: &Profile, _offered: &Offered) -> Box<dyn StreamDecoder> {
        Box::new(stream::GeminiDecoder::default())
    }

    fn failure(&self, response: &ErrorResponse<'_>) -> ProviderFailure {
        failure::of_response(response)
    }

    fn authorization(&self, key: &str) -> (&'static str, String) {
        ("x-goog-api-key", key.to_owned())
    }

    fn models_path(&self) -> &'static str {
        "/models?pageSize=1000"
    }

    fn models(&self, body: &[u8]) -> Result<Vec<String>, ProviderFailure> {
        #[derive(Deserialize)]
        struct List {
            models: Vec<Model>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Model {
            name: String,
            supported_generation_methods: Option<Vec<String>>,
        }
        let list: List =
            serde_json::from_slice(body).map_err(|_| malformed("the provider's answer is no list of models", body))?;
        let speaks = |model: &Model| {
            model.supported_generation_methods.as_ref().is_none_or(|all| all.iter().any(|method| method == "generateContent"))
        };
        let short = |model: Model| model.name.strip_prefix("models/").map(str::to_owned).unwrap_or(model.name);
        Ok(list.models.into_iter().filter(speaks).map(short).collect())
    }
}

/// What an answer that is to be continued leaves behind: the next request gives the token back.
fn continuation(token: &str) -> NativeBlock {
    NativeBlock(serde_json::json!({"continuationToken": token}).to_string())
}

/// The token that such a block holds.
fn continuation_token(native: &NativeBlock) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Continuation {
        continuation_token: String,
    }
    // Other blocks may be large.
    if !native.0.starts_with("{\"continuationToken\":") {
        return None;
    }
    serde_json::from_str::<Continuation>(&native.0).ok().map(|held| held.continuation_token)
}
