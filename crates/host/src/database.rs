//! The database as a whole: into another, into a backup, and whether it is sound.

use std::path::Path;

use turnwright_store::Durability;
pub use turnwright_store::Moved;

use crate::HostError;
use crate::config::Loaded;
use crate::storage::Place;

/// Moves everything from one database to another; both are addresses as `--database` takes them. Nobody may use them.
///
/// # Errors
/// In words for people. What arrived stays, and the same move goes on from there.
pub async fn move_all(loaded: &Loaded, from: &str, to: &str) -> Result<Moved, HostError> {
    let at = |address| Place::at(address, &loaded.data_dir, Durability::Power);
    let (from, to) = (at(from)?, at(to)?);
    Ok(turnwright_store::move_all(&from.location(), &to.location()).await?)
}

/// Writes everything of the configured database into a SQLite file that is not there yet.
///
/// # Errors
/// In words for people.
pub async fn backup(loaded: &Loaded, file: &Path) -> Result<Moved, HostError> {
    Ok(turnwright_store::backup(&Place::of(loaded)?.location(), file).await?)
}

/// Looks whether everything in the configured database can be read and nothing is missing; what is wrong, in words.
///
/// # Errors
/// Where it cannot be used at all.
pub async fn check(loaded: &Loaded) -> Result<(Moved, Vec<String>), HostError> {
    Ok(turnwright_store::check(&Place::of(loaded)?.location()).await?)
}
