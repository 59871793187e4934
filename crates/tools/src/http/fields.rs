//! Answers cut down to a list of fields.

use serde_json::{Map, Value};

/// The way to a field of an answer: `issues.fields.summary`. Lists are gone through (`[]` may be written after their names), `*` is any
/// name, and a dot within a name is written `\.`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldPath {
    text: String,
    keys: Vec<Key>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Key {
    Any,
    Name(String),
}

impl FieldPath {
    /// The way that a text means.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(text: &str) -> Result<Self, &'static str> {
        let mut keys = vec![String::new()];
        let mut letters = text.trim().strip_prefix("$.").unwrap_or(text.trim()).chars();
        while let Some(letter) = letters.next() {
            match (letter, keys.last_mut()) {
                ('.', _) => keys.push(String::new()),
                ('\\', Some(key)) => key.extend(letters.next()),
                (letter, Some(key)) => key.push(letter),
                (_, None) => {}
            }
        }
        let mut made = Vec::with_capacity(keys.len());
        for key in keys {
            let name = key.strip_suffix("[]").or_else(|| key.strip_suffix("[*]")).unwrap_or(&key);
            match name {
                "" if key.is_empty() => return Err("a name in it is empty"),
                // The answer itself is a list.
                "" => {}
                "*" => made.push(Key::Any),
                name => made.push(Key::Name(name.to_owned())),
            }
        }
        if made.is_empty() { Err("it names nothing") } else { Ok(Self { text: text.trim().to_owned(), keys: made }) }
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// An answer with these fields alone, in their places; nothing where it has none of them.
pub(super) fn trimmed(value: &Value, fields: &[FieldPath]) -> Option<Value> {
    let ways: Vec<&[Key]> = fields.iter().map(|field| field.keys.as_slice()).collect();
    let made = kept(value, &ways)?;
    has_something(&made).then_some(made)
}

fn kept(value: &Value, ways: &[&[Key]]) -> Option<Value> {
    if ways.iter().any(|way| way.is_empty()) {
        return Some(value.clone());
    }
    match value {
        // Each item stays, so that they can be counted.
        Value::Array(items) => Some(Value::Array(items.iter().filter_map(|item| kept(item, ways)).collect())),
        Value::Object(members) => {
            let mut made = Map::new();
            for (name, value) in members {
                let further: Vec<&[Key]> = ways.iter().filter_map(|way| after(way, name)).collect();
                if further.is_empty() {
                    continue;
                }
                if let Some(value) = kept(value, &further) {
                    made.insert(name.clone(), value);
                }
            }
            Some(Value::Object(made))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn after<'k>(way: &'k [Key], name: &str) -> Option<&'k [Key]> {
    let (first, rest) = way.split_first()?;
    let fits = match first {
        Key::Any => true,
        Key::Name(wanted) => wanted == name,
    };
    fits.then_some(rest)
}

/// Whether there is more than empty objects; an empty list is an answer.
fn has_something(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.values().any(has_something),
        Value::Array(items) => items.is_empty() || items.iter().any(has_something),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(value: &Value, fields: &[&str]) -> Option<Value> {
        let fields: Vec<_> = fields.iter().map(|field| FieldPath::new(field).unwrap()).collect();
        trimmed(value, &fields)
    }

    #[test]
    fn the_fields_stay_in_their_places() {
        let answer = json!({"total": 2, "issues": [
            {"key": "A-1", "fields": {"summary": "one", "x": 1, "status": {"name": "Open"}}},
            {"key": "A-2", "fields": {"summary": "two", "status": null}}], "a.b": 3});
        assert_eq!(
            of(&answer, &["issues[].key", "issues.fields.summary", "total"]),
            Some(
                json!({"total": 2, "issues": [{"key": "A-1", "fields": {"summary": "one"}}, {"key": "A-2", "fields": {"summary": "two"}}]})
            )
        );
        assert_eq!(
            of(&answer, &["issues.*.status"]),
            Some(json!({"issues": [{"fields": {"status": {"name": "Open"}}}, {"fields": {"status": null}}]}))
        );
        assert_eq!(of(&answer, &["a\\.b"]), Some(json!({"a.b": 3})));
        assert_eq!(of(&answer, &["nothing", "issues.none"]), None);
        assert_eq!(of(&json!([{"a": 1, "b": 2}, {"b": 3}]), &["[].a"]), Some(json!([{"a": 1}, {}])));
        assert_eq!(of(&json!({"issues": []}), &["issues.key"]), Some(json!({"issues": []})));
    }

    #[test]
    fn a_way_to_nothing_is_refused() {
        for text in ["", ".", "a..b", "a.", "[]"] {
            assert!(FieldPath::new(text).is_err(), "{text}");
        }
    }
}
