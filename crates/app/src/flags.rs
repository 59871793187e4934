//! The flags of a command that is told to somebody, so that it reaches what the one that tells it reaches.

use std::path::{Path, PathBuf};

use turnwright_core::shell_word;

use crate::cli::Everywhere;
use crate::opened::Opened;

/// The flags that say which data is meant, as a shell takes them.
pub(crate) fn flags(everywhere: &Everywhere) -> String {
    let path = |path: &PathBuf| path.to_string_lossy().into_owned();
    let flags = [
        ("config", everywhere.config.as_ref().map(path)),
        ("data-dir", everywhere.data_dir.as_ref().map(path)),
        ("database", everywhere.database.clone()),
        ("user", everywhere.user.clone()),
    ];
    written(flags)
}

/// The flags with which a command reaches what `opened` reaches, whoever types it and in whichever folder. They are told to programs, and
/// models read them, so an address that may have a password in it is not among them.
pub(crate) fn flags_elsewhere(everywhere: &Everywhere, opened: &Opened) -> String {
    let (loaded, environment) = (&opened.loaded, &opened.environment);
    let whole = |path: &Path| environment.working_directory().join(path).to_string_lossy().into_owned();
    let is_usual = |file: &PathBuf| environment.config_dir().is_some_and(|folder| file.starts_with(folder));
    let flags = [
        ("config", loaded.file.as_ref().filter(|file| !is_usual(file)).map(|file| whole(file))),
        ("data-dir", (loaded.data_dir != environment.data_dir()).then(|| whole(&loaded.data_dir))),
        ("database", everywhere.database.as_ref().filter(|address| !address.contains(':')).map(|file| whole(Path::new(file)))),
        ("user", everywhere.user.clone()),
    ];
    written(flags)
}

fn written<const N: usize>(flags: [(&str, Option<String>); N]) -> String {
    flags.into_iter().filter_map(|(name, value)| Some(format!(" --{name} {}", shell_word(&value?)))).collect()
}
