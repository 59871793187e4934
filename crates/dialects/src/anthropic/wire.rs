//! What comes over the wire, read leniently (`crate::lenient`).

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::lenient::{Count, Text};

/// An event of a stream.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(default)]
    pub(super) index: Count,
    #[serde(borrow, default)]
    pub(super) delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    pub(super) content_block: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

/// What is new of a block, or of the message.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) text: Text<'a>,
    #[serde(borrow, default)]
    pub(super) partial_json: Text<'a>,
    #[serde(borrow, default)]
    pub(super) thinking: Text<'a>,
    #[serde(borrow, default)]
    pub(super) signature: Text<'a>,
    #[serde(borrow, default)]
    pub(super) citation: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) content: Text<'a>,
    #[serde(borrow, default)]
    pub(super) stop_reason: Text<'a>,
    #[serde(borrow, default)]
    pub(super) stop_details: Option<&'a RawValue>,
}

/// More of a block, in the very shape that the format's maker sends: most events are one, and reading it so takes half as
/// long as reading it leniently.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BlockDelta<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    pub(super) index: u64,
    #[serde(borrow)]
    delta: More<'a>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct More<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    partial_json: Option<Cow<'a, str>>,
    #[serde(borrow)]
    thinking: Option<Cow<'a, str>>,
}

impl<'a> BlockDelta<'a> {
    /// The event in `data`, where it has this shape.
    pub(super) fn of(data: &'a str) -> Option<Self> {
        if !data.starts_with(r#"{"type":"content_block_delta""#) {
            return None;
        }
        serde_json::from_str(data).ok().filter(|event: &Self| event.kind == "content_block_delta")
    }

    /// What is new.
    pub(super) fn into_delta(self) -> Delta<'a> {
        let More { kind, text, partial_json, thinking } = self.delta;
        Delta {
            kind: Cow::Borrowed(kind).into(),
            text: text.into(),
            partial_json: partial_json.into(),
            thinking: thinking.into(),
            ..Delta::default()
        }
    }
}

/// A whole message, or the beginning of one.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow, default)]
    pub(super) model: Text<'a>,
    #[serde(borrow, default)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) stop_reason: Text<'a>,
    #[serde(borrow, default)]
    pub(super) stop_details: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
}

/// What is readable of a content block.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Block<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    #[serde(borrow, default)]
    pub(super) text: Text<'a>,
    #[serde(borrow, default)]
    pub(super) thinking: Text<'a>,
    #[serde(borrow, default)]
    pub(super) signature: Text<'a>,
}

/// Why a model refused.
#[derive(Debug, Default, Deserialize)]
pub(super) struct StopDetails<'a> {
    #[serde(borrow, default)]
    pub(super) explanation: Text<'a>,
}

/// Tokens. What is not there, or `null`, is unknown.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct UsageReport {
    pub(super) input_tokens: Count,
    pub(super) cache_creation_input_tokens: Count,
    pub(super) cache_read_input_tokens: Count,
    pub(super) output_tokens: Count,
    pub(super) output_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OutputDetails {
    pub(super) thinking_tokens: Count,
}

/// The members of a JSON object in their order, each value byte for byte.
#[derive(Debug, Default)]
pub(super) struct Members<'a>(pub(super) Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Members<'a> {
    /// The members of the object in `raw`; none where it is no object.
    pub(super) fn of(raw: &'a str) -> Self {
        serde_json::from_str(raw).unwrap_or_default()
    }

    /// The object again, with the values of the members in `changed` in the place of its own, or at its end.
    pub(super) fn with(&self, changed: &[(&str, &str)]) -> String {
        let mut text = String::from("{");
        let mut add = |key: &str, value: &str| {
            if text.len() > 1 {
                text.push(',');
            }
            push_json(&mut text, key);
            text.push(':');
            text.push_str(value);
        };
        for (key, value) in &self.0 {
            let value = changed.iter().find(|(name, _)| name == key).map_or(value.get(), |(_, value)| value);
            add(key, value);
        }
        for (key, value) in changed {
            if !self.0.iter().any(|(name, _)| name == key) {
                add(key, value);
            }
        }
        text.push('}');
        text
    }

    /// The object without the members named, where anything is left that is not `null`.
    pub(super) fn without(&self, names: &[&str]) -> Option<String> {
        let kept = self.0.iter().filter(|(key, value)| !names.contains(&&**key) && value.get() != "null");
        let kept: Vec<_> = kept.map(|(key, value)| (key.clone(), *value)).collect();
        if kept.is_empty() { None } else { Some(Members(kept).with(&[])) }
    }
}

/// Writes `value` as JSON behind `text`.
pub(super) fn push_json<T: Serialize + ?Sized>(text: &mut String, value: &T) {
    // A text and what we make of texts can always be written.
    text.push_str(&serde_json::to_string(value).unwrap_or_default());
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some((Key(key), value)) = map.next_entry::<Key<'de>, &'de RawValue>()? {
            members.push((key, value));
        }
        Ok(Members(members))
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

/// A member's name, borrowed where it holds no escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);
