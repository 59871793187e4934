//! Text that must never be shown.

use std::fmt;

/// A key, or a header that may hold one. Its `Debug` form does not show it, and it has no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The secret itself, for the wire alone.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// `text` without the secret, in case somebody echoes it. Very short secrets are no secrets and are left alone.
    pub(crate) fn redact(&self, text: String) -> String {
        if self.0.len() >= 6 && text.contains(&self.0) { text.replace(&self.0, "[redacted]") } else { text }
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}
