//! Values made after a schema: most of them nearly fit it.

use serde_json::{Map, Value, json};

/// A source of numbers that is the same each time.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % u64::try_from(limit.max(1)).unwrap()).unwrap()
    }

    fn is_percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        all.get(self.below(all.len()))
    }
}

const TEXTS: [&str; 12] =
    ["", "a", "abc", "2026-01-01", "12:30", "cus_a", "#00ff00", "en", "de-CH", "today", "longer than that", "\u{1f642}"];

/// A value after a schema that refers to nothing.
pub(super) fn instance(schema: &Value, dice: &mut Dice, depth: usize) -> Value {
    if dice.is_percent(6) || depth > 12 {
        let any = [json!(null), json!("x"), json!(0), json!(1.5), json!(true), json!([]), json!({}), json!(["x", 1])];
        return dice.pick(&any).unwrap().clone();
    }
    let Some(members) = schema.as_object() else { return json!("x") };
    if let Some(value) = members.get("const") {
        return value.clone();
    }
    if let Some(value) = members.get("enum").and_then(Value::as_array).and_then(|all| dice.pick(all)) {
        return value.clone();
    }
    let mut value = own(members, dice, depth);
    let branches = ["anyOf", "oneOf"].iter().filter_map(|keyword| members.get(*keyword)?.as_array());
    let chosen: Vec<Value> = branches.filter_map(|all| dice.pick(all).cloned()).collect();
    let all = members.get("allOf").and_then(Value::as_array).cloned().unwrap_or_default();
    for part in chosen.iter().chain(&all) {
        let more = instance(part, dice, depth + 1);
        match (&mut value, more) {
            (Some(Value::Object(ours)), Value::Object(theirs)) => ours.extend(theirs),
            (_, more) => value = Some(more),
        }
    }
    value.unwrap_or_else(|| json!(TEXTS.get(dice.below(TEXTS.len()))))
}

/// A value after what the schema itself says, where it says of what type it is.
fn own(members: &Map<String, Value>, dice: &mut Dice, depth: usize) -> Option<Value> {
    let kinds: Vec<&str> = match members.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        _ if members.contains_key("properties") || members.contains_key("required") => vec!["object"],
        _ => Vec::new(),
    };
    let number = |keyword: &str| members.get(keyword).and_then(Value::as_f64);
    Some(match *dice.pick(&kinds)? {
        "object" => object(members, dice, depth),
        "array" => {
            let least = number("minItems").unwrap_or(0.0).min(6.0);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small whole number")]
            let length = least as usize + dice.below(3);
            let first = members.get("prefixItems").and_then(Value::as_array).cloned().unwrap_or_default();
            let rest = members.get("items").cloned().unwrap_or(json!(true));
            (0..length).map(|index| instance(first.get(index).unwrap_or(&rest), dice, depth + 1)).collect()
        }
        "string" => {
            let wanted = number("maxLength").map(|most| most + 1.0).filter(|_| dice.is_percent(20)).or(number("minLength"));
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small whole number")]
            let length = wanted.unwrap_or_default().min(6_000.0) as usize;
            let text = (*dice.pick(&TEXTS).unwrap()).to_owned();
            json!(if text.chars().count() < length { "y".repeat(length) } else { text })
        }
        "integer" | "number" => {
            let limits = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
            let near: Vec<f64> = limits.iter().filter_map(|keyword| number(keyword)).filter(|n| n.abs() < 1e9).collect();
            let from = dice.pick(&near).copied().unwrap_or_default();
            let step = dice.pick(&[0.0, 1.0, -1.0, 7.0, 0.5]).copied().unwrap();
            let sum = from + step;
            #[expect(clippy::cast_possible_truncation, reason = "a whole number below 1e9")]
            if sum.fract() == 0.0 && !dice.is_percent(10) { json!(sum as i64) } else { json!(sum) }
        }
        "boolean" => json!(dice.is_percent(50)),
        _ => Value::Null,
    })
}

fn object(members: &Map<String, Value>, dice: &mut Dice, depth: usize) -> Value {
    let required: Vec<&str> =
        members.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let mut object = Map::new();
    for (name, schema) in members.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let chance = if required.contains(&name.as_str()) { 96 } else { 40 };
        if dice.is_percent(chance) {
            object.insert(name.clone(), instance(schema, dice, depth + 1));
        }
    }
    for name in required {
        if !object.contains_key(name) && dice.is_percent(50) {
            object.insert(name.to_owned(), json!("given"));
        }
    }
    let rest = members.get("additionalProperties");
    if dice.is_percent(if rest.is_some_and(Value::is_object) { 60 } else { 8 }) {
        let name = ["extra", "x-more", "CAPITALS"].get(dice.below(3)).unwrap();
        object.insert((*name).to_owned(), instance(rest.unwrap_or(&json!({"type": "string"})), dice, depth + 1));
    }
    Value::Object(object)
}
