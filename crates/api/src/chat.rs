//! Saying something, stopping, going on.

use std::fmt;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use utoipa::openapi::{Array, Object, OneOf, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::{Message, Settings, TurnReport, object};

/// A message for the chat route.
#[derive(Debug, Clone, PartialEq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChatRequest {
    /// What is said.
    pub content: Content,
    /// The turn's model, `PROVIDER/MODEL`. Where a turn is open, that one's from its next step on; all other settings stay
    /// as it began.
    #[serde(default)]
    pub model: Option<String>,
    /// The turn's settings.
    #[serde(default, deserialize_with = "object::plain")]
    pub settings: Settings,
    /// What a message does where a turn waits for a person.
    #[serde(default)]
    pub on_waiting: OnWaiting,
    /// Whether the answer is an event stream, the same as `Accept: text/event-stream`.
    #[serde(default)]
    pub stream: bool,
}

/// A message that is stored and answered later.
#[derive(Debug, Clone, PartialEq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MessageRequest {
    /// What is said.
    pub content: Content,
    /// The turn's model, `PROVIDER/MODEL`. Where a turn is open, that one's from its next step on; all other settings stay
    /// as it began.
    #[serde(default)]
    pub model: Option<String>,
    /// The turn's settings.
    #[serde(default, deserialize_with = "object::plain")]
    pub settings: Settings,
    /// What a message does where a turn waits for a person.
    #[serde(default)]
    pub on_waiting: OnWaiting,
}

/// What is said: a text, or content blocks of the Model Context Protocol.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// A text.
    Text(String),
    /// Blocks, such as `{"type": "text", "text": "…"}`.
    Blocks(Vec<Value>),
}

impl PartialSchema for Content {
    fn schema() -> RefOr<Schema> {
        let text = Object::builder().schema_type(Type::String).description(Some("A text."));
        let block = Object::builder()
            .schema_type(Type::Object)
            .property("type", Object::builder().schema_type(Type::String))
            .required("type")
            .description(Some(
                "A content block of the Model Context Protocol, such as `{\"type\": \"text\", \"text\": \"…\"}`.",
            ));
        RefOr::T(Schema::OneOf(OneOf::builder().item(text).item(Array::new(block)).build()))
    }
}

impl ToSchema for Content {}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrBlocks;
        impl<'de> Visitor<'de> for TextOrBlocks {
            type Value = Content;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("content as a text or an array of content blocks")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Content, E> {
                Ok(Content::Text(text.to_owned()))
            }
            fn visit_string<E: serde::de::Error>(self, text: String) -> Result<Content, E> {
                Ok(Content::Text(text))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Content, A::Error> {
                let mut blocks = Vec::new();
                while let Some(block) = array.next_element()? {
                    blocks.push(block);
                }
                Ok(Content::Blocks(blocks))
            }
        }
        deserializer.deserialize_any(TextOrBlocks)
    }
}

/// What a message does where a turn waits for a person.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnWaiting {
    /// It is kept until the question is answered.
    #[default]
    Hold,
    /// It declines what waits.
    Deny,
}

/// The chat route's answer, in the form of mcp-open-client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChatAnswer {
    /// Whether the turn did not fail and was not stopped.
    pub success: bool,
    /// What was said.
    pub user_message: Option<Message>,
    /// The answer to it: the last one of the turn that saw it and nothing that was said later, or the turn's last where that one
    /// only calls tools; null where no answer has seen it.
    pub assistant_message: Option<Message>,
    /// What became of it, in one sentence.
    pub message: String,
    /// All of it.
    pub turn: TurnReport,
}

/// A stored message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MessageAccepted {
    /// The message.
    pub message_id: String,
    /// The turn that it opened or joined.
    pub turn_id: String,
    /// `running | suspended`.
    pub turn_status: String,
}

/// A stop.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelRequest {
    /// The turn to stop; the open one where absent.
    #[schema(pattern = "^turn_[1-9][0-9]{0,17}$")]
    pub turn_id: Option<String>,
}

/// A wish to take a turn up again.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryRequest {
    /// Another model, `PROVIDER/MODEL`.
    pub model: Option<String>,
    /// Other settings.
    #[serde(default, deserialize_with = "object::plain")]
    pub settings: Settings,
}

/// A wish to have a conversation's beginning put into a summary.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompactRequest {
    /// The model that writes it, `PROVIDER/MODEL`; the conversation's own where absent.
    #[serde(default)]
    pub model: Option<String>,
}

/// What models are shown in the place of a conversation's beginning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct CompactionReport {
    /// The summary; `null` where all is shown as it was said.
    pub summary: Option<Summary>,
}

/// A summary in the place of a conversation's beginning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Summary {
    /// The place of its entry in the journal.
    pub seq: u64,
    /// The place up to which it stands for messages, with the results of their calls.
    pub through: u64,
    /// What models are shown.
    pub text: String,
    /// The model that wrote it, `PROVIDER/MODEL`; `null` where it was put together from the beginnings of what was said.
    pub model: Option<String>,
}

/// A conversation to make of another.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ForkRequest {
    /// The message before which the copy ends: to say something else in its place, or to have it answered anew, name it
    /// or the answer. All is copied where absent.
    #[schema(pattern = "^msg_[1-9][0-9]{0,17}$")]
    pub at: Option<String>,
    /// The copy's name; made where none is given.
    #[schema(pattern = "^[A-Za-z0-9._:-]{1,128}$")]
    pub id: Option<String>,
    /// The copy's title; the other's where none is given.
    pub title: Option<String>,
}

/// A turn to which something was said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TurnAccepted {
    /// The turn.
    pub turn_id: String,
    /// `running | cancelling`.
    pub turn_status: String,
}
