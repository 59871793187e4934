//! Which model answered, as its provider names it: often a dated version of the one that was asked for.

use crate::lenient::Text;

/// The most bytes of such a name. What is longer is no name.
const MAX_NAME_BYTES: usize = 256;

/// The name, once it came.
#[derive(Debug, Default)]
pub(crate) struct AnsweredBy(Option<Box<str>>);

impl AnsweredBy {
    /// Takes what an event says of it; the first that says something counts.
    pub(crate) fn take(&mut self, name: Text<'_>) {
        if self.0.is_none() {
            self.0 = name.filled().filter(|name| name.len() <= MAX_NAME_BYTES).map(|name| name.into_owned().into());
        }
    }

    /// The name, where it came.
    pub(crate) fn name(&self) -> Option<&str> {
        self.0.as_deref()
    }
}
