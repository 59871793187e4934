//! Failures in words that tell a person what happened where, and what to do.

use std::borrow::Cow;

use serde_json::Value;
use turnwright_core::secrets::{Secrets, given};
use turnwright_core::{ProviderFailure, ProviderFailureKind, ProviderSaid};

use crate::{EndpointConfig, Secret};

/// The longest part of a call that could not be read that is shown, in bytes.
const MAX_WRITTEN_BYTES: usize = 500;

/// `failure` with the whole story for people: the provider, the status, what it said, what would be right. Holds no secret.
pub(crate) fn explain(config: &EndpointConfig, model: &str, failure: ProviderFailure) -> ProviderFailure {
    let name = &config.name;
    let did = did(config, model, &failure);
    let status = match (failure.status, failure.code.as_deref()) {
        (Some(status), Some(code)) if code != status.to_string() => format!(" ({status} {code})"),
        (Some(status), _) => format!(" ({status})"),
        (None, Some(code)) => format!(" ({code})"),
        (None, None) => String::new(),
    };
    let said = failure.message.trim().trim_end_matches(['.', ';']);
    let hint = hint(config, &failure).map(|hint| format!("; {hint}")).unwrap_or_default();
    let message = redact(config, format!("provider `{name}` {did}{status}: {said}{hint}"));
    let redacted = |text: Option<String>| text.map(|text| redact(config, text));
    let said = failure.said.map(|said| ProviderSaid {
        error_type: redacted(said.error_type),
        param: redacted(said.param),
        raw: redact(config, said.raw),
    });
    ProviderFailure { message, code: redacted(failure.code), said: said.map(Box::new), ..failure }
}

/// `text` without the key, and without what configured headers hold of the kind.
pub(crate) fn redact(config: &EndpointConfig, text: String) -> String {
    let key = config.api_key.iter().map(Secret::expose);
    let headers = config.headers.iter().flat_map(|(name, value)| given(name, value.expose()));
    let values: Vec<String> = key.map(str::to_owned).chain(headers).collect();
    match Secrets::new(values.iter().map(String::as_str)).hide(&text) {
        Cow::Owned(hidden) => hidden,
        Cow::Borrowed(_) => text,
    }
}

/// What the provider did, after its name.
fn did(config: &EndpointConfig, model: &str, failure: &ProviderFailure) -> String {
    use ProviderFailureKind as K;
    match failure.kind {
        K::Auth if config.api_key.is_none() => "wants a key".to_owned(),
        K::Auth => "refused the key".to_owned(),
        K::Permission => "does not permit this".to_owned(),
        K::Quota => "has no credit or quota left for this key".to_owned(),
        K::RateLimit => "takes no more requests at the moment".to_owned(),
        K::Overloaded => "is overloaded".to_owned(),
        K::Server => "failed".to_owned(),
        K::Timeout => "did not answer in time".to_owned(),
        K::NotFound if model.is_empty() => "does not know the address".to_owned(),
        K::NotFound => format!("does not know the model `{model}` or the address"),
        K::TooLarge => "finds the request too large".to_owned(),
        K::ContextLength => format!("finds the conversation too long for the model `{model}`"),
        K::ContentFilter => "withheld the answer".to_owned(),
        K::InvalidRequest => "refused the request".to_owned(),
        K::Connect => "cannot be reached".to_owned(),
        K::CutOff => "broke off".to_owned(),
        K::Malformed => "did not answer as its protocol says".to_owned(),
        K::Limit => "answered with too much".to_owned(),
        K::Unavailable => "is not available".to_owned(),
    }
}

/// What to do about it.
fn hint(config: &EndpointConfig, failure: &ProviderFailure) -> Option<String> {
    use ProviderFailureKind as K;
    let wait = failure.retry_after_ms.map(|ms| format!("it asks to wait {} s", ms.div_ceil(1000)));
    if let Some(wrote) = unreadable_call(failure) {
        return Some(format!("the model wrote: {wrote}"));
    }
    if failure.kind == K::InvalidRequest && is_of_form(failure) {
        let form = "this model takes no form of the answer (`output`) here";
        return Some(if config.dialect.name() == "openai-chat" {
            format!(
                "{form}: `structured_output = \"prompt\"` in the profile of [providers.{}] tells it of the form in words, and \
                 `structured_output_with_tools = false` does while it has tools",
                config.name
            )
        } else {
            form.to_owned()
        });
    }
    match failure.kind {
        K::Auth => {
            let place = config.key_variable.clone().unwrap_or_else(|| format!("api_key of [providers.{}]", config.name));
            Some(format!("{} {place}", if config.api_key.is_none() { "set" } else { "check" }))
        }
        K::Quota => Some("add credit there, or choose another model".to_owned()),
        K::NotFound => Some(format!("check the model's name and base_url, which is {}", shown_url(&config.base_url))),
        K::ContextLength => Some("shorten the conversation, or choose a model with more room".to_owned()),
        K::Malformed if failure.status.is_none_or(|status| status < 400) => {
            Some(format!("check base_url, which is {}", shown_url(&config.base_url)))
        }
        K::RateLimit | K::Overloaded | K::Server | K::Timeout => wait,
        K::Malformed
        | K::Permission
        | K::TooLarge
        | K::ContentFilter
        | K::InvalidRequest
        | K::CutOff
        | K::Limit
        | K::Unavailable
        // Told where it is known what could not be reached.
        | K::Connect => None,
    }
}

/// Whether it is about the form of the answer.
fn is_of_form(failure: &ProviderFailure) -> bool {
    let param = failure.said.as_ref().and_then(|said| said.param.as_deref()).unwrap_or_default();
    let names = ["response_format", "text.format", "responseschema", "response_schema", "response mime type", "json mode"];
    let (message, param) = (failure.message.to_lowercase(), param.to_lowercase());
    names.iter().any(|name| message.contains(name) || param.starts_with(name))
}

/// What the model wrote where its provider could not read it as a call: that shows best what went wrong.
fn unreadable_call(failure: &ProviderFailure) -> Option<String> {
    let said: Value = serde_json::from_str(&failure.said.as_ref()?.raw).ok()?;
    let wrote = said.get("error").unwrap_or(&said).get("failed_generation")?.as_str()?;
    Some(wrote.get(..wrote.floor_char_boundary(MAX_WRITTEN_BYTES)).unwrap_or(wrote).to_owned())
}

/// An address without a user's name, a password or a query.
pub(crate) fn shown_url(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = authority.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}{path}")
        }
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_secrets() {
        assert_eq!(shown_url("https://me:pass@host:8/v1?key=x#y"), "https://host:8/v1");
        assert_eq!(shown_url("https://me:pass@host"), "https://host");
        assert_eq!(shown_url("nonsense"), "nonsense");
    }
}
