//! The text of a configuration file as a tree in which every value knows its line.

use indexmap::IndexMap;
use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::expand::{ExpandError, expand};
use super::key_path::KeyPath;
use super::{Place, Problem};
use crate::Environment;

/// A value and where it was written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) value: NodeValue,
    pub(crate) place: Place,
    /// Whether variables were put into it: it may be a secret, and it may stand for a number.
    pub(crate) has_variables: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NodeValue {
    String(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    Array(Vec<Node>),
    Table(IndexMap<String, Node>),
    /// A date, a time, or a number out of range: nothing that a configuration asks for.
    Other(String),
    /// A problem with it is already known.
    Broken,
}

impl Node {
    pub(crate) fn new(value: NodeValue, place: Place) -> Self {
        Self { value, place, has_variables: false }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        if let NodeValue::Table(table) = &self.value { table.get(key) } else { None }
    }

    /// The value at a path of keys.
    pub(crate) fn at<'a>(&self, keys: impl IntoIterator<Item = &'a str>) -> Option<&Self> {
        keys.into_iter().try_fold(self, |node, key| node.get(key))
    }
}

/// A server of the file that is left out.
#[derive(Debug)]
pub(crate) struct LeftOut {
    pub(crate) server: String,
    pub(crate) problem: Problem,
}

/// Parses the text of a file and puts variables into its strings.
///
/// Problems of the syntax leave an empty table; a missing variable leaves a broken value, so that the rest can be checked. One
/// of an MCP server costs nothing but that server.
pub(crate) fn parse(
    name: &str,
    text: &str,
    environment: &Environment,
    problems: &mut Vec<Problem>,
    left_out: &mut Vec<LeftOut>,
) -> Option<Node> {
    let lines = Lines::new(text);
    let place = |line| Place::File { name: name.into(), line };
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let line = error.span().map(|span| lines.at(span.start));
        problems.push(Problem::new(place(line), format!("this is not TOML: {}", error.message())));
    }
    if !errors.is_empty() {
        // One slip makes the parser stumble over what follows on its line.
        problems.dedup_by(|next, first| next.place == first.place);
        return None;
    }
    let mut reader = Reader { lines, place, environment, problems, aside: left_out };
    let top = (reader.place)(None);
    Some(Node::new(reader.table(table.get_ref(), &KeyPath::default(), Missing::IsAProblem), top))
}

/// The table of one server as JSON gives it, with variables put into its strings; null is a key that is not there.
pub(crate) fn from_json(
    keys: &Map<String, Value>,
    place: &Place,
    path: &KeyPath,
    environment: &Environment,
    problems: &mut Vec<Problem>,
) -> Node {
    let missing = if keys.get("enabled") == Some(&Value::Bool(false)) { Missing::DoesNotMatter } else { Missing::IsAProblem };
    let mut aside = Vec::new();
    let mut reader = Reader { lines: Lines::new(""), place: |_| place.clone(), environment, problems, aside: &mut aside };
    Node::new(reader.json_table(keys, path, missing), place.clone())
}

/// What a variable that is not set means.
#[derive(Debug, Clone, Copy)]
enum Missing {
    IsAProblem,
    /// In a server of the configuration file: it alone is left out.
    LeavesOut,
    /// Below a server that is switched off: the text stays as it is.
    DoesNotMatter,
}

struct Reader<'a, P> {
    lines: Lines,
    place: P,
    environment: &'a Environment,
    problems: &'a mut Vec<Problem>,
    /// Why servers are left out.
    aside: &'a mut Vec<LeftOut>,
}

