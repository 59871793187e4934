//! What is laid over the file: `TURNWRIGHT_*` variables, and flags over those.

use std::path::PathBuf;

use indexmap::IndexMap;
use turnwright_core::nearest;

use super::document::{Node, NodeValue};
use super::listed::listed;
use super::{Place, Problem};
use crate::Environment;

const PREFIX: &str = "TURNWRIGHT_";
/// The variable that names the configuration file, as `--config` does.
pub(crate) const FILE_VARIABLE: &str = "TURNWRIGHT_CONFIG";
/// Variables with these beginnings belong to the project's own tests.
const RESERVED: [&str; 5] =
    ["TURNWRIGHT_TEST", "TURNWRIGHT_RECORDINGS", "TURNWRIGHT_BENCH", "TURNWRIGHT_REQUIRE", "TURNWRIGHT_PROCESS"];
/// Short names of nested keys, as the flags have them.
const SHORT: [(&str, [&str; 2]); 3] = [
    ("TURNWRIGHT_DATABASE", ["storage", "database"]),
    ("TURNWRIGHT_LISTEN", ["server", "listen"]),
    ("TURNWRIGHT_NATS", ["nats", "url"]),
];

/// What flags of the command line say; each stands above the file and the variables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the value of the flag with its name")]
pub struct Overrides {
    pub config: Option<PathBuf>,
    pub data_dir: Option<PathBuf>,
    pub database: Option<String>,
    pub log_level: Option<String>,
    pub model: Option<String>,
    pub approve: Option<String>,
    pub max_steps: Option<u32>,
    pub system: Option<String>,
    pub listen: Option<String>,
    pub nats: Option<String>,
}

impl Overrides {
    /// Lays the flags over the tree.
    pub(crate) fn apply(&self, root: &mut Node) {
        let path = |path: &PathBuf| path.to_string_lossy().into_owned();
        let strings: [(&'static str, &[&str], Option<String>); 8] = [
            ("--data-dir", &["data_dir"], self.data_dir.as_ref().map(path)),
            ("--database", &["storage", "database"], self.database.clone()),
            ("--log-level", &["log_level"], self.log_level.clone()),
            ("--model", &["model"], self.model.clone()),
            ("--approve", &["approve"], self.approve.clone()),
            ("--system", &["system_prompt"], self.system.clone()),
            ("--listen", &["server", "listen"], self.listen.clone()),
            ("--nats", &["nats", "url"], self.nats.clone()),
        ];
        for (flag, keys, value) in strings {
            if let Some(value) = value {
                set(root, keys.iter().copied(), Node::new(NodeValue::String(value), Place::Flag(flag)));
            }
        }
        if let Some(max_steps) = self.max_steps {
            let value = NodeValue::Integer(max_steps.into());
            set(root, ["max_steps"], Node::new(value, Place::Flag("--max-steps")));
        }
    }
}

/// Lays variables over the tree; `leaves` are the keys that can have one. A name that stands for nothing is a warning, a value that is
/// no text a problem.
pub(crate) fn apply_variables(
    root: &mut Node,
    leaves: &[Vec<String>],
    environment: &Environment,
    (problems, warnings): (&mut Vec<Problem>, &mut Vec<Problem>),
) {
    let mut known: IndexMap<String, Vec<&str>> = SHORT.iter().map(|(name, keys)| ((*name).to_owned(), keys.to_vec())).collect();
    known.extend(leaves.iter().map(|keys| {
        let name = format!("{PREFIX}{}", keys.join("_").to_uppercase());
        (name, keys.iter().map(String::as_str).collect())
    }));
    let mut is_listed = false;
    for name in environment.names().filter(|name| name.starts_with(PREFIX)) {
        let place = Place::Variable(name.to_owned());
        let is_ours = name == FILE_VARIABLE || RESERVED.iter().any(|reserved| name.starts_with(reserved));
        match (known.get(name), environment.filled(name)) {
            (Some(keys), Some(value)) => {
                set(root, keys.iter().copied(), Node::new(NodeValue::String(value.to_owned()), place));
            }
            (Some(_), None) if environment.is_unreadable(name) => {
                problems.push(Problem::new(place, "its value is not UTF-8; it must be text".to_owned()));
            }
            (Some(_), None) => {}
            (None, _) if is_ours => {}
            (None, _) => {
                let names = known.keys().map(String::as_str).chain([FILE_VARIABLE]);
                let text = match nearest(name, names.clone()) {
                    Some(near) => format!("no such setting; did you mean `{near}`?"),
                    None if is_listed => "no such setting".to_owned(),
                    None => {
                        is_listed = true;
                        format!("no such setting; known: {}", listed(names))
                    }
                };
                warnings.push(Problem::new(place, text));
            }
        }
    }
}

/// Puts `node` at a path of keys, with the tables on the way. A value that should be a table stays: the check tells.
pub(crate) fn set<'a>(root: &mut Node, keys: impl IntoIterator<Item = &'a str>, node: Node) {
    let mut target = root;
    for key in keys {
        let NodeValue::Table(table) = &mut target.value else { return };
        let place = node.place.clone();
        target = table.entry(key.to_owned()).or_insert_with(|| Node::new(NodeValue::Table(IndexMap::new()), place));
    }
    *target = node;
}
