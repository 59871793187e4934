//! What the process was started with: variables and the working directory, read once.
//!
//! The only place that reads the process's environment. Everything else gets an [`Environment`], so a test or an embedder
//! can build its own.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use turnwright_engine::KnownSecrets;
use turnwright_tools::OwnPaths;

use crate::keyring;

/// The longest secret that is read from a file, in bytes.
const MAX_SECRET_BYTES: u64 = 64 << 10;

/// Variables and the working directory of a process. Its `Debug` form shows no values.
#[derive(Clone, PartialEq, Eq)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
    working_directory: PathBuf,
    command_helper: Vec<OsString>,
    /// Whether nothing of it may be put into texts.
    is_closed: bool,
    /// Where relative paths of files with secrets begin, where that is not the working directory.
    files_begin_at: Option<PathBuf>,
    /// The one place that knows all secrets of the process.
    secrets: KnownSecrets,
    secret_files: OwnPaths,
}

impl Environment {
    /// The environment of this process.
    ///
    /// # Errors
    /// Where the working directory cannot be named.
    pub fn read() -> io::Result<Self> {
        Ok(Self {
            variables: std::env::vars_os().collect(),
            working_directory: std::env::current_dir()?,
            command_helper: Vec::new(),
            is_closed: false,
            files_begin_at: None,
            secrets: KnownSecrets::default(),
            secret_files: OwnPaths::default(),
        })
    }

    /// An environment without variables.
    pub fn new(working_directory: impl Into<PathBuf>) -> Self {
        Self {
            variables: BTreeMap::new(),
            working_directory: working_directory.into(),
            command_helper: Vec::new(),
            is_closed: false,
            files_begin_at: None,
            secrets: KnownSecrets::default(),
            secret_files: OwnPaths::default(),
        }
    }

    /// The same with one more variable.
    pub fn with(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// The same, with the helper that confines commands: a program that calls [`crate::confine`], with the arguments that make
    /// it do so. Without one there are no command tools, unless the configuration says that they run unconfined.
    pub fn with_command_helper(mut self, helper: Vec<OsString>) -> Self {
        self.command_helper = helper;
        self
    }

    /// The same, for values that are written in a file of this folder.
    pub(crate) fn reading_in(&self, folder: &Path) -> Self {
        Self { files_begin_at: Some(folder.to_owned()), ..self.clone() }
    }

    /// The same, of which nothing is put into texts: they are somebody's who may know none of it.
    pub(crate) fn closed(&self) -> Self {
        Self { is_closed: true, ..self.clone() }
    }

    /// Whether nothing of it is put into texts.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// The one place that knows all secrets of the process; clones of an environment share it.
    pub fn secrets(&self) -> &KnownSecrets {
        &self.secrets
    }

    /// The files that secrets were read from; clones of an environment share them.
    pub(crate) fn secret_files(&self) -> &OwnPaths {
        &self.secret_files
    }

    /// The text of a file that holds a secret, without the line break at its end.
    ///
    /// # Errors
    /// Why it cannot be had, in words for people.
    pub(crate) fn secret_file(&self, path: &str) -> Result<String, String> {
        let base = self.files_begin_at.as_deref().unwrap_or(&self.working_directory);
        let path = match (path.strip_prefix("~/"), self.home()) {
            (Some(below), Some(home)) => home.join(below),
            (Some(_) | None, _) => base.join(path),
        };
        self.secret_files.add(path.clone());
        let failed = |why: String| {
            format!("the file {} cannot be used: {why}; it must hold the secret and nothing else", path.display())
        };
        let about = std::fs::metadata(&path).map_err(|error| failed(error.to_string()))?;
        if !about.is_file() && !about.file_type().is_fifo() {
            return Err(failed("it is no file".to_owned()));
        }
        if about.len() > MAX_SECRET_BYTES {
            return Err(failed(format!("it is {} bytes long, limit {MAX_SECRET_BYTES}", about.len())));
        }
        let mut text = String::new();
        let file = std::fs::File::open(&path).map_err(|error| failed(error.to_string()))?;
        file.take(MAX_SECRET_BYTES).read_to_string(&mut text).map_err(|error| failed(error.to_string()))?;
        let value = text.strip_suffix('\n').map_or(text.as_str(), |text| text.strip_suffix('\r').unwrap_or(text));
        self.secrets.learn([value]);
        Ok(value.to_owned())
    }

    /// What the system's keyring keeps for a service under a name.
    ///
    /// # Errors
    /// Why it cannot be had, in words for people.
    pub(crate) fn keyring(&self, service: &str, name: &str) -> Result<String, String> {
        let value = keyring::look_up(service, name, self)?;
        self.secrets.learn([value.as_str()]);
        Ok(value)
    }

    /// The helper that confines commands; empty where there is none.
    pub fn command_helper(&self) -> &[OsString] {
        &self.command_helper
    }

    /// The value of a variable; `None` where it is not set or is not UTF-8.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(OsStr::new(name)).and_then(|value| value.to_str())
    }

    /// The value of a variable that is set to something.
    pub fn filled(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.is_empty())
    }

    /// Whether a variable has a value that is not UTF-8.
    pub(crate) fn is_unreadable(&self, name: &str) -> bool {
        self.variables.get(OsStr::new(name)).is_some_and(|value| value.to_str().is_none())
    }

    /// The names of all variables that are UTF-8, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.variables.keys().filter_map(|name| name.to_str())
    }

    /// All variables as they are, for what child processes inherit.
    pub fn variables(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// Where the process was started.
    pub fn working_directory(&self) -> &Path {
        &self.working_directory
    }

    /// The user's home directory.
    pub fn home(&self) -> Option<PathBuf> {
        self.absolute("HOME").or_else(|| self.absolute("USERPROFILE"))
    }

    /// Where the user keeps Turnwright's configuration: `$XDG_CONFIG_HOME/turnwright` or `~/.config/turnwright`.
    pub fn config_dir(&self) -> Option<PathBuf> {
        let base = self.absolute("XDG_CONFIG_HOME").or_else(|| Some(self.home()?.join(".config")))?;
        Some(base.join("turnwright"))
    }

    /// Where data goes unless the configuration says otherwise: `$XDG_DATA_HOME/turnwright`, `~/.local/share/turnwright`,
    /// or `.turnwright` in the working directory for a user without a home.
    pub fn data_dir(&self) -> PathBuf {
        self.absolute("XDG_DATA_HOME")
            .or_else(|| Some(self.home()?.join(".local/share")))
            .map_or_else(|| self.working_directory.join(".turnwright"), |base| base.join("turnwright"))
    }

    /// A relative path in such a variable is void (XDG base directory specification).
    fn absolute(&self, name: &str) -> Option<PathBuf> {
        self.variables.get(OsStr::new(name)).map(PathBuf::from).filter(|path| path.is_absolute())
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("variables", &self.variables.keys().collect::<Vec<_>>())
            .field("working_directory", &self.working_directory)
            .field("command_helper", &self.command_helper)
            .finish_non_exhaustive()
    }
}
