//! What a rule says about one argument of a call.

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Number, Value};

use super::builtins::Dialect;
use super::glob::matcher;
use super::path::{self, Folder};
use super::programs::Programs;
use super::{Action, Match};
use crate::Glob;

/// What a rule says about an argument, as it is written: a glob, or a table of tests which must all hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PredicateText {
    /// A glob over the argument's text: `"/tmp/**"`.
    Glob(String),
    /// Tests: `{ min = 0, max = 10 }`.
    Tests(Box<Tests>),
}

/// Tests of an argument. All that are given must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tests {
    /// A glob over its text; `*` stops at `/`, `**` does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub glob: Option<String>,
    /// Absolute folders: it is the path of one of them, or lies in it.
    #[serde(default, deserialize_with = "one_or_several", skip_serializing_if = "Option::is_none")]
    pub below: Option<Vec<String>>,
    /// The least number that it may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<Number>,
    /// The greatest number that it may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<Number>,
    /// The values that it may have: of a list as a whole, or each of its elements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_of: Option<Vec<Value>>,
    /// Programs, by name or absolute path. It is a shell line, or a program with its arguments. A rule that allows matches
    /// where each program of the line is one of them, one that asks or denies where any is.
    #[serde(default, deserialize_with = "one_or_several", skip_serializing_if = "Option::is_none")]
    pub program: Option<Vec<String>>,
}

impl From<&str> for PredicateText {
    fn from(glob: &str) -> Self {
        Self::Glob(glob.to_owned())
    }
}

impl From<Tests> for PredicateText {
    fn from(tests: Tests) -> Self {
        Self::Tests(Box::new(tests))
    }
}

impl Serialize for PredicateText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Glob(glob) => serializer.serialize_str(glob),
            Self::Tests(tests) => tests.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for PredicateText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = PredicateText;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a glob, or a table of `glob`, `below`, `min`, `max`, `one_of` and `program`")
            }

            fn visit_str<E>(self, glob: &str) -> Result<PredicateText, E> {
                Ok(PredicateText::from(glob))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PredicateText, A::Error> {
                Tests::deserialize(MapAccessDeserializer::new(map)).map(PredicateText::from)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

fn one_or_several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a text or a list of texts")]
    enum Either {
        One(String),
        Several(Vec<String>),
    }
    Ok(Option::<Either>::deserialize(deserializer)?.map(|either| match either {
        Either::One(one) => vec![one],
        Either::Several(several) => several,
    }))
}

/// A predicate, ready for use.
#[derive(Debug, Clone, Default)]
pub(super) struct Predicate {
    glob: Option<Glob>,
    below: Option<Vec<Folder>>,
    min: Option<Number>,
    max: Option<Number>,
    one_of: Option<Vec<Value>>,
    program: Option<Vec<Named>>,
}

/// A program as a rule names it.
#[derive(Debug, Clone)]
enum Named {
    Path(String),
    Name(String, Option<Glob>),
}

/// What is wrong with a predicate: where in it, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) at: &'static str,
    pub(super) what: String,
}

/// The call around an argument.
#[derive(Debug, Clone, Copy)]
pub(super) struct Around<'a> {
    pub(super) action: Action,
    pub(super) arguments: &'a Value,
    pub(super) habits: Habits<'a>,
}

/// How a tool reads its arguments, as far as that is known.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Habits<'a> {
    /// Where its relative paths begin.
    pub(super) start: Option<&'a str>,
    /// How the shell reads that gets its lines.
    pub(super) shell: Dialect,
}

