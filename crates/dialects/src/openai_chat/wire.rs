//! What comes over the wire, read leniently (`crate::lenient`).

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::lenient::{Arguments, Cost, CostDetails, Count, Maybe, OneOrMany, Text};

/// A chunk of a stream, or a whole reply.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Chunk<'a> {
    #[serde(borrow, default)]
    pub(crate) choices: OneOrMany<Choice<'a>>,
    #[serde(borrow, default)]
    pub(crate) usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) x_groq: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) base_resp: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) object: Text<'a>,
    #[serde(borrow, default)]
    pub(crate) model: Text<'a>,
}

impl Chunk<'_> {
    /// The text that is all that it says.
    pub(crate) fn only_text(&self) -> Option<&str> {
        let Self { choices, usage: None, x_groq: None, error: None, base_resp: None, object, model: _ } = self else {
            return None;
        };
        let [Choice { index, delta: Some(delta), message: None, finish_reason: None, usage: None }] = choices.0.as_slice()
        else {
            return None;
        };
        if object.any() == Some("error") || index.0.unwrap_or(0) != 0 {
            return None;
        }
        let Delta {
            content: Content::Text(text),
            refusal,
            reasoning_content,
            reasoning,
            reasoning_text,
            reasoning_details: None,
            tool_calls,
            function_call: None,
        } = delta.as_ref()
        else {
            return None;
        };
        let others = [refusal, reasoning_content, reasoning, reasoning_text];
        (tool_calls.0.is_empty() && others.iter().all(|other| other.any().is_none())).then_some(text)
    }
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Choice<'a> {
    #[serde(default)]
    pub(crate) index: Count,
    #[serde(borrow, default)]
    pub(crate) delta: Option<Box<Delta<'a>>>,
    /// In a whole reply; some streams repeat the text so far in it.
    #[serde(borrow, default)]
    pub(crate) message: Option<Box<Delta<'a>>>,
    #[serde(borrow, default)]
    pub(crate) finish_reason: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) usage: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Delta<'a> {
    #[serde(borrow, default)]
    pub(crate) content: Content<'a>,
    #[serde(borrow, default)]
    pub(crate) refusal: Text<'a>,
    #[serde(borrow, default)]
    pub(crate) reasoning_content: Text<'a>,
    #[serde(borrow, default)]
    pub(crate) reasoning: Text<'a>,
    #[serde(borrow, default)]
    pub(crate) reasoning_text: Text<'a>,
    #[serde(borrow, default)]
    pub(crate) reasoning_details: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) tool_calls: OneOrMany<CallDelta<'a>>,
    #[serde(borrow, default)]
    pub(crate) function_call: Option<Box<FunctionDelta<'a>>>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct CallDelta<'a> {
    #[serde(default)]
    pub(crate) index: Count,
    #[serde(borrow, default)]
    pub(crate) id: Text<'a>,
    #[serde(borrow, default)]
    pub(crate) function: Option<FunctionDelta<'a>>,
    #[serde(borrow, default)]
    pub(crate) custom: Option<FunctionDelta<'a>>,
    #[serde(borrow, default)]
    pub(crate) extra_content: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct FunctionDelta<'a> {
    #[serde(borrow, default)]
    pub(crate) name: Text<'a>,
    #[serde(borrow, default, alias = "input")]
    pub(crate) arguments: Arguments<'a>,
}

/// Groq's own part of a chunk.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Groq<'a> {
    #[serde(borrow, default)]
    pub(crate) usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) error: Option<&'a RawValue>,
}

/// Tokens, in the places in which servers report them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct UsageReport {
    pub(crate) prompt_tokens: Count,
    pub(crate) completion_tokens: Count,
    pub(crate) total_tokens: Count,
    pub(crate) prompt_tokens_details: Option<PromptDetails>,
    pub(crate) completion_tokens_details: Option<CompletionDetails>,
    pub(crate) prompt_cache_hit_tokens: Count,
    pub(crate) num_cached_tokens: Count,
    pub(crate) cache_creation_input_tokens: Count,
    pub(crate) reasoning_tokens: Count,
    pub(crate) cost: Cost,
    /// Whether the key is that of the vendor behind the gateway.
    pub(crate) is_byok: Value,
    pub(crate) cost_details: OneOrMany<CostDetails>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PromptDetails {
    pub(crate) cached_tokens: Count,
    pub(crate) cache_write_tokens: Count,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct CompletionDetails {
    pub(crate) reasoning_tokens: Count,
}

/// The content of a message: a text, or a list of parts.
#[derive(Debug, Default)]
pub(crate) enum Content<'a> {
    #[default]
    Nothing,
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Part<'a> {
    #[serde(borrow, default)]
    pub(crate) text: Text<'a>,
    /// Mistral's reasoning.
    #[serde(borrow, default)]
    pub(crate) thinking: Content<'a>,
    #[serde(borrow, default)]
    pub(crate) refusal: Text<'a>,
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of parts")
    }
    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Content<'de>, E> {
        Ok(Content::Text(Cow::Borrowed(text)))
    }
    fn visit_str<E>(self, text: &str) -> Result<Content<'de>, E> {
        Ok(Content::Text(Cow::Owned(text.to_owned())))
    }
    fn visit_unit<E>(self) -> Result<Content<'de>, E> {
        Ok(Content::Nothing)
    }
    fn visit_bool<E>(self, _: bool) -> Result<Content<'de>, E> {
        Ok(Content::Nothing)
    }
    fn visit_u64<E>(self, _: u64) -> Result<Content<'de>, E> {
        Ok(Content::Nothing)
    }
    fn visit_i64<E>(self, _: i64) -> Result<Content<'de>, E> {
        Ok(Content::Nothing)
    }
    fn visit_f64<E>(self, _: f64) -> Result<Content<'de>, E> {
        Ok(Content::Nothing)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Content<'de>, A::Error> {
        let mut parts = Vec::new();
        while let Some(Maybe(part)) = list.next_element::<Maybe<Part<'de>>>()? {
            parts.extend(part);
        }
        Ok(Content::Parts(parts))
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Content<'de>, A::Error> {
        Part::deserialize(de::value::MapAccessDeserializer::new(map)).map(|part| Content::Parts(vec![part]))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}
