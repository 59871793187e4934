//! Conversations that were kept as trees: each message names the one that it follows.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::draft::Draft;
use super::list;

/// What a first message names, where it names one: LibreChat's, and Claude's.
const NOBODY: [&str; 2] = ["00000000-0000-0000-0000-000000000000", "00000000-0000-4000-8000-000000000000"];

/// A message in its tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node<'a> {
    pub(super) id: Option<&'a str>,
    /// The message that it follows.
    pub(super) parent: Option<&'a str>,
    pub(super) at_ms: Option<u64>,
    pub(super) message: &'a Value,
}

/// The messages from the first one to `leaf`, which is the newest that nothing follows where none is named. All of them in their
/// order where none follows one that is there. `children` is the member that names what follows a message, where there is one.
///
/// Where a message of the branch follows one that is not in the file, what was said before it comes from where the missing one is
/// named, else from the newest message before it that is no other version of it; the place is counted.
pub(super) fn branch<'a>(nodes: &[Node<'a>], leaf: Option<&str>, children: &str, draft: &mut Draft) -> Vec<&'a Value> {
    let tree = Tree::new(nodes, children);
    let is_linked = nodes.iter().any(|node| node.parent.is_some_and(|parent| tree.places.contains_key(parent)));
    if !is_linked {
        let mut all: Vec<&Node<'_>> = nodes.iter().collect();
        // The members of an object have no order.
        if all.iter().all(|node| node.at_ms.is_some()) {
            all.sort_by_key(|node| node.at_ms);
        }
        return all.into_iter().map(|node| node.message).collect();
    }
    let mut path = Vec::new();
    let mut seen = HashSet::new();
    let mut next = leaf.and_then(|leaf| tree.places.get(leaf).copied()).or_else(|| tree.newest_leaf());
    // What is older than all that was taken.
    let mut older = tree.by_age.iter().rev();
    while let Some(at) = next {
        // A tree that goes in circles ends where it began to.
        let Some(node) = nodes.get(at).filter(|_| seen.insert(at)) else { break };
        path.push(node.message);
        next = node.parent.and_then(|parent| tree.places.get(parent).copied());
        let missing = node.parent.filter(|parent| next.is_none() && !NOBODY.contains(parent));
        if let Some(missing) = missing {
            let is_before = |other: &&usize| {
                tree.age(**other) < tree.age(at) && !seen.contains(*other) && tree.first_parent(**other) != Some(missing)
            };
            next = tree.named.get(missing).copied().or_else(|| older.find(is_before).copied());
            draft.leave_out_many("a message of the branch that is not in the file", usize::from(next.is_some()));
        }
    }
    path.reverse();
    path
}

struct Tree<'a, 'n> {
    nodes: &'n [Node<'a>],
    places: HashMap<&'a str, usize>,
    /// What the missing messages follow.
    named: HashMap<&'a str, usize>,
    /// The places, oldest first.
    by_age: Vec<usize>,
    /// The first message of each one's branch.
    firsts: Vec<usize>,
}

impl<'a, 'n> Tree<'a, 'n> {
    fn new(nodes: &'n [Node<'a>], children: &str) -> Self {
        let places: HashMap<&str, usize> = nodes.iter().zip(0..).filter_map(|(node, at)| Some((node.id?, at))).collect();
        let named = nodes
            .iter()
            .zip(0..)
            .flat_map(|(node, at)| list(node.message, children).iter().filter_map(Value::as_str).map(move |child| (child, at)));
        let named = named.filter(|(child, _)| !places.contains_key(child)).collect();
        let firsts = firsts(nodes, &places);
        let mut tree = Self { nodes, places, named, by_age: (0..nodes.len()).collect(), firsts };
        let mut by_age = std::mem::take(&mut tree.by_age);
        by_age.sort_by_key(|at| tree.age(*at));
        tree.by_age = by_age;
        tree
    }

    /// When it was said, and its place in the file.
    fn age(&self, at: usize) -> (Option<u64>, usize) {
        (self.nodes.get(at).and_then(|node| node.at_ms), at)
    }

    fn newest_leaf(&self) -> Option<usize> {
        let parents: HashSet<&str> = self.nodes.iter().filter_map(|node| node.parent).collect();
        let is_leaf = |at: &&usize| self.nodes.get(**at).and_then(|node| node.id).is_some_and(|id| !parents.contains(id));
        self.by_age.iter().rev().find(is_leaf).copied()
    }

    /// What the first message of its branch says that it follows.
    fn first_parent(&self, at: usize) -> Option<&'a str> {
        self.nodes.get(*self.firsts.get(at)?)?.parent
    }
}

/// The place of the first message of each one's branch.
fn firsts(nodes: &[Node<'_>], places: &HashMap<&str, usize>) -> Vec<usize> {
    let mut firsts: Vec<Option<usize>> = vec![None; nodes.len()];
    for begin in 0..nodes.len() {
        let (mut way, mut at) = (Vec::new(), begin);
        let first = loop {
            if let Some(first) = firsts.get(at).copied().flatten() {
                break first;
            }
            way.push(at);
            // Until it is known, so that a circle ends.
            if let Some(first) = firsts.get_mut(at) {
                *first = Some(at);
            }
            let parent = nodes.get(at).and_then(|node| node.parent).and_then(|parent| places.get(parent));
            match parent {
                Some(parent) => at = *parent,
                None => break at,
            }
        };
        for at in way {
            if let Some(of) = firsts.get_mut(at) {
                *of = Some(first);
            }
        }
    }
    firsts.into_iter().zip(0..).map(|(first, at)| first.unwrap_or(at)).collect()
}
