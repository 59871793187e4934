//! A call's arguments against its tool's schema.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use jsonschema::Validator;
use serde_json::{Map, Value};

/// How many problems the model is told at once.
const MAX_PROBLEMS_TOLD: usize = 5;
/// The longest piece of a value that a problem repeats.
const MAX_PROBLEM_CHARS: usize = 300;
/// Compiled schemas kept at once.
const MAX_VALIDATORS: usize = 4_096;

/// Compiled schemas, by the hash of their definition.
#[derive(Debug, Default)]
pub(crate) struct Validators {
    compiled: Mutex<HashMap<Arc<str>, Option<Arc<Validator>>>>,
}

impl Validators {
    /// The arguments as a JSON object that fits the schema.
    ///
    /// # Errors
    /// What is wrong with them, in words for the model.
    pub(crate) fn check(&self, hash: &Arc<str>, schema: &Value, arguments: &str) -> Result<Map<String, Value>, String> {
        let object = parse(arguments)?;
        let Some(validator) = self.validator(hash, schema) else { return Ok(object) };
        let value = Value::Object(object);
        let problems: Vec<String> =
            validator.iter_errors(&value).take(MAX_PROBLEMS_TOLD).map(|error| describe(&error)).collect();
        match (problems.is_empty(), value) {
            (true, Value::Object(object)) => Ok(object),
            _ => Err(format!("the arguments do not fit the tool's schema: {}", problems.join("; "))),
        }
    }

    /// The compiled schema; `None` where it is none, in which case any object is taken and the tool itself judges.
    fn validator(&self, hash: &Arc<str>, schema: &Value) -> Option<Arc<Validator>> {
        let known = self.compiled.lock().unwrap_or_else(PoisonError::into_inner).get(hash).cloned();
        if let Some(known) = known {
            return known;
        }
        let compiled = jsonschema::validator_for(schema).ok().map(Arc::new);
        let mut all = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_VALIDATORS {
            all.clear();
        }
        all.insert(hash.clone(), compiled.clone());
        compiled
    }
}

/// Whether a schema is one.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check_schema(schema: &Value) -> Result<(), String> {
    if !schema.is_object() {
        return Err("its input schema is not an object".to_owned());
    }
    jsonschema::validator_for(schema).map(drop).map_err(|error| format!("its input schema is not valid: {error}"))
}

fn parse(arguments: &str) -> Result<Map<String, Value>, String> {
    if arguments.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(arguments) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(other) => Err(format!("the arguments must be a JSON object, not {}", kind(&other))),
        Err(error) => Err(format!("the arguments are not valid JSON: {error}")),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn describe(error: &jsonschema::ValidationError<'_>) -> String {
    let place = error.instance_path().to_string();
    let text: String = error.to_string().chars().take(MAX_PROBLEM_CHARS).collect();
    if place.is_empty() { text } else { format!("{text} (at {place})") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(schema: &Value, arguments: &str) -> Result<Map<String, Value>, String> {
        Validators::default().check(&"hash".into(), schema, arguments)
    }

    #[test]
    fn arguments_that_do_not_fit_say_where_and_what_would_be_right() {
        let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
        assert_eq!(check(&schema, r#"{"path": "a"}"#).unwrap().len(), 1);
        for (arguments, problem) in [
            ("{}", "the arguments do not fit the tool's schema: \"path\" is a required property"),
            (r#"{"path": 7}"#, "the arguments do not fit the tool's schema: 7 is not of type \"string\" (at /path)"),
            ("[1]", "the arguments must be a JSON object, not an array"),
            ("{\"path\": ", "the arguments are not valid JSON: EOF while parsing a value at line 1 column 9"),
        ] {
            assert_eq!(check(&schema, arguments).unwrap_err(), problem);
        }
    }

    #[test]
    fn no_arguments_are_an_empty_object() {
        assert_eq!(check(&json!({"type": "object"}), " ").unwrap(), Map::new());
    }
}
