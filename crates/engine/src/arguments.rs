//! A call's arguments against its tool's schema.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use jsonschema::error::ValidationErrorKind;
use serde_json::{Map, Value};

use crate::schema::BoundedValidator;

/// How many problems the model is told at once.
const MAX_PROBLEMS_TOLD: usize = 5;
/// The longest piece of a value that a problem repeats.
const MAX_PROBLEM_CHARS: usize = 300;
/// Digits of a number that a problem repeats.
const MAX_DIGITS_TOLD: usize = 40;
/// Problems of one value that are looked at for a null that is too much.
const MAX_REFUSED: usize = 1_000;
/// How often arguments are looked at for such a null.
const MAX_NULL_ROUNDS: usize = 8;
/// Compiled schemas kept at once.
const MAX_VALIDATORS: usize = 4_096;

/// Compiled schemas, by the hash of their definition.
#[derive(Debug, Default)]
pub(crate) struct Validators {
    compiled: Mutex<HashMap<Arc<str>, Option<Arc<BoundedValidator>>>>,
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
        // What takes without end to find out, the tool itself judges.
        if validator.fits(&value) == Some(false) {
            let Some(problems) = validator.problems(&value) else {
                return Err(
                    "the arguments do not fit the tool's schema; they are too deep to say where: look at each alternative \
                            that it names, from the outside in"
                        .to_owned(),
                );
            };
            let problems: Vec<String> = problems.take(MAX_PROBLEMS_TOLD).map(|error| describe(&error)).collect();
            return without_refused_nulls(&validator, &value)
                .ok_or_else(|| format!("the arguments do not fit the tool's schema: {}", problems.join("; ")));
        }
        match value {
            Value::Object(object) => Ok(object),
            _ => Ok(Map::new()),
        }
    }

    /// The compiled schema; `None` where it is none, in which case any object is taken and the tool itself judges.
    fn validator(&self, hash: &Arc<str>, schema: &Value) -> Option<Arc<BoundedValidator>> {
        let known = self.compiled.lock().unwrap_or_else(PoisonError::into_inner).get(hash).cloned();
        if let Some(known) = known {
            return known;
        }
        let compiled = BoundedValidator::new(schema).map(Arc::new);
        let mut all = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_VALIDATORS {
            all.clear();
        }
        all.insert(hash.clone(), compiled.clone());
        compiled
    }
}

/// The arguments without every null that the schema refuses, where they fit it so: a model that is held to a strict schema
/// gives null for what it leaves out. The message that it wrote stays as it is.
fn without_refused_nulls(validator: &BoundedValidator, arguments: &Value) -> Option<Map<String, Value>> {
    let mut cleaned = arguments.clone();
    // What an alternative refuses shows only when what is around it fits.
    for _ in 0..MAX_NULL_ROUNDS {
        let mut places = Vec::new();
        for error in validator.problems(&cleaned)?.take(MAX_REFUSED) {
            refused(&error, &mut places);
        }
        let before = cleaned.clone();
        for place in places {
            remove_null(&mut cleaned, &place);
        }
        if validator.fits(&cleaned)? {
            return cleaned.as_object().cloned();
        }
        if cleaned == before {
            return None;
        }
    }
    None
}

/// Where a value was refused, as JSON pointers; also within alternatives, of which none fits.
fn refused(error: &jsonschema::ValidationError<'_>, places: &mut Vec<String>) {
    places.push(error.instance_path().to_string());
    if let ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } = error.kind() {
        for error in context.iter().flatten().take(MAX_REFUSED) {
            refused(error, places);
        }
    }
}

/// Removes the member at `place` where it is null.
fn remove_null(arguments: &mut Value, place: &str) {
    let Some((parent, name)) = place.rsplit_once('/') else { return };
    let name = name.replace("~1", "/").replace("~0", "~");
    if let Some(Value::Object(members)) = arguments.pointer_mut(parent)
        && members.get(&name).is_some_and(Value::is_null)
    {
        members.shift_remove(&name);
    }
}

fn parse(arguments: &str) -> Result<Map<String, Value>, String> {
    if arguments.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(arguments) {
        Ok(Value::Object(object)) => number_that_would_change(arguments).map_or(Ok(object), Err),
        Ok(other) => Err(format!("the arguments must be a JSON object, not {}", kind(&other))),
        Err(error) => Err(format!("the arguments are not valid JSON: {error}")),
    }
}

/// Why arguments, JSON text, cannot be passed on as they are written: they have a whole number of more than 64 bits, which would be another
/// once it is read. `None` where they can.
pub fn number_that_would_change(arguments: &str) -> Option<String> {
    let number = too_large(arguments)?;
    let shown: String = number.chars().take(MAX_DIGITS_TOLD).collect();
    let rest = if shown.len() < number.len() { "…" } else { "" };
    Some(format!(
        "the number {shown}{rest} in the arguments cannot be passed on as it is: whole numbers go from {} to {}",
        i64::MIN,
        u64::MAX
    ))
}