impl<P: Fn(Option<usize>) -> Place> Reader<'_, P> {
    fn table(&mut self, table: &DeTable<'_>, path: &KeyPath, missing: Missing) -> NodeValue {
        let enabled = table.get("enabled").and_then(|value| value.get_ref().as_bool());
        let missing = match (path.is_mcp_server(), enabled) {
            (true, Some(false)) => Missing::DoesNotMatter,
            (true, Some(true) | None) => Missing::LeavesOut,
            (false, _) => missing,
        };
        let known = self.aside.len();
        let entry = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
            let key: &Spanned<std::borrow::Cow<'_, str>> = key;
            let line = self.lines.at(key.span().start);
            (key.get_ref().to_string(), self.node(value, line, &path.key(key.get_ref()), missing))
        };
        let read = table.iter().map(entry).collect();
        if path.is_mcp_server() && self.aside.len() > known { NodeValue::Broken } else { NodeValue::Table(read) }
    }

    fn node(&mut self, value: &Spanned<DeValue<'_>>, line: usize, path: &KeyPath, missing: Missing) -> Node {
        let place = (self.place)(Some(line));
        let mut has_variables = false;
        let value = match value.get_ref() {
            DeValue::String(text) => {
                let (value, expanded) = self.string(text, &place, path, missing);
                has_variables = expanded;
                value
            }
            DeValue::Integer(integer) => match i64::from_str_radix(integer.as_str(), integer.radix()) {
                Ok(integer) => NodeValue::Integer(integer),
                Err(_) => NodeValue::Other(integer.to_string()),
            },
            DeValue::Float(float) => {
                float.as_str().parse().map_or_else(|_| NodeValue::Other(float.to_string()), NodeValue::Float)
            }
            DeValue::Boolean(boolean) => NodeValue::Boolean(*boolean),
            DeValue::Datetime(datetime) => NodeValue::Other(datetime.to_string()),
            DeValue::Array(items) => {
                let items = items.iter().enumerate().map(|(index, item)| {
                    let line = self.lines.at(item.span().start);
                    self.node(item, line, &path.index(index), missing)
                });
                NodeValue::Array(items.collect())
            }
            DeValue::Table(table) => self.table(table, path, missing),
        };
        Node { value, place, has_variables }
    }

    fn json_table(&mut self, keys: &Map<String, Value>, path: &KeyPath, missing: Missing) -> NodeValue {
        let entry = |(key, value): (&String, &Value)| (key.clone(), self.json(value, &path.key(key), missing));
        NodeValue::Table(keys.iter().filter(|(_, value)| !value.is_null()).map(entry).collect())
    }

    fn json(&mut self, value: &Value, path: &KeyPath, missing: Missing) -> Node {
        let place = (self.place)(None);
        let mut has_variables = false;
        let value = match value {
            Value::String(text) => {
                let (value, expanded) = self.string(text, &place, path, missing);
                has_variables = expanded;
                value
            }
            Value::Bool(boolean) => NodeValue::Boolean(*boolean),
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(integer), _) => NodeValue::Integer(integer),
                (None, Some(float)) => NodeValue::Float(float),
                (None, None) => NodeValue::Other(number.to_string()),
            },
            Value::Array(items) => {
                let items = items.iter().enumerate();
                NodeValue::Array(items.map(|(index, item)| self.json(item, &path.index(index), missing)).collect())
            }
            Value::Object(keys) => self.json_table(keys, path, missing),
            Value::Null => NodeValue::Other("null".to_owned()),
        };
        Node { value, place, has_variables }
    }

    fn string(&mut self, text: &str, place: &Place, path: &KeyPath, missing: Missing) -> (NodeValue, bool) {
        match (expand(text, self.environment), missing) {
            (Ok(expanded), _) => (NodeValue::String(expanded.text), expanded.has_variables),
            (Err(ExpandError::Missing { .. } | ExpandError::Unavailable { .. }), Missing::DoesNotMatter) => {
                (NodeValue::String(text.to_owned()), false)
            }
            (Err(error @ (ExpandError::Missing { .. } | ExpandError::Unavailable { .. })), Missing::LeavesOut) => {
                let text = format!("`{path}`: {error}; until then this server is left out");
                let server = path.server().unwrap_or_default().to_owned();
                self.aside.push(LeftOut { server, problem: Problem::new(place.clone(), text) });
                (NodeValue::Broken, false)
            }
            (Err(error), _) => {
                self.problems.push(Problem::new(place.clone(), format!("`{path}`: {error}")));
                (NodeValue::Broken, false)
            }
        }
    }
}

/// Where the lines of a text begin.
struct Lines(Vec<usize>);

impl Lines {
    fn new(text: &str) -> Self {
        Self(text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(offset, _)| offset).collect())
    }

    /// The line of a byte offset, from 1.
    fn at(&self, offset: usize) -> usize {
        self.0.partition_point(|end| *end < offset) + 1
    }
}
