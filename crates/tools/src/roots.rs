//! The folders that a built-in may touch, and the way from a path that a model wrote into one of them.
//!
//! A root is held open, and everything below it is reached relative to that handle by the capability calls of cap-std
//! (`openat2` with `RESOLVE_BENEATH` where the system has it). So no `..`, absolute path or link leads out, and no change
//! of the tree between a check and its use does either: there is no check to race with.
//! Links are followed while they stay inside and their target is relative; a link with an absolute target is refused.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use turnwright_engine::source::ToolError;

use crate::error::{denied, failed, invalid, not_found};

/// The folders that a built-in may touch.
#[derive(Debug, Clone)]
pub(crate) struct Roots {
    there: Arc<[Root]>,
    missing: Arc<[Missing]>,
}

/// A root that could not be opened, beside others that could.
#[derive(Debug)]
struct Missing {
    given: PathBuf,
    why: String,
    /// Whether relative paths are meant to be below it.
    is_first: bool,
}

#[derive(Debug)]
struct Root {
    /// As it was configured.
    given: PathBuf,
    /// Where it really is.
    real: PathBuf,
    dir: Dir,
}

/// A folder that cannot be used as a root. For the operator.
#[derive(Debug, thiserror::Error)]
pub enum RootsError {
    /// There is none.
    #[error("no root is configured: name at least one folder")]
    Empty,
    /// It cannot be opened.
    #[error("the root {} cannot be opened as a folder", path.display())]
    Open {
        /// As it was configured.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// What must not be touched is written in a way that says nothing.
    #[error("the pattern `{pattern}` of what must not be touched cannot be used: {reason}")]
    Pattern {
        /// As it was configured.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The folder of deleted things cannot be used.
    #[error("the trash {} cannot be used", path.display())]
    Trash {
        /// As it was configured.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// A place below a root.
#[derive(Debug, Clone)]
pub(crate) struct Place<'a> {
    root: &'a Root,
    /// Relative to the root; `.` is the root.
    pub(crate) path: PathBuf,
    /// As the model wrote it.
    pub(crate) shown: String,
}

impl Roots {
    /// Opens the roots. One that cannot be opened is told whenever something in it is wanted; the others stand for themselves.
    ///
    /// # Errors
    /// [`RootsError`] where none can be opened.
    pub(crate) fn open(paths: &[PathBuf]) -> Result<Self, RootsError> {
        if paths.is_empty() {
            return Err(RootsError::Empty);
        }
        let open = |given: &PathBuf| -> io::Result<Root> {
            let real = std::fs::canonicalize(given)?;
            let dir = Dir::open_ambient_dir(&real, ambient_authority())?;
            Ok(Root { given: given.clone(), real, dir })
        };
        let (mut there, mut missing, mut first_error) = (Vec::new(), Vec::new(), None);
        for (index, path) in paths.iter().enumerate() {
            match open(path) {
                Ok(root) => there.push(root),
                Err(source) => {
                    missing.push(Missing { given: path.clone(), why: source.to_string(), is_first: index == 0 });
                    first_error = first_error.or(Some(RootsError::Open { path: path.clone(), source }));
                }
            }
        }
        match first_error {
            Some(error) if there.is_empty() => Err(error),
            _ => Ok(Self { there: there.into(), missing: missing.into() }),
        }
    }

    /// Each root that is there: as it was configured, and where it really is.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&Path, &Path)> {
        self.there.iter().map(|root| (root.given.as_path(), root.real.as_path()))
    }

    /// The root that is at this folder or below it.
    pub(crate) fn held_by(&self, folder: &Path) -> Option<&Path> {
        self.there.iter().map(|root| root.real.as_path()).find(|root| root.starts_with(folder))
    }

    /// The place that `path` names: below the root that an absolute path begins with, the deepest where several do, else
    /// below the first root. Nothing is looked up.
    pub(crate) fn place(&self, path: &str) -> Result<Place<'_>, ToolError> {
        if path.contains('\0') {
            return Err(invalid("a path holds no zero bytes"));
        }
        let wanted = Path::new(path);
        let place = |root, inner: &Path| {
            let inner = if inner.as_os_str().is_empty() { Path::new(".") } else { inner };
            Place { root, path: inner.to_path_buf(), shown: if path.is_empty() { "." } else { path }.to_owned() }
        };
        if !wanted.is_absolute() {
            if let Some(first) = self.missing.iter().find(|missing| missing.is_first) {
                return Err(first.denies(path));
            }
            let first = self.there.first().ok_or_else(|| denied("no folder is allowed"))?;
            return Ok(place(first, wanted));
        }
        let inside = |root: &'_ Root| {
            [&root.real, &root.given].into_iter().find_map(|base| wanted.strip_prefix(base).ok().map(Path::to_path_buf))
        };
        self.there
            .iter()
            .filter_map(|root| inside(root).map(|inner| (root, inner)))
            .min_by_key(|(_, inner)| inner.components().count())
            .map(|(root, inner)| place(root, &inner))
            .ok_or_else(|| {
                let missing = self.missing.iter().find(|missing| wanted.starts_with(&missing.given));
                missing.map_or_else(|| self.outside(path), |missing| missing.denies(path))
            })
    }

