//! How much a path looks at, before it is asked: a short one can select the same values again and again. Pure.

use serde_json::Value;

/// The most values that one path looks at within one that is held. Where it does, it takes about a second and 100 MB.
pub(in crate::artifact) const MOST_LOOKED_AT: u64 = 10_000_000;

/// What in a path multiplies what it looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Work {
    /// Segments over all descendants, also those within filters.
    descents: u32,
    /// How many selectors there are, those in one pair of brackets multiplied.
    selectors: u64,
    /// Filters that begin at the root again.
    roots: u32,
}

impl Work {
    /// Of a path that was read. A sign within a filter counts as one outside of it: rather too much than too little.
    pub(super) fn of(path: &str) -> Self {
        let mut work = Self { descents: 0, selectors: 1, roots: 0 };
        let mut commas: Vec<u64> = Vec::new();
        let mut quote = None;
        let mut signs = path.chars().skip_while(|sign| *sign != '$').skip(1).peekable();
        while let Some(sign) = signs.next() {
            if let Some(open) = quote {
                if sign == '\\' {
                    signs.next();
                } else if sign == open {
                    quote = None;
                }
                continue;
            }
            match sign {
                '"' | '\'' => quote = Some(sign),
                '.' if signs.peek() == Some(&'.') => work.descents += 1,
                '$' => work.roots += 1,
                '[' => commas.push(0),
                ',' => commas.iter_mut().for_each(|count| *count = count.saturating_add(1)),
                ']' => {
                    let count = commas.pop().unwrap_or(0);
                    work.selectors = work.selectors.saturating_mul(count.saturating_add(1));
                }
                _ => {}
            }
        }
        work
    }

    /// Whether a path looks at no more than [`MOST_LOOKED_AT`] values of this one.
    pub(super) fn is_done_in(self, value: &Value) -> bool {
        let (mut values, mut chains) = (0_u64, 0_u64);
        let mut left = vec![(value, 0_u64)];
        while let Some((value, depth)) = left.pop() {
            values = values.saturating_add(1);
            chains = chains.saturating_add(self.chains(depth));
            let deeper = depth.saturating_add(1);
            match value {
                Value::Array(items) => left.extend(items.iter().map(|item| (item, deeper))),
                Value::Object(members) => left.extend(members.values().map(|member| (member, deeper))),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        let again = values.saturating_pow(self.roots);
        chains.saturating_mul(self.selectors).saturating_mul(again) <= MOST_LOOKED_AT
    }

    /// In how many ways segments over all descendants, one after another, come to a value at this depth: each may stop at any value
    /// above it.
    fn chains(self, depth: u64) -> u64 {
        (1..u64::from(self.descents.max(1))).fold(1_u64, |ways, more| ways.saturating_mul(depth.saturating_add(more)) / more)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Work;

    fn nested(depth: usize) -> Value {
        (0..depth).fold(json!([1, 2]), |inner, _| json!([inner]))
    }

    #[test]
    fn what_multiplies_is_counted_outside_of_names() {
        let cases = [
            ("$.a[*].b", (0, 1, 0)),
            ("$..a..[*,'x']", (2, 2, 0)),
            (r#"$["a..b,c"]['d\'..']..e"#, (1, 1, 0)),
            ("$[0,0][1,1][?@.a < 3]", (0, 4, 0)),
            ("$[?count($..*) > 1]", (1, 1, 1)),
            ("$[?@..a[0,1]]", (1, 4, 0)),
        ];
        for (path, (descents, selectors, roots)) in cases {
            assert_eq!(Work::of(path), Work { descents, selectors, roots }, "{path}");
        }
    }

    #[test]
    fn usual_paths_are_asked_and_those_that_multiply_are_not() {
        let wide: Value = (0..50_000).map(|number| json!({"id": number, "of": {"name": "x"}})).collect();
        let of = |path: &str, value: &Value| Work::of(path).is_done_in(value);
        for path in ["$..name", "$..of..name", "$[?@.id > 3].of", "$..[?@.name == 'x']", "$[0,1,2]['id','of']"] {
            assert!(of(path, &wide), "{path}");
        }
        assert!(of("$..*..*", &nested(110)));
        for path in ["$..*..*..*..*..*..*", "$[?count($..*) > 1]", &format!("${}", "[*,*]".repeat(12))] {
            assert!(!of(path, &wide) || !of(path, &nested(110)), "{path}");
        }
        assert!(!of("$..*..*..*..*..*", &nested(110)));
        assert!(!of(&format!("${}", "[0,0]".repeat(30)), &nested(40)));
    }
}
