//! How an endpoint differs from the format's own: data, by preset and by the configuration's `profile` key.
//!
//! A profile says what to send, and what to look for in an answer's text. Everything else about an answer is recognised
//! by its shape.

mod presets;
mod table;

use serde::Deserialize;

pub(crate) use self::presets::host_of;
pub use self::table::{ProfileChoice, ProfileTable};
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
    /// Whether the first call of a message is marked as made elsewhere where it has no signature and the model is one of Gemini's
    /// that demand one.
    pub signed_calls: bool,
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
    /// The fields in which Gemini's format is given schemas.
    pub schema_fields: SchemaFields,
    /// Whether the assistant must speak between results and a user message.
    pub assistant_after_results: bool,
    /// Whether `[DONE]` ends an answer that named no finish reason.
    pub done_without_finish: bool,
    /// The header that carries the key.
    pub key_header: KeyHeader,
    /// Whether tools are offered at all.
    pub tools: bool,
    /// The most tools that a request may have; above it most are held back until they are searched for.
    pub max_tools: Option<u16>,
    /// Which demands for calls the endpoint takes.
    pub tool_choice: ToolChoices,
    /// Whether `parallel_tool_calls` is sent where a turn chooses it.
    pub parallel_tool_calls: bool,
    /// Whether a model that thinks can be made to call; where not, it is told not to think for that answer.
    pub forced_calls_while_thinking: bool,
    /// In which field what a turn chooses of reasoning is sent.
    pub reasoning_field: ReasoningField,
    /// Whether reasoning is asked for apart from the text, with `reasoning_format`, where a turn chooses how much.
    pub reasoning_format: bool,
    /// How documents are written.
    pub document_parts: DocumentParts,
    /// How an answer in a form of its own is asked for.
    pub structured_output: StructuredOutput,
    /// Whether it can be asked for beside tools; where not, it is asked for in the system prompt while there are some.
    pub structured_output_with_tools: bool,
    /// Whether what people say in a row is written as one message.
    pub joins_messages: bool,
}

/// The header that carries the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyHeader {
    /// The format's own.
    Format,
    /// `api-key`, as Azure has it.
    ApiKey,
}

/// Which demands for calls an endpoint takes. What it does not take is asked as nearly as it can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoices {
    /// All: none, any tool, one tool by name, one of several by their names (`allowed_tools`).
    Listed,
    /// All but one of several tools, for which any is demanded.
    All,
    /// As `all`; that some tool must be called is the word `any`.
    AnyWord,
    /// None and any, which is also demanded for tools by name.
    Unnamed,
    /// None alone: the model chooses whether it calls.
    NoneOnly,
}

/// In which field what a turn chooses of reasoning is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningField {
    /// `reasoning_effort`.
    Effort,
    /// `reasoning: {"effort": …}`, as `OpenRouter` has it.
    Reasoning,
    /// `thinking: {"type": "enabled" | "disabled"}`, as GLM has it.
    Thinking,
    /// `thinking`, and `reasoning_effort` of `low`, `high` or `max`, as `DeepSeek` has it.
    ThinkingEffort,
    /// `enable_thinking`, as Qwen has it.
    EnableThinking,
}

/// How documents are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DocumentParts {
    /// `file` parts.
    File,
    /// `document_url` parts, as Mistral has it.
    DocumentUrl,
}

/// How an answer in a form of its own is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StructuredOutput {
    /// By its schema, or as any JSON object where that is what is asked for.
    JsonSchema,
    /// By its schema. Any JSON object is not taken, and asked for in the system prompt.
    JsonSchemaAlone,
    /// As any JSON object; the schema is in the system prompt.
    JsonObject,
    /// In the system prompt alone.
    Prompt,
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
    /// Those with calls; `reasoning_content` is a space where there is none, for which Kimi takes an empty one too. The models named
    /// `moonshot-v1`, and those that are known not to think, are told no more than what they said.
    RequiredWithCalls,
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

    /// What is written where nothing is to be strict.
    pub(crate) fn loose_target(self) -> SchemaTarget {
        match self {
            Self::Plain => SchemaTarget::Compatible,
            Self::JsonSchema | Self::Strict => SchemaTarget::OpenAi,
        }
    }
}

/// The fields in which Gemini's format is given schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SchemaFields {
    /// `parametersJsonSchema` and `responseJsonSchema`: JSON Schema.
    #[serde(rename = "json_schema")]
    JsonSchema,
    /// `parameters` and `responseSchema`, the only ones that some proxies know: a part of `OpenAPI`'s schemas.
    OpenApi,
}

