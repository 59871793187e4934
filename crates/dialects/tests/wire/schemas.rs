//! The schema compiler, over schemas of the shapes that servers send and over random ones.

mod corpus;
mod equal;
mod forms;
mod hostile;
mod instances;
mod random;
mod rules;

use serde_json::Value;
use turnwright_dialects::schema::{Lowered, SchemaTarget, Strictness, compile};

use corpus::{Case, corpus};

/// No lowered schema is larger than this, whatever it was made of.
const MAX_LOWERED_BYTES: usize = 1 << 20;

#[test]
fn every_schema_obeys_its_targets_rules_in_the_same_bytes_each_time() {
    for case in corpus().iter().filter(|case| case.broken.is_none()) {
        for target in SchemaTarget::ALL {
            check(&case.name, &case.schema, target);
        }
    }
}

/// Compiles, and holds the result against everything that must be true of any result.
fn check(name: &str, schema: &Value, target: SchemaTarget) -> Lowered {
    let lowered = compile(schema, target).unwrap_or_else(|error| panic!("{name} for {target:?}: {error}"));
    let text = lowered.schema.to_string();
    assert!(text.len() <= MAX_LOWERED_BYTES, "{name} for {target:?} has {} bytes", text.len());
    let wrong = rules::violations(&lowered, target);
    assert!(wrong.is_empty(), "{name} for {target:?}: {wrong:#?}\n{schema}\n{text}");
    let again = compile(schema, target).unwrap();
    assert_eq!((again.schema.to_string(), &again.losses), (text.clone(), &lowered.losses), "{name} for {target:?}");
    let same = match &lowered.strict {
        Strictness::Loose { .. } => target.loose(),
        Strictness::NotAsked | Strictness::Strict => target,
    };
    let settled = compile(&lowered.schema, same).unwrap_or_else(|error| panic!("{name} for {target:?}: {error}\n{text}"));
    assert_eq!(settled.schema.to_string(), text, "{name} for {target:?}, compiled twice\n{schema}");
    if lowered.is_strict() {
        assert_eq!(settled.strict, Strictness::Strict, "{name}");
    }
    lowered
}

#[test]
fn a_broken_schema_is_refused_with_what_is_wrong_and_where() {
    for Case { name, schema, broken } in corpus() {
        for target in SchemaTarget::ALL {
            let found = compile(&schema, target).err().map(|error| error.pointer);
            assert_eq!(found, broken, "{name} for {target:?}");
        }
    }
}

#[test]
fn the_corpus_is_as_large_as_it_should_be() {
    let all = corpus();
    let hostile = all.iter().filter(|case| case.name.starts_with("hostile/")).count();
    assert!(all.len() >= 300 && hostile >= 50, "{} schemas, {hostile} of them hostile", all.len());
}
