//! Paths, numbers, words, and rules that cannot be used.

use serde_json::{Value, json};
use turnwright_core::policy::{Action, Policy, RuleText};

use crate::Is::{self, In, Mixed, Out};

#[test]
fn values_are_compared_as_the_rule_says() {
    let below = || json!({"path": {"below": "/tmp"}});
    let here = || json!({"path": {"below": "/home/a/work"}});
    let range = || json!({"amount": {"min": 0, "max": 10}});
    let mode = || json!({"mode": {"one_of": ["a", "B", 1, true, null]}});
    let glob = || json!({"path": "/tmp/**"});
    let cases: Vec<(&str, Value, Value, Is)> = vec![
        // Below a folder.
        ("x__t", below(), json!({"path": "/tmp/a"}), In),
        ("x__t", below(), json!({"path": "/tmp"}), In),
        ("x__t", below(), json!({"path": "/tmp/"}), In),
        ("x__t", below(), json!({"path": "//tmp//a/./b"}), In),
        ("x__t", below(), json!({"path": "/tmp/a b"}), In),
        ("x__t", below(), json!({"path": "/tmp/é"}), In),
        ("x__t", below(), json!({"path": "/tmp/..."}), In),
        ("x__t", below(), json!({"path": "/tmp/..a/b"}), In),
        ("x__t", below(), json!({"path": "/tmpx/a"}), Out),
        ("x__t", below(), json!({"path": "/etc/passwd"}), Out),
        ("x__t", below(), json!({"path": "/"}), Out),
        ("x__t", below(), json!({"path": "/var/tmp"}), Out),
        ("x__t", below(), json!({"path": "/tmp/../etc"}), Mixed),
        ("x__t", below(), json!({"path": "/etc/../tmp"}), Mixed),
        ("x__t", below(), json!({"path": "/tmp/a\\..\\..\\etc"}), Mixed),
        ("x__t", below(), json!({"path": "/TMP/a"}), Mixed),
        ("x__t", below(), json!({"path": "\\tmp\\a"}), Mixed),
        ("x__t", below(), json!({"path": "~/a"}), Mixed),
        ("x__t", below(), json!({"path": "file:///tmp/a"}), Mixed),
        ("x__t", below(), json!({"path": "FILE:/tmp/a"}), Mixed),
        ("x__t", below(), json!({"path": "/tmp/a\u{0}/etc"}), Mixed),
        ("x__t", below(), json!({"path": ""}), Mixed),
        ("x__t", below(), json!({"path": "a"}), Mixed),
        ("x__t", below(), json!({"path": 1}), Mixed),
        ("x__t", below(), json!({"path": null}), Mixed),
        ("x__t", below(), json!({"path": {"a": "/tmp"}}), Mixed),
        ("x__t", below(), json!({}), Out),
        ("x__t", below(), json!({"Path": "/tmp/a"}), Out),
        ("x__t", json!({"path": {"below": ["/a", "/tmp"]}}), json!({"path": "/tmp/a"}), In),
        ("x__t", json!({"path": {"below": "/"}}), json!({"path": "/etc"}), In),
        ("x__t", json!({"path": {"below": "/tmp", "glob": "**/*.txt"}}), json!({"path": "/tmp/a.txt"}), In),
        ("x__t", json!({"path": {"below": "/tmp", "glob": "**/*.txt"}}), json!({"path": "/tmp/a.sh"}), Out),
        // Relative paths of the built-in tools begin at the first root, of others nobody knows where.
        ("filesystem__write", here(), json!({"path": "a.txt"}), In),
        ("filesystem__write", below(), json!({"path": "a.txt"}), Out),
        ("filesystem__write", here(), json!({"path": "../a.txt"}), Mixed),
        ("x__write", here(), json!({"path": "a.txt"}), Mixed),
        // Lists.
        ("x__t", below(), json!({"path": ["/tmp/a", "/tmp/b"]}), In),
        ("x__t", below(), json!({"path": ["/tmp/a", "/etc/b"]}), Mixed),
        ("x__t", below(), json!({"path": ["/etc/b"]}), Out),
        ("x__t", below(), json!({"path": []}), Out),
        ("x__t", below(), json!({"path": [["/tmp/a"]]}), Mixed),
        ("x__t", json!({"/a/0/b": {"one_of": [1]}}), json!({"a": [{"b": 1}]}), In),
        ("x__t", json!({"/a/0/b": {"one_of": [1]}}), json!({"a": [{"b": 2}]}), Out),
        // Globs.
        ("x__t", glob(), json!({"path": "/tmp/a/b"}), In),
        ("x__t", glob(), json!({"path": "/etc"}), Out),
        ("x__t", glob(), json!({"path": "/tmp/../etc"}), Mixed),
        ("x__t", glob(), json!({"path": "//tmp/a"}), Mixed),
        ("x__t", glob(), json!({"path": "/./tmp//a"}), Mixed),
        ("x__t", glob(), json!({"path": "/etc//tmp/a"}), Out),
        ("x__t", glob(), json!({"path": "~/a"}), Mixed),
        ("x__t", glob(), json!({"path": "a"}), Out),
        ("filesystem__write", json!({"path": "/home/a/work/**"}), json!({"path": "a.txt"}), Mixed),
        ("filesystem__write", json!({"path": "/home/a/work/**"}), json!({"path": "/home/b/a.txt"}), Out),
        ("x__t", json!({"text": "a*"}), json!({"text": "~b"}), Out),
        ("x__t", json!({"url": "https://a.example/*"}), json!({"url": "https://a.example/x"}), In),
        ("x__t", json!({"url": "https://a.example/*"}), json!({"url": "https://b.example//x"}), Out),
        ("x__t", json!({"path": "/tmp/*"}), json!({"path": "/tmp/a/b"}), Out),
        // What crosses `/` does so wherever it stands.
        ("x__t", json!({"line": "**rm -rf**"}), json!({"line": "cd /home; rm -rf x/y\nls"}), In),
        ("x__t", json!({"line": "**rm -rf**"}), json!({"line": "rm -rf ."}), In),
        ("x__t", json!({"line": "**rm -rf**"}), json!({"line": "rm -r /f"}), Out),
        ("x__t", json!({"path": "/tmp/**.key"}), json!({"path": "/tmp/a/b/c.key"}), In),
        ("x__t", json!({"path": "/tmp/**.key"}), json!({"path": "/tmp/.key"}), In),
        ("x__t", json!({"path": "/tmp/**.key"}), json!({"path": "/tmp/a/c.kez"}), Out),
        ("x__t", json!({"path": "/tmp/***.key"}), json!({"path": "/tmp/a/c.key"}), In),
        ("x__t", json!({"path": "/tmp/a**"}), json!({"path": "/tmp/ab/c"}), In),
        ("x__t", json!({"path": "/tmp/a**/c"}), json!({"path": "/tmp/a/b/c"}), In),
        ("x__t", json!({"path": "/tmp/a*/c"}), json!({"path": "/tmp/a/b/c"}), Out),
        ("x__t", json!({"path": "/tmp/{x**,y}.key"}), json!({"path": "/tmp/x/a.key"}), In),
        ("x__t", json!({"path": "{**/a,**b}"}), json!({"path": "x/y/a"}), In),
        ("x__t", json!({"path": "{**/a,**b}"}), json!({"path": "x/y/b"}), In),
        ("x__t", json!({"path": "a,**b"}), json!({"path": "a,x/b"}), In),
        ("x__t", json!({"path": "\\{**\\}"}), json!({"path": "{a/b}"}), In),
        ("x__t", json!({"path": "a\\**b"}), json!({"path": "a*x/b"}), Out),
        ("x__t", json!({"path": "a\\***b"}), json!({"path": "a*x/b"}), In),
        ("x__t", json!({"path": "a[**]b"}), json!({"path": "a*b"}), In),
        ("x__t", json!({"path": "a[**]b"}), json!({"path": "ax/b"}), Out),
        ("x__t", json!({"path": "a[]*]**b"}), json!({"path": "a]x/b"}), In),
        ("x__t", json!({"path": "é**é"}), json!({"path": "é/é"}), In),
        ("x__t", json!({"n": "1?"}), json!({"n": 12}), In),
        ("x__t", json!({"n": "true"}), json!({"n": true}), In),
        ("x__t", json!({"n": "*"}), json!({"n": {"a": 1}}), Mixed),
        ("x__t", json!({"n": {"glob": "[a-c]?"}}), json!({"n": "bz"}), In),
        ("x__t", json!({"n": "é*"}), json!({"n": "été"}), In),
        ("x__t", json!({"path": "/data/kunde-?/**"}), json!({"path": "/data/kunde-ä/x"}), In),
        ("x__t", json!({"path": "[ä]x"}), json!({"path": "äx"}), In),
        ("x__t", json!({"path": "[ä]x"}), json!({"path": "ãx"}), Out),
        ("x__t", json!({"path": "[!a]x"}), json!({"path": "äx"}), In),
        ("x__t", json!({"path": "??"}), json!({"path": "ä"}), Out),
        // Ranges.
        ("x__t", range(), json!({"amount": 0}), In),
        ("x__t", range(), json!({"amount": 10}), In),
        ("x__t", range(), json!({"amount": -0.0}), In),
        ("x__t", json!({"n": {"min": -0.0, "max": -0.0}}), json!({"n": 0}), In),
        ("x__t", json!({"n": {"one_of": [0]}}), json!({"n": -0.0}), In),
        ("x__t", json!({"n": {"one_of": [0]}}), json!({"n": [-0.0, 0]}), In),
        ("x__t", range(), json!({"amount": 9.99}), In),
        ("x__t", range(), json!({"amount": 10.0}), In),
        ("x__t", range(), json!({"amount": -1}), Out),
        ("x__t", range(), json!({"amount": 10.01}), Out),
        ("x__t", range(), json!({"amount": 1e300}), Out),
        ("x__t", range(), json!({"amount": "5"}), Mixed),
        ("x__t", range(), json!({"amount": "500"}), Mixed),
        ("x__t", range(), json!({"amount": null}), Mixed),
        ("x__t", range(), json!({"amount": true}), Mixed),
        ("x__t", range(), json!({"amount": [5, 6]}), In),
        ("x__t", range(), json!({"amount": [5, 60]}), Mixed),
        ("x__t", range(), json!({}), Out),
        ("x__t", json!({"n": {"max": 9_007_199_254_740_992_u64}}), json!({"n": 9_007_199_254_740_993_u64}), Out),
        ("x__t", json!({"n": {"min": 0.5}}), json!({"n": 1}), In),
        ("x__t", json!({"n": {"max": -1}}), json!({"n": 18_446_744_073_709_551_615_u64}), Out),
        // One of.
        ("x__t", mode(), json!({"mode": "a"}), In),
        ("x__t", mode(), json!({"mode": "B"}), In),
        ("x__t", mode(), json!({"mode": 1}), In),
        ("x__t", mode(), json!({"mode": 1.0}), In),
        ("x__t", mode(), json!({"mode": true}), In),
        ("x__t", mode(), json!({"mode": null}), In),
        ("x__t", mode(), json!({"mode": "A"}), Mixed),
        ("x__t", mode(), json!({"mode": " a "}), Mixed),
        ("x__t", mode(), json!({"mode": "1"}), Mixed),
        ("x__t", mode(), json!({"mode": "c"}), Out),
        ("x__t", mode(), json!({"mode": 2}), Out),
        ("x__t", mode(), json!({"mode": ["a", "B"]}), In),
        ("x__t", mode(), json!({"mode": ["a", "c"]}), Mixed),
        ("x__t", json!({"mode": {"one_of": [["a", 1], "b"]}}), json!({"mode": ["a", 1.0]}), In),
        ("x__t", json!({"mode": {"one_of": [["a", 1], "b"]}}), json!({"mode": ["b", "b"]}), In),
        ("x__t", json!({"mode": {"one_of": [["a", 1], "b"]}}), json!({"mode": ["a"]}), Out),
        ("x__t", mode(), json!({"mode": {"a": 1}}), Mixed),
        // Several at once.
        ("x__t", json!({"path": {"below": "/tmp"}, "mode": {"one_of": ["a"]}}), json!({"path": "/tmp/a", "mode": "a"}), In),
        ("x__t", json!({"path": {"below": "/tmp"}, "mode": {"one_of": ["a"]}}), json!({"path": "/tmp/a", "mode": "b"}), Out),
        ("x__t", json!({"path": {"below": "/tmp"}, "mode": {"one_of": ["a"]}}), json!({"path": "/tmp/../a", "mode": "b"}), Out),
        (
            "x__t",
            json!({"path": {"below": "/tmp"}, "mode": {"one_of": ["a"]}}),
            json!({"path": "/tmp/../a", "mode": "a"}),
            Mixed,
        ),
    ];
    let found = |(tool, when, arguments, _): &(&str, Value, Value, Is)| crate::is(tool, when, arguments);
    let wrong: Vec<_> = cases.iter().filter(|case| found(case) != case.3).map(|case| (case, found(case))).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_rule_that_cannot_be_used_says_what_would_be_right() {
    for (when, expected) in [
        (json!({"path": "["}), "`when.path` `[` is not a glob: unclosed character class; missing ']'; `/tmp/**` would be one"),
        (json!({"path": {}}), "`when.path` says nothing; give it one of `glob`, `below`, `min`, `max`, `one_of` and `program`"),
        (
            json!({"path": {"below": "tmp"}}),
            "`when.path.below` `tmp` is not an absolute folder without `..`, such as `/tmp/notes`",
        ),
        (
            json!({"path": {"below": "/a/../b"}}),
            "`when.path.below` `/a/../b` is not an absolute folder without `..`, such as `/tmp/notes`",
        ),
        (json!({"path": {"below": []}}), "`when.path.below` is empty, so that it could never match; name at least one"),
        (json!({"n": {"min": 2, "max": 1}}), "`when.n.min` is 2, above `max`, 1; exchange them"),
        (json!({"n": {"one_of": []}}), "`when.n.one_of` is empty, so that it could never match; name at least one"),
        (
            json!({"c": {"program": "git status"}}),
            "`when.c.program` `git status` is not a program alone, such as `git`; its arguments are not part of a rule",
        ),
        (
            json!({"/a~2": "x"}),
            "`when./a~2` is no JSON pointer, so that it could never match: in one, `~` is written `~0`, and `/` in a name `~1`",
        ),
        (
            json!({"/a/b~": {"min": 1}}),
            "`when./a/b~` is no JSON pointer, so that it could never match: in one, `~` is written `~0`, and `/` in a name `~1`",
        ),
        (
            json!({"c": {"program": ["./git"]}}),
            "`when.c.program` `./git` is neither a name, such as `git`, nor an absolute path",
        ),
    ] {
        let rule: RuleText = serde_json::from_value(json!({"tool": "*", "when": when, "action": "deny"})).unwrap();
        let good: RuleText = serde_json::from_value(json!({"tool": "*", "action": "ask"})).unwrap();
        assert_eq!(Policy::new([good, rule]).unwrap_err().to_string(), format!("approval rule 2: {expected}"));
    }
    let unknown = serde_json::from_value::<RuleText>(json!({"tool": "*", "when": {"a": {"belw": "/tmp"}}, "action": "deny"}));
    let expected = "unknown field `belw`, expected one of `glob`, `below`, `min`, `max`, `one_of`, `program`";
    assert_eq!(unknown.unwrap_err().to_string(), expected);
}

#[test]
fn a_rule_for_no_tool_is_refused() {
    let rule: RuleText = serde_json::from_value(json!({"tool": "", "action": "deny"})).unwrap();
    let expected = "approval rule 1: `tool` is empty, so that it could never match; `*` means all tools";
    assert_eq!(Policy::new([rule]).unwrap_err().to_string(), expected);
    for (tool, strange) in [("my server__*", ' '), ("github.com__args", '.'), ("{a__*,ä__x}", 'ä')] {
        let rule: RuleText = serde_json::from_value(json!({"tool": tool, "action": "deny"})).unwrap();
        let told = Policy::new([rule.clone()]).unwrap_err().to_string();
        assert!(told.contains("could never match") && told.contains(&format!("no `{strange}`")), "{told}");
        assert_eq!(rule.fits().unwrap_err().reason, told.split_once("`tool` ").unwrap().1);
    }
    for tool in ["*", "a-b__[!x]?_9", "{a__*,b__**}", "notes__sampling/createMessage"] {
        let rule: RuleText = serde_json::from_value(json!({"tool": tool, "action": "deny"})).unwrap();
        assert!(rule.fits().is_ok() && Policy::new([rule]).is_ok(), "{tool}");
    }
    // Such names are no pointers, or lead somewhere.
    for key in ["a~2", "/a~0~1b", "/", "/a/0"] {
        let rule: RuleText = serde_json::from_value(json!({"tool": "*", "when": {key: "x"}, "action": "deny"})).unwrap();
        assert!(Policy::new([rule]).is_ok(), "{key}");
    }
}

#[test]
fn a_rule_that_is_added_is_no_larger_than_is_made_ready_at_once() {
    let rule = |tool: &str, when: Value| -> RuleText {
        serde_json::from_value(json!({"tool": tool, "when": when, "action": "allow"})).unwrap()
    };
    let keys = |count: usize, glob: &str| (0..count).map(|n| (format!("k{n:03}"), json!(glob))).collect::<Value>();
    let names = |count: usize| (0..count).map(|n| json!(format!("p{n}"))).collect::<Value>();
    for (rule, expected) in [
        (rule("x__*", keys(64, "/tmp/**")), None),
        (rule("x__*", keys(65, "a")), Some("`when` has 65 arguments, limit 64")),
        (rule(&"*".repeat(256), json!({})), None),
        (
            rule(&"*".repeat(257), json!({})),
            Some("`tool` brings the wildcards of the rule to more than 256, which is the limit"),
        ),
        (
            rule("*", keys(3, &"?[a]".repeat(50))),
            Some("`when.k002` brings the wildcards of the rule to more than 256, which is the limit"),
        ),
        (
            rule("*", json!({"a": {"glob": "{a,*}".repeat(200)}})),
            Some("`when.a.glob` brings the wildcards of the rule to more than 256, which is the limit"),
        ),
        (rule(&"a".repeat(5_000), json!({})), Some("`tool` has 5000 bytes, limit 4096")),
        (rule("*", json!({"c": {"program": names(1_000)}})), None),
        (rule("*", json!({"c": {"program": names(1_001)}})), Some("`when.c.program` has 1001 values, limit 1000")),
        (rule("*", json!({"c": {"one_of": names(1_001)}})), Some("`when.c.one_of` has 1001 values, limit 1000")),
        (rule("*", json!({"c": {"below": names(1_001)}})), Some("`when.c.below` has 1001 values, limit 1000")),
        (rule("*", json!({"c": {"one_of": ["x".repeat(262_141)]}})), None),
        (rule("*", json!({"c": {"one_of": ["x".repeat(262_142)]}})), Some("`when` has 262145 bytes, limit 262144")),
        (
            rule("*", json!({"c": {"below": format!("/{}", "x".repeat(262_143))}})),
            Some("`when` has 262145 bytes, limit 262144"),
        ),
        (rule("*", json!({"x".repeat(262_145): "a"})), Some("`when` has 262145 bytes, limit 262144")),
    ] {
        let found = rule.fits().map_err(|error| format!("`{}` {}", error.at, error.reason));
        assert_eq!(found, expected.map_or(Ok(()), |why| Err(why.to_owned())));
    }
}

#[test]
fn what_is_proposed_is_the_narrowest_rule_and_covers_the_call() {
    for (tool, arguments, expected) in [
        ("jira__create", json!({"title": "a"}), "allow jira__create"),
        (
            "filesystem__write",
            json!({"path": "/tmp/a.txt", "content": "x"}),
            "allow filesystem__write when path below /tmp/a.txt",
        ),
        ("filesystem__write", json!({"path": "a.txt", "content": "x"}), "allow filesystem__write when path is \"a.txt\""),
        (
            "x__move",
            json!({"source": "/a", "destination": "/b"}),
            "allow x__move when destination below /b and source below /a",
        ),
        ("command__run", json!({"command": "git status | head"}), "allow command__run when command program git, head"),
        ("command__run", json!({"command": "git", "args": ["log"]}), "allow command__run when command program git"),
        ("command__run", json!({"command": "sudo /usr/bin/git x"}), "allow command__run when command program git, sudo"),
        ("command__run", json!({"command": "/opt/a/b x"}), "allow command__run when command program /opt/a/b"),
        ("command__run", json!({"command": "[ -d x ] && ls"}), "allow command__run when command program [, ls"),
        ("command__run", json!({"command": "ls > x"}), "allow command__run when command is \"ls > x\" and stdin is null"),
        ("command__run", json!({"command": "eval $x"}), "allow command__run when command is \"eval $x\" and stdin is null"),
        ("command__run", json!({"command": "./x"}), "allow command__run when command is \"./x\" and stdin is null"),
        (
            "command__run",
            json!({"command": "sh", "stdin": "date"}),
            "allow command__run when command is \"sh\" and stdin is \"date\"",
        ),
        ("x__sh", json!({"cmd": "sh", "input": "date"}), "allow x__sh when cmd is \"sh\" and input is \"date\""),
        (
            "command__run",
            json!({"command": "./x", "args": []}),
            "allow command__run when args is [] and command is \"./x\" and stdin is null",
        ),
        (
            "command__run",
            json!({"command": "a\u{3}", "args": ["b"]}),
            "allow command__run when args is [\"b\"] and command is \"a\\u0003\" and stdin is null",
        ),
        (
            "command__run",
            json!({"command": "'a b' | git"}),
            "allow command__run when command is \"'a b' | git\" and stdin is null",
        ),
        ("command__run", json!({"command": "/opt/a/'b*' x"}), "allow command__run when command program /opt/a/b*"),
        ("command__run", json!({"command": "'g[a\\m'"}), "allow command__run when command is \"'g[a\\\\m'\" and stdin is null"),
        ("x__batch", json!({"commands": ["ls", "git log"]}), "allow x__batch when commands is [\"ls\",\"git log\"]"),
        ("x__batch", json!({"commands": "ls"}), "allow x__batch when commands is \"ls\""),
        ("x__t*", json!({}), "allow x__t[*]"),
        ("x__a\\b", json!({}), "allow x__a\\\\b"),
    ] {
        let rule = Policy::default().proposed(tool, &arguments, Action::Allow);
        assert_eq!(rule.to_string(), expected);
        let policy = Policy::new([rule]).unwrap();
        let verdict = policy.decide(turnwright_core::ApproveMode::Ask, tool, turnwright_core::Declared::default(), &arguments);
        // A path that climbs, or begins nobody knows where, is one that no rule allows.
        assert_eq!(verdict.action, Action::Allow, "{tool} {arguments}");
    }
}

#[test]
fn a_list_that_is_remembered_is_remembered_as_a_whole() {
    let seen = json!({"command": "find", "args": ["logs", "-name", "*.tmp", "-delete"]});
    let rule = Policy::default().proposed("command__run", &seen, Action::Allow);
    let expected =
        "allow command__run when args is [\"logs\",\"-name\",\"*.tmp\",\"-delete\"] and command is \"find\" and stdin is null";
    assert_eq!(rule.to_string(), expected);
    let when = serde_json::to_value(&rule.when).unwrap();
    for (args, expected) in [
        (json!(["logs", "-name", "*.tmp", "-delete"]), In),
        (json!(["logs", "-delete"]), Out),
        (json!(["logs", "-delete", "-name", "*.tmp"]), Out),
        (json!(["logs", "-name", "*.tmp", "-delete", "-delete"]), Out),
        (json!(["logs", "-name", "*.TMP", "-delete"]), Mixed),
        (json!([["logs", "-name", "*.tmp", "-delete"]]), Mixed),
        (json!("logs"), Out),
        (json!([]), Out),
    ] {
        assert_eq!(crate::is("command__run", &when, &json!({"command": "find", "args": args})), expected, "{args}");
    }
    let paths = Policy::default().proposed("x__delete", &json!({"paths": ["/a", "/b"]}), Action::Allow);
    assert_eq!(paths.to_string(), "allow x__delete when paths is [\"/a\",\"/b\"]");
}

#[test]
fn a_rule_for_a_shell_that_was_given_no_input_or_this_one_is_for_no_other() {
    let decide = |remembered: &Value, asked: &Value| {
        let policy = Policy::new([Policy::default().proposed("command__run", remembered, Action::Allow)]).unwrap();
        let declared = turnwright_core::Declared::default();
        policy.decide(turnwright_core::ApproveMode::Ask, "command__run", declared, asked).action
    };
    let (alone, null) = (json!({"command": "sh"}), json!({"command": "sh", "stdin": null}));
    let (date, other) = (json!({"command": "sh", "stdin": "date"}), json!({"command": "sh", "stdin": "rm -r x"}));
    assert_eq!([&alone, &null, &date].map(|asked| decide(&alone, asked)), [Action::Allow, Action::Allow, Action::Ask]);
    assert_eq!([&alone, &date, &other].map(|asked| decide(&date, asked)), [Action::Ask, Action::Allow, Action::Ask]);
}
