//! The table of known servers and services. What one of them is known to do differently is a row; everything is
//! overridable, since versions differ.

use serde::Deserialize;

use super::{
    DocumentParts, EmptyContent, KeyHeader, MaxTokensField, Profile, ReasoningField, ReasoningReplay, SchemaFields,
    StructuredOutput, SystemRole, ToolCallIds, ToolChoices, ToolSchemas, UnknownProfile,
};
use crate::recover::TextForms;

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
        signed_calls: false,
        empty_content: EmptyContent::Null,
        refusal_field: false,
        images: true,
        documents: false,
        tool_schemas: ToolSchemas::Plain,
        schema_fields: SchemaFields::JsonSchema,
        done_without_finish: false,
        key_header: KeyHeader::Format,
        tools: true,
        max_tools: None,
        tool_choice: ToolChoices::All,
        parallel_tool_calls: false,
        forced_calls_while_thinking: true,
        reasoning_field: ReasoningField::Effort,
        reasoning_format: false,
        document_parts: DocumentParts::File,
        structured_output: StructuredOutput::JsonSchema,
        structured_output_with_tools: true,
        assistant_after_results: false,
        // Chat templates of many models with open weights refuse two in a row.
        joins_messages: true,
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
        max_tools: Some(128),
        tool_choice: ToolChoices::Listed,
        parallel_tool_calls: true,
        joins_messages: false,
        ..Self::COMPATIBLE
    };

    /// Anthropic, who made a format.
    const ANTHROPIC: Self = Self { tool_schemas: ToolSchemas::Strict, ..Self::COMPATIBLE };

    /// A hosted service whose models call properly.
    const HOSTED: Self = Self {
        think_tags: false,
        recover_text_calls: TextForms::NONE,
        tool_schemas: ToolSchemas::JsonSchema,
        joins_messages: false,
        ..Self::COMPATIBLE
    };

    /// A hosted service of models with open weights: what is made of schemas depends on the model.
    const OPEN: Self = Self { tool_schemas: ToolSchemas::Plain, ..Self::HOSTED };

    /// The presets: a name, what is different, and the hosts at which it is found. A host that begins with a dot stands for
    /// all below it; a port is one of this machine.
    pub const PRESETS: [(&'static str, Self, &'static [&'static str]); 28] = [
        ("compatible", Self::COMPATIBLE, &[]),
        ("openai", Self::OPENAI, &["api.openai.com"]),
        ("anthropic", Self::ANTHROPIC, &["api.anthropic.com"]),
        (
            "azure",
            Self { key_header: KeyHeader::ApiKey, ..Self::OPENAI },
            &[".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"],
        ),
        (
            "mistral",
            Self {
                stream_usage: false,
                tool_call_ids: ToolCallIds::Alnum9,
                tool_schemas: ToolSchemas::Plain,
                tool_choice: ToolChoices::AnyWord,
                parallel_tool_calls: true,
                documents: true,
                document_parts: DocumentParts::DocumentUrl,
                assistant_after_results: true,
                ..Self::HOSTED
            },
            &["api.mistral.ai"],
        ),
        (
            "deepseek",
            Self {
                reasoning_replay: ReasoningReplay::Required,
                images: false,
                forced_calls_while_thinking: false,
                reasoning_field: ReasoningField::ThinkingEffort,
                structured_output: StructuredOutput::JsonObject,
                ..Self::HOSTED
            },
            &["api.deepseek.com"],
        ),
        (
            "openrouter",
            Self {
                reasoning_replay: ReasoningReplay::Always,
                reasoning_field: ReasoningField::Reasoning,
                parallel_tool_calls: true,
                documents: true,
                ..Self::HOSTED
            },
            &["openrouter.ai"],
        ),
        (
            "groq",
            Self {
                reasoning_replay: ReasoningReplay::WithCalls,
                reasoning_format: true,
                // What its models do where nobody chooses a format.
                think_tags: true,
                parallel_tool_calls: true,
                empty_content: EmptyContent::Omitted,
                structured_output_with_tools: false,
                ..Self::HOSTED
            },
            &["api.groq.com"],
        ),
        (
            "moonshot",
            Self { reasoning_replay: ReasoningReplay::RequiredWithCalls, tool_choice: ToolChoices::NoneOnly, ..Self::HOSTED },
            &["api.moonshot.ai", "api.moonshot.cn"],
        ),
        ("ollama", Self { tool_choice: ToolChoices::NoneOnly, ..Self::COMPATIBLE }, &[":11434"]),
        ("vllm", Self { parallel_tool_calls: true, ..Self::COMPATIBLE }, &[]),
        ("sglang", Self { done_without_finish: true, ..Self::COMPATIBLE }, &[]),
        ("tgi", Self { done_without_finish: true, ..Self::COMPATIBLE }, &[]),
        ("llamacpp", Self { tool_choice: ToolChoices::Unnamed, parallel_tool_calls: true, ..Self::COMPATIBLE }, &[]),
        ("lmstudio", Self { structured_output: StructuredOutput::JsonSchemaAlone, ..Self::COMPATIBLE }, &[":1234"]),
        ("together", Self::OPEN, &["api.together.xyz", "api.together.ai"]),
        ("fireworks", Self::OPEN, &["api.fireworks.ai"]),
        ("huggingface", Self::OPEN, &["router.huggingface.co"]),
        ("cerebras", Self::OPEN, &["api.cerebras.ai"]),
        ("sambanova", Self::OPEN, &["api.sambanova.ai"]),
        ("xai", Self::OPEN, &["api.x.ai"]),
        ("gemini", Self { signed_calls: true, ..Self::OPEN }, &["generativelanguage.googleapis.com"]),
        (
            "perplexity",
            Self {
                tools: false,
                think_tags: true,
                structured_output: StructuredOutput::JsonSchemaAlone,
                assistant_after_results: true,
                joins_messages: true,
                ..Self::OPEN
            },
            &["api.perplexity.ai"],
        ),
        ("mira", Self { tools: false, ..Self::OPEN }, &["api.mira.network"]),
        ("hyperbolic", Self { tools: false, think_tags: true, ..Self::OPEN }, &["api.hyperbolic.xyz"]),
        ("minimax", Self { think_tags: true, ..Self::OPEN }, &["api.minimax.io", "api.minimax.chat", "api.minimaxi.com"]),
        (
            "zai",
            Self { tool_choice: ToolChoices::NoneOnly, reasoning_field: ReasoningField::Thinking, ..Self::OPEN },
            &["api.z.ai", "open.bigmodel.cn"],
        ),
        (
            "qwen",
            Self { forced_calls_while_thinking: false, reasoning_field: ReasoningField::EnableThinking, ..Self::OPEN },
            &[".aliyuncs.com"],
        ),
    ];

    /// The preset with this name.
    ///
    /// # Errors
    /// Where there is none.
    pub fn preset(name: &str) -> Result<Self, UnknownProfile> {
        let found = Self::PRESETS.into_iter().find(|(known, ..)| *known == name);
        found.map(|(_, profile, _)| profile).ok_or_else(|| UnknownProfile { name: name.to_owned() })
    }

    /// The name of the preset for a base address, where the configuration names none.
    pub fn name_for_base_url(base_url: &str) -> &'static str {
        let host = host_of(base_url);
        let is_local = matches!(host, "localhost" | "127.0.0.1");
        let port = base_url.split_once("://").map_or(base_url, |(_, rest)| rest).split('/').next().unwrap_or_default();
        let is_at = |known: &&str| match known.as_bytes().first() {
            Some(b'.') => host.ends_with(*known),
            Some(b':') => is_local && port.ends_with(*known),
            Some(_) | None => host == *known,
        };
        let found = Self::PRESETS.into_iter().find(|(.., hosts)| hosts.iter().any(is_at));
        found.map_or("compatible", |(name, ..)| name)
    }

    /// The preset of the server that wrote this list of models, where it names itself in it.
    pub fn name_for_models(list: &[u8]) -> Option<&'static str> {
        #[derive(Deserialize)]
        struct List {
            data: Vec<Model>,
        }
        #[derive(Deserialize)]
        struct Model {
            owned_by: Option<String>,
        }
        let list: List = serde_json::from_slice(list).ok()?;
        match list.data.first()?.owned_by.as_deref()? {
            "llamacpp" => Some("llamacpp"),
            "vllm" => Some("vllm"),
            "sglang" => Some("sglang"),
            "library" => Some("ollama"),
            "organization_owner" => Some("lmstudio"),
            _ => None,
        }
    }

    /// The preset for a base address, where the configuration names none.
    pub fn for_base_url(base_url: &str) -> Self {
        Self::preset(Self::name_for_base_url(base_url)).unwrap_or(Self::COMPATIBLE)
    }
}

/// The host of a base address.
pub(crate) fn host_of(base_url: &str) -> &str {
    let rest = base_url.split_once("://").map_or(base_url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    host.split(':').next().unwrap_or_default()
}
