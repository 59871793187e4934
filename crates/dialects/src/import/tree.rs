//! Conversations that were kept as trees: each message names the one that it follows.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

/// The messages from the first one to `leaf`, each a node of `nodes` that names its parent.
pub(super) fn path<'a>(nodes: &HashMap<&'a str, &'a Value>, leaf: &'a str, parent: &str) -> Vec<&'a Value> {
    let mut path = Vec::new();
    let mut seen = HashSet::new();
    let mut next = Some(leaf);
    while let Some((id, node)) = next.and_then(|id| Some((id, *nodes.get(id)?))) {
        // A tree that goes in circles ends where it began to.
        if !seen.insert(id) {
            break;
        }
        path.push(node);
        next = node.get(parent).and_then(Value::as_str);
    }
    path.reverse();
    path
}
