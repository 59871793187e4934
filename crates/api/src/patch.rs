//! Fields of a change: left alone, cleared, or set (RFC 7396).

use serde::{Deserialize, Deserializer};

/// What a change says about a field. Absent keeps it, null clears it, a value sets it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Patch<T> {
    /// The field stays.
    #[default]
    Keep,
    /// The field goes.
    Clear,
    /// The field becomes this.
    Set(T),
}

impl<T> Patch<T> {
    /// The field after the change.
    pub fn apply(self, before: Option<T>) -> Option<T> {
        match self {
            Self::Keep => before,
            Self::Clear => None,
            Self::Set(value) => Some(value),
        }
    }

    /// The change with its value read as something else.
    ///
    /// # Errors
    /// What `read` says.
    pub fn try_map<U, E>(self, read: impl FnOnce(T) -> Result<U, E>) -> Result<Patch<U>, E> {
        Ok(match self {
            Self::Keep => Patch::Keep,
            Self::Clear => Patch::Clear,
            Self::Set(value) => Patch::Set(read(value)?),
        })
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Patch<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::<T>::deserialize(deserializer)?.map_or(Self::Clear, Self::Set))
    }
}
