//! What is wrong with a configuration, and where.

use std::fmt;
use std::sync::Arc;

/// Where a value was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A line of a file, from 1.
    File {
        /// The file as people know it: relative to the working directory where it lies in it.
        name: Arc<str>,
        /// The line, where known.
        line: Option<usize>,
    },
    /// An environment variable, by name.
    Variable(String),
    /// A flag of the command line, such as `--model`.
    Flag(&'static str),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { name, line: Some(line) } => write!(f, "{name}:{line}"),
            Self::File { name, line: None } => f.write_str(name),
            Self::Variable(name) => f.write_str(name),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// One thing that is wrong or looks wrong: `turnwright.toml:3: unknown key …`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {text}")]
pub struct Problem {
    /// Where it is.
    pub place: Place,
    /// What it is and what would be right.
    pub text: String,
}

impl Problem {
    pub(crate) fn new(place: Place, text: impl Into<String>) -> Self {
        Self { place, text: text.into() }
    }
}

/// All that is wrong with a configuration, in the order of the file; one per line when shown. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// The problems, sorted by line; `None` where there is none.
    pub(crate) fn new(mut problems: Vec<Problem>) -> Option<Self> {
        problems.sort_by_key(|problem| match &problem.place {
            Place::File { line, .. } => (0, line.unwrap_or(0)),
            Place::Variable(_) => (1, 0),
            Place::Flag(_) => (2, 0),
        });
        (!problems.is_empty()).then_some(Self(problems))
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.0.iter()
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}
