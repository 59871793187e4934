//! The rule language, case by case.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper that cannot go on stops its test")]

use serde_json::{Value, json};
use turnwright_core::policy::{Action, Policy, RuleText};
use turnwright_core::{ApproveMode, Declared};

mod builtins;
mod commands;
mod outputs;
mod values;

/// What a rule makes of a call that the approve mode would ask about (`allow`, `deny`) or allow (`ask`).
fn decided(action: Action, tool: &str, when: &Value, arguments: &Value) -> bool {
    let rule: RuleText = serde_json::from_value(json!({"tool": "*", "when": when, "action": action}))
        .unwrap_or_else(|error| panic!("{when}: {error}"));
    let policy = Policy::new([rule]).unwrap().starting_at(Some("/home/a/work"));
    let mode = if action == Action::Ask { ApproveMode::All } else { ApproveMode::Ask };
    let verdict = policy.decide(mode, tool, Declared::default(), arguments);
    verdict.rule.contains("rule 1")
}

/// Whether a rule that allows, and one that denies, decides about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Is {
    /// It is what the rule names: both do.
    In,
    /// It is not: neither does.
    Out,
    /// Part of it is, or nobody can tell: it is denied, never allowed.
    Mixed,
}

fn is(tool: &str, when: &Value, arguments: &Value) -> Is {
    let [allows, asks, denies] =
        [Action::Allow, Action::Ask, Action::Deny].map(|action| decided(action, tool, when, arguments));
    assert_eq!(asks, denies, "what asks and what denies match alike: {when} {arguments}");
    match (allows, denies) {
        (true, true) => Is::In,
        (false, false) => Is::Out,
        (false, true) => Is::Mixed,
        (true, false) => panic!("a call is allowed by what would not deny it: {when} {arguments}"),
    }
}
