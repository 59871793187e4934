//! Each rule of the validators: a body that is right in everything, broken in one way, is refused for that reason.

use serde_json::{Value, json};

use super::chat::Server;

mod anthropic;
mod chat;
mod gemini;
mod ollama;
mod responses;

/// What is broken, how, and a part of what the validator says.
type Row = (&'static str, fn(&mut Value), &'static str);

const PNG: &str = "iVBORw0KGgoAAAAA";

fn check(valid: &Value, validate: impl Fn(&Value) -> Vec<String>, rows: &[Row]) {
    assert_eq!(validate(valid), Vec::<String>::new(), "the valid body");
    for (what, breaks, why) in rows {
        let mut broken = valid.clone();
        breaks(&mut broken);
        assert_ne!(&broken, valid, "{what}: nothing is broken");
        let found = validate(&broken);
        assert!(found.iter().any(|violation| violation.contains(why)), "{what}: expected `{why}`, found {found:?}");
    }
}

fn remove(at: &mut Value, key: &str) {
    at.as_object_mut().unwrap().remove(key);
}

fn list(at: &mut Value) -> &mut Vec<Value> {
    at.as_array_mut().unwrap()
}
