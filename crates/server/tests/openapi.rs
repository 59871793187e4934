//! The OpenAPI document of the repository is what the routes say of themselves.

#![expect(clippy::unwrap_used, reason = "a helper of tests may fail the test")]

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

fn described() -> Value {
    serde_json::to_value(turnwright_server::openapi()).unwrap()
}

#[test]
fn the_document_in_the_repository_is_that_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi.json");
    let text = format!("{:#}\n", described());
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == text,
        "crates/server/openapi.json is not what the routes say; `UPDATE_OPENAPI=1 cargo nextest run -p turnwright-server --test openapi` \
         writes it anew"
    );
}

#[test]
fn every_operation_has_its_own_name_a_summary_and_answers_for_good_and_bad() {
    let document = described();
    let mut names = BTreeSet::new();
    let mut count = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            count += 1;
            let which = format!("{method} {path}");
            assert!(names.insert(operation["operationId"].as_str().unwrap().to_owned()), "{which}: its name is another's");
            assert!(operation["summary"].as_str().is_some_and(|summary| !summary.is_empty()), "{which} has no summary");
            let answers: Vec<&String> = operation["responses"].as_object().unwrap().keys().collect();
            assert!(answers.iter().any(|status| status.starts_with('2')), "{which} never goes well");
            assert!(answers.iter().any(|status| status.starts_with('4')), "{which} never goes wrong");
        }
    }
    assert_eq!(count, names.len());
}
