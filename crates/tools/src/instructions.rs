//! Files of instructions, such as `AGENTS.md`, of the folders that are worked with.
//!
//! One at the top of a folder holds for all of it; one further down for what is below it, before those above (the convention
//! of AGENTS.md). They are read with the file tools' own rules: no link leads out, and nothing that is denied is shown.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;
use turnwright_core::{ContextKind, ContextPart};
use turnwright_engine::knowledge::version_of;

use crate::filesystem::encoding::{decode_all, form_of};
use crate::filesystem::tree::Tree;
use crate::knowledge::{attribute, harmless};
use crate::{FilesystemConfig, RootsError};

/// The most files and folders that are looked at for instructions further down.
const MOST_VISITED: usize = 5_000;
/// The largest file that is read, in bytes; what of it is shown is less.
const MOST_READ: u64 = 1 << 20;
/// A folder is looked through again after so many times as long as it took; what is known is read each time.
const WALK_SHARE: u32 = 50;

/// Where instructions are looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionsConfig {
    /// The folders, with what is denied below them.
    pub filesystem: FilesystemConfig,
    /// The files' names.
    pub files: Vec<String>,
    /// How many bytes are shown of all of them, at most.
    pub max_bytes: usize,
}

/// Instructions of folders.
#[derive(Debug)]
pub struct Instructions {
    trees: Vec<(PathBuf, Arc<Tree>)>,
    files: Arc<[String]>,
    max_bytes: usize,
    /// What the last walk found further down, and when the next may be.
    further: Arc<Mutex<Further>>,
}

#[derive(Debug, Default)]
struct Further {
    paths: Vec<Vec<PathBuf>>,
    again: Option<Instant>,
}

/// Instructions as they stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// Where they come from.
    pub part: ContextPart,
    /// What they say, as much of it as is shown.
    pub text: String,
    /// Why they are not shown, where the file is there and cannot be read.
    pub problem: Option<String>,
}

impl Instructions {
    /// Opens the folders.
    ///
    /// # Errors
    /// [`RootsError`] where one that is there cannot be opened.
    pub fn open(config: InstructionsConfig) -> Result<Self, RootsError> {
        let tree = |root: &PathBuf| {
            let one = FilesystemConfig { roots: vec![root.clone()], trash: None, ..config.filesystem.clone() };
            Ok((root.clone(), Arc::new(Tree::open(one)?)))
        };
        // A root that is not there is told by the tools that work in it.
        let there = config.filesystem.roots.iter().filter(|root| root.is_dir());
        let trees = there.map(tree).collect::<Result<_, _>>()?;
        Ok(Self { trees, files: config.files.into(), max_bytes: config.max_bytes, further: Arc::default() })
    }

    /// The instructions as they stand: those at the top first.
    pub async fn read(&self) -> Vec<Instruction> {
        let (trees, files, most) = (self.trees.clone(), Arc::clone(&self.files), self.max_bytes);
        let further = Arc::clone(&self.further);
        let read = move || {
            let mut further = further.lock().unwrap_or_else(PoisonError::into_inner);
            if further.again.is_none_or(|again| Instant::now() >= again) {
                let begun = Instant::now();
                further.paths = trees.iter().map(|(_, tree)| below(tree, &files)).collect();
                further.again = Some(Instant::now() + begun.elapsed() * WALK_SHARE);
            }
            let mut all = Vec::new();
            for ((root, tree), found) in trees.iter().zip(&further.paths) {
                // One at the top is found however much is beside it.
                let mut paths: Vec<PathBuf> = found.iter().cloned().chain(files.iter().map(PathBuf::from)).collect();
                paths.sort_by_key(|path| (path.components().count(), path.clone()));
                paths.dedup();
                let mut seen = HashSet::new();
                for path in paths {
                    // A file is shown once, by whichever of its names comes first.
                    let led = tree.follow(&path).transpose();
                    let is_new = led.as_ref().is_some_and(|led| led.as_ref().map_or(true, |real| seen.insert(real.clone())));
                    all.extend(led.filter(|_| is_new).and_then(|led| instruction(root, tree, &path, led)));
                }
            }
            within(all, most)
        };
        tokio::task::spawn_blocking(read).await.unwrap_or_default()
    }
}

/// The files of these names below a folder, as far as it is looked through.
fn below(tree: &Tree, files: &[String]) -> Vec<PathBuf> {
    let is_named = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| files.iter().any(|file| file == name))
    };
    let listing = tree.files(&is_named, MOST_VISITED);
    listing.files.into_iter().map(|file| file.path).chain(listing.others).collect()
}