impl Predicate {
    pub(super) fn read(text: &PredicateText) -> Result<Self, Wrong> {
        let tests = match text {
            PredicateText::Glob(glob) => {
                return Ok(Self { glob: Some(compile("", glob)?), ..Self::default() });
            }
            PredicateText::Tests(tests) => tests,
        };
        if **tests == Tests::default() {
            let what = "says nothing; give it one of `glob`, `below`, `min`, `max`, `one_of` and `program`".to_owned();
            return Err(Wrong { at: "", what });
        }
        let list = |at: &'static str, is_empty: bool| {
            let what = "is empty, so that it could never match; name at least one".to_owned();
            if is_empty { Err(Wrong { at, what }) } else { Ok(()) }
        };
        list("below", tests.below.as_ref().is_some_and(Vec::is_empty))?;
        list("one_of", tests.one_of.as_ref().is_some_and(Vec::is_empty))?;
        list("program", tests.program.as_ref().is_some_and(Vec::is_empty))?;
        if let (Some(min), Some(max)) = (&tests.min, &tests.max)
            && compare(min, max).is_gt()
        {
            return Err(Wrong { at: "min", what: format!("is {min}, above `max`, {max}; exchange them") });
        }
        let folder = |text: &String| {
            let what = || format!("`{text}` is not an absolute folder without `..`, such as `/tmp/notes`");
            Folder::read(text).ok_or_else(|| Wrong { at: "below", what: what() })
        };
        Ok(Self {
            glob: tests.glob.as_ref().map(|glob| compile("glob", glob)).transpose()?,
            below: tests.below.as_ref().map(|all| all.iter().map(folder).collect()).transpose()?,
            min: tests.min.clone(),
            max: tests.max.clone(),
            one_of: tests.one_of.clone(),
            program: tests.program.as_ref().map(|all| all.iter().map(|text| named(text)).collect()).transpose()?,
        })
    }

    /// Whether the argument `key` is as the predicate says.
    pub(super) fn matches(&self, key: &str, around: Around<'_>) -> Match {
        let value = if key.starts_with('/') { around.arguments.pointer(key) } else { around.arguments.get(key) };
        // A rule speaks of calls that have the argument, or of those that have none where it names `null`: that is the same to a tool.
        let says_none = self.one_of.as_ref().is_some_and(|values| values.contains(&Value::Null));
        let Some(value) = value.or(says_none.then_some(&Value::Null)) else { return Match::No };
        let mut all = Match::Yes;
        if let Some(glob) = &self.glob {
            all = all.and(each(value, &|value| globbed(glob, value, around.habits.start)));
        }
        if let Some(folders) = &self.below {
            let below = |value: &Value| match value {
                Value::String(path) => {
                    folders.iter().map(|folder| folder.holds(path, around.habits.start)).fold(Match::No, Match::or)
                }
                _ => Match::Unknown,
            };
            all = all.and(each(value, &below));
        }
        if self.min.is_some() || self.max.is_some() {
            all = all.and(each(value, &|value| self.in_range(value)));
        }
        if let Some(values) = &self.one_of {
            let one = |value: &Value| values.iter().map(|other| same(value, other)).fold(Match::No, Match::or);
            let whole = values.iter().map(|other| same_list(value, other)).fold(Match::No, Match::or);
            all = all.and(whole.or(each(value, &one)));
        }
        if let Some(names) = &self.program {
            let found = programs(value, around.arguments, key, around.habits.shell);
            all = all.and(found.map_or(Match::Unknown, |found| started(names, &found, around.action)));
        }
        all
    }

    fn in_range(&self, value: &Value) -> Match {
        let Value::Number(number) = value else { return Match::Unknown };
        let is_low = self.min.as_ref().is_some_and(|min| compare(number, min).is_lt());
        let is_high = self.max.as_ref().is_some_and(|max| compare(number, max).is_gt());
        if is_low || is_high { Match::No } else { Match::Yes }
    }
}

/// Of a list, each element; of nothing, nothing matches.
fn each(value: &Value, test: &dyn Fn(&Value) -> Match) -> Match {
    let Value::Array(values) = value else { return test(value) };
    let found: Vec<Match> = values.iter().map(|value| if value.is_array() { Match::Unknown } else { test(value) }).collect();
    match found.as_slice() {
        all if all.iter().all(|one| *one == Match::No) => Match::No,
        all if all.iter().all(|one| *one == Match::Yes) => Match::Yes,
        _ => Match::Unknown,
    }
}