/// The first whole number in a JSON text that would become another one.
fn too_large(json: &str) -> Option<&str> {
    let mut rest = json;
    while let Some(at) = rest.find(['"', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) {
        let (_, found) = rest.split_at_checked(at)?;
        if let Some(mut string) = found.strip_prefix('"') {
            while let Some((piece, after)) = string.split_once(['"', '\\']) {
                let is_over = string.as_bytes().get(piece.len()) == Some(&b'"');
                string = if is_over { after } else { after.get(1..).unwrap_or_default() };
                if is_over {
                    break;
                }
            }
            rest = string;
            continue;
        }
        let length = found.find(|sign: char| !sign.is_ascii_digit() && !matches!(sign, '-' | '+' | '.' | 'e' | 'E'));
        let (number, after) = found.split_at_checked(length.unwrap_or(found.len()))?;
        if !number.contains(['.', 'e', 'E']) && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
            return Some(number);
        }
        rest = after;
    }
    None
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
    fn a_schema_that_leads_back_to_itself_is_asked_no_longer_than_anybody_waits() {
        let operator = |sign: &str| json!({"type": "object", "properties": {"l": {"$ref": "#/$defs/e"}, "op": {"const": sign}}, "required": ["op", "l"]});
        let alternatives = json!([{"type": "integer"}, operator("+"), operator("-"), operator("*")]);
        let schema =
            json!({"type": "object", "properties": {"e": {"$ref": "#/$defs/e"}}, "$defs": {"e": {"anyOf": alternatives}}});
        let deep = |levels: usize, leaf: &str| {
            format!(r#"{{"e":{}{leaf}{}}}"#, r#"{"op":"+","l":"#.repeat(levels), "}".repeat(levels))
        };
        assert!(check(&schema, &deep(3, "1")).is_ok());
        let problem = check(&schema, &deep(3, "\"x\"")).unwrap_err();
        assert!(problem.contains("is not valid under any of the schemas"), "{problem}");
        let problem = check(&schema, &deep(9, "\"x\"")).unwrap_err();
        assert!(problem.contains("too deep to say where"), "{problem}");
        // The tool itself judges.
        assert!(check(&schema, &deep(60, "\"x\"")).is_ok());
    }

    #[test]
    fn a_null_for_what_is_left_out_is_dropped_and_no_other() {
        let point =
            json!({"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}, "required": ["x"]});
        let schema = json!({
            "type": "object",
            "properties": {"path": {"type": "string"}, "head": {"type": "integer"}, "note": {"type": ["string", "null"]},
                "at": point, "all": {"type": "array", "items": point}, "either": {"anyOf": [{"type": "string"}, point]}},
            "required": ["path"],
        });
        for (arguments, expected) in [
            (r#"{"path":"a","head":null}"#, r#"{"path":"a"}"#),
            (r#"{"path":"a","note":null}"#, r#"{"path":"a","note":null}"#),
            (r#"{"path":"a","at":{"x":1,"y":null},"all":[{"x":1,"y":null}]}"#, r#"{"path":"a","at":{"x":1},"all":[{"x":1}]}"#),
            (r#"{"path":"a","either":{"x":1,"y":null}}"#, r#"{"path":"a","either":{"x":1}}"#),
        ] {
            assert_eq!(Value::Object(check(&schema, arguments).unwrap()).to_string(), expected);
        }
        for (arguments, problem) in [
            (r#"{"path":null}"#, "null is not of type \"string\" (at /path)"),
            (r#"{"path":"a","all":[null]}"#, "null is not of type \"object\" (at /all/0)"),
        ] {
            assert_eq!(
                check(&schema, arguments).unwrap_err(),
                format!("the arguments do not fit the tool's schema: {problem}")
            );
        }
    }

    #[test]
    fn a_number_that_would_become_another_one_is_refused() {
        let any = json!({"type": "object"});
        for fits in ["18446744073709551615", "-9223372036854775808", "1e30", "0.1000000000000000000000000001", "-0"] {
            assert!(check(&any, &format!(r#"{{"a":[{fits}],"b":"é\"99999999999999999999\\"}}"#)).is_ok(), "{fits}");
        }
        let whole = "whole numbers go from -9223372036854775808 to 18446744073709551615";
        let long = "9".repeat(100);
        for (number, shown) in [
            ("18446744073709551616", "18446744073709551616"),
            ("-9223372036854775809", "-9223372036854775809"),
            (&*long, &*format!("{}…", "9".repeat(40))),
        ] {
            let refused = check(&any, &format!(r#"{{"text":"\\","a":{{"v":{number}}}}}"#)).unwrap_err();
            assert_eq!(refused, format!("the number {shown} in the arguments cannot be passed on as it is: {whole}"));
        }
    }

    #[test]
    fn no_arguments_are_an_empty_object() {
        assert_eq!(check(&json!({"type": "object"}), " ").unwrap(), Map::new());
    }
}
