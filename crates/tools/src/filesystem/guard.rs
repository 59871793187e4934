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

/// Patterns of what is not touched.
#[derive(Debug)]
pub(super) struct Guard(Gitignore);

impl Guard {
    pub(super) fn new(patterns: &[String]) -> Result<Self, RootsError> {
        let mut builder = GitignoreBuilder::new("");
        let unusable = |pattern: &str, error: ignore::Error| RootsError::Pattern {
            pattern: pattern.to_owned(),
            reason: error.to_string(),
        };
        builder.case_insensitive(true).map_err(|error| unusable("", error))?;
        for pattern in patterns {
            builder.add_line(None, pattern).map_err(|error| unusable(pattern, error))?;
        }
        builder.build().map(Self).map_err(|error| unusable("", error))
    }

    /// Whether the last part of `path`, relative to its root, is not touched. Its folders were asked about before.
    pub(super) fn covers_entry(&self, path: &Path, is_folder: bool) -> bool {
        self.0.matched(path, is_folder).is_ignore()
            || plain(path).is_some_and(|plain| self.0.matched(plain, is_folder).is_ignore())
    }

    /// Whether `path`, relative to its root, or a folder on the way to it is not touched. Whether its last part is a
    /// folder is not known: it counts as both.
    pub(super) fn covers(&self, path: &Path) -> bool {
        let mut so_far = PathBuf::new();
        path.components().any(|part| {
            let Component::Normal(name) = part else { return false };
            so_far.push(name);
            self.covers_entry(&so_far, true) || (so_far.as_path() == path && self.covers_entry(&so_far, false))
        })
    }
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

    use super::{Guard, SECRETS};

    #[test]
    fn secrets_are_known_by_their_names_however_they_are_written() {
        let guard = Guard::new(&SECRETS.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap();
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
            assert!(guard.covers(Path::new(path)), "{path:?}");
        }
        for path in [".env.example", "env", "src/.environment", "id_rsa.pub", "monkey", "key.rs", ".docker/other", ".", ""] {
            assert!(!guard.covers(Path::new(path)), "{path:?}");
        }
    }

    #[test]
    fn an_operator_adds_patterns_and_takes_some_back() {
        let patterns = [".env".to_owned(), "secrets/*.json".to_owned(), "!.env".to_owned()];
        let guard = Guard::new(&patterns).unwrap();
        assert!(guard.covers(Path::new("secrets/a.json")));
        assert!(!guard.covers(Path::new(".env")));
        assert!(Guard::new(&["a{".to_owned()]).is_err());
    }
}
