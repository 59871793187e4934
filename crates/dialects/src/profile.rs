//! How an endpoint differs from the format's own: data, by preset and by the configuration's `profile` key.
//!
//! A profile says what to send, and what to look for in an answer's text. Everything else about an answer is recognised
//! by its shape.

use serde::Deserialize;

use crate::recover::TextForms;
use crate::schema::SchemaTarget;

/// The switches of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own, by its name in the configuration")]
pub struct Profile {
    /// The role of the system prompt.
    pub system_role: SystemRole,
    /// The field that limits the answer's length.
    pub max_tokens_field: MaxTokensField,
    /// Whether to ask for usage in the stream.
    pub stream_usage: bool,
    /// Whether `reasoning_effort` is sent where a turn chooses one.
    pub reasoning_effort: bool,
    /// Which assistant messages carry their reasoning back to where it came from.
    pub reasoning_replay: ReasoningReplay,
    /// Whether text may begin with reasoning in `<think>` tags.
    pub think_tags: bool,
    /// The forms in which calls that a model wrote as text are recovered.
    pub recover_text_calls: TextForms,
    /// Which call ids the endpoint takes.
    pub tool_call_ids: ToolCallIds,
    /// What stands for the content of a message that has calls alone.
    pub empty_content: EmptyContent,
    /// Whether an assistant message may carry `refusal`.
    pub refusal_field: bool,
    /// Whether models take images; where not, they are shown a placeholder.
    pub images: bool,
    /// Whether user messages take documents.
    pub documents: bool,
    /// How the schemas of tools are written.
    pub tool_schemas: ToolSchemas,
    /// Whether the assistant must speak between results and a user message.
    pub assistant_after_results: bool,
    /// Whether `[DONE]` ends an answer that named no finish reason.
    pub done_without_finish: bool,
}

/// The role of the system prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SystemRole {
    /// `system`, which every compatible server takes.
    System,
    /// `developer`.
    Developer,
}

/// The field that limits the answer's length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MaxTokensField {
    /// `max_tokens`, which every compatible server takes.
    MaxTokens,
    /// `max_completion_tokens`, which reasoning models of the format's own maker demand.
    MaxCompletionTokens,
}

/// Which assistant messages carry their reasoning back to where it came from, in the field in which it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningReplay {
    /// None.
    Never,
    /// Those with calls.
    WithCalls,
    /// All that have some.
    Always,
    /// All; `reasoning_content` is empty where there is none.
    Required,
}

/// Which call ids an endpoint takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolCallIds {
    /// Any text.
    Any,
    /// At most 40 characters of `[A-Za-z0-9_-]`.
    Max40,
    /// At most 64 characters of `[A-Za-z0-9_.:-]`.
    Max64,
    /// At most 64 characters of `[A-Za-z0-9_-]`.
    Word64,
    /// Exactly 9 of `[A-Za-z0-9]`.
    Alnum9,
}

/// How the schemas of tools are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolSchemas {
    /// With what every server reads, which may make a grammar or a template of them.
    Plain,
    /// As JSON Schema.
    JsonSchema,
    /// As JSON Schema, and strict where nothing of a schema is lost by it.
    Strict,
}

impl ToolSchemas {
    pub(crate) fn target(self) -> SchemaTarget {
        match self {
            Self::Plain => SchemaTarget::Compatible,
            Self::JsonSchema => SchemaTarget::OpenAi,
            Self::Strict => SchemaTarget::OpenAiStrict,
        }
    }
}

/// What stands for the content of a message that has calls alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EmptyContent {
    /// `null`.
    Null,
    /// The field is left out.
    Omitted,
    /// An empty text.
    Text,
}

/// A preset name that there is not, or a preset that was asked for by a wrong name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no profile `{name}`; there are {}", Profile::PRESETS.map(|(name, _)| name).join(", "))]
pub struct UnknownProfile {
    name: String,
}

impl Profile {
    /// What an unknown compatible server takes.
    pub const COMPATIBLE: Self = Self {
        system_role: SystemRole::System,
        max_tokens_field: MaxTokensField::MaxTokens,
        stream_usage: true,
        reasoning_effort: true,
        reasoning_replay: ReasoningReplay::Never,
        think_tags: true,
        recover_text_calls: TextForms::ALL,
        tool_call_ids: ToolCallIds::Max40,
        empty_content: EmptyContent::Null,
        refusal_field: false,
        images: true,
        documents: false,
        tool_schemas: ToolSchemas::Plain,
        assistant_after_results: false,
        done_without_finish: false,
    };

    /// OpenAI, who made the formats.
    pub const OPENAI: Self = Self {
        system_role: SystemRole::Developer,
        max_tokens_field: MaxTokensField::MaxCompletionTokens,
        think_tags: false,
        recover_text_calls: TextForms::NONE,
        refusal_field: true,
        documents: true,
        tool_schemas: ToolSchemas::Strict,
        ..Self::COMPATIBLE
    };

