//! Numbers as they are written: a [`Value`] holds no more than 64 bits of one, and an id may have more digits. Pure.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::{Number, Value};

/// The numbers of a value that was read which it would not write as they were.
#[derive(Debug, Default)]
pub(in crate::artifact) struct Numbers<'t>(HashMap<*const Number, &'t str>);

impl<'t> Numbers<'t> {
    /// Those of `value`, which was read of `text`. They are known by their places, so that the value must stay at its own.
    pub(super) fn of(text: &'t str, value: &Value) -> Self {
        let mut numbers = Self::default();
        Cursor { left: text }.value(Some(value), &mut numbers);
        numbers
    }

    /// The JSON of a part of the value.
    pub(in crate::artifact) fn text(&self, value: &Value) -> String {
        if self.0.is_empty() {
            return value.to_string();
        }
        let mut text = String::new();
        self.write(value, &mut text);
        text
    }

    fn write(&self, value: &Value, into: &mut String) {
        let written = match value {
            Value::Number(number) => match self.0.get(&std::ptr::from_ref(number)) {
                Some(as_it_was) => into.write_str(as_it_was),
                None => write!(into, "{number}"),
            },
            Value::Array(items) => {
                into.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        into.push(',');
                    }
                    self.write(item, into);
                }
                into.write_char(']')
            }
            Value::Object(members) => {
                into.push('{');
                for (index, (name, member)) in members.iter().enumerate() {
                    if index > 0 {
                        into.push(',');
                    }
                    into.push_str(&Value::from(name.as_str()).to_string());
                    into.push(':');
                    self.write(member, into);
                }
                into.write_char('}')
            }
            Value::Null | Value::Bool(_) | Value::String(_) => write!(into, "{value}"),
        };
        // Writing to a text does not fail.
        debug_assert!(written.is_ok());
    }
}

/// What is left of a text that is JSON.
struct Cursor<'t> {
    left: &'t str,
}

impl<'t> Cursor<'t> {
    /// Goes past a value. It stands at `known`, unless a later member of the same name does.
    fn value(&mut self, known: Option<&Value>, numbers: &mut Numbers<'t>) {
        self.left = self.left.trim_start();
        match self.left.chars().next() {
            Some('{') => {
                self.past("{");
                while self.left.starts_with('"') {
                    let name = self.text();
                    self.past(":");
                    let name: Option<String> = serde_json::from_str(name).ok();
                    self.value(name.and_then(|name| known?.get(name)), numbers);
                    self.past(",");
                }
                self.past("}");
            }
            Some('[') => {
                self.past("[");
                let mut at = 0;
                while !self.left.is_empty() && !self.left.starts_with(']') {
                    self.value(known.and_then(|known| known.get(at)), numbers);
                    self.past(",");
                    at += 1;
                }
                self.past("]");
            }
            Some('"') => drop(self.text()),
            Some(_) => {
                let word = self.word();
                if let Some(Value::Number(number)) = known {
                    let place = std::ptr::from_ref(number);
                    if number.to_string() == word {
                        numbers.0.remove(&place);
                    } else {
                        numbers.0.insert(place, word);
                    }
                }
            }
            None => {}
        }
    }

    /// Goes past a sign, where it is there, and white space around it.
    fn past(&mut self, sign: &str) {
        let left = self.left.trim_start();
        self.left = left.strip_prefix(sign).unwrap_or(left).trim_start();
    }

    /// A text with its quotes.
    fn text(&mut self) -> &'t str {
        let mut is_escaped = false;
        let end = self.left.bytes().skip(1).position(|byte| {
            let is_end = byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            is_end
        });
        self.split(end.map_or(self.left.len(), |end| end + 2))
    }

    /// A number, or another word.
    fn word(&mut self) -> &'t str {
        let end = self.left.find(|sign: char| matches!(sign, ',' | ']' | '}' | ':') || sign.is_ascii_whitespace());
        // At least a sign, so that it comes to an end whatever it is.
        let first = self.left.chars().next().map_or(0, char::len_utf8);
        self.split(end.unwrap_or(self.left.len()).max(first))
    }

    fn split(&mut self, at: usize) -> &'t str {
        let (before, after) = self.left.split_at_checked(at).unwrap_or((self.left, ""));
        self.left = after;
        before
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::Numbers;

    #[test]
    fn numbers_are_written_as_they_were_and_the_rest_as_it_is_read() {
        let text = r#" {"id": 12345678901234567890123, "of": [1.10, -0.0, 1E5, 7, true, null, "\u00e9 1.10 \"", [], {}],
            "a": [1.20, 2], "a": [1.5, 2.50], "\u0061b": 100000000000000000000.5, "b:{": "[1.10,"} "#;
        let value: Value = serde_json::from_str(text).unwrap();
        let numbers = Numbers::of(text, &value);
        let expected = r#"{"id":12345678901234567890123,"of":[1.10,-0.0,1E5,7,true,null,"é 1.10 \"",[],{}],"a":[1.5,2.50],"ab":100000000000000000000.5,"b:{":"[1.10,"}"#;
        assert_eq!(numbers.text(&value), expected);
        assert_eq!(numbers.text(&value["of"][0]), "1.10");
        let plain = r#"{"a":[1,2.5,"x"]}"#;
        let value: Value = serde_json::from_str(plain).unwrap();
        let numbers = Numbers::of(plain, &value);
        assert!(numbers.0.is_empty() && numbers.text(&value) == plain);
    }
}