/// What climbs with `..` is never certain to be inside what a glob names, nor is what is a path of it only as a tool may read it:
/// from a folder of the tool's own, from somebody's home, or with parts that say nothing.
fn globbed(glob: &Glob, value: &Value, start: Option<&str>) -> Match {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(_) | Value::Bool(_) | Value::Null => value.to_string(),
        Value::Array(_) | Value::Object(_) => return Match::Unknown,
    };
    if text.split(['/', '\\']).any(|part| part == "..") {
        return Match::Unknown;
    }
    if glob.is_match(&text) {
        return Match::Yes;
    }
    let whole = match start {
        Some(start) if !text.starts_with('/') => format!("{start}/{text}"),
        _ => text.clone(),
    };
    let is_of_home = text.starts_with('~') && glob.text().starts_with('/');
    let may_be = is_of_home || [text, whole].iter().any(|text| glob.is_match(path::plain(text)));
    if may_be { Match::Unknown } else { Match::No }
}

/// Whether two values are the same; what a lenient tool could take for the same is not certain.
fn same(value: &Value, other: &Value) -> Match {
    let loose = |value: &Value| match value {
        Value::String(text) => text.trim().to_lowercase(),
        other => other.to_string(),
    };
    match (value, other) {
        (Value::Number(a), Value::Number(b)) => {
            if compare(a, b).is_eq() {
                Match::Yes
            } else {
                Match::No
            }
        }
        _ if value == other => Match::Yes,
        (Value::Object(_) | Value::Array(_), _) => Match::Unknown,
        _ if loose(value) == loose(other) => Match::Unknown,
        _ => Match::No,
    }
}

/// Whether both are lists of the same values.
fn same_list(value: &Value, other: &Value) -> Match {
    match (value, other) {
        _ if value == other => Match::Yes,
        (Value::Array(values), Value::Array(others)) if values.len() == others.len() => {
            values.iter().zip(others).map(|(value, other)| same(value, other)).fold(Match::Yes, Match::and)
        }
        _ => Match::No,
    }
}

fn compare(a: &Number, b: &Number) -> std::cmp::Ordering {
    let whole = |number: &Number| number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        // Each number of JSON is one; `-0.0` is 0.
        _ => a.as_f64().partial_cmp(&b.as_f64()).unwrap_or(std::cmp::Ordering::Equal),
    }
}

/// The name of an argument that holds several commands where it is a list.
pub(super) const SEVERAL: &str = "commands";

/// The programs of an argument: a shell line, a list of lines where its name says so, else of program and arguments, or a
/// program whose arguments are in the argument `args` beside it. `None` where it is none of these.
pub(super) fn programs(value: &Value, arguments: &Value, key: &str, shell: Dialect) -> Option<Programs> {
    let (around, name) = match key.rsplit_once('/').filter(|_| key.starts_with('/')) {
        Some((parent, name)) => (arguments.pointer(parent), name),
        None => (Some(arguments), key),
    };
    match value {
        Value::String(line) => match around.and_then(|around| around.get("args")).filter(|_| name != "args") {
            None | Some(Value::Null) => Some(Programs::of_line(line, shell)),
            Some(Value::Array(args)) => {
                let args: Vec<&str> = args.iter().map(Value::as_str).collect::<Option<_>>()?;
                Some(Programs::of_arguments(std::iter::once(line.as_str()).chain(args)))
            }
            Some(_) => None,
        },
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().map(Value::as_str).collect::<Option<_>>()?;
            Some(if name == SEVERAL { Programs::of_lines(&words, shell) } else { Programs::of_arguments(words) })
        }
        _ => None,
    }
}

