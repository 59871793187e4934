//! Where tools work by themselves, and which folders are never theirs: the data of this program.

use std::path::{Path, PathBuf};

use super::key_path::KeyPath;
use super::meaning::{Meaning, place_of};
use super::{Loaded, Problem};

/// The folder of the data directory in which tools work where the process begins in the data directory.
const FILES: &str = "files";
/// What this program keeps in the data directory as folders of its own.
const OWN: &[&str] = &["locks", "mcp", "processes", "providers", "tmp", "trash"];

/// Where tools work where nothing names a root: where the process begins, and a folder of its own where that is the data.
pub(crate) fn usual_root(working_directory: &Path, data_dir: &Path) -> PathBuf {
    if is_of_data(working_directory, data_dir) { data_dir.join(FILES) } else { working_directory.to_owned() }
}

/// Whether a folder is the data directory, or in what this program keeps there.
fn is_of_data(folder: &Path, data_dir: &Path) -> bool {
    let (folder, data_dir) = (resolved(folder), resolved(data_dir));
    let Ok(inner) = folder.strip_prefix(&data_dir) else { return false };
    inner.components().next().is_none_or(|first| OWN.iter().any(|own| first.as_os_str().eq_ignore_ascii_case(own)))
}

/// A path without links, as far as it is there.
fn resolved(path: &Path) -> PathBuf {
    let there = path.ancestors().find_map(|above| Some((above, std::fs::canonicalize(above).ok()?)));
    let Some((above, real)) = there else { return path.to_owned() };
    let rest = path.strip_prefix(above).unwrap_or(Path::new(""));
    if rest.as_os_str().is_empty() { real } else { real.join(rest) }
}

impl Loaded {
    /// The folder in the data directory in which tools may work.
    pub(crate) fn files_folder(&self) -> PathBuf {
        self.data_dir.join(FILES)
    }
}

impl Meaning<'_> {
    /// No tool and nobody who reads documents is given the data.
    pub(crate) fn folders(self, data_dir: &Path, problems: &mut Vec<Problem>) {
        let mut look = |path: &Path, keys: &[&str], shown: String| {
            if is_of_data(path, data_dir) {
                let text = format!(
                    "`{shown}` is `{}`, where this program keeps its data: everybody's conversations and keys would be open to \
                     tools; name another folder, such as `{}`",
                    path.display(),
                    data_dir.join(FILES).display()
                );
                problems.push(Problem::new(place_of(self.root, keys.iter().copied()), text));
            }
        };
        let tools = &self.config.tools;
        for (tool, roots) in [("filesystem", &tools.filesystem.roots), ("command", &tools.command.roots)] {
            let keys = ["tools", tool, "roots"];
            for (index, root) in roots.iter().enumerate() {
                look(root, &keys, KeyPath::of(keys).index(index).to_string());
            }
        }
        for (index, path) in tools.command.writable.iter().enumerate() {
            let keys = ["tools", "command", "writable"];
            look(path, &keys, KeyPath::of(keys).index(index).to_string());
        }
        for (name, folder) in &self.config.knowledge.folders {
            let keys = ["knowledge", "folders", name.as_str(), "path"];
            look(&folder.path, &keys, KeyPath::of(keys).to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{is_of_data, usual_root};

    #[test]
    fn tools_work_beside_the_data_wherever_the_process_begins() {
        let folder = std::env::temp_dir().join("no-such-folder-of-turnwright");
        let data = folder.join("data");
        assert_eq!(usual_root(&data, &data), data.join("files"));
        assert_eq!(usual_root(&data.join("locks"), &data), data.join("files"));
        for other in [folder.clone(), data.join("files"), data.join("work/a"), folder.join("data-2")] {
            assert_eq!(usual_root(&other, &data), other);
        }
        assert!(is_of_data(&data.join("Trash/1"), &data) && !is_of_data(Path::new("/"), &data));
    }
}
