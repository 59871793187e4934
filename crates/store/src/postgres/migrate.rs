//! Brings a database to this build's schema, once, however many nodes start together; says what it cannot use.

use turnwright_engine::StoreError;

use super::failure::{self, Failed};
use super::link::Link;
use super::options::PostgresOptions;

/// The schema's history. `installation.version` counts how many of these a database has seen; none is ever changed.
const MIGRATIONS: &[&str] = &[include_str!("../migrations/postgres/0001_store.sql")];

/// The oldest server that does all that is asked of it: `bit_count` came with it.
const OLDEST_SERVER: i64 = 140_000;

/// What a server says of itself.
const SERVER: &str = "SELECT current_setting('server_version_num')::bigint, current_setting('server_version'),
    current_setting('server_encoding'), pg_is_in_recovery(), current_setting('transaction_read_only') = 'on'";
/// Whether the schema is there, has our mark, and has anything else. Names are looked up whatever the search path is.
const SEEN: &str = "SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1),
    to_regclass(format('%I.installation', $1::text)) IS NOT NULL,
    EXISTS (SELECT 1 FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = $1)";

/// Checks the server, and that the schema is ours, or new and empty; migrates it.
///
/// # Errors
/// Where the server is too old or only reads, and where the schema is another application's or of a newer version. Nothing is
/// changed then.
pub(super) async fn migrate(link: &Link, options: &PostgresOptions) -> Result<(), Failed> {
    check_server(link, options).await?;
    if version(link, options).await? == Some(MIGRATIONS.len()) {
        return Ok(());
    }
    link.batch("BEGIN").await?;
    let done = missing(link, options).await;
    match done {
        Ok(()) => link.batch("COMMIT").await,
        Err(error) => {
            // The first error tells what happened.
            let _ = link.batch("ROLLBACK").await;
            Err(error)
        }
    }
}

async fn check_server(link: &Link, options: &PostgresOptions) -> Result<(), Failed> {
    let shown = &options.shown;
    let unusable = |reason: String| Err(Failed::Refused(StoreError::Unusable { reason }));
    let rows = link.once(SERVER, &[]).await?;
    let Some(row) = rows.first() else { return unusable(format!("`{shown}` does not say what it is")) };
    let get = |error: tokio_postgres::Error| failure::of(shown, &error);
    let (number, name): (i64, String) = (row.try_get(0).map_err(get)?, row.try_get(1).map_err(get)?);
    if number < OLDEST_SERVER {
        return unusable(format!("the server of `{shown}` is PostgreSQL {name}; it must be 14 or newer"));
    }
    let encoding: String = row.try_get(2).map_err(get)?;
    if encoding != "UTF8" {
        return unusable(format!(
            "the database `{shown}` has the encoding {encoding}; it must be UTF8: `createdb --encoding=UTF8 --template=template0 NAME`"
        ));
    }
    if row.try_get(3).map_err(get)? {
        return unusable(format!("the server of `{shown}` is a standby, which only reads; name the primary"));
    }
    if row.try_get(4).map_err(get)? {
        return unusable(format!(
            "the database `{shown}` is read-only; it must be writable (see `default_transaction_read_only`)"
        ));
    }
    Ok(())
}

/// How many migrations a schema has seen; `None` where it is new.
async fn version(link: &Link, options: &PostgresOptions) -> Result<Option<usize>, Failed> {
    let (shown, schema) = (&options.shown, &options.schema);
    let get = |error: tokio_postgres::Error| failure::of(shown, &error);
    let rows = link.once(SEEN, &[schema]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let (is_there, is_ours, is_used): (bool, bool, bool) =
        (row.try_get(0).map_err(get)?, row.try_get(1).map_err(get)?, row.try_get(2).map_err(get)?);
    if !is_there || !is_used {
        return Ok(None);
    }
    let foreign = || {
        let reason = format!(
            "the schema `{schema}` of the database `{shown}` is another application's; name another with `?schema=NAME`"
        );
        Failed::Refused(StoreError::Unusable { reason })
    };
    if !is_ours {
        return Err(foreign());
    }
    let rows =
        link.once(&format!("SELECT application, version FROM \"{schema}\".installation"), &[]).await.map_err(|failed| {
            match failed {
                Failed::Refused(StoreError::Unusable { reason }) if reason.contains("[42703]") => foreign(),
                other => other,
            }
        })?;
    let Some(row) = rows.first() else { return Err(foreign()) };
    let (application, version): (String, i64) = (row.try_get(0).map_err(get)?, row.try_get(1).map_err(get)?);
    if application != "turnwright" {
        return Err(foreign());
    }
    match usize::try_from(version) {
        Ok(seen) if seen <= MIGRATIONS.len() => Ok(Some(seen)),
        Ok(_) | Err(_) => Err(Failed::Refused(StoreError::Newer {
            what: format!(
                "the database `{shown}` (schema `{schema}`, version {version}, this build reads up to {})",
                MIGRATIONS.len()
            ),
        })),
    }
}

/// Runs what is missing, alone among all nodes. Looks again first: another may have been quicker.
async fn missing(link: &Link, options: &PostgresOptions) -> Result<(), Failed> {
    let (shown, schema) = (&options.shown, &options.schema);
    link.once("SELECT pg_advisory_xact_lock(hashtextextended('turnwright ' || $1, 0))", &[schema]).await?;
    let seen = version(link, options).await?;
    if seen.is_none() {
        let made = link
            .batch(&format!(
                "CREATE SCHEMA IF NOT EXISTS \"{schema}\";
                 CREATE TABLE installation (application TEXT NOT NULL, version BIGINT NOT NULL);
                 INSERT INTO installation VALUES ('turnwright', 0)"
            ))
            .await;
        made.map_err(|failed| match failed {
            Failed::Refused(StoreError::Unusable { reason }) if reason.contains("[42501]") => {
                let user = options.config.get_user().unwrap_or("USER");
                let reason = format!(
                    "the database `{shown}` does not let `{user}` make the schema `{schema}`; as its owner: `GRANT CREATE ON DATABASE … TO {user}`"
                );
                Failed::Refused(StoreError::Unusable { reason })
            }
            other => other,
        })?;
    }
    for script in MIGRATIONS.iter().skip(seen.unwrap_or_default()) {
        link.batch(script).await?;
    }
    let newest = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    link.once("UPDATE installation SET version = $1", &[&newest]).await?;
    Ok(())
}
