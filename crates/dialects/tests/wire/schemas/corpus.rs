//! The schemas in `tests/schemas`: what common libraries make of typical tools, what people write, and what breaks.

use serde_json::Value;

pub(super) struct Case {
    /// The file and the name in it.
    pub(super) name: String,
    pub(super) schema: Value,
    /// Where the schema is broken, as a JSON pointer.
    pub(super) broken: Option<String>,
}

const FILES: [(&str, &str); 9] = [
    ("csharp", include_str!("../../schemas/csharp.json")),
    ("go", include_str!("../../schemas/go.json")),
    ("handwritten", include_str!("../../schemas/handwritten.json")),
    ("hostile", include_str!("../../schemas/hostile.json")),
    ("pydantic", include_str!("../../schemas/pydantic.json")),
    ("pydantic_old", include_str!("../../schemas/pydantic_old.json")),
    ("schemars", include_str!("../../schemas/schemars.json")),
    ("zod3", include_str!("../../schemas/zod3.json")),
    ("zod4", include_str!("../../schemas/zod4.json")),
];

pub(super) fn corpus() -> Vec<Case> {
    let mut all = Vec::new();
    for (file, text) in FILES {
        let rows: Vec<Value> = serde_json::from_str(text).unwrap();
        for row in rows {
            let name = row.get("name").and_then(Value::as_str).unwrap();
            let broken = row.get("broken").and_then(Value::as_str).map(str::to_owned);
            all.push(Case { name: format!("{file}/{name}"), schema: row.get("schema").unwrap().clone(), broken });
        }
    }
    all
}

/// One schema of the corpus.
pub(super) fn named(name: &str) -> Value {
    corpus().into_iter().find(|case| case.name == name).unwrap_or_else(|| panic!("no schema {name}")).schema
}
