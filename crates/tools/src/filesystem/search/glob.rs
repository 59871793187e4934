//! Globs over paths. Pure.

use std::ffi::OsStr;
use std::path::Path;

use globset::GlobBuilder;
use turnwright_core::Glob;

/// A glob over paths, or over names where it holds no slash. `*` and `?` stop at slashes, `**` does not.
#[derive(Debug, Clone)]
pub struct PathGlob {
    glob: Glob,
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
        let is_for_name = !glob.contains('/');
        let glob = Glob::new(GlobBuilder::new(glob).literal_separator(true).case_insensitive(ignore_case))?;
        Ok(Self { glob, is_for_name })
    }

    /// Whether a relative path fits.
    pub fn fits(&self, path: &Path) -> bool {
        // What is no text of a name is one letter for each piece that is none.
        let fits = |text: &OsStr| self.glob.is_match(text.to_string_lossy());
        if self.is_for_name { path.file_name().is_some_and(fits) } else { fits(path.as_os_str()) }
    }
}
