//! Responses: the format of OpenAI's `/responses`, used without state on the provider's side.
//!
//! Every request carries the whole conversation, and asks for reasoning in encrypted form, so that it can be given back.

mod item;
mod message;
mod output;
mod own;
mod request;
mod stream;
mod tools;
mod wire;

use turnwright_core::ProviderFailure;
use turnwright_core::prompt::Prompt;

use crate::dialect::{Dialect, ErrorResponse, HttpRequest, Mended, Offered, StreamDecoder, Target};
use crate::failure;
use crate::kept::Kept;
use crate::openai_chat::OpenAiChat;
use crate::profile::Profile;

/// The Responses format.
#[derive(Debug, Clone, Copy)]
pub struct OpenAiResponses;

impl Dialect for OpenAiResponses {
    fn name(&self) -> &'static str {
        "openai-responses"
    }

    fn request(&self, target: &Target<'_>, prompt: &Prompt<'_>, kept: &mut Kept) -> HttpRequest {
        request::request(target, prompt, kept)
    }

    fn mended(&self, body: &[u8], failure: &ProviderFailure) -> Option<Mended> {
        own::is_refused(failure).then(|| own::without_reasoning(body, usize::MAX)).flatten()
    }

    fn still_mended(&self, body: &[u8], messages: usize) -> Option<Vec<u8>> {
        own::without_reasoning(body, messages).map(|mended| mended.body)
    }

    fn decoder(&self, _: &Profile, _: &Offered) -> Box<dyn StreamDecoder> {
        Box::<stream::ResponsesDecoder>::default()
    }

    fn failure(&self, response: &ErrorResponse<'_>) -> ProviderFailure {
        failure::of_response(response)
    }

    fn authorization(&self, key: &str) -> (&'static str, String) {
        OpenAiChat.authorization(key)
    }

    fn models_path(&self) -> &'static str {
        OpenAiChat.models_path()
    }

    fn models(&self, body: &[u8]) -> Result<Vec<String>, ProviderFailure> {
        OpenAiChat.models(body)
    }
}
