//! What a server is given when it asks for it. What it is not given, it is not told of.

use std::path::Path;

use reqwest::Url;
use serde_json::{Value, json};
use turnwright_core::SamplingBudget;

/// What a server may ask for besides the answers of people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Granted {
    /// The folders that it is told to work in (MCP `roots`). They guide it and fence it in nowhere. None where there are none:
    /// it is not told then that it could ask.
    pub roots: Vec<Root>,
    /// What it may have of models in a turn (MCP `sampling`), where each question to one is allowed. `None` where it may have
    /// nothing: it is not told then that it could ask.
    pub sampling: Option<SamplingBudget>,
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
        (!self.roots.is_empty()).then(|| json!({"roots": self.roots.iter().map(listed).collect::<Vec<_>>()}))
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