/// A rule that allows wants to know all programs, and no output in a file; one that asks or denies is content with one.
fn started(names: &[Named], programs: &Programs, action: Action) -> Match {
    match action {
        Action::Allow => {
            let is_known = !programs.has_unknown && !programs.writes && programs.counted().next().is_some();
            let is_named = |program| names.iter().any(|name: &Named| name.is_certainly(program));
            if is_known && programs.counted().all(is_named) { Match::Yes } else { Match::No }
        }
        Action::Ask | Action::Deny => {
            let is_any = programs.found.iter().any(|program| names.iter().any(|name| name.may_be(program)));
            if is_any {
                Match::Yes
            } else if programs.has_unknown {
                Match::Unknown
            } else {
                Match::No
            }
        }
    }
}

impl Named {
    fn is_certainly(&self, program: &super::programs::Program) -> bool {
        match self {
            Self::Path(path) => *path == program.word,
            Self::Name(name, glob) => program.trusted_name().is_some_and(|found| match glob {
                Some(glob) => glob.is_match(found),
                None => name == found,
            }),
        }
    }

    fn may_be(&self, program: &super::programs::Program) -> bool {
        let base = program.base();
        match self {
            Self::Path(path) => {
                let named = path.rsplit('/').next().unwrap_or(path);
                path.eq_ignore_ascii_case(&program.word) || named.eq_ignore_ascii_case(base) && !program.is_elsewhere_than(path)
            }
            Self::Name(name, glob) => {
                name.to_lowercase() == base.to_lowercase()
                    || glob.as_ref().is_some_and(|glob| glob.is_match(base) || glob.is_match(base.to_lowercase()))
            }
        }
    }
}

/// Whether a text names a program, as a rule writes it.
pub(super) fn can_name_program(text: &str) -> bool {
    named(text).is_ok()
}

fn named(text: &str) -> Result<Named, Wrong> {
    let wrong = |what: String| Wrong { at: "program", what };
    if text.is_empty() || text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(wrong(format!("`{text}` is not a program alone, such as `git`; its arguments are not part of a rule")));
    }
    if text.starts_with('/') {
        return Ok(Named::Path(text.to_owned()));
    }
    if text.contains('/') {
        return Err(wrong(format!("`{text}` is neither a name, such as `git`, nor an absolute path")));
    }
    // The program `[` is a name; a glob is longer.
    let is_glob = text != "[" && text.contains(['*', '?', '[', '{']);
    let glob = is_glob.then(|| compile("program", text)).transpose()?;
    Ok(Named::Name(text.to_owned(), glob))
}

/// Whether a text is a glob as rules take them.
///
/// # Errors
/// Why not.
pub fn check_glob(text: &str) -> Result<(), String> {
    matcher(text).map(drop)
}

pub(super) fn compile(at: &'static str, glob: &str) -> Result<Glob, Wrong> {
    matcher(glob).map_err(|why| Wrong { at, what: format!("`{glob}` is not a glob: {why}; `/tmp/**` would be one") })
}

impl std::fmt::Display for PredicateText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tests = match self {
            Self::Glob(glob) => return write!(f, "= {glob}"),
            Self::Tests(tests) => tests,
        };
        let list = |values: &[Value]| values.iter().map(Value::to_string).collect::<Vec<_>>().join(", ");
        let range = match (&tests.min, &tests.max) {
            (Some(min), Some(max)) => Some(format!("{min} to {max}")),
            (Some(min), None) => Some(format!("from {min}")),
            (None, Some(max)) => Some(format!("up to {max}")),
            (None, None) => None,
        };
        let parts = [
            tests.glob.as_ref().map(|glob| format!("= {glob}")),
            tests.below.as_ref().map(|folders| format!("below {}", folders.join(" or "))),
            range,
            tests.one_of.as_deref().map(|values| match values {
                [value] => format!("is {value}"),
                values => format!("one of {}", list(values)),
            }),
            tests.program.as_ref().map(|names| format!("program {}", names.join(", "))),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(" and "))
    }
}

/// The arguments of a call as an object, for a predicate on each.
pub(super) fn object(arguments: &Value) -> Option<&Map<String, Value>> {
    arguments.as_object()
}
