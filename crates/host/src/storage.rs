//! Which database the configuration names, and how it is opened.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use turnwright_engine::StoreError;
use turnwright_engine::knowledge::version_of;
use turnwright_store::{
    Durability, Location, MOVING, PostgresOptions, PostgresStore, SqliteOptions, SqliteStore, Storage, mend,
};

use crate::HostError;
use crate::config::{self, Loaded};
use crate::owner::not_anothers;

/// The largest database on PostgreSQL of which a copy is kept on this machine before it is brought up: a start should not take
/// minutes, nor fill the disk of a node.
const LARGEST_COPY: u64 = 256 * 1024 * 1024;

/// How an address of PostgreSQL is written, and a file that is called so.
pub(crate) const OF_POSTGRES: &str =
    "`postgres://USER:PASSWORD@HOST/DATABASE`, or for a file of such a name its path, as in `./postgres:x`";
const WRITTEN_OTHERWISE: &str =
    "it must be `postgres://USER:PASSWORD@HOST/DATABASE`, or for a file of such a name its path, as in `./postgres:x`";

/// Whether a text begins as an address of PostgreSQL and is none: it may hold a password all the same, and nobody means a file.
pub(crate) fn is_broken_postgres(address: &str) -> bool {
    let scheme = address.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
    matches!(scheme.as_deref(), Some("postgres" | "postgresql")) && !PostgresOptions::is_address(address)
}

/// Where conversations are.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    Sqlite(SqliteOptions),
    Postgres {
        options: Box<PostgresOptions>,
        /// What belongs to this database on this machine.
        folder: PathBuf,
    },
}

impl Place {
    /// The one that the configuration names; the file in the data directory where it names none.
    pub(crate) fn of(loaded: &Loaded) -> Result<Self, HostError> {
        let durability = match loaded.config.storage.durability {
            config::Durability::Process => Durability::Process,
            config::Durability::Power => Durability::Power,
        };
        match &loaded.config.storage.database {
            None => Ok(Self::Sqlite(SqliteOptions::in_directory(&loaded.data_dir).durability(durability))),
            Some(address) => Self::at(address.expose(), &loaded.data_dir, durability),
        }
    }

    /// The one at an address: a file, `sqlite:FILE`, or `postgres://…`.
    ///
    /// # Errors
    /// Where it is none that can be used.
    pub(crate) fn at(address: &str, data_dir: &Path, durability: Durability) -> Result<Self, HostError> {
        if PostgresOptions::is_address(address) {
            // Nodes on one machine may share their data directory, and their database or not.
            let folder = data_dir.join("postgres").join(version_of(address.as_bytes()));
            let options = PostgresOptions::parse(address)?.durability(durability).keeping_copies(&folder, LARGEST_COPY);
            let options = Box::new(options);
            return Ok(Self::Postgres { options, folder });
        }
        if is_broken_postgres(address) {
            return Err(HostError::Database { address: "postgres:…".to_owned(), reason: WRITTEN_OTHERWISE });
        }
        let path = address.strip_prefix("sqlite://").or_else(|| address.strip_prefix("sqlite:")).unwrap_or(address);
        if let Some((scheme, _)) = path.split_once("://") {
            let reason = "name a SQLite file or `postgres://USER:PASSWORD@HOST/DATABASE`, or leave it out";
            return Err(HostError::Database { address: format!("{scheme}://…"), reason });
        }
        Ok(Self::Sqlite(SqliteOptions::at_file(path).durability(durability)))
    }

    /// Opens it, where it is whole, and makes no files of root's where those of another are.
    pub(crate) async fn open(&self) -> Result<Arc<dyn Storage>, HostError> {
        match self {
            Self::Sqlite(options) => not_anothers(&options.path()?)?,
            // In the data directory, below the folder of such databases.
            Self::Postgres { folder, .. } => folder.ancestors().nth(2).map_or(Ok(()), not_anothers)?,
        }
        let store = self.open_any().await?;
        let Some(moving) = store.documents(MOVING).await?.pop() else { return Ok(store) };
        store.close().await;
        let reason = format!(
            "a move from {} broke off before it was whole, rules and entries may be missing; the same `turnwright db move` goes on",
            moving.body
        );
        Err(StoreError::Unusable { reason }.into())
    }

    async fn open_any(&self) -> Result<Arc<dyn Storage>, HostError> {
        match self {
            Self::Sqlite(options) => Ok(Arc::new(SqliteStore::start(options).await?)),
            Self::Postgres { options, folder } => {
                std::fs::create_dir_all(folder).map_err(|error| StoreError::Unusable {
                    reason: format!("`{}` cannot be created as a folder: {error}{}", folder.display(), mend(&error)),
                })?;
                // It is large, and nobody starts often.
                Ok(Arc::new(Box::pin(PostgresStore::open(options)).await?))
            }
        }
    }

    /// The same for those that look at it as rows.
    pub(crate) fn location(&self) -> Location {
        match self {
            Self::Sqlite(options) => Location::Sqlite(options.clone()),
            Self::Postgres { options, .. } => Location::Postgres(options.clone()),
        }
    }

    /// Where something lies on this machine that belongs to this database and to no other.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        match self {
            Self::Sqlite(options) => options.beside(name),
            Self::Postgres { folder, .. } => folder.join(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_as_an_address_of_postgresql_and_is_none_is_told_without_what_it_holds() {
        let at = |address: &str| Place::at(address, Path::new("/data"), Durability::Process);
        for address in ["postgres:/u:SECRET@h/d", "postgresql:u:SECRET@h/d", "POSTGRES://u:SECRET@h/d", "postgres:x"] {
            let told = at(address).unwrap_err().to_string();
            assert_eq!(told, format!("the database `postgres:…` cannot be used: {WRITTEN_OTHERWISE}"), "{address}");
        }
        assert!(matches!(at("postgres://u:SECRET@h/d"), Ok(Place::Postgres { .. })));
        assert!(matches!(at("./postgres:x"), Ok(Place::Sqlite(_))));
    }
}
