//! Which operations a text of the configuration means.

use globset::GlobBuilder;
use turnwright_core::Glob;

/// A glob over operations: over their ids (`issues/*`), the names of their tools (`createIssue`), and their methods and paths
/// (`GET /rest/api/3/issue/**`). In it `*` stands for anything, and braces of a path for themselves.
#[derive(Debug, Clone)]
pub struct OperationGlob {
    text: String,
    matcher: Glob,
}

/// What an operation is called.
#[derive(Debug, Clone, Copy)]
pub(super) struct Names<'a> {
    pub(super) id: Option<&'a str>,
    pub(super) tool: &'a str,
    pub(super) method: &'a str,
    pub(super) path: &'a str,
}

impl OperationGlob {
    /// A glob of this text.
    ///
    /// # Errors
    /// Why it is none.
    pub fn new(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err("it is empty".to_owned());
        }
        // A path is written with its braces, which would be alternatives.
        let is_path = text.contains('/') && (text.starts_with('/') || text.contains(" /"));
        let glob = if is_path { text.replace('{', "[{]").replace('}', "[}]") } else { text.to_owned() };
        let matcher = Glob::new(GlobBuilder::new(&glob).literal_separator(false).backslash_escape(true))?;
        Ok(Self { text: text.to_owned(), matcher })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn fits(&self, names: Names<'_>) -> bool {
        let is_match = |name: &str| self.matcher.is_match(name);
        names.id.is_some_and(is_match)
            || is_match(names.tool)
            || is_match(names.path)
            || is_match(&format!("{} {}", names.method, names.path))
    }
}

impl PartialEq for OperationGlob {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_fits_ids_tools_and_paths() {
        let names =
            Names { id: Some("issues/add-comment"), tool: "issues_add-comment", method: "POST", path: "/repos/{owner}/issues" };
        for glob in ["issues/*", "issues_add*", "POST *", "POST /repos/{owner}/issues", "/repos/**", "{issues,pulls}/*", "*"] {
            assert!(OperationGlob::new(glob).unwrap().fits(names), "{glob}");
        }
        for glob in ["issues", "GET *", "/repos/{name}/issues", "add-comment"] {
            assert!(!OperationGlob::new(glob).unwrap().fits(names), "{glob}");
        }
        assert!(OperationGlob::new("a[").is_err() && OperationGlob::new(" ").is_err());
    }
}
