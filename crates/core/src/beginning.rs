//! Entries with which several journals begin.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::Seq;

/// The first entries of several journals, which are the very same in each: those through [`SharedBeginning::last`]. Journals have equal
/// ones where one was made of the other's entries in this process; it is never said of others, though they may say the same.
#[derive(Debug, Clone)]
pub struct SharedBeginning(Arc<Seq>);

impl SharedBeginning {
    /// One that no journal has yet.
    pub(crate) fn new(last: Seq) -> Self {
        Self(Arc::new(last))
    }

    /// The place of the last of these entries.
    pub fn last(&self) -> Seq {
        *self.0
    }
}

impl PartialEq for SharedBeginning {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for SharedBeginning {}

impl Hash for SharedBeginning {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}
