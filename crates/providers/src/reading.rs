//! What the schema of a tool becomes on its way to each API, in words for people.

use serde_json::Value;
use turnwright_dialects::schema::{SchemaTarget, Strictness, compile_or_any};

/// A tool's schema as one kind of API is sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaReading {
    /// Who reads it: `openai`, `anthropic`, `gemini`, or `compatible` for Ollama and the servers that speak OpenAI's format.
    pub reader: &'static str,
    /// Whether it is asked to hold the model to the schema.
    pub strictness: SchemaStrictness,
    /// What the schema says and the reader is not told, each with its place.
    pub losses: Vec<String>,
}

/// Whether an API is asked to hold the model to a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaStrictness {
    /// There is nothing to ask for.
    NotAsked,
    /// It is.
    Strict,
    /// It is not.
    Loose {
        /// Why the schema cannot be made strict.
        because: String,
    },
}

/// How each kind of API is sent `schema`, where an endpoint's profile says nothing else.
pub fn schema_readings(schema: &Value) -> Vec<SchemaReading> {
    let readers = [
        ("openai", SchemaTarget::OpenAiStrict),
        ("anthropic", SchemaTarget::AnthropicStrict),
        ("gemini", SchemaTarget::GeminiJson),
        ("compatible", SchemaTarget::Compatible),
    ];
    let reading = |(reader, target)| {
        let lowered = compile_or_any(schema, target);
        let strictness = match lowered.strict {
            Strictness::NotAsked => SchemaStrictness::NotAsked,
            Strictness::Strict => SchemaStrictness::Strict,
            Strictness::Loose { because } => SchemaStrictness::Loose { because },
        };
        SchemaReading { reader, strictness, losses: lowered.losses.iter().map(ToString::to_string).collect() }
    };
    readers.into_iter().map(reading).collect()
}
