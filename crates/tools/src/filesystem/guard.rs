//! What is not touched although it is below a root: secrets by their names, and folders by what they are.
//!
//! Names are compared as the file systems do that are lenient: capital and small letters are the same, characters that
//! nobody sees do not count, nor do dots and spaces at the end, nor what follows a colon.

use std::path::{Component, Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::RootsError;

/// What is taken for a secret where nobody says otherwise, in the form of `.gitignore`: a later line wins, `!` takes back.
pub(super) const SECRETS: &[&str] = &[
    ".env",
    ".env.*",
    "!.env.example",
    "!.env.sample",
    "!.env.template",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.ppk",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "!id_*.pub",
    ".ssh/",
    ".gnupg/",
    ".aws/",
    ".azure/",
    ".kube/",
    ".docker/config.json",
    ".config/gcloud/",
    ".config/gh/hosts.yml",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".my.cnf",
    ".git-credentials",
    ".npmrc",
    ".pypirc",
    ".htpasswd",
    ".vault-token",
];

/// Patterns of what is not touched, as they are meant below each root: where it really is, and they.
#[derive(Debug)]
pub(super) struct Guard(Vec<(PathBuf, Gitignore)>);

/// Whether a pattern of what is not touched says something.
///
/// # Errors
/// Why not, in words.
pub fn check_denied(pattern: &str) -> Result<(), String> {
    below(&[pattern.to_owned()], &[]).map(|_| ()).map_err(|(_, error)| error.to_string())
}

impl Guard {
    /// For these roots: each as it was configured, and where it really is.
    pub(super) fn new<'a>(
        patterns: &[String],
        roots: impl IntoIterator<Item = (&'a Path, &'a Path)>,
    ) -> Result<Self, RootsError> {
        let of_root = |(given, real): (&Path, &Path)| match below(patterns, &[given, real]) {
            Ok(below) => Ok((real.to_owned(), below)),
            Err((pattern, error)) => Err(RootsError::Pattern { pattern, reason: error.to_string() }),
        };
        roots.into_iter().map(of_root).collect::<Result<_, _>>().map(Self)
    }

    /// Whether the last part of `path`, relative to the root that really is at `root`, is not touched. Its folders were asked about
    /// before.
    pub(super) fn covers_entry(&self, root: &Path, path: &Path, is_folder: bool) -> bool {
        let Some((_, below)) = self.0.iter().find(|(known, _)| known == root) else { return true };
        below.matched(path, is_folder).is_ignore()
            || plain(path).is_some_and(|plain| below.matched(plain, is_folder).is_ignore())
    }

    /// Whether `path`, relative to the root that really is at `root`, or a folder on the way to it is not touched. Whether its last part
    /// is a folder is not known: it counts as both.
    pub(super) fn covers(&self, root: &Path, path: &Path) -> bool {
        let mut so_far = PathBuf::new();
        path.components().any(|part| {
            let Component::Normal(name) = part else { return false };
            so_far.push(name);
            self.covers_entry(root, &so_far, true) || (so_far.as_path() == path && self.covers_entry(root, &so_far, false))
        })
    }
}

/// Patterns as they are meant below a root of these names; with the error the pattern of which it is.
fn below(patterns: &[String], names: &[&Path]) -> Result<Gitignore, (String, ignore::Error)> {
    let mut builder = GitignoreBuilder::new("");
    builder.case_insensitive(true).map_err(|error| (String::new(), error))?;
    for pattern in patterns {
        for meant in meant(pattern, names) {
            builder.add_line(None, &meant).map_err(|error| (pattern.clone(), error))?;
        }
    }
    builder.build().map_err(|error| (String::new(), error))
}

/// A pattern as it is meant below a root of these names: `./x` is `/x`, and what begins with the root's own path begins there too.
fn meant(pattern: &str, names: &[&Path]) -> Vec<String> {
    let (takes_back, body) = pattern.strip_prefix('!').map_or(("", pattern), |body| ("!", body));
    let below = |name: &&Path| match body.strip_prefix(name.to_str()?.trim_end_matches('/'))? {
        "" | "/" if !body.is_empty() => Some("/*"),
        below => below.starts_with('/').then_some(below),
    };
    let here = body.strip_prefix('.').filter(|rest| rest.starts_with('/'));
    let mut all = vec![format!("{takes_back}{}", here.unwrap_or(body))];
    all.extend(names.iter().filter_map(below).map(|below| format!("{takes_back}{below}")));
    all
}