/// The instructions at `path`, which leads to a file; `None` where they say nothing. What cannot be read says why.
fn instruction(root: &Path, tree: &Tree, path: &Path, led: Result<PathBuf, String>) -> Option<Instruction> {
    let part = |version: String| {
        let (kind, source) = (ContextKind::Instructions, root.display().to_string());
        Some(ContextPart { kind, source, document: path.to_str()?.to_owned(), place: None, version: Some(version) })
    };
    let read = led.and_then(|real| match tree.read(&real, MOST_READ) {
        Ok(Some(bytes)) => match form_of(&bytes) {
            Ok(form) => Ok((version_of(&bytes), decode_all(form, bytes).0)),
            Err(binary) => Err(format!("it is no text: {}", binary.why())),
        },
        Ok(None) => Err(format!("it is larger than {MOST_READ} bytes")),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            Err("it may not be read, or has several names (hard links)".to_owned())
        }
        Err(error) => Err(error.to_string()),
    });
    match read {
        Ok((_, text)) if text.trim().is_empty() => None,
        Ok((version, text)) => Some(Instruction { part: part(version)?, text: text.trim().to_owned(), problem: None }),
        Err(why) => {
            let text = format!("[it is there, and cannot be shown: {why}]");
            Some(Instruction { part: part(version_of(text.as_bytes()))?, text, problem: Some(why) })
        }
    }
}

/// As much of them as there is room for: the first is cut where it is too long, one of the others is named alone.
fn within(all: Vec<Instruction>, most: usize) -> Vec<Instruction> {
    let mut room = most;
    let mut shown = Vec::new();
    for (index, mut instruction) in all.into_iter().enumerate() {
        if instruction.text.len() > room {
            let path = &instruction.part.document;
            instruction.text = if index == 0 {
                let end = instruction.text.floor_char_boundary(room);
                let head = instruction.text.get(..end).unwrap_or_default();
                format!("{head}\n[the rest is left out: it is longer than {most} bytes; read `{path}` for it]")
            } else {
                format!("[not shown here: read `{path}` before you work on what is below its folder]")
            };
        }
        room = room.saturating_sub(instruction.text.len());
        shown.push(instruction);
    }
    shown
}

/// Instructions as models are shown them.
pub(crate) fn shown(instructions: &[&Instruction], text: &mut String) {
    for Instruction { part, text: says, .. } in instructions {
        let path = Path::new(&part.source).join(&part.document);
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "\n<instructions file=\"{}\" version=\"{}\">\n{}\n</instructions>\n",
            attribute(&path.display().to_string()),
            part.version.as_deref().unwrap_or_default(),
            harmless(says)
        );
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn says(document: &str, text: &str) -> Instruction {
        let (kind, source) = (ContextKind::Instructions, "/work".to_owned());
        let part = ContextPart { kind, source, document: document.into(), place: None, version: Some("1".into()) };
        Instruction { part, text: text.to_owned(), problem: None }
    }

    #[tokio::test]
    async fn a_link_inside_the_root_is_followed_and_what_cannot_be_read_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let (root, outside) = (folder.path().join("in"), folder.path().join("out"));
        for (path, text) in
            [("in/sub/x", "x"), ("in/bin/x", "x"), ("in/hard/x", "x"), ("in/CLAUDE.md", "Use tabs."), ("out", "secret")]
        {
            std::fs::create_dir_all(folder.path().join(path).parent().unwrap()).unwrap();
            std::fs::write(folder.path().join(path), text).unwrap();
        }
        symlink("CLAUDE.md", root.join("AGENTS.md")).unwrap();
        symlink(&outside, root.join("sub/AGENTS.md")).unwrap();
        std::fs::write(root.join("bin/AGENTS.md"), b"\x7fELF\0\0\0\0\x01\x02").unwrap();
        std::fs::hard_link(&outside, root.join("hard/AGENTS.md")).unwrap();
        let filesystem = FilesystemConfig::new(vec![root]);
        // Of two names of one file the first is shown.
        let files = vec!["AGENTS.md".to_owned(), "CLAUDE.md".to_owned()];
        let read = Instructions::open(InstructionsConfig { filesystem, files, max_bytes: 9_999 }).unwrap().read().await;
        let told: Vec<(&str, &str, bool)> =
            read.iter().map(|told| (told.part.document.as_str(), told.text.as_str(), told.problem.is_some())).collect();
        assert_eq!(told[0], ("AGENTS.md", "Use tabs.", false), "{told:?}");
        let broken: Vec<&str> = told[1..].iter().filter(|told| told.2).map(|told| told.0).collect();
        assert_eq!(broken, ["bin/AGENTS.md", "hard/AGENTS.md", "sub/AGENTS.md"], "{told:?}");
        assert!(told.iter().all(|told| !told.1.contains("secret")), "{told:?}");
    }

    #[test]
    fn the_first_is_cut_and_others_that_do_not_fit_are_named() {
        let shown = within(vec![says("AGENTS.md", &"ü".repeat(40)), says("a/AGENTS.md", "short")], 21);
        assert!(shown[0].text.starts_with(&"ü".repeat(10)) && shown[0].text.contains("21 bytes"), "{shown:?}");
        assert!(shown[1].text.contains("read `a/AGENTS.md`"), "{shown:?}");
        let all = vec![says("AGENTS.md", "one"), says("a/AGENTS.md", "two")];
        assert_eq!(within(all.clone(), 100), all);
    }
}
