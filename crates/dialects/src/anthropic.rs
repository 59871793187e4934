//! Messages: the format of Anthropic's `/v1/messages`, which gateways and some other makers speak too.

mod blocks;
mod content;
mod failure;
mod mend;
mod message;
mod models;
mod native;
mod output;
mod request;
mod stream;
mod wire;

use serde::Deserialize;
use turnwright_core::ProviderFailure;
use turnwright_core::prompt::Prompt;

use crate::dialect::{Dialect, ErrorResponse, HttpRequest, Mended, Offered, StreamDecoder, Target};
use crate::failure::malformed;
use crate::kept::Kept;
use crate::profile::Profile;

pub(crate) use message::Writer;

/// What every request carries.
const HEADERS: [(&str, &str); 1] = [("anthropic-version", "2023-06-01")];

/// The Messages format.
#[derive(Debug, Clone, Copy)]
pub struct Anthropic;

impl Dialect for Anthropic {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    fn request(&self, target: &Target<'_>, prompt: &Prompt<'_>, kept: &mut Kept) -> HttpRequest {
        request::request(target, prompt, kept)
    }

    fn mended(&self, body: &[u8], failure: &ProviderFailure) -> Option<Mended> {
        mend::is_refused(failure).then(|| mend::mended(body)).flatten()
    }

    fn still_mended(&self, body: &[u8], messages: usize) -> Option<Vec<u8>> {
        mend::still_mended(body, messages)
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &HEADERS
    }

    fn decoder(&self, _: &Profile, _: &Offered) -> Box<dyn StreamDecoder> {
        Box::new(stream::MessagesDecoder::default())
    }

    fn failure(&self, response: &ErrorResponse<'_>) -> ProviderFailure {
        failure::of_response(response)
    }

    fn authorization(&self, key: &str) -> (&'static str, String) {
        // A token of a signed-in person is no key.
        if key.starts_with("sk-ant-oat") {
            return ("authorization", format!("Bearer {key}"));
        }
        ("x-api-key", key.to_owned())
    }

    fn models_path(&self) -> &'static str {
        // A page holds twenty where nothing else is asked for.
        "/v1/models?limit=1000"
    }

    fn models(&self, body: &[u8]) -> Result<Vec<String>, ProviderFailure> {
        #[derive(Deserialize)]
        struct List {
            data: Vec<Model>,
        }
        #[derive(Deserialize)]
        struct Model {
            id: Option<String>,
        }
        let list: List =
            serde_json::from_slice(body).map_err(|_| malformed("the provider's answer is no list of models", body))?;
        Ok(list.data.into_iter().filter_map(|model| model.id).collect())
    }
}
