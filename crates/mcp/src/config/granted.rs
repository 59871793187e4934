//! What a server is given when it asks for it. What it is not given, it is not told of.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use reqwest::Url;
use serde_json::{Value, json};
use turnwright_core::SamplingBudget;

/// What a server may ask for besides the answers of people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Granted {
    /// The folders that it is told to work in (MCP `roots`). They guide it and fence it in nowhere. None where there are none:
    /// it is not told then that it could ask.
    pub roots: Roots,
    /// What it may have of models in a turn (MCP `sampling`), where each question to one is allowed. `None` where it may have
    /// nothing: it is not told then that it could ask.
    pub sampling: Option<SamplingBudget>,
}

/// The folders of a server, which may change while it runs ([`crate::McpServer::take_roots`]).
#[derive(Default)]
pub struct Roots(Mutex<Arc<[Root]>>);

impl Roots {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.listed().is_empty()
    }

    /// Those of this moment.
    pub fn listed(&self) -> Arc<[Root]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn replace(&self, roots: Arc<[Root]>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = roots;
    }
}

impl FromIterator<Root> for Roots {
    fn from_iter<I: IntoIterator<Item = Root>>(roots: I) -> Self {
        Self(Mutex::new(roots.into_iter().collect()))
    }
}

impl Clone for Roots {
    fn clone(&self) -> Self {
        Self(Mutex::new(self.listed()))
    }
}

impl PartialEq for Roots {
    fn eq(&self, other: &Self) -> bool {
        self.listed() == other.listed()
    }
}

impl Eq for Roots {}

impl fmt::Debug for Roots {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.listed().fmt(formatter)
    }
}

/// A folder, or a file, that a server is told to work in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    uri: String,
    name: String,
}

impl Root {
    /// The one at this path; `None` where the path is not absolute.
    pub fn at(path: &Path) -> Option<Self> {
        let uri = Url::from_file_path(path).ok()?.to_string();
        let name = path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
        Some(Self { uri, name })
    }

    /// Its `file:` address.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// The last part of its path.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Granted {
    /// The protocol's answer to `roots/list`; `None` where that was not offered.
    pub(crate) fn roots_listed(&self) -> Option<Value> {
        let listed = |root: &Root| json!({"uri": root.uri, "name": root.name});
        let roots = self.roots.listed();
        (!roots.is_empty()).then(|| json!({"roots": roots.iter().map(listed).collect::<Vec<_>>()}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_told_by_its_file_address_and_its_name() {
        let root = |path: &str| Root::at(Path::new(path)).map(|root| (root.uri, root.name));
        let told = |uri: &str, name: &str| Some((uri.to_owned(), name.to_owned()));
        assert_eq!(root("/srv/my notes"), told("file:///srv/my%20notes", "my notes"));
        assert_eq!(root("/"), told("file:///", "/"));
        assert_eq!(root("work"), None);
        assert_eq!(Granted::default().roots_listed(), None);
    }
}
