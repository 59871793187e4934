//! What a lowering lost.

use std::fmt;

use super::place::Place;

/// How what is accepted changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// More is accepted: what the tool does not take is refused when the arguments are validated.
    Wider,
    /// Less is accepted: the model cannot say all that the tool takes.
    Narrower,
    /// Both.
    Different,
    /// Only what the model is told.
    Told,
}

/// Something that the original schema says and the lowered one does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// Where, as a JSON pointer that goes through references as if their targets stood in their place.
    pub pointer: String,
    /// The keyword; empty where the schema as a whole is meant.
    pub keyword: String,
    /// How what is accepted changed.
    pub change: Change,
    /// What it means, in words for people.
    pub meaning: String,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pointer, keyword, meaning, .. } = self;
        match (pointer.as_str(), keyword.as_str()) {
            ("", "") => write!(f, "{meaning}"),
            (pointer, "") => write!(f, "{pointer}: {meaning}"),
            (pointer, keyword) => write!(f, "{pointer}/{keyword}: {meaning}"),
        }
    }
}

/// The losses so far.
#[derive(Debug, Default)]
pub(super) struct Losses(Vec<Loss>);

impl Losses {
    pub(super) fn add(&mut self, place: &Place<'_>, keyword: &str, change: Change, meaning: impl Into<String>) {
        self.0.push(Loss { pointer: place.pointer(), keyword: keyword.to_owned(), change, meaning: meaning.into() });
    }

    pub(super) fn list(&self) -> &[Loss] {
        &self.0
    }

    pub(super) fn into_list(self) -> Vec<Loss> {
        self.0
    }
}
