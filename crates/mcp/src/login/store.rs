//! Where tokens are kept between starts, and the one place that is here: sealed files below the data directory.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use nix::fcntl::{Flock, FlockArg};

use super::seal::{SealKey, random};

const OWNER_ALONE: u32 = 0o600;

/// Keeps what signing in brought, under names that are safe as file names. All of it is secret.
#[async_trait]
pub trait TokenStore: fmt::Debug + Send + Sync {
    /// What is kept under this name.
    async fn load(&self, name: &str) -> io::Result<Option<String>>;
    /// Keeps this under the name in place of what was there.
    async fn save(&self, name: &str, text: &str) -> io::Result<()>;
    /// Forgets it. Says whether there was something.
    async fn remove(&self, name: &str) -> io::Result<bool>;
    /// Waits until nobody else who uses the same store holds the lock of this name, in whatever process; it is let go with what
    /// is returned.
    async fn lock(&self, name: &str) -> io::Result<Box<dyn Send + Sync>>;
}

/// Keeps nothing: nobody can sign in.
#[derive(Debug, Clone, Copy)]
pub struct NoTokens;

#[async_trait]
impl TokenStore for NoTokens {
    async fn load(&self, _name: &str) -> io::Result<Option<String>> {
        Ok(None)
    }

    async fn save(&self, _name: &str, _text: &str) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "there is no place to keep what a sign-in brings"))
    }

    async fn remove(&self, _name: &str) -> io::Result<bool> {
        Ok(false)
    }

    async fn lock(&self, _name: &str) -> io::Result<Box<dyn Send + Sync>> {
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
    fn key(&self) -> io::Result<SealKey> {
        let path = self.folder.join("key");
        if !path.exists() {
            self.make_folder()?;
            let bytes = SealKey::random()?;
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
        SealKey::new(&fs::read(&path)?).ok_or_else(|| damaged(&path, "is no key"))
    }
}

/// The files are small, and read and written by whoever asks.
#[async_trait]
impl TokenStore for FileTokens {
    async fn load(&self, name: &str) -> io::Result<Option<String>> {
        let path = self.path(name, "sealed");
        let sealed = match fs::read(&path) {
            Ok(sealed) => sealed,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let text = self.key()?.open(name, &sealed);
        text.map(Some).ok_or_else(|| damaged(&path, "cannot be opened with the key beside it"))
    }

    async fn save(&self, name: &str, text: &str) -> io::Result<()> {
        let sealed = self.key()?.seal(name, text)?;
        let mut own = [0_u8; 4];
        random(&mut own)?;
        let draft = self.path(&format!("{name}-{:08x}", u32::from_ne_bytes(own)), "new");
        write_new(&draft, &sealed)?;
        fs::rename(&draft, self.path(name, "sealed"))
    }

    async fn remove(&self, name: &str) -> io::Result<bool> {
        match fs::remove_file(self.path(name, "sealed")) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn lock(&self, name: &str) -> io::Result<Box<dyn Send + Sync>> {
        self.make_folder()?;
        let mut options = OpenOptions::new();
        let file = options.create(true).truncate(false).write(true).mode(OWNER_ALONE).open(self.path(name, "lock"))?;
        // It stays when it is let go: who waits for it holds this very file open.
        let locked = tokio::task::spawn_blocking(move || Flock::lock(file, FlockArg::LockExclusive)).await?;
        Ok(Box::new(locked.map_err(|(_, error)| io::Error::from(error))?))
    }
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file: File = OpenOptions::new().create_new(true).write(true).mode(OWNER_ALONE).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn damaged(path: &Path, how: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{} {how}; sign in again", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[tokio::test]
    async fn what_is_kept_is_sealed_read_by_its_owner_alone_and_bound_to_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = FileTokens::new(folder.path().join("tokens"));
        tokens.save("one", "a secret").await.unwrap();
        tokens.save("one", "another secret").await.unwrap();
        tokens.save("two", "second").await.unwrap();
        assert_eq!(FileTokens::new(folder.path().join("tokens")).load("one").await.unwrap().as_deref(), Some("another secret"));
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
        let error = tokens.load("two").await.unwrap_err().to_string();
        assert!(error.ends_with("two.sealed cannot be opened with the key beside it; sign in again"), "{error}");
        assert_eq!((tokens.remove("one").await.unwrap(), tokens.remove("one").await.unwrap()), (true, false));
        assert_eq!(tokens.load("one").await.unwrap(), None);
    }
}
