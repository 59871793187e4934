use serde_json::json;

use super::*;

fn rule(tool: &str, when: &[(&str, &str)], action: Action) -> RuleText {
    let when = when.iter().map(|(key, glob)| ((*key).to_owned(), PredicateText::from(*glob))).collect();
    RuleText { tool: tool.to_owned(), when, action }
}

fn policy() -> Policy {
    Policy::new([
        rule("filesystem__write*", &[("path", "/tmp/**")], Action::Allow),
        rule("filesystem__write*", &[("path", "/tmp/secret/**")], Action::Deny),
        rule("command__*", &[], Action::Ask),
        rule("*__peek", &[], Action::Allow),
    ])
    .unwrap()
}

#[test]
fn the_first_matching_rule_by_strength_decides_and_is_named() {
    const READ_ONLY: Declared = Declared { read_only: true, replayable: false, serial: false, polled: false };
    const PLAIN: Declared = Declared { read_only: false, replayable: false, serial: false, polled: false };
    use Action::{Allow, Ask, Deny};
    use ApproveMode as M;
    let policy = policy();
    for (mode, name, declared, arguments, action, rule) in [
        (
            M::Ask,
            "filesystem__write",
            PLAIN,
            json!({"path": "/tmp/a"}),
            Allow,
            "rule 1 (allow filesystem__write* when path = /tmp/**)",
        ),
        (
            M::Ask,
            "filesystem__write",
            PLAIN,
            json!({"path": "/tmp/secret/a"}),
            Deny,
            "rule 2 (deny filesystem__write* when path = /tmp/secret/**)",
        ),
        (
            M::All,
            "filesystem__write",
            PLAIN,
            json!({"path": "/tmp/secret/a"}),
            Deny,
            "rule 2 (deny filesystem__write* when path = /tmp/secret/**)",
        ),
        (M::Ask, "filesystem__write", PLAIN, json!({"path": "/etc/a"}), Ask, "approve mode ask"),
        (
            M::Ask,
            "filesystem__write",
            PLAIN,
            json!({"path": "/tmp/../etc/a"}),
            Deny,
            "rule 2 (deny filesystem__write* when path = /tmp/secret/**)",
        ),
        (M::Ask, "filesystem__write", PLAIN, json!({}), Ask, "approve mode ask"),
        (M::Ask, "command__run", READ_ONLY, json!({}), Ask, "rule 3 (ask command__*)"),
        (M::All, "command__run", PLAIN, json!({}), Allow, "approve mode all over rule 3 (ask command__*)"),
        (M::None, "command__run", PLAIN, json!({}), Deny, "rule 3 (ask command__*)"),
        (M::None, "x__peek", PLAIN, json!({}), Allow, "rule 4 (allow *__peek)"),
        (M::None, "x__read", READ_ONLY, json!({}), Deny, "approve mode none"),
        (M::ReadOnly, "x__read", READ_ONLY, json!({}), Allow, "approve mode read-only: declared read-only"),
        (M::ReadOnly, "x__write", PLAIN, json!({}), Deny, "approve mode read-only: not declared read-only"),
        (M::Ask, "x__read", READ_ONLY, json!({}), Allow, "approve mode ask: declared read-only"),
        (M::All, "x__write", PLAIN, json!({}), Allow, "approve mode all"),
    ] {
        let expected = Verdict { action, rule: rule.to_owned() };
        assert_eq!(policy.decide(mode, name, declared, &arguments), expected, "{mode:?} {name} {arguments}");
    }
}

#[test]
fn a_deny_rule_holds_for_changed_arguments() {
    let denied = policy().denied_by("filesystem__write", &json!({"path": "/tmp/secret/x"}));
    assert_eq!(denied.as_deref(), Some("rule 2 (deny filesystem__write* when path = /tmp/secret/**)"));
    assert_eq!(policy().denied_by("filesystem__write", &json!({"path": "/tmp/x"})), None);
}

#[test]
fn a_glob_that_is_none_names_its_rule() {
    let error = Policy::new([rule("a*", &[], Action::Allow), rule("[", &[], Action::Deny)]).unwrap_err();
    assert_eq!(error.to_string(), "approval rule 2: `tool` is `[`, which is not a glob; `filesystem__write*` would be one");
}

#[test]
fn a_rule_to_remember_is_held_against_a_call_as_it_will_be_once_it_is_remembered() {
    let below = PredicateText::Tests(Box::new(Tests { below: Some(vec!["/srv/notes".to_owned()]), ..Tests::default() }));
    let rule = |tool: &str| {
        let rule = RuleText { tool: tool.to_owned(), when: [("path".to_owned(), below.clone())].into(), action: Action::Allow };
        ReadyRule::new(Remembered { id: "rule_1".to_owned(), reach: Reach::Everyone, rule, at_ms: 0 }).unwrap()
    };
    let arguments = json!({"path": "notes/a"});
    let (plain, starts) = (policy(), policy().starting_at(Some("/srv")));
    assert!(!plain.would_match(&rule("filesystem__*"), "filesystem__write", &arguments));
    assert!(starts.would_match(&rule("filesystem__*"), "filesystem__write", &arguments));
    assert!(!starts.would_match(&rule("other__*"), "other__write", &arguments));
}
