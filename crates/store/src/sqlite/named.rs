//! Whether the file that is open still has its name: what is written into one that was removed or replaced is lost with the process.

use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;
use turnwright_engine::StoreError;

/// How often it is looked at while changes come. A look is a system call; so much may be stored in vain.
const INTERVAL: Duration = Duration::from_secs(1);

/// The file of a database, as the system knows it.
#[derive(Debug)]
pub(super) struct Named {
    /// `None` where the system says nothing that lasts.
    is: Option<Identity>,
    /// When to look next; `None` for at once.
    look_at: Option<Instant>,
    /// Whether the log was told that it lost its name.
    is_told: bool,
}

/// Its device and its number there.
type Identity = (u64, u64);

/// When to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// Somebody asks.
    Now,
    /// Where the last was a while ago.
    IfDue,
}

impl Named {
    /// The one that was opened by this name just now.
    pub(super) fn of(file: &Path) -> Self {
        Self { is: identity(file).unwrap_or_default(), look_at: None, is_told: false }
    }

    /// Why nothing is to be stored in it.
    pub(super) fn refusal(&mut self, file: &Path, look: Look) -> Option<StoreError> {
        let now = Instant::now();
        if look == Look::IfDue && self.look_at.is_some_and(|at| now < at) {
            return None;
        }
        let is = self.is?;
        let happened = match identity(file) {
            Ok(Some(found)) if found != is => "was replaced",
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => "was removed",
            Ok(_) | Err(_) => {
                (self.look_at, self.is_told) = (Some(now + INTERVAL), false);
                return None;
            }
        };
        let reason = format!(
            "`{}` {happened} while it was open, and what is stored now would be lost; put it back, or end this process and start it again",
            file.display()
        );
        // Where it is put back that is seen at once.
        self.look_at = None;
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
