//! Where tokens are kept between starts: one sealed file for each server, below the data directory.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

const KEY_BYTES: usize = 32;
const OWNER_ALONE: u32 = 0o600;

/// Keeps what signing in brought, under names that are safe as file names. All of it is secret.
pub trait TokenStore: fmt::Debug + Send + Sync {
    /// What is kept under this name.
    fn load(&self, name: &str) -> io::Result<Option<String>>;
    /// Keeps this under the name in place of what was there.
    fn save(&self, name: &str, text: &str) -> io::Result<()>;
    /// Forgets it. Says whether there was something.
    fn remove(&self, name: &str) -> io::Result<bool>;
    /// Waits until nobody else, in whatever process, holds the lock of this name; it is let go with what is returned.
    fn lock(&self, name: &str) -> io::Result<Box<dyn Send>>;
}

/// Keeps nothing: nobody can sign in.
#[derive(Debug, Clone, Copy)]
pub struct NoTokens;

impl TokenStore for NoTokens {
    fn load(&self, _name: &str) -> io::Result<Option<String>> {
        Ok(None)
    }

    fn save(&self, _name: &str, _text: &str) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "there is no place to keep what a sign-in brings"))
    }

    fn remove(&self, _name: &str) -> io::Result<bool> {
        Ok(false)
    }

    fn lock(&self, _name: &str) -> io::Result<Box<dyn Send>> {
        Ok(Box::new(()))
    }
}

/// Files in a folder that the owner alone can read, each sealed with the key beside them and bound to its name: a file that
/// is copied without the key, or over another one, opens nothing.
#[derive(Debug, Clone)]
pub struct FileTokens {
    folder: PathBuf,
}

impl FileTokens {
    /// In this folder, which is made with the first token.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    fn path(&self, name: &str, ending: &str) -> PathBuf {
        self.folder.join(format!("{name}.{ending}"))
    }

    fn make_folder(&self) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)
    }

    /// The key, made where there is none.
    fn key(&self) -> io::Result<LessSafeKey> {
        let path = self.folder.join("key");
        if !path.exists() {
            self.make_folder()?;
            let mut bytes = [0_u8; KEY_BYTES];
            random(&mut bytes)?;
            let mut random_name = [0_u8; 8];
            random(&mut random_name)?;
            let draft = self.path(&format!("key-{:016x}", u64::from_ne_bytes(random_name)), "new");
            write_new(&draft, &bytes)?;
            // Whole or not at all, and never over another process's.
            let placed = fs::hard_link(&draft, &path);
            fs::remove_file(&draft)?;
            match placed {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        let key = UnboundKey::new(&CHACHA20_POLY1305, &fs::read(&path)?);
        key.map(LessSafeKey::new).map_err(|_| damaged(&path, "is no key"))
    }
}

impl TokenStore for FileTokens {
    fn load(&self, name: &str) -> io::Result<Option<String>> {
        let path = self.path(name, "sealed");
        let sealed = match fs::read(&path) {
            Ok(sealed) => sealed,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let cannot = || damaged(&path, "cannot be opened with the key beside it");
        let (nonce, text) = sealed.split_first_chunk::<NONCE_LEN>().ok_or_else(cannot)?;
        let mut text = text.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let open = self.key()?.open_in_place(nonce, Aad::from(name), &mut text).map_err(|_| cannot())?.to_vec();
        String::from_utf8(open).map(Some).map_err(|_| cannot())
    }

    fn save(&self, name: &str, text: &str) -> io::Result<()> {
        let key = self.key()?;
        let mut nonce = [0_u8; NONCE_LEN];
        random(&mut nonce)?;
        let mut sealed = text.as_bytes().to_vec();
        key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(name), &mut sealed)
            .map_err(|_| io::Error::other("it could not be sealed"))?;
        let draft = self.path(&format!("{name}-{:08x}", u32::from_ne_bytes([nonce[0], nonce[1], nonce[2], nonce[3]])), "new");
        write_new(&draft, &[nonce.as_slice(), &sealed].concat())?;
        fs::rename(&draft, self.path(name, "sealed"))
    }

    fn remove(&self, name: &str) -> io::Result<bool> {
        match fs::remove_file(self.path(name, "sealed")) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn lock(&self, name: &str) -> io::Result<Box<dyn Send>> {
        self.make_folder()?;
        let mut options = OpenOptions::new();
        let file = options.create(true).truncate(false).write(true).mode(OWNER_ALONE).open(self.path(name, "lock"))?;
        // It stays when it is let go: who waits for it holds this very file open.
        let lock = Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, error)| io::Error::from(error))?;
        Ok(Box::new(lock))
    }
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file: File = OpenOptions::new().create_new(true).write(true).mode(OWNER_ALONE).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn random(bytes: &mut [u8]) -> io::Result<()> {
    getrandom::fill(bytes).map_err(|error| io::Error::other(error.to_string()))
}

fn damaged(path: &Path, how: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{} {how}; sign in again", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_is_kept_is_sealed_read_by_its_owner_alone_and_bound_to_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = FileTokens::new(folder.path().join("tokens"));
        tokens.save("one", "a secret").unwrap();
        tokens.save("one", "another secret").unwrap();
        tokens.save("two", "second").unwrap();
        assert_eq!(FileTokens::new(folder.path().join("tokens")).load("one").unwrap().as_deref(), Some("another secret"));
        let mut names = Vec::new();
        for file in fs::read_dir(folder.path().join("tokens")).unwrap() {
            let path = file.unwrap().path();
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, OWNER_ALONE);
            assert!(!String::from_utf8_lossy(&fs::read(&path).unwrap()).contains("secret"));
            names.push(path.file_name().unwrap().to_str().unwrap().to_owned());
        }
        names.sort();
        assert_eq!(names, ["key", "one.sealed", "two.sealed"]);
        fs::copy(tokens.path("one", "sealed"), tokens.path("two", "sealed")).unwrap();
        let error = tokens.load("two").unwrap_err().to_string();
        assert!(error.ends_with("two.sealed cannot be opened with the key beside it; sign in again"), "{error}");
        assert_eq!((tokens.remove("one").unwrap(), tokens.remove("one").unwrap()), (true, false));
        assert_eq!(tokens.load("one").unwrap(), None);
    }
}
