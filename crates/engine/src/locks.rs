//! The port to locks by name, which one at a time holds of all who use a store, in whatever process and on whatever machine.

use std::fmt::Debug;

use async_trait::async_trait;

use crate::StoreError;

/// Locks that hold over all stores on the same data.
#[async_trait]
pub trait Locks: Send + Sync + Debug {
    /// Waits until nobody else holds the lock of this name, at most a minute. It is let go with what is returned, and with the process that
    /// holds it, however that ends.
    ///
    /// # Errors
    /// Where the store fails, or the minute was not enough.
    async fn lock(&self, name: &str) -> Result<Lock, StoreError>;
}

/// A lock that is held. Dropping it lets it go.
pub type Lock = Box<dyn Send + Sync>;
