//! The form of an answer (structured output) as each API takes it.
//!
//! It goes the way of the schemas of tools, with one difference: an answer need not be an object. What the compiler has no
//! form for is sent as it is, and loosely.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use turnwright_core::OutputFormat;

use crate::profile::Profile;
use crate::schema::{Lowered, SchemaTarget, compile};

/// The form that is asked for, as OpenAI's formats write it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Form<'a> {
    pub(crate) name: &'a str,
    pub(crate) schema: Value,
    /// Whether the API is to hold the model to the schema exactly.
    pub(crate) strict: bool,
}

/// What a model is told that cannot be held to a form, or not now.
pub(crate) fn in_words(output: &OutputFormat) -> String {
    format!("Answer with JSON alone, which fits this JSON Schema: {}", output.schema)
}

/// `own`, the system prompt, and the form in words where the model is told of one.
pub(crate) fn system<'a>(own: Option<&'a str>, told: Option<&OutputFormat>) -> Option<Cow<'a, str>> {
    match (own, told.map(in_words)) {
        (Some(own), Some(form)) => Some(Cow::Owned(format!("{own}\n\n{form}"))),
        (None, Some(form)) => Some(Cow::Owned(form)),
        (own, None) => own.map(Cow::Borrowed),
    }
}

impl<'a> Form<'a> {
    /// The form for one of OpenAI's formats: strict where that was asked for and the schema can be, which the API else refuses.
    pub(crate) fn of(output: &'a OutputFormat, profile: &Profile) -> Self {
        let strict = output.strict.then(|| Self::lowered(output, SchemaTarget::OpenAiStrict)).filter(|form| form.strict);
        strict.unwrap_or_else(|| Self::lowered(output, profile.tool_schemas.loose_target()))
    }

    /// The form for `target`.
    pub(crate) fn lowered(output: &'a OutputFormat, target: SchemaTarget) -> Self {
        let lowered = is_of_objects(&output.schema).then(|| compile(&output.schema, target).ok()).flatten();
        let strict = lowered.as_ref().is_some_and(Lowered::is_strict);
        let schema = lowered.map_or_else(|| output.schema.clone(), |lowered| lowered.schema);
        Self { name: &output.name, schema, strict }
    }
}

/// Whether a schema speaks of objects: arguments always are, so the compiler makes an object schema of whatever says no type.
fn is_of_objects(schema: &Value) -> bool {
    ["type", "properties", "$ref", "allOf", "anyOf", "oneOf"].iter().any(|keyword| schema.get(keyword).is_some())
}
