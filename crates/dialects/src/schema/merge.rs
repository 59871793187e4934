//! Two schemas that both hold, as one. Only what means exactly the same; everything else stays an `allOf`.

use serde_json::{Value, json};

use super::Object;

/// Keywords that mean something only together. Where both sides have some, they cannot be one schema.
const GROUPS: [&[&str]; 9] = [
    &["if", "then", "else"],
    &["contains", "minContains", "maxContains"],
    &["anyOf"],
    &["oneOf"],
    &["not"],
    &["dependentSchemas"],
    &["propertyNames"],
    &["unevaluatedProperties"],
    &["unevaluatedItems"],
];

/// Takes `b` into `a`; gives it back where no one schema says both.
pub(super) fn absorb(a: &mut Object, b: Object) -> Result<(), Object> {
    if !can_absorb(a, &b) {
        return Err(b);
    }
    objects(a, &b);
    for (keyword, theirs) in b {
        match keyword.as_str() {
            "properties" | "additionalProperties" => {}
            _ => match a.get(&keyword) {
                None => {
                    a.insert(keyword, theirs);
                }
                Some(ours) => {
                    if let Some(both) = keyword_of_both(&keyword, ours, &theirs) {
                        a.insert(keyword, both);
                    }
                }
            },
        }
    }
    Ok(())
}

/// Both schemas as one, an `allOf` where nothing simpler says it.
pub(super) fn both(a: &Value, b: &Value) -> Value {
    match (a, b) {
        (Value::Bool(true), other) | (other, Value::Bool(true)) => other.clone(),
        (Value::Bool(false), _) | (_, Value::Bool(false)) => Value::Bool(false),
        (a, b) if same(a, b) => a.clone(),
        (Value::Object(a), Value::Object(b)) => {
            let mut all = a.clone();
            match absorb(&mut all, b.clone()) {
                Ok(()) => Value::Object(all),
                Err(b) => json!({"allOf": [a, b]}),
            }
        }
        (a, b) => json!({"allOf": [a, b]}),
    }
}

fn can_absorb(a: &Object, b: &Object) -> bool {
    let has = |schema: &Object, group: &[&str]| group.iter().any(|keyword| schema.contains_key(*keyword));
    if GROUPS.iter().any(|group| has(a, group) && has(b, group)) {
        return false;
    }
    let tuples = ["prefixItems", "items", "unevaluatedItems"];
    if has(a, &tuples) && has(b, &tuples) && (has(a, &["prefixItems"]) || has(b, &["prefixItems"])) {
        return false;
    }
    // What one side says of all other properties depends on which ones it names itself.
    let members = ["properties", "additionalProperties", "patternProperties", "unevaluatedProperties"];
    let patterns = ["patternProperties", "unevaluatedProperties"];
    if has(a, &members) && has(b, &members) && (has(a, &patterns) || has(b, &patterns)) {
        return false;
    }
    b.iter().all(|(keyword, theirs)| a.get(keyword).is_none_or(|ours| can_be_both(keyword, ours, theirs)))
}

fn can_be_both(keyword: &str, ours: &Value, theirs: &Value) -> bool {
    match keyword {
        "type" | "enum" | "const" | "multipleOf" | "pattern" | "format" | "contentEncoding" | "contentMediaType"
        | "contentSchema" => keyword_of_both(keyword, ours, theirs).is_some(),
        _ => true,
    }
}

/// A keyword that both sides have. `None` for nothing that fits both, and for annotations, of which ours stays.
fn keyword_of_both(keyword: &str, ours: &Value, theirs: &Value) -> Option<Value> {
    match keyword {
        "type" => types(ours, theirs),
        "enum" => {
            let (ours, theirs) = (ours.as_array()?, theirs.as_array()?);
            let both: Vec<Value> = ours.iter().filter(|one| theirs.iter().any(|other| same(one, other))).cloned().collect();
            (!both.is_empty()).then_some(Value::Array(both))
        }
        "required" => Some(union(ours, theirs)),
        "dependentRequired" => {
            let mut all = ours.as_object()?.clone();
            for (name, theirs) in theirs.as_object()? {
                let both = all.get(name).map_or_else(|| theirs.clone(), |ours| union(ours, theirs));
                all.insert(name.clone(), both);
            }
            Some(Value::Object(all))
        }
        "allOf" => Some([ours.as_array()?.as_slice(), theirs.as_array()?.as_slice()].concat().into()),
        "items" => Some(both(ours, theirs)),
        "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties" => {
            Some(if number(ours)? >= number(theirs)? { ours.clone() } else { theirs.clone() })
        }
        "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties" => {
            Some(if number(ours)? <= number(theirs)? { ours.clone() } else { theirs.clone() })
        }
        "uniqueItems" => Some(Value::Bool(ours == &Value::Bool(true) || theirs == &Value::Bool(true))),
        _ => same(ours, theirs).then(|| ours.clone()),
    }
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64()
}

/// The names of both lists, ours first.
pub(super) fn union(ours: &Value, theirs: &Value) -> Value {
    let mut names: Vec<Value> = ours.as_array().cloned().unwrap_or_default();
    let known: std::collections::HashSet<String> = names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect();
    let more = theirs.as_array().into_iter().flatten();
    names.extend(more.filter(|name| name.as_str().is_some_and(|name| !known.contains(name))).cloned());
    Value::Array(names)
}

/// The types that a `type` names.
pub(super) fn type_list(value: &Value) -> Vec<&str> {
    match value {
        Value::String(one) => vec![one],
        Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn types(ours: &Value, theirs: &Value) -> Option<Value> {
    let (ours, theirs) = (type_list(ours), type_list(theirs));
    let mut both: Vec<&str> = Vec::new();
    for one in &ours {
        if theirs.contains(one) || (*one == "integer" && theirs.contains(&"number")) {
            both.push(one);
        } else if *one == "number" && theirs.contains(&"integer") {
            both.push("integer");
        }
    }
    both.dedup();
    match both.as_slice() {
        [] => None,
        [one] => Some(json!(one)),
        all => Some(json!(all)),
    }
}

/// The properties of both: each must fit what either side says of it, by name or of all others.
fn objects(a: &mut Object, b: &Object) {
    let theirs = b.get("properties").and_then(Value::as_object);
    let rest = b.get("additionalProperties");
    if theirs.is_none() && rest.is_none() {
        return;
    }
    let our_rest = a.shift_remove("additionalProperties");
    let mut properties = match a.shift_remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Object::new(),
    };
    if let Some(rest) = rest {
        for (name, ours) in &mut properties {
            if !theirs.is_some_and(|theirs| theirs.contains_key(name)) {
                *ours = both(ours, rest);
            }
        }
    }
    for (name, theirs) in theirs.into_iter().flatten() {
        let ours = properties.get(name).or(our_rest.as_ref());
        let merged = ours.map_or_else(|| theirs.clone(), |ours| both(ours, theirs));
        properties.insert(name.clone(), merged);
    }
    if !properties.is_empty() {
        a.insert("properties".to_owned(), Value::Object(properties));
    }
    let all_others = match (our_rest, rest) {
        (Some(ours), Some(theirs)) => Some(both(&ours, theirs)),
        (Some(one), None) => Some(one),
        (None, theirs) => theirs.cloned(),
    };
    if let Some(all_others) = all_others {
        a.insert("additionalProperties".to_owned(), all_others);
    }
}

/// Whether two values are one in JSON Schema: 1 is 1.0.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || (a.as_f64() == b.as_f64() && (a.is_f64() != b.is_f64())),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}