/// The path as lenient file systems take it, where that is another one.
fn plain(path: &Path) -> Option<PathBuf> {
    let text = path.to_str()?;
    let parts: Vec<String> = text
        .split('/')
        .map(|part| {
            let seen: String = part.chars().filter(|letter| !is_unseen(*letter)).flat_map(folded).collect();
            let before = seen.split(':').next().unwrap_or_default();
            before.trim_end_matches(['.', ' ']).to_owned()
        })
        .collect();
    let plain = parts.join("/");
    (plain != text).then(|| PathBuf::from(plain))
}

/// What file systems that fold names leave out of them.
fn is_unseen(letter: char) -> bool {
    matches!(letter, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
}

/// A letter as one that is neither capital nor of another width.
fn folded(letter: char) -> impl Iterator<Item = char> {
    let narrow = match letter {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(letter) - 0xfee0).unwrap_or(letter),
        '\u{2024}' => '.',
        _ => letter,
    };
    narrow.to_uppercase().flat_map(char::to_lowercase)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Guard, SECRETS, check_denied};

    const ROOT: &str = "/srv/work";

    /// Whether patterns cover a path below the root, which is called otherwise too.
    fn covers(patterns: &[&str], path: &str) -> bool {
        let patterns: Vec<_> = patterns.iter().map(ToString::to_string).collect();
        let root = Path::new(ROOT);
        Guard::new(&patterns, [(Path::new("/home/me/work"), root)]).unwrap().covers(root, Path::new(path))
    }

    #[test]
    fn secrets_are_known_by_their_names_however_they_are_written() {
        let covered = [
            ".env",
            "a/b/.env",
            ".ENV",
            ".Env.Local",
            ".env.production",
            ".e\u{200b}nv",
            ".env.",
            ".env ",
            ".env::$DATA",
            "．ｅｎｖ",
            "server.PEM",
            "tls/private.key",
            "id_rsa",
            "id_ed25519.bak",
            "home/.ssh/config",
            ".ssh",
            ".aws/credentials",
            ".\u{17f}sh/known_hosts",
            ".docker/config.json",
        ];
        for path in covered {
            assert!(covers(SECRETS, path), "{path:?}");
        }
        for path in [".env.example", "env", "src/.environment", "id_rsa.pub", "monkey", "key.rs", ".docker/other", ".", ""] {
            assert!(!covers(SECRETS, path), "{path:?}");
        }
    }

    #[test]
    fn an_operator_adds_patterns_and_takes_some_back() {
        let patterns = [".env", "secrets/*.json", "!.env"];
        assert!(covers(&patterns, "secrets/a.json"));
        assert!(!covers(&patterns, ".env"));
        assert!(check_denied("a{").is_err());
    }

    #[test]
    fn a_pattern_that_begins_with_the_path_of_its_root_begins_there() {
        let covered = [
            ("/home/me/work/private/", "private/a.txt"),
            ("/srv/work/private", "private/a.txt"),
            ("/srv/work/*/private/", "x/private/a.txt"),
            ("/srv/work/", "a.txt"),
            ("/srv/work", "a.txt"),
            ("/private/", "private/a.txt"),
            ("./private/", "private/a.txt"),
            ("./*.txt", "a.txt"),
            ("/srv/work/private/", "srv/work/private/a.txt"),
        ];
        for (pattern, path) in covered {
            assert!(covers(&[pattern], path), "{pattern} {path}");
        }
        let others = [
            ("/srv/workshop/private/", "private/a.txt"),
            ("/srv/work/private/", "x/private/a.txt"),
            ("./private/", "x/private/a.txt"),
            ("/home/other/private/", "private/a.txt"),
        ];
        for (pattern, path) in others {
            assert!(!covers(&[pattern], path), "{pattern} {path}");
        }
        let taken_back = ["*.key", "!/srv/work/a.key"];
        assert!(!covers(&taken_back, "a.key") && covers(&taken_back, "b.key"));
        let (one, other) = (Path::new(ROOT), Path::new("/srv/notes"));
        let guard = Guard::new(&taken_back.map(str::to_owned), [(one, one), (other, other)]).unwrap();
        assert!(guard.covers(other, Path::new("a.key")), "in the other root nothing is taken back");
    }
}
