//! The `profile` key of the configuration.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::{
    DocumentParts, EmptyContent, KeyHeader, MaxTokensField, Profile, ReasoningField, ReasoningReplay, SchemaFields,
    StructuredOutput, SystemRole, ToolCallIds, ToolChoices, ToolSchemas, UnknownProfile,
};
use crate::recover::TextForms;

/// A provider's `profile` key: the name of a preset, or a table of what differs from one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProfileChoice {
    /// A preset.
    Preset(String),
    /// What differs.
    Table(Box<ProfileTable>),
}

/// What differs from a preset.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "the fields of `Profile`, each optional")]
pub struct ProfileTable {
    /// The preset; the base address chooses it where there is none.
    pub preset: Option<String>,
    pub system_role: Option<SystemRole>,
    pub max_tokens_field: Option<MaxTokensField>,
    pub stream_usage: Option<bool>,
    pub reasoning_effort: Option<bool>,
    pub reasoning_replay: Option<ReasoningReplay>,
    pub think_tags: Option<bool>,
    pub recover_text_calls: Option<TextForms>,
    pub tool_call_ids: Option<ToolCallIds>,
    pub signed_calls: Option<bool>,
    pub empty_content: Option<EmptyContent>,
    pub refusal_field: Option<bool>,
    pub images: Option<bool>,
    pub documents: Option<bool>,
    pub tool_schemas: Option<ToolSchemas>,
    pub schema_fields: Option<SchemaFields>,
    pub done_without_finish: Option<bool>,
    pub key_header: Option<KeyHeader>,
    pub tools: Option<bool>,
    pub max_tools: Option<u16>,
    pub tool_choice: Option<ToolChoices>,
    pub parallel_tool_calls: Option<bool>,
    pub forced_calls_while_thinking: Option<bool>,
    pub reasoning_field: Option<ReasoningField>,
    pub reasoning_format: Option<bool>,
    pub document_parts: Option<DocumentParts>,
    pub structured_output: Option<StructuredOutput>,
    pub structured_output_with_tools: Option<bool>,
    pub assistant_after_results: Option<bool>,
    pub joins_messages: Option<bool>,
}

/// By hand, since an untagged enum would not say what is wrong in the table.
impl<'de> Deserialize<'de> for ProfileChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Choice;

        impl<'de> Visitor<'de> for Choice {
            type Value = ProfileChoice;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a profile or a table")
            }

            fn visit_str<E>(self, name: &str) -> Result<ProfileChoice, E> {
                Ok(ProfileChoice::Preset(name.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<ProfileChoice, A::Error> {
                ProfileTable::deserialize(MapAccessDeserializer::new(table)).map(|table| ProfileChoice::Table(Box::new(table)))
            }
        }

        deserializer.deserialize_any(Choice)
    }
}

impl ProfileChoice {
    /// The profile that is chosen for an endpoint at `base_url`.
    ///
    /// # Errors
    /// Where the preset that it names does not exist.
    pub fn resolve(&self, base_url: &str) -> Result<Profile, UnknownProfile> {
        let table = match self {
            Self::Preset(name) => return Profile::preset(name),
            Self::Table(table) => table,
        };
        let base = table.preset.as_deref().map_or_else(|| Ok(Profile::for_base_url(base_url)), Profile::preset)?;
        Ok(Profile {
            system_role: table.system_role.unwrap_or(base.system_role),
            max_tokens_field: table.max_tokens_field.unwrap_or(base.max_tokens_field),
            stream_usage: table.stream_usage.unwrap_or(base.stream_usage),
            reasoning_effort: table.reasoning_effort.unwrap_or(base.reasoning_effort),
            reasoning_replay: table.reasoning_replay.unwrap_or(base.reasoning_replay),
            think_tags: table.think_tags.unwrap_or(base.think_tags),
            recover_text_calls: table.recover_text_calls.unwrap_or(base.recover_text_calls),
            tool_call_ids: table.tool_call_ids.unwrap_or(base.tool_call_ids),
            signed_calls: table.signed_calls.unwrap_or(base.signed_calls),
            empty_content: table.empty_content.unwrap_or(base.empty_content),
            refusal_field: table.refusal_field.unwrap_or(base.refusal_field),
            images: table.images.unwrap_or(base.images),
            documents: table.documents.unwrap_or(base.documents),
            tool_schemas: table.tool_schemas.unwrap_or(base.tool_schemas),
            schema_fields: table.schema_fields.unwrap_or(base.schema_fields),
            done_without_finish: table.done_without_finish.unwrap_or(base.done_without_finish),
            key_header: table.key_header.unwrap_or(base.key_header),
            tools: table.tools.unwrap_or(base.tools),
            max_tools: table.max_tools.or(base.max_tools),
            tool_choice: table.tool_choice.unwrap_or(base.tool_choice),
            parallel_tool_calls: table.parallel_tool_calls.unwrap_or(base.parallel_tool_calls),
            forced_calls_while_thinking: table.forced_calls_while_thinking.unwrap_or(base.forced_calls_while_thinking),
            reasoning_field: table.reasoning_field.unwrap_or(base.reasoning_field),
            reasoning_format: table.reasoning_format.unwrap_or(base.reasoning_format),
            document_parts: table.document_parts.unwrap_or(base.document_parts),
            structured_output: table.structured_output.unwrap_or(base.structured_output),
            structured_output_with_tools: table.structured_output_with_tools.unwrap_or(base.structured_output_with_tools),
            joins_messages: table.joins_messages.unwrap_or(base.joins_messages),
            assistant_after_results: table.assistant_after_results.unwrap_or(base.assistant_after_results),
        })
    }
}
