//! What a model thought, and in which field it came: the way back needs the same field.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use turnwright_core::NativeBlock;

use super::wire::Delta;

/// The most items of one message's `reasoning_details`.
const MAX_DETAILS: usize = 256;

/// The native form of a reasoning block: the field, and its value where that is more than the block's text.
#[derive(Debug, Deserialize)]
pub(crate) struct NativeReasoning<'a> {
    #[serde(borrow)]
    pub(crate) field: Cow<'a, str>,
    #[serde(borrow, default)]
    value: Option<&'a RawValue>,
}

impl<'a> NativeReasoning<'a> {
    /// The items of its value, byte for byte.
    pub(crate) fn items(&self) -> Vec<&'a RawValue> {
        self.value.and_then(|value| serde_json::from_str(value.get()).ok()).unwrap_or_default()
    }
}

/// Reads a native form.
pub(crate) fn read(native: &str) -> Option<NativeReasoning<'_>> {
    serde_json::from_str(native).ok()
}

/// What a call's native form holds besides its name, id and arguments.
pub(crate) fn extra_content(native: &str) -> Option<&RawValue> {
    #[derive(Deserialize)]
    struct NativeCall<'a> {
        #[serde(borrow)]
        extra_content: &'a RawValue,
    }
    serde_json::from_str::<NativeCall<'_>>(native).ok().map(|native| native.extra_content)
}

/// The reasoning block that is open.
#[derive(Debug, Default)]
pub(crate) struct Reasoning {
    field: Option<&'static str>,
    /// Items of `reasoning_details`, put together by their index.
    details: Vec<Map<String, Value>>,
    /// Whether some of it was readable.
    pub(crate) is_shown: bool,
}

impl Reasoning {
    /// Takes a delta's reasoning; gives what is readable of it. Where a proxy sends the same text in several fields, it is
    /// shown once.
    pub(crate) fn take<'a>(&mut self, delta: &mut Delta<'a>) -> Option<Cow<'a, str>> {
        let mut shown = None;
        for (field, text) in [
            ("reasoning_content", &mut delta.reasoning_content),
            ("reasoning", &mut delta.reasoning),
            ("reasoning_text", &mut delta.reasoning_text),
        ] {
            if shown.is_none()
                && let Some(text) = std::mem::take(text).filled()
            {
                self.field = Some(field);
                shown = Some(text);
            }
        }
        let items = delta.reasoning_details.and_then(|raw| serde_json::from_str::<Vec<Value>>(raw.get()).ok());
        for item in items.into_iter().flatten() {
            let Value::Object(item) = item else { continue };
            let text = item.get("text").or_else(|| item.get("summary")).and_then(Value::as_str);
            if self.field.is_none()
                && let Some(text) = text.filter(|text| !text.is_empty())
            {
                shown = Some(Cow::Owned(shown.unwrap_or_default().into_owned() + text));
            }
            self.add(item);
        }
        self.is_shown |= shown.is_some();
        shown
    }

    fn add(&mut self, item: Map<String, Value>) {
        let same = |known: &&mut Map<String, Value>| {
            ["index", "type"].iter().all(|key| known.get(*key) == item.get(*key)) && item.get("index").is_some()
        };
        let Some(known) = self.details.iter_mut().rev().find(same) else {
            if self.details.len() < MAX_DETAILS {
                self.details.push(item);
            }
            return;
        };
        for (key, value) in item {
            match (known.get_mut(&key), value) {
                (_, Value::Null) => {}
                (Some(Value::String(text)), Value::String(more)) if key == "text" || key == "summary" => text.push_str(&more),
                (_, value) => drop(known.insert(key, value)),
            }
        }
    }

    /// Whether there is anything to close.
    pub(crate) fn is_open(&self) -> bool {
        self.is_shown || !self.details.is_empty()
    }

    /// Closes the block; gives its native form, where it came in a field.
    pub(crate) fn close(&mut self) -> Option<NativeBlock> {
        let closed = std::mem::take(self);
        if closed.details.is_empty() {
            return closed.field.map(|field| NativeBlock(format!("{{\"field\":\"{field}\"}}")));
        }
        let value = serde_json::to_string(&closed.details).ok()?;
        Some(NativeBlock(format!("{{\"field\":\"reasoning_details\",\"value\":{value}}}")))
    }
}
