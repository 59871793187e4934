//! The messages of a request to Chat Completions. Pure.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use turnwright_core::{ContentBlock, text_of};

use super::history::{Called, Item, Messages, Said, by_name};
use super::parts::{blocks, plain_text};
use crate::error::ApiError;

/// What of a message says what it is. The rest is read where it is taken over.
#[derive(Debug, Deserialize)]
struct WireMessage<'a> {
    #[serde(borrow, default)]
    role: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_calls: Option<&'a RawValue>,
    #[serde(borrow, default)]
    function_call: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_call_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
}

/// A text; nothing where it is something else.
fn raw_text(raw: Option<&RawValue>) -> Option<Cow<'_, str>> {
    let raw = raw?.get();
    match raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"')) {
        Some(plain) if !plain.contains('\\') => Some(Cow::Borrowed(plain)),
        _ => serde_json::from_str(raw).ok().map(Cow::Owned),
    }
}

/// Calls, but for those without a name. The older form makes one, of a function that is named.
fn raw_calls(wire: &WireMessage<'_>) -> Vec<Called> {
    let read = |raw: Option<&RawValue>| raw.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
    let calls = read(wire.tool_calls);
    let calls = calls.as_ref().and_then(Value::as_array).into_iter().flatten().filter_map(Called::read);
    let function = read(wire.function_call);
    calls.chain(function.as_ref().and_then(Called::read_function)).collect()
}

/// The `content` of a message. Most are one text, which is read without a value of it.
enum Content<'a> {
    Text(Cow<'a, str>),
    Other(Value),
}

impl<'a> Content<'a> {
    fn read(raw: Option<&'a RawValue>) -> serde_json::Result<Self> {
        match (raw_text(raw), raw) {
            (Some(text), _) => Ok(Self::Text(text)),
            (None, Some(raw)) => serde_json::from_str(raw.get()).map(Self::Other),
            (None, None) => Ok(Self::Other(Value::Null)),
        }
    }

    fn blocks(self, place: impl Fn() -> String) -> Result<Vec<ContentBlock>, ApiError> {
        match self {
            Self::Text(text) if text.is_empty() => Ok(Vec::new()),
            Self::Text(text) => Ok(vec![ContentBlock::text(text)]),
            Self::Other(value) => blocks(&place(), &value),
        }
    }

    fn plain_text(self) -> String {
        match self {
            Self::Text(text) => text.into_owned(),
            Self::Other(value) => plain_text(&value),
        }
    }
}

/// The message of a chat completion at this place.
///
/// # Errors
/// 400, where it is none.
pub(super) fn message(at: usize, message: &RawValue) -> Result<Item, ApiError> {
    let place = || format!("messages[{at}]");
    let wrong = |what: String| ApiError::invalid(format!("`{}` {what}", place())).about(place());
    let no_message = |error: serde_json::Error| wrong(format!("is no message: {error}"));
    let wire: WireMessage<'_> = serde_json::from_str(message.get()).map_err(no_message)?;
    let content = Content::read(wire.content).map_err(no_message)?;
    let said = match raw_text(wire.role).as_deref() {
        Some("system" | "developer") => Said::System(text_of(&content.blocks(place)?)),
        Some("user") => Said::User(content.blocks(place)?),
        Some("assistant") => Said::Answer { text: content.plain_text(), calls: raw_calls(&wire) },
        Some("tool") => {
            let call = raw_text(wire.tool_call_id).filter(|id| !id.is_empty());
            let call = call.ok_or_else(|| wrong("has no `tool_call_id`".to_owned()))?.into_owned();
            Said::Result { call, content: content.blocks(place)?, is_error: false }
        }
        Some("function") => {
            let call = by_name(&raw_text(wire.name).unwrap_or_default());
            Said::Result { call, content: content.blocks(place)?, is_error: false }
        }
        Some(role) => {
            return Err(wrong(format!("has the role `{role}`; system, developer, user, assistant and tool are known")));
        }
        None => return Err(wrong("has no `role`".to_owned())),
    };
    Ok(Item { said, messages: Messages::Written(message.get().to_owned()) })
}