impl SchemaFields {
    pub(crate) fn target(self) -> SchemaTarget {
        match self {
            Self::JsonSchema => SchemaTarget::GeminiJson,
            Self::OpenApi => SchemaTarget::GeminiSubset,
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
#[error("there is no profile `{name}`; there are {}", Profile::PRESETS.map(|(name, ..)| name).join(", "))]
pub struct UnknownProfile {
    name: String,
}

impl UnknownProfile {
    /// The name that was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names that there are.
    pub fn known() -> impl Iterator<Item = &'static str> {
        Profile::PRESETS.into_iter().map(|(name, ..)| name)
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
        assert!(error.starts_with("there is no profile `opnai`; there are compatible, openai, anthropic, azure"), "{error}");
    }

    #[test]
    fn a_misspelt_switch_is_refused() {
        let why = |json| serde_json::from_str::<ProfileChoice>(json).unwrap_err().to_string();
        let text = why(r#"{"recover_calls":true}"#);
        assert!(text.starts_with("unknown field `recover_calls`, expected one of `preset`, `system_role`"), "{text}");
        let text = why(r#"{"images":"yes"}"#);
        assert!(text.starts_with("invalid type: string \"yes\", expected a boolean"), "{text}");
        let text = why("1");
        assert!(text.starts_with("invalid type: integer `1`, expected the name of a profile or a table"), "{text}");
    }

    #[test]
    fn a_known_address_chooses_its_preset() {
        let rows = [
            ("https://api.openai.com/v1", "openai"),
            ("https://mine.openai.azure.com/openai/v1/", "azure"),
            ("https://mine.services.ai.azure.com/openai/v1", "azure"),
            ("https://api.anthropic.com", "anthropic"),
            ("https://api.mistral.ai/v1", "mistral"),
            ("https://api.deepseek.com/beta", "deepseek"),
            ("https://openrouter.ai/api/v1", "openrouter"),
            ("https://api.groq.com/openai/v1", "groq"),
            ("https://api.moonshot.cn/v1", "moonshot"),
            ("http://localhost:11434/v1", "ollama"),
            ("http://127.0.0.1:1234/v1", "lmstudio"),
            ("http://example.org:11434/v1", "compatible"),
            ("http://127.0.0.1:8080/v1", "compatible"),
            ("https://api.together.xyz/v1", "together"),
            ("https://api.fireworks.ai/inference/v1", "fireworks"),
            ("https://router.huggingface.co/v1", "huggingface"),
            ("https://api.cerebras.ai/v1", "cerebras"),
            ("https://api.sambanova.ai/v1", "sambanova"),
            ("https://api.x.ai/v1", "xai"),
            ("https://generativelanguage.googleapis.com/v1beta/openai", "gemini"),
            ("https://api.perplexity.ai", "perplexity"),
            ("https://api.minimax.io/v1", "minimax"),
            ("https://api.z.ai/api/paas/v4", "zai"),
            ("https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "qwen"),
            ("https://evil.example/api.openai.com", "compatible"),
            ("https://api.openai.com.evil.example/v1", "compatible"),
            ("https://api.openai.com@evil.example/v1", "compatible"),
            ("", "compatible"),
        ];
        for (base_url, name) in rows {
            assert_eq!(Profile::name_for_base_url(base_url), name, "{base_url}");
            assert_eq!(Ok(Profile::for_base_url(base_url)), Profile::preset(name));
        }
    }

    #[test]
    fn each_preset_has_a_name_and_hosts_of_its_own() {
        for (place, (name, _, hosts)) in Profile::PRESETS.into_iter().enumerate() {
            for (other, _, others) in Profile::PRESETS.into_iter().skip(place + 1) {
                assert_ne!(name, other);
                assert!(hosts.iter().all(|host| !others.contains(host)), "{name}, {other}");
            }
        }
    }

    #[test]
    fn every_switch_can_be_set() {
        let table = r#"{"preset":"compatible","system_role":"developer","max_tokens_field":"max_completion_tokens",
            "stream_usage":false,"reasoning_effort":false,"reasoning_replay":"always","think_tags":false,
            "recover_text_calls":["mistral"],"tool_call_ids":"any","signed_calls":true,"empty_content":"text","refusal_field":true,"images":false,
            "documents":true,"tool_schemas":"strict","schema_fields":"openapi","done_without_finish":true,"key_header":"api_key","tools":false,
            "tool_choice":"unnamed","structured_output":"prompt","assistant_after_results":true,
            "structured_output_with_tools":false,"joins_messages":false,
            "parallel_tool_calls":true,"max_tools":64,"forced_calls_while_thinking":false,"reasoning_field":"enable_thinking",
            "reasoning_format":true,"document_parts":"document_url"}"#;
        let expected = Profile {
            system_role: SystemRole::Developer,
            max_tokens_field: MaxTokensField::MaxCompletionTokens,
            stream_usage: false,
            reasoning_effort: false,
            reasoning_replay: ReasoningReplay::Always,
            think_tags: false,
            recover_text_calls: TextForms::only(crate::TextForm::Mistral),
            tool_call_ids: ToolCallIds::Any,
            signed_calls: true,
            empty_content: EmptyContent::Text,
            refusal_field: true,
            images: false,
            documents: true,
            tool_schemas: ToolSchemas::Strict,
            schema_fields: SchemaFields::OpenApi,
            done_without_finish: true,
            key_header: KeyHeader::ApiKey,
            tools: false,
            max_tools: Some(64),
            tool_choice: ToolChoices::Unnamed,
            parallel_tool_calls: true,
            forced_calls_while_thinking: false,
            reasoning_field: ReasoningField::EnableThinking,
            reasoning_format: true,
            document_parts: DocumentParts::DocumentUrl,
            structured_output: StructuredOutput::Prompt,
            assistant_after_results: true,
            structured_output_with_tools: false,
            joins_messages: false,
        };
        assert_eq!(choice(table).resolve(""), Ok(expected));
    }
}
