//! Conversations.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Patch, Settings, SettingsPatch, object};

/// A conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Conversation {
    /// Its name: 1 to 128 characters of `[A-Za-z0-9._:-]`.
    pub id: String,
    /// Its title; null while it has none.
    pub title: Option<String>,
    /// Its model, `PROVIDER/MODEL`; null where the configuration's counts.
    pub model: Option<String>,
    /// What the model is told before the conversation; null where the configuration's counts.
    pub system_prompt: Option<String>,
    /// What was chosen besides.
    pub settings: Settings,
    /// Globs over tool names that narrow what is offered, the last that fits a name decides, and one with a `!` before it keeps
    /// out. Where all keep out, all other tools are offered (`["!web__fetch"]`, the same as `["*", "!web__fetch"]`), where there
    /// is none, no tool is; null where all tools are.
    pub tools: Option<Vec<String>>,
    /// Whether it is kept however old it is.
    #[serde(default)]
    pub pinned: bool,
    /// When it was created, ISO 8601 in UTC.
    pub created_at: String,
    /// When its newest entry was stored, ISO 8601 in UTC.
    pub updated_at: String,
    /// Where the words of a search are in it; only where something was searched for, and found in what was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<Excerpt>,
    /// The place of its last entry, to go on from with `events?after=`; only where one conversation is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seq: Option<u64>,
    /// Its newest turn; only where one conversation is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnSummary>,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Excerpt {
    /// Which message.
    pub message_id: String,
    /// What it says around the first word that was found.
    pub text: String,
}

/// A turn in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TurnSummary {
    /// Its name.
    pub id: String,
    /// As in [`crate::TurnReport::status`].
    pub status: String,
}

/// A conversation to create.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConversationRequest {
    /// Its name; made where none is given.
    #[schema(pattern = "^[A-Za-z0-9._:-]{1,128}$")]
    pub id: Option<String>,
    /// Its title; made from the first message where none is given.
    pub title: Option<String>,
    /// Its model, `PROVIDER/MODEL`.
    pub model: Option<String>,
    /// What the model is told before the conversation.
    pub system_prompt: Option<String>,
    /// Other settings.
    #[serde(default, deserialize_with = "object::plain")]
    pub settings: Settings,
    /// Globs over tool names that narrow what is offered; one with a `!` before it keeps out what those before it let in, or all
    /// let in where there are only such.
    pub tools: Option<Vec<String>>,
}

/// A change of a conversation: absent fields stay, null ones go (RFC 7396).
#[derive(Debug, Clone, Default, PartialEq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the fields of `ConversationRequest`")]
pub struct ConversationPatch {
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub title: Patch<String>,
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub model: Patch<String>,
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub system_prompt: Patch<String>,
    #[serde(default, deserialize_with = "object::patch")]
    #[schema(value_type = Option<SettingsPatch>)]
    pub settings: Patch<SettingsPatch>,
    #[serde(default)]
    #[schema(value_type = Option<Vec<String>>)]
    pub tools: Patch<Vec<String>>,
    #[serde(default)]
    #[schema(value_type = Option<bool>)]
    pub pinned: Patch<bool>,
}

#[cfg(test)]
mod tests {
    use super::ConversationPatch;
    use crate::Patch;

    #[test]
    fn an_absent_field_stays_and_a_null_one_goes() {
        let patch: ConversationPatch = serde_json::from_str(r#"{"title":null,"model":"a/b"}"#).unwrap();
        let expected =
            ConversationPatch { title: Patch::Clear, model: Patch::Set("a/b".to_owned()), ..ConversationPatch::default() };
        assert_eq!(patch, expected);
    }

    #[test]
    fn an_unknown_field_is_refused_with_the_known_ones() {
        let error = serde_json::from_str::<ConversationPatch>(r#"{"titel":"x"}"#).unwrap_err().to_string();
        assert!(error.starts_with("unknown field `titel`, expected one of `title`, `model`"), "{error}");
    }
}
