//! What is kept before a newer version brings a schema up: everything, in a SQLite file on the machine of the node that does it.
//!
//! Whoever does it is alone, so however many nodes start together there is one. What nodes of the version before write after it was
//! begun is not in it. A migration is one transaction, so one that breaks off needs no copy; this is for what it should not have done.

use std::path::Path;

use turnwright_engine::StoreError;

use super::RowLink;
use super::failure::{self, Failed};
use super::link::Link;
use super::options::Copies;
use super::pool::Pool;
use crate::moving;

/// What the tables of the schema take, in bytes.
const BYTES: &str = "SELECT coalesce(sum(pg_total_relation_size(pg_class.oid)), 0)::bigint
    FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = $1 AND relkind = 'r'";

/// Copies everything into `before-vN.db`, in the place of one of an earlier attempt; says why not, where that cannot be. `link` holds
/// the right to bring the schema up and has not begun to.
///
/// # Errors
/// Where the copy cannot be written; the schema is unchanged then.
pub(super) async fn keep(link: &Link, pool: &Pool, version: usize) -> Result<(), Failed> {
    let options = pool.options();
    let database = options.shown();
    let Some(Copies { folder, most_bytes }) = &options.copies else { return Ok(()) };
    let rows = link.once(BYTES, &[&options.schema]).await?;
    let bytes: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0)).map_err(|error| failure::of(database, &error))?;
    if u64::try_from(bytes).unwrap_or(u64::MAX) > *most_bytes {
        tracing::warn!(
            database,
            bytes,
            most_bytes,
            "no copy is kept before the database is brought up: it is too large for one"
        );
        return Ok(());
    }
    let file = folder.join(format!("before-v{version}.db"));
    // Under its own name only once it is whole.
    let part = folder.join(format!("before-v{version}.part"));
    let fails = |error: std::io::Error| StoreError::Unusable {
        reason: format!("the copy `{}` cannot be written: {error}", file.display()),
    };
    remove(&part).map_err(fails)?;
    let lacking = moving::copy_of_older(RowLink::open(pool).await?, options, &part).await?;
    if lacking.is_empty() {
        std::fs::rename(part.join("turnwright.db"), &file).map_err(fails)?;
        tracing::info!(database, copy = %file.display(), "a copy is kept before the database is brought up");
    } else {
        tracing::warn!(
            database,
            ?lacking,
            "no copy is kept before the database is brought up: this version cannot read it whole"
        );
    }
    Ok(remove(&part).map_err(fails)?)
}

fn remove(folder: &Path) -> std::io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
