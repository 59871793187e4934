//! The rule that "always" stores: the narrowest that covers the call at hand and the like.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::builtins::Dialect;
use super::predicate::{SEVERAL, can_name_program, object, programs};
use super::programs::Program;
use super::{Action, PredicateText, RuleText, Tests};

/// Names of arguments that hold a command.
const COMMANDS: &[&str] = &["command", "cmd", SEVERAL, "script"];
/// Names of arguments that hold a path.
const PATHS: &[&str] = &["path", "file_path", "filepath", "file", "directory", "source", "destination", "paths"];

/// Names of arguments that hold what a command reads.
const INPUTS: &[&str] = &["stdin", "input"];
/// Our own tool that runs commands, which has the first of these.
const RUN: &str = "command__run";

/// See [`super::Policy::proposed`]. `shell` is that of the tool.
pub(super) fn proposed(tool: &str, arguments: &Value, action: Action, shell: Dialect) -> RuleText {
    let mut when = BTreeMap::new();
    for (key, value) in object(arguments).into_iter().flatten() {
        if COMMANDS.contains(&key.as_str()) {
            when.insert(key.clone(), command(key, value, arguments, (action, shell)));
        } else if PATHS.contains(&key.as_str()) {
            when.insert(key.clone(), path(value));
        }
    }
    let is_exact = when.iter().any(|(key, test)| COMMANDS.contains(&key.as_str()) && is_one_of(test));
    if is_exact && let Some(args) = arguments.get("args") {
        when.insert("args".to_owned(), exactly(args));
    }
    // What a command does that cannot be read may stand in its input: `sh` alone runs it.
    if is_exact && action == Action::Allow {
        let given = INPUTS.iter().filter_map(|key| Some((*key, arguments.get(*key)?)));
        let none = (tool == RUN && arguments.get("stdin").is_none()).then_some(("stdin", &Value::Null));
        when.extend(given.chain(none).map(|(key, value)| (key.to_owned(), exactly(value))));
    }
    RuleText { tool: escaped(tool), when, action }
}

fn is_one_of(test: &PredicateText) -> bool {
    matches!(test, PredicateText::Tests(tests) if tests.one_of.is_some())
}

/// The programs where all of them are known; else the very line. So of several commands: what is typed one after the other may be
/// for what the one before has begun.
fn command(key: &str, value: &Value, arguments: &Value, (action, shell): (Action, Dialect)) -> PredicateText {
    if key == SEVERAL {
        return exactly(value);
    }
    let Some(found) = programs(value, arguments, key, shell) else { return exactly(value) };
    let is_certain = |program: &&Program| program.trusted_name().is_some() || program.word.starts_with('/');
    let is_known = !found.has_unknown && !found.writes && found.counted().next().is_some();
    if !is_known || action != Action::Allow || !found.counted().all(|program| is_certain(&program)) {
        return exactly(value);
    }
    // A path is one as it is written; a name may be a glob.
    let name = |program: &Program| match program.trusted_name() {
        Some("[") | None => program.trusted_name().unwrap_or(&program.word).to_owned(),
        Some(name) => escaped(name),
    };
    let names: BTreeSet<String> = found.counted().map(name).collect();
    // In a glob a backslash says something else than in a name.
    if !names.iter().all(|name| can_name_program(name) && !name.contains('\\')) {
        return exactly(value);
    }
    Tests { program: Some(names.into_iter().collect()), ..Tests::default() }.into()
}

fn path(value: &Value) -> PredicateText {
    match value {
        Value::String(path) if super::path::Folder::read(path).is_some() => {
            Tests { below: Some(vec![path.clone()]), ..Tests::default() }.into()
        }
        _ => exactly(value),
    }
}

/// A list is one value: what its parts do in another order, or alone, nobody was asked.
fn exactly(value: &Value) -> PredicateText {
    Tests { one_of: Some(vec![value.clone()]), ..Tests::default() }.into()
}

/// A name as a glob that matches it alone.
fn escaped(name: &str) -> String {
    globset::escape(&name.replace('\\', "\\\\"))
}
