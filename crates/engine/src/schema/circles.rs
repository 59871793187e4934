//! How often a schema that leads back to itself looks at the same value. Pure.
//!
//! Around a circle a validator goes as far as the value goes. Where a value is described by several schemas of which each leads around
//! (`anyOf` of the operators of an expression), it is looked at by each, and what is within it by each of each: the work multiplies
//! with every level.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::References;

/// More than this is as good as without end.
const MOST: u64 = 1_000_000;
/// References and alternatives within one another.
const MAX_DEPTH: usize = 1_000;

/// By how many schemas of a circle one value may be looked at, for each time that what holds it is. 0 where there is no circle.
pub(super) fn branches(root: &Value, references: &References<'_>) -> u64 {
    let mut circles = Circles { references, reaches: HashMap::new(), seen: HashSet::new(), most: 0 };
    circles.visit(root, 0);
    circles.most
}

/// How many looks at values a validator may need, where each level multiplies them: each value counts once for each way to it.
pub(super) fn looks(value: &Value, branches: u64) -> u64 {
    let mut looks = 0_u64;
    let mut left = vec![(value, 1_u64)];
    while let Some((value, ways)) = left.pop() {
        looks = looks.saturating_add(ways);
        if looks > MOST {
            return looks;
        }
        let within = ways.saturating_mul(branches.max(1));
        match value {
            Value::Array(items) => left.extend(items.iter().map(|item| (item, within))),
            Value::Object(members) => left.extend(members.values().map(|member| (member, within))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    looks
}

/// Whether a number of looks is what a call may take.
pub(super) fn is_bearable(looks: u64) -> bool {
    looks <= MOST
}

/// What leads from one schema to others.
struct Steps<'v> {
    /// They look at the same value.
    beside: Vec<&'v Value>,
    /// They look at what is within it: each list at other members than itself, and so only one of each at the same.
    within: Vec<Vec<&'v Value>>,
}

struct Circles<'a, 'v> {
    references: &'a References<'v>,
    /// Whether a schema leads to a circle; `None` while that is looked for.
    reaches: HashMap<*const Value, Option<bool>>,
    seen: HashSet<*const Value>,
    most: u64,
}

impl<'v> Circles<'_, 'v> {
    /// Looks at each schema that a value is first described by.
    fn visit(&mut self, schema: &'v Value, depth: usize) {
        if depth > MAX_DEPTH {
            self.most = MOST;
        }
        if self.most >= MOST || !self.seen.insert(std::ptr::from_ref(schema)) {
            return;
        }
        let (count, within) = self.around(schema, 0);
        self.most = self.most.max(count);
        for schema in within {
            self.visit(schema, depth + 1);
        }
    }

    /// How many schemas around a circle look at one thing within a value of this schema, and all that look at anything within.
    fn around(&mut self, schema: &'v Value, depth: usize) -> (u64, Vec<&'v Value>) {
        let Some(steps) = schema.as_object().filter(|_| depth <= MAX_DEPTH).map(|members| self.steps(members)) else {
            return (if depth > MAX_DEPTH { MOST } else { 0 }, Vec::new());
        };
        let mut count = 0_u64;
        let mut within = Vec::new();
        for group in steps.within {
            count = count.saturating_add(u64::from(group.iter().any(|schema| self.reaches(schema, 0))));
            within.extend(group);
        }
        for schema in steps.beside {
            if !self.reaches(schema, 0) {
                continue;
            }
            let (more, deeper) = self.around(schema, depth + 1);
            count = count.saturating_add(more);
            within.extend(deeper);
            if count >= MOST {
                break;
            }
        }
        (count, within)
    }

    fn reaches(&mut self, schema: &'v Value, depth: usize) -> bool {
        let Some(members) = schema.as_object() else { return false };
        let pointer = std::ptr::from_ref(schema);
        match self.reaches.get(&pointer) {
            Some(Some(known)) => return *known,
            // It leads back to what it was come from.
            Some(None) => return true,
            None if depth > MAX_DEPTH => return true,
            None => {}
        }
        self.reaches.insert(pointer, None);
        let Steps { beside, within } = self.steps(members);
        let found = beside.into_iter().chain(within.into_iter().flatten()).any(|next| self.reaches(next, depth + 1));
        self.reaches.insert(pointer, Some(found));
        found
    }

    fn steps(&self, members: &'v Map<String, Value>) -> Steps<'v> {
        let all = |value: &'v Value| -> Vec<&'v Value> {
            match value {
                Value::Object(named) => named.values().collect(),
                Value::Array(listed) => listed.iter().collect(),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
            }
        };
        let (mut beside, mut named, mut listed, mut others) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (keyword, value) in members {
            match keyword.as_str() {
                "$ref" | "$dynamicRef" | "$recursiveRef" => {
                    beside.extend(value.as_str().and_then(|address| self.references.target(address)));
                }
                "allOf" | "anyOf" | "oneOf" | "dependentSchemas" | "dependencies" => beside.extend(all(value)),
                "not" | "if" | "then" | "else" => beside.push(value),
                "properties" => named.extend(all(value)),
                "additionalProperties" => named.push(value),
                "prefixItems" => listed.extend(all(value)),
                "items" if value.is_array() => listed.extend(all(value)),
                "items" | "additionalItems" => listed.push(value),
                "patternProperties" => others.extend(all(value).into_iter().map(|schema| vec![schema])),
                "unevaluatedProperties" | "unevaluatedItems" | "contains" => others.push(vec![value]),
                _ => {}
            }
        }
        others.extend([named, listed]);
        Steps { beside, within: others }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(schema: &Value) -> u64 {
        branches(schema, &References::of(schema))
    }

    #[test]
    fn alternatives_around_a_circle_multiply_and_members_do_not() {
        let operator =
            |sign: &str| json!({"type": "object", "properties": {"op": {"const": sign}, "l": {"$ref": "#/$defs/e"}}});
        let expression = json!({
            "properties": {"e": {"$ref": "#/$defs/e"}},
            "$defs": {"e": {"anyOf": [{"type": "integer"}, operator("+"), operator("-"), operator("*")]}},
        });
        let cases = [
            (json!({"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"properties": {"b": {}}}]}}}), 0),
            (json!({"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "all": {"items": {"$ref": "#"}}}}), 1),
            (json!({"properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}}), 1),
            (json!({"additionalProperties": {"$ref": "#"}, "patternProperties": {"^a": {"$ref": "#"}}}), 2),
            (expression, 3),
        ];
        for (schema, expected) in cases {
            assert_eq!(of(&schema), expected, "{schema}");
        }
        assert_eq!(of(&json!({"$ref": "#"})), MOST, "a schema that is itself");
    }

    #[test]
    fn what_multiplies_counts_once_for_each_way() {
        let deep = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!({"l": inner, "op": "+"}));
        assert_eq!([looks(&deep(2), 0), looks(&deep(2), 1), looks(&deep(2), 3)], [5, 5, 1 + 6 + 18]);
        assert!(is_bearable(looks(&deep(10), 3)) && !is_bearable(looks(&deep(14), 3)));
    }
}
