//! What comes over the wire, read leniently (`crate::lenient`).

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::lenient::{Arguments, Cost, CostDetails, Count, Maybe, OneOrMany, Text};

/// An event of a stream: the members of all kinds that mean something to us.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(default)]
    pub(super) output_index: Count,
    #[serde(borrow, default)]
    pub(super) item_id: Text<'a>,
    #[serde(default)]
    pub(super) content_index: Count,
    #[serde(default)]
    pub(super) summary_index: Count,
    #[serde(borrow, default)]
    pub(super) delta: Text<'a>,
    #[serde(borrow, default)]
    pub(super) text: Text<'a>,
    #[serde(borrow, default)]
    pub(super) refusal: Text<'a>,
    #[serde(borrow, default)]
    pub(super) arguments: Arguments<'a>,
    #[serde(borrow, default)]
    pub(super) input: Text<'a>,
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    #[serde(borrow, default)]
    pub(super) part: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) item: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) response: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

/// A response: the whole reply, or what the last event of a stream holds.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Response<'a> {
    #[serde(borrow, default)]
    pub(super) model: Text<'a>,
    #[serde(borrow, default)]
    pub(super) status: Text<'a>,
    #[serde(borrow, default)]
    pub(super) output: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) incomplete_details: OneOrMany<IncompleteDetails<'a>>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
}

impl<'a> Response<'a> {
    /// Its items, byte for byte.
    pub(super) fn items(&self) -> Vec<&'a RawValue> {
        self.output.and_then(|output| serde_json::from_str(output.get()).ok()).unwrap_or_default()
    }
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct IncompleteDetails<'a> {
    #[serde(borrow, default)]
    pub(super) reason: Text<'a>,
}

/// An item of the output.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Item<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) call_id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    #[serde(borrow, default)]
    pub(super) arguments: Arguments<'a>,
    #[serde(borrow, default)]
    pub(super) input: Text<'a>,
    #[serde(borrow, default)]
    pub(super) content: OneOrMany<Maybe<Part<'a>>>,
    #[serde(borrow, default)]
    pub(super) summary: OneOrMany<Maybe<Part<'a>>>,
    #[serde(borrow, default)]
    pub(super) encrypted_content: Text<'a>,
    #[serde(borrow, default)]
    pub(super) approval_request_id: Text<'a>,
}

/// A part of an item's content or summary.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Part<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) text: Text<'a>,
    #[serde(borrow, default)]
    pub(super) refusal: Text<'a>,
}

/// What an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Message,
    Reasoning,
    /// A call of a tool with JSON arguments, or with free text.
    Call,
    /// What the provider did itself, and what nobody here knows.
    Other,
}

/// Which text of an item a piece is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Text,
    Refusal,
    Summary,
    Reasoning,
    Arguments,
}

impl Field {
    /// The kind of item that has such a text.
    pub(super) fn kind(self) -> Kind {
        match self {
            Self::Text | Self::Refusal => Kind::Message,
            Self::Summary | Self::Reasoning => Kind::Reasoning,
            Self::Arguments => Kind::Call,
        }
    }
}

impl<'a> Part<'a> {
    /// Which text it is, and the text.
    pub(super) fn piece(self) -> Option<(Field, Cow<'a, str>)> {
        let field = match self.kind.any() {
            Some("refusal") => Field::Refusal,
            Some("summary_text") => Field::Summary,
            Some("reasoning_text") => Field::Reasoning,
            Some("output_text" | "text") => Field::Text,
            _ => return None,
        };
        let text = if field == Field::Refusal { self.refusal } else { self.text };
        text.filled().map(|text| (field, text))
    }
}

impl<'a> Item<'a> {
    pub(super) fn kind(&self) -> Kind {
        match self.kind.any() {
            Some("message") => Kind::Message,
            Some("reasoning") => Kind::Reasoning,
            Some("function_call" | "custom_tool_call") => Kind::Call,
            _ => Kind::Other,
        }
    }

    /// The texts of it that are not empty, with their places, in order.
    pub(super) fn pieces(self) -> Vec<(Field, u64, Cow<'a, str>)> {
        let placed = |parts: OneOrMany<Maybe<Part<'a>>>| {
            (0..).zip(parts.0).filter_map(|(at, part)| {
                let (field, text) = part.0.and_then(Part::piece)?;
                Some((field, at, text))
            })
        };
        match self.kind() {
            Kind::Message => placed(self.content).collect(),
            Kind::Reasoning => placed(self.summary).chain(placed(self.content)).collect(),
            Kind::Call => {
                let text = if self.kind.any() == Some("custom_tool_call") {
                    self.input.filled().unwrap_or_default()
                } else {
                    self.arguments.text()
                };
                if text.is_empty() { Vec::new() } else { vec![(Field::Arguments, 0, text)] }
            }
            Kind::Other => Vec::new(),
        }
    }
}

/// Tokens, and what they cost where the provider says so.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct UsageReport {
    pub(super) input_tokens: Count,
    pub(super) output_tokens: Count,
    pub(super) input_tokens_details: OneOrMany<InputDetails>,
    pub(super) output_tokens_details: OneOrMany<OutputDetails>,
    pub(super) cost: Cost,
    /// Whether the key is that of the vendor behind the gateway.
    pub(super) is_byok: Value,
    pub(super) cost_details: OneOrMany<CostDetails>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
pub(super) struct InputDetails {
    pub(super) cached_tokens: Count,
    pub(super) cache_write_tokens: Count,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
pub(super) struct OutputDetails {
    pub(super) reasoning_tokens: Count,
}
