//! What a lowered schema accepts, against what the original accepts.

use jsonschema::Validator;
use serde_json::{Map, Value, json};
use turnwright_dialects::schema::{Change, Lowered, SchemaTarget, compile};

use super::corpus::corpus;
use super::instances::{Dice, instance};

/// Values per schema.
const VALUES: u64 = 16;
/// The library that is asked would follow each of endlessly many ways through what is larger, or came of less.
const MAX_COMPARED_BYTES: usize = 8 << 10;

#[test]
fn what_reports_no_loss_accepts_the_same_and_every_loss_goes_the_way_it_says() {
    let mut counts = [0; 4];
    for case in corpus().iter().filter(|case| case.broken.is_none()) {
        for target in SchemaTarget::ALL {
            let lowered = compile(&case.schema, target).unwrap();
            counts[compare(&case.name, &case.schema, &lowered, target)] += 1;
        }
    }
    // A test that compares nothing shows nothing.
    assert!(counts[0] > 800 && counts[1] > 300 && counts[3] > 30, "{counts:?}");
}

/// A validator for the original; none where the library cannot make one.
pub(super) fn validator(schema: &Value) -> Option<Validator> {
    let mut schema = schema.clone();
    if schema.get("$schema").and_then(Value::as_str).is_some_and(|address| !address.contains("json-schema.org")) {
        schema.as_object_mut().unwrap().shift_remove("$schema");
    }
    jsonschema::options().should_validate_formats(false).build(&schema).ok()
}

/// Compares both over generated values. Gives what was compared: the same, wider, narrower or not at all, strict.
pub(super) fn compare(name: &str, original: &Value, lowered: &Lowered, target: SchemaTarget) -> usize {
    let changes: Vec<Change> = lowered.losses.iter().map(|loss| loss.change).filter(|change| *change != Change::Told).collect();
    let is_wider = changes.iter().all(|change| *change == Change::Wider);
    let is_narrower = changes.iter().all(|change| *change == Change::Narrower);
    let (Some(before), true) = (validator(original), is_wider || is_narrower) else { return 2 };
    let read = if target == SchemaTarget::GeminiSubset { with_null_types(&lowered.schema) } else { lowered.schema.clone() };
    let after = validator(&read).unwrap_or_else(|| panic!("{name} for {target:?}: {read}"));
    let flat = compile(original, SchemaTarget::GeminiJson).unwrap().schema;
    if flat.to_string().len() > MAX_COMPARED_BYTES || name.contains("laughs") {
        return 2;
    }
    for seed in 0..VALUES {
        let value = instance(&flat, &mut Dice(seed), 0);
        if !value.is_object() {
            continue;
        }
        let fail = |what: &str| panic!("{name} for {target:?}: {what}\n{value}\n{original}\n{read}\n{:?}", lowered.losses);
        if target == SchemaTarget::OpenAiStrict && lowered.is_strict() {
            if before.is_valid(&value) && !after.is_valid(&filled(&flat, &value)) {
                fail("strict refuses what the original accepts");
            }
            let strict = instance(&read, &mut Dice(seed), 0);
            let is_known = !after.is_valid(&strict) || before.is_valid(&dropped(&flat, &strict));
            assert!(is_known, "{name}: strict accepts what the original refuses\n{strict}\n{original}\n{read}");
            continue;
        }
        match (before.is_valid(&value), after.is_valid(&value)) {
            (true, false) if is_wider => fail("refuses what the original accepts"),
            (false, true) if is_narrower => fail("accepts what the original refuses"),
            _ => {}
        }
    }
    match (lowered.is_strict(), is_wider && is_narrower, is_wider) {
        (true, _, _) => 3,
        (false, true, _) => 0,
        (false, false, true) => 1,
        (false, false, false) => 2,
    }
}

/// `nullable` as JSON Schema says it.
fn with_null_types(schema: &Value) -> Value {
    let Some(members) = schema.as_object() else { return schema.clone() };
    let mut read = Map::new();
    for (keyword, value) in members {
        let value = match (keyword.as_str(), value) {
            ("properties", Value::Object(all)) => {
                Value::Object(all.iter().map(|(name, value)| (name.clone(), with_null_types(value))).collect())
            }
            ("anyOf", Value::Array(all)) => all.iter().map(with_null_types).collect(),
            ("items", items) => with_null_types(items),
            (_, value) => value.clone(),
        };
        read.insert(keyword.clone(), value);
    }
    if read.shift_remove("nullable") == Some(Value::Bool(true)) {
        if let Some(kind) = read.get("type").cloned() {
            read.insert("type".to_owned(), json!([kind, "null"]));
        }
        if let Some(Value::Array(values)) = read.get_mut("enum") {
            values.push(Value::Null);
        }
    }
    Value::Object(read)
}

/// Which of the alternatives a value fits.
fn branch<'a>(schema: &'a Value, value: &Value) -> &'a Value {
    let all = ["anyOf", "oneOf"].iter().find_map(|keyword| schema.get(*keyword)?.as_array());
    let fits = |one: &&Value| {
        let loosened = dropped(one, value);
        validator(one).is_some_and(|validator| validator.is_valid(&loosened))
    };
    all.into_iter().flatten().find(fits).unwrap_or(schema)
}

fn is_required(schema: &Value, name: &str) -> bool {
    schema.get("required").and_then(Value::as_array).is_some_and(|all| all.contains(&json!(name)))
}

/// The value with null for every optional property that is not there.
fn filled(schema: &Value, value: &Value) -> Value {
    let schema = branch(schema, value);
    match value {
        Value::Object(members) => {
            let mut all = Map::new();
            for (name, schema) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
                let value = members.get(name).map_or(Value::Null, |value| filled(schema, value));
                all.insert(name.clone(), value);
            }
            Value::Object(all)
        }
        Value::Array(items) => {
            items.iter().map(|item| schema.get("items").map_or_else(|| item.clone(), |schema| filled(schema, item))).collect()
        }
        other => other.clone(),
    }
}

/// The value without null for optional properties.
fn dropped(schema: &Value, value: &Value) -> Value {
    if !value.is_object() && !value.is_array() {
        return value.clone();
    }
    let schema = branch(schema, value);
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, value)| !value.is_null() || is_required(schema, name));
            let of = |name: &str| schema.get("properties").and_then(|all| all.get(name)).cloned().unwrap_or(json!({}));
            Value::Object(kept.map(|(name, value)| (name.clone(), dropped(&of(name), value))).collect())
        }
        Value::Array(items) => {
            items.iter().map(|item| schema.get("items").map_or_else(|| item.clone(), |schema| dropped(schema, item))).collect()
        }
        other => other.clone(),
    }
}
