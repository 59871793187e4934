//! The form of an answer (structured output) as each API takes it.
//!
//! It goes the way of the schemas of tools, with two differences: an answer need not be an object, and what a schema leaves open
//! counts, since an API that holds a model to it closes that. What the compiler has no form for is sent as it is, and loosely.
//! What an API cannot be told without another form than the one that was asked for is told to the model in words.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use turnwright_core::{OutputFormat, OutputSchema};

use crate::profile::{Profile, ToolSchemas};
use crate::schema::{Lowered, SchemaTarget, compile, recursive};

/// What an API is asked for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Held<'a> {
    /// JSON that fits a schema.
    Schema(Form<'a>),
    /// Any JSON object. The model is told the rest in words.
    JsonObject,
}

/// The form that is asked for, as OpenAI's formats write it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Form<'a> {
    pub(crate) name: &'a str,
    pub(crate) schema: Value,
    /// Whether the API is to hold the model to the schema exactly.
    pub(crate) strict: bool,
}

/// What a model is told that cannot be held to a form, or not now. It has the word JSON in it, without which OpenAI's formats give
/// no JSON mode.
pub(crate) fn in_words(output: &OutputFormat) -> Cow<'static, str> {
    match output {
        OutputFormat::JsonObject => Cow::Borrowed("Answer with a JSON object alone."),
        OutputFormat::Schema(output) => {
            Cow::Owned(format!("Answer with JSON alone, which fits this JSON Schema: {}", output.schema))
        }
    }
}

/// `own`, the system prompt, and the form in words where the model is told of one.
pub(crate) fn system<'a>(own: Option<&'a str>, told: Option<&OutputFormat>) -> Option<Cow<'a, str>> {
    match (own, told.map(in_words)) {
        (Some(own), Some(form)) => Some(Cow::Owned(format!("{own}\n\n{form}"))),
        (None, Some(form)) => Some(form),
        (own, None) => own.map(Cow::Borrowed),
    }
}

impl<'a> Held<'a> {
    /// What one of OpenAI's formats is asked for.
    pub(crate) fn of(output: &'a OutputFormat, profile: &Profile) -> Self {
        match output {
            OutputFormat::JsonObject => Self::JsonObject,
            OutputFormat::Schema(output) => Form::of(output, profile).map_or(Self::JsonObject, Self::Schema),
        }
    }

    /// What is asked for by a schema for `target`.
    pub(crate) fn lowered(output: &'a OutputFormat, target: SchemaTarget) -> Self {
        match output {
            OutputFormat::JsonObject => Self::JsonObject,
            OutputFormat::Schema(output) => Form::lowered(output, target).map_or(Self::JsonObject, Self::Schema),
        }
    }

    /// The schema that is asked for.
    pub(crate) fn into_schema(self) -> Option<Value> {
        match self {
            Self::Schema(form) => Some(form.schema),
            Self::JsonObject => None,
        }
    }
}

impl<'a> Form<'a> {
    /// The form for one of OpenAI's formats: strict where that was asked for and the schema can be, which the API else refuses. `None`
    /// where it takes no such schema.
    fn of(output: &'a OutputSchema, profile: &Profile) -> Option<Self> {
        let strict = Self::lowered(output, SchemaTarget::OpenAiStrict).filter(|form| output.strict && form.strict);
        let form = strict.or_else(|| Self::lowered(output, profile.tool_schemas.loose_target()));
        // OpenAI takes references, also of a schema to itself.
        let as_it_is = || {
            let schema = recursive::with_root(&output.schema);
            let strict = output.strict && recursive::is_strict(&schema);
            Self { name: &output.name, schema, strict }
        };
        form.or_else(|| (profile.tool_schemas != ToolSchemas::Plain).then(as_it_is))
    }

    /// The form for `target`; `None` where a part of it would be left open that the schema does not leave so.
    fn lowered(output: &'a OutputSchema, target: SchemaTarget) -> Option<Self> {
        let lowered = is_of_objects(&output.schema).then(|| compile(&output.schema, target).ok()).flatten();
        if lowered.as_ref().is_some_and(|lowered| lowered.is_cut) {
            let schema = recursive::for_gemini(&output.schema).filter(|_| target == SchemaTarget::GeminiJson);
            return schema.map(|schema| Self { name: &output.name, schema, strict: false });
        }
        let strict = lowered.as_ref().is_some_and(Lowered::is_strict);
        let schema = lowered.map_or_else(|| output.schema.clone(), |lowered| lowered.schema);
        Some(Self { name: &output.name, schema, strict })
    }
}

/// Whether a schema speaks of objects: arguments always are, so the compiler makes an object schema of whatever says no type.
fn is_of_objects(schema: &Value) -> bool {
    ["type", "properties", "$ref", "allOf", "anyOf", "oneOf"].iter().any(|keyword| schema.get(keyword).is_some())
}
