//! What rules say of arguments: any predicate is refused with a reason or decides about any command line, and the rule that
//! "always" would store is one that can be used and covers the very call. Predicate, line and arguments are parted by zero
//! bytes.

#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use turnwright_core::policy::{Action, Policy, PredicateText, RuleText, Tests, proposed};
use turnwright_core::{ApproveMode, Declared};

const TOOL: &str = "command__run";

fuzz_target!(|data: &[u8]| {
    let mut parts = data.split(|byte| *byte == 0).map(|part| String::from_utf8_lossy(part).into_owned());
    let (Some(predicate), Some(line)) = (parts.next(), parts.next()) else { return };
    let args: Vec<String> = parts.collect();
    let arguments = if args.is_empty() { json!({"command": line}) } else { json!({"command": line, "args": args}) };
    let always = proposed(TOOL, &arguments, Action::Allow);
    assert_eq!(decided(always, &arguments), Some(Action::Allow), "the rule that is proposed covers its call");
    let given = serde_json::from_str::<PredicateText>(&predicate);
    let given = given.unwrap_or_else(|_| Tests { program: Some(vec![predicate]), ..Tests::default() }.into());
    let names_programs = matches!(&given, PredicateText::Tests(tests) if tests.program.is_some());
    let rule = |action| RuleText { tool: TOOL.to_owned(), when: BTreeMap::from([("command".to_owned(), given.clone())]), action };
    let (allowed, denied) = (decided(rule(Action::Allow), &arguments), decided(rule(Action::Deny), &arguments));
    assert_eq!(allowed.is_some(), denied.is_some());
    if names_programs && allowed == Some(Action::Allow) {
        assert_eq!(denied, Some(Action::Deny), "what is allowed by its programs is denied by them too");
    }
});

/// What one rule comes to where it can be used.
fn decided(rule: RuleText, arguments: &Value) -> Option<Action> {
    let policy = Policy::new([rule]).ok()?;
    Some(policy.decide(ApproveMode::Ask, TOOL, Declared::default(), arguments).action)
}