    /// The place `path` below the root that really is at `root`, where that is still a root.
    pub(crate) fn place_in(&self, root: &Path, path: &Path, shown: String) -> Option<Place<'_>> {
        let root = self.there.iter().find(|known| known.real == root)?;
        Some(Place { root, path: path.to_path_buf(), shown })
    }

    /// The failure of a path that leads out.
    fn outside(&self, path: &str) -> ToolError {
        let roots: Vec<String> = self.there.iter().map(|root| format!("`{}`", root.real.display())).collect();
        denied(format!("`{path}` is outside of what may be touched: {}", roots.join(", ")))
    }

    /// What the system's failure at `place` means to the model.
    pub(crate) fn explain(&self, place: &Place<'_>, error: &io::Error) -> ToolError {
        let shown = &place.shown;
        match (error.kind(), error.raw_os_error()) {
            (io::ErrorKind::NotFound, _) => not_found(format!("there is no `{shown}`{}", place.close_names())),
            (io::ErrorKind::PermissionDenied, None) => {
                let mut error = self.outside(shown);
                error.model_text.push_str(" (a link with an absolute target leads outside, wherever it points)");
                error
            }
            (io::ErrorKind::PermissionDenied, Some(_)) => denied(format!("the system does not allow it: `{shown}`: {error}")),
            (io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded, _) => {
                failed(format!("`{shown}` was not written: the disk is full; what was there is unchanged"))
            }
            (io::ErrorKind::InvalidInput | io::ErrorKind::InvalidFilename, _) => {
                invalid(format!("`{shown}` is not a usable path: {error}"))
            }
            _ => failed(format!("`{shown}`: {error}")),
        }
    }
}

impl Missing {
    /// The failure of a path in it.
    fn denies(&self, path: &str) -> ToolError {
        let root = self.given.display();
        denied(format!(
            "`{path}` is in the root `{root}`, which could not be opened when this program began: {}; ask the user",
            self.why
        ))
    }
}

impl Place<'_> {
    /// Where the root really is.
    pub(crate) fn root(&self) -> &Path {
        &self.root.real
    }

    /// The root's handle.
    pub(crate) fn dir(&self) -> &Dir {
        &self.root.dir
    }

    /// The same place as an absolute path, for showing it and for a child process's working directory.
    pub(crate) fn absolute(&self) -> PathBuf {
        if self.path == Path::new(".") { self.root.real.clone() } else { self.root.real.join(&self.path) }
    }

    /// Names beside a missing one that look like it.
    fn close_names(&self) -> String {
        const MOST_LOOKED_AT: usize = 1_000;
        const MOST_NAMED: usize = 3;
        let (Some(parent), Some(name)) = (self.path.parent(), self.path.file_name().and_then(|name| name.to_str())) else {
            return String::new();
        };
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        let Ok(entries) = self.dir().read_dir(parent) else {
            return String::new();
        };
        let wanted = name.to_lowercase();
        let mut close: Vec<(f64, String)> = entries
            .take(MOST_LOOKED_AT)
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .map(|name| (strsim::jaro_winkler(&wanted, &name.to_lowercase()), name))
            .filter(|(likeness, _)| *likeness > 0.84)
            .collect();
        close.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        let names: Vec<String> = close.into_iter().take(MOST_NAMED).map(|(_, name)| format!("`{name}`")).collect();
        if names.is_empty() { String::new() } else { format!("; beside it there is {}", names.join(", ")) }
    }
}
