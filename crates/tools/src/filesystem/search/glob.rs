//! Globs over paths. Pure.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

/// A glob over paths, or over names where it holds no slash. `*` and `?` stop at slashes, `**` does not.
#[derive(Debug, Clone)]
pub struct PathGlob {
    glob: GlobMatcher,
    is_for_name: bool,
}

impl PathGlob {
    /// Compiles a glob.
    ///
    /// # Errors
    /// What is wrong with it, in words for whoever wrote it.
    pub fn new(glob: &str, ignore_case: bool) -> Result<Self, String> {
        const MOST_BYTES: usize = 4096;
        if glob.len() > MOST_BYTES {
            return Err(format!("it is {} bytes, limit {MOST_BYTES}", glob.len()));
        }
        let matcher = GlobBuilder::new(glob)
            .literal_separator(true)
            .case_insensitive(ignore_case)
            .build()
            .map_err(|error| error.kind().to_string())?
            .compile_matcher();
        Ok(Self { glob: matcher, is_for_name: !glob.contains('/') })
    }

    /// Whether a relative path fits.
    pub fn fits(&self, path: &Path) -> bool {
        if self.is_for_name { path.file_name().is_some_and(|name| self.glob.is_match(name)) } else { self.glob.is_match(path) }
    }
}
