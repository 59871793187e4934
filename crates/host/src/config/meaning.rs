//! What the schema cannot say: keys that need or exclude one another, and names that must lead somewhere.

mod models;
mod server;
mod tools;

use super::document::Node;
use super::key_path::KeyPath;
use super::{Config, Place, Problem};

/// A configuration with the tree that it was made of, where the places are.
#[derive(Clone, Copy)]
pub(crate) struct Meaning<'a> {
    pub(crate) config: &'a Config,
    pub(crate) root: &'a Node,
}

impl Meaning<'_> {
    /// Nothing repeats before it comes twice.
    pub(crate) fn loops(self, problems: &mut Vec<Problem>) {
        for key in self.config.loops.wrong() {
            let keys = ["loops", key];
            let text = format!("`{}` is 1; it must be at least 2, or 0 for never", KeyPath::of(keys));
            problems.push(Problem::new(place_of(self.root, keys), text));
        }
    }

    /// A budget is a limit above nothing.
    pub(crate) fn budgets(self, problems: &mut Vec<Problem>) {
        for (keys, text) in self.config.budgets.wrong() {
            let keys: Vec<&str> = std::iter::once("budgets").chain(keys.iter().map(String::as_str)).collect();
            let text = format!("`{}` {text}", KeyPath::of(keys.iter().copied()));
            problems.push(Problem::new(place_of(self.root, keys), text));
        }
    }
}

/// Whether HTTP can carry it.
fn is_header_value(text: &str) -> bool {
    !text.chars().any(|c| c.is_ascii_control() && c != '\t')
}

/// Where a value was written, or the table that should hold it.
pub(crate) fn place_of<'a>(root: &Node, keys: impl IntoIterator<Item = &'a str>) -> Place {
    let mut node = root;
    for key in keys {
        match node.get(key) {
            Some(child) => node = child,
            None => break,
        }
    }
    node.place.clone()
}
