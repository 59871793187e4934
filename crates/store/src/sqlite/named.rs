//! Whether the file that is open still has its name: what is written into one that was removed or replaced is lost with the process.

use std::path::Path;

use turnwright_engine::StoreError;

/// The file of a database, as the system knows it.
#[derive(Debug)]
pub(super) struct Named {
    /// `None` where the system says nothing that lasts.
    is: Option<Identity>,
    /// Whether the log was told that it lost its name.
    is_told: bool,
}

/// Its device and its number there.
type Identity = (u64, u64);

impl Named {
    /// The one that was opened by this name just now.
    pub(super) fn of(file: &Path) -> Self {
        Self { is: identity(file).unwrap_or_default(), is_told: false }
    }

    /// Why nothing is to be stored in it now. This is a system call, where a transaction is tens of them.
    pub(super) fn refusal(&mut self, file: &Path) -> Option<StoreError> {
        let is = self.is?;
        let happened = match identity(file) {
            Ok(Some(found)) if found != is => "was replaced",
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => "was removed",
            Ok(_) | Err(_) => {
                self.is_told = false;
                return None;
            }
        };
        let reason = format!(
            "`{}` {happened} while it was open, and what is stored now would be lost; put it back, or end this process and start it again",
            file.display()
        );
        if !std::mem::replace(&mut self.is_told, true) {
            tracing::error!("{reason}");
        }
        Some(StoreError::Unusable { reason })
    }
}

#[cfg(unix)]
fn identity(file: &Path) -> std::io::Result<Option<Identity>> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(file).map(|found| Some((found.dev(), found.ino())))
}

/// An open file cannot be removed.
#[cfg(not(unix))]
fn identity(_file: &Path) -> std::io::Result<Option<Identity>> {
    Ok(None)
}