    /// A hosted service whose models call properly.
    const HOSTED: Self = Self {
        think_tags: false,
        recover_text_calls: TextForms::NONE,
        tool_schemas: ToolSchemas::JsonSchema,
        ..Self::COMPATIBLE
    };

    /// The presets, by name.
    pub const PRESETS: [(&'static str, Self); 7] = [
        ("compatible", Self::COMPATIBLE),
        ("openai", Self::OPENAI),
        (
            "mistral",
            Self {
                stream_usage: false,
                tool_call_ids: ToolCallIds::Alnum9,
                tool_schemas: ToolSchemas::Plain,
                assistant_after_results: true,
                ..Self::HOSTED
            },
        ),
        ("deepseek", Self { reasoning_replay: ReasoningReplay::Required, images: false, ..Self::HOSTED }),
        ("openrouter", Self { reasoning_replay: ReasoningReplay::Always, documents: true, ..Self::HOSTED }),
        ("groq", Self { reasoning_replay: ReasoningReplay::WithCalls, empty_content: EmptyContent::Omitted, ..Self::HOSTED }),
        ("moonshot", Self { reasoning_replay: ReasoningReplay::WithCalls, ..Self::HOSTED }),
    ];

    /// The preset with this name.
    ///
    /// # Errors
    /// Where there is none.
    pub fn preset(name: &str) -> Result<Self, UnknownProfile> {
        let found = Self::PRESETS.into_iter().find(|(known, _)| *known == name);
        found.map(|(_, profile)| profile).ok_or_else(|| UnknownProfile { name: name.to_owned() })
    }

    /// The preset for a base address, where the configuration names none.
    pub fn for_base_url(base_url: &str) -> Self {
        let host = host_of(base_url);
        let name = match host {
            "api.openai.com" => "openai",
            "api.mistral.ai" => "mistral",
            "api.deepseek.com" => "deepseek",
            "openrouter.ai" => "openrouter",
            "api.groq.com" => "groq",
            "api.moonshot.ai" | "api.moonshot.cn" => "moonshot",
            _ if host.ends_with(".openai.azure.com") => "openai",
            _ => "compatible",
        };
        Self::preset(name).unwrap_or(Self::COMPATIBLE)
    }
}

/// The host of a base address.
pub(crate) fn host_of(base_url: &str) -> &str {
    let rest = base_url.split_once("://").map_or(base_url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    host.split(':').next().unwrap_or_default()
}

/// A provider's `profile` key: the name of a preset, or a table of what differs from one.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
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
    pub empty_content: Option<EmptyContent>,
    pub refusal_field: Option<bool>,
    pub images: Option<bool>,
    pub documents: Option<bool>,
    pub tool_schemas: Option<ToolSchemas>,
    pub assistant_after_results: Option<bool>,
    pub done_without_finish: Option<bool>,
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
            empty_content: table.empty_content.unwrap_or(base.empty_content),
            refusal_field: table.refusal_field.unwrap_or(base.refusal_field),
            images: table.images.unwrap_or(base.images),
            documents: table.documents.unwrap_or(base.documents),
            tool_schemas: table.tool_schemas.unwrap_or(base.tool_schemas),
            assistant_after_results: table.assistant_after_results.unwrap_or(base.assistant_after_results),
            done_without_finish: table.done_without_finish.unwrap_or(base.done_without_finish),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(json: &str) -> ProfileChoice {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_name_chooses_a_preset_and_a_table_changes_one() {
        let url = "http://127.0.0.1:8080/v1";
        assert_eq!(choice("\"openai\"").resolve(url), Ok(Profile::OPENAI));
        assert_eq!(choice("{}").resolve(url), Ok(Profile::COMPATIBLE));
        assert_eq!(choice("{}").resolve("https://api.openai.com/v1"), Ok(Profile::OPENAI));
        let table = r#"{"preset":"openai","recover_text_calls":true,"max_tokens_field":"max_tokens"}"#;
        let expected =
            Profile { recover_text_calls: TextForms::ALL, max_tokens_field: MaxTokensField::MaxTokens, ..Profile::OPENAI };
        assert_eq!(choice(table).resolve(url), Ok(expected));
    }

    #[test]
    fn an_unknown_preset_is_named_together_with_the_known_ones() {
        let error = choice("\"opnai\"").resolve("").unwrap_err().to_string();
        let known = "compatible, openai, mistral, deepseek, openrouter, groq, moonshot";
        assert_eq!(error, format!("there is no profile `opnai`; there are {known}"));
    }

    #[test]
    fn a_misspelt_switch_is_refused() {
        assert!(serde_json::from_str::<ProfileChoice>(r#"{"recover_calls":true}"#).is_err());
    }
}
