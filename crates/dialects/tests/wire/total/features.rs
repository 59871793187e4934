//! What occurred in the journals that were told, so that none of it is missing unseen.

use std::collections::BTreeMap;

#[derive(Debug, Clone, Default)]
pub(crate) struct Features(pub(crate) BTreeMap<&'static str, usize>);

impl Features {
    pub(crate) fn saw(&mut self, feature: &'static str) {
        *self.0.entry(feature).or_default() += 1;
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (feature, count) in &other.0 {
            *self.0.entry(feature).or_default() += count;
        }
    }

    /// Each of these must have occurred.
    pub(crate) fn demand(&self, wanted: &[&'static str]) {
        let missing: Vec<_> = wanted.iter().filter(|feature| !self.0.contains_key(*feature)).collect();
        assert!(missing.is_empty(), "never occurred: {missing:?}\n{self}");
    }
}

impl std::fmt::Display for Features {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|(feature, count)| writeln!(f, "{count:>8} {feature}"))
    }
}
