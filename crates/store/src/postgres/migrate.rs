//! Brings a database to this build's schema, once, however many nodes start together; says what it cannot use.
//!
//! Nodes of two versions are on one database while they are upgraded one after the other. So a migration says which builds can
//! go on with what it made, and a build takes a schema that is newer than itself where all that came since allows it.

use turnwright_engine::StoreError;

use super::copy;
use super::failure::{self, Failed};
use super::link::{Link, Patience};
use super::options::PostgresOptions;
use super::pool::Pool;
use crate::sqlite::Making;

/// One step of the schema's history.
struct Migration {
    script: &'static str,
    /// The least number of migrations that a build must know to go on with what this one made. Where it only adds (a table, a
    /// column that may be left out, a function of a new name), that of the one before it; else its own. It must be true of
    /// statements that are prepared already: whoever runs is not asked.
    oldest: usize,
}

/// The schema's history. `installation.version` counts how many of these a database has seen, `oldest` is that of the last; none
/// is ever changed.
const MIGRATIONS: &[Migration] = &[
    Migration { script: include_str!("../migrations/postgres/0001_store.sql"), oldest: 1 },
    // The function `append` takes what it took.
    Migration { script: include_str!("../migrations/postgres/0002_running_turns.sql"), oldest: 1 },
    Migration { script: include_str!("../migrations/postgres/0003_holding.sql"), oldest: 1 },
    // Here too.
    Migration { script: include_str!("../migrations/postgres/0004_incarnations.sql"), oldest: 1 },
    // The function `append_holding` too.
    Migration { script: include_str!("../migrations/postgres/0005_documents_of_copies.sql"), oldest: 1 },
    Migration { script: include_str!("../migrations/postgres/0006_beginnings.sql"), oldest: 1 },
    // The functions `append` and `forget_conversation` take what they took.
    Migration { script: include_str!("../migrations/postgres/0007_times.sql"), oldest: 1 },
    Migration { script: include_str!("../migrations/postgres/0008_pinned.sql"), oldest: 1 },
];

/// The oldest server that does all that is asked of it: `bit_count` came with it.
const OLDEST_SERVER: i64 = 140_000;

/// What a server says of itself.
const SERVER: &str = "SELECT current_setting('server_version_num')::bigint, current_setting('server_version'),
    current_setting('server_encoding'), pg_is_in_recovery(), current_setting('transaction_read_only') = 'on'";
/// Whether the schema is there, has our mark, and has anything else. Names are looked up whatever the search path is.
const SEEN: &str = "SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1),
    to_regclass(format('%I.installation', $1::text)) IS NOT NULL,
    EXISTS (SELECT 1 FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = $1)";

/// The right to bring the schema up, until the end of the transaction: where nobody has it, and once nobody has it.
const TRY_ALONE: &str = "SELECT pg_try_advisory_xact_lock(hashtextextended('turnwright ' || $1, 0))";
const ALONE: &str = "SELECT pg_advisory_xact_lock(hashtextextended('turnwright ' || $1, 0))";

/// Checks the server, and that the schema is ours, or new and empty; migrates it.
///
/// # Errors
/// Where the server is too old or only reads, and where the schema is another application's or of a newer version. Nothing is
/// changed then.
pub(super) async fn migrate(link: &Link, pool: &Pool) -> Result<(), Failed> {
    let options = pool.options();
    check_server(link, options).await?;
    match standing(link, options).await? {
        Standing::Ready => return Ok(()),
        Standing::New if options.making == Making::Refused => {
            let (schema, shown) = (&options.schema, &options.shown);
            let reason = format!(
                "there is nothing in the schema `{schema}` of the database `{shown}`; name one that is there with `?schema=NAME`"
            );
            return Err(Failed::Refused(StoreError::Unusable { reason }));
        }
        Standing::New | Standing::Behind(_) | Standing::TooNew => {}
    }
    link.batch("BEGIN").await?;
    // It takes as long as the tables are large, and whoever waits for another that does it waits as long.
    link.wait(Patience::Unlimited);
    let done = match missing(link, pool).await {
        Ok(()) => link.batch("COMMIT").await,
        Err(error) => {
            // The first error tells what happened.
            let _ = link.batch("ROLLBACK").await;
            Err(error)
        }
    };
    link.wait(Patience::Limited);
    done
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

/// What is to be done before a schema can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// It is made.
    New,
    /// It gets what came after so many migrations.
    Behind(usize),
    /// Nothing.
    Ready,
    /// It cannot be used by this build.
    TooNew,
}

/// Decides by the number of migrations that a schema has seen, the least that its users must know, and how many we know.
fn stands(seen: i64, oldest: i64, known: usize) -> Standing {
    match (usize::try_from(seen), usize::try_from(oldest)) {
        (Ok(seen), _) if seen < known => Standing::Behind(seen),
        (Ok(seen), _) if seen == known => Standing::Ready,
        (Ok(_), Ok(oldest)) if oldest <= known => Standing::Ready,
        (Ok(_) | Err(_), _) => Standing::TooNew,
    }
}

/// How a schema stands. One that is too new is refused.
async fn standing(link: &Link, options: &PostgresOptions) -> Result<Standing, Failed> {
    let (shown, schema) = (&options.shown, &options.schema);
    let get = |error: tokio_postgres::Error| failure::of(shown, &error);
    let rows = link.once(SEEN, &[schema]).await?;
    let Some(row) = rows.first() else { return Ok(Standing::New) };
    let (is_there, is_ours, is_used): (bool, bool, bool) =
        (row.try_get(0).map_err(get)?, row.try_get(1).map_err(get)?, row.try_get(2).map_err(get)?);
    if !is_there || !is_used {
        return Ok(Standing::New);
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
    // Through JSON, since a mark that was made before `oldest` was told has no such column.
    let query = format!(
        "SELECT application, version, coalesce((to_jsonb(mark) ->> 'oldest')::bigint, version) FROM \"{schema}\".installation AS mark"
    );
    let rows = link.once(&query, &[]).await.map_err(|failed| match failed {
        Failed::Refused(StoreError::Unusable { reason }) if reason.contains("[42703]") => foreign(),
        other => other,
    })?;
    let Some(row) = rows.first() else { return Err(foreign()) };
    let (application, seen): (String, i64) = (row.try_get(0).map_err(get)?, row.try_get(1).map_err(get)?);
    if application != "turnwright" {
        return Err(foreign());
    }
    let known = MIGRATIONS.len();
    match stands(seen, row.try_get(2).map_err(get)?, known) {
        Standing::TooNew => Err(Failed::Refused(StoreError::Newer {
            what: format!("the database `{shown}` (schema `{schema}`, version {seen}, this build reads up to {known})"),
        })),
        standing => Ok(standing),
    }
}

/// Runs what is missing, alone among all nodes. Looks again first: another may have been quicker.
async fn missing(link: &Link, pool: &Pool) -> Result<(), Failed> {
    let options = pool.options();
    link.batch("SET LOCAL statement_timeout = 0").await?;
    let rows = link.once(TRY_ALONE, &[&options.schema]).await?;
    if rows.first().and_then(|row| row.try_get(0).ok()) != Some(true) {
        tracing::info!(database = options.shown(), "another node brings the database up; this one starts once that is done");
        link.once(ALONE, &[&options.schema]).await?;
    }
    let seen = match standing(link, options).await? {
        Standing::Ready | Standing::TooNew => return Ok(()),
        Standing::Behind(seen) => {
            // As long as that takes this connection does nothing.
            link.batch("SET LOCAL idle_in_transaction_session_timeout = 0").await?;
            copy::keep(link, pool, MIGRATIONS.len()).await?;
            seen
        }
        Standing::New => {
            make(link, options).await?;
            0
        }
    };
    let new = MIGRATIONS.iter().skip(seen);
    let mut oldest = 0;
    for migration in new {
        link.batch(migration.script).await?;
        oldest = migration.oldest;
    }
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    link.batch("ALTER TABLE installation ADD COLUMN IF NOT EXISTS oldest BIGINT NOT NULL DEFAULT 0").await?;
    link.once("UPDATE installation SET version = $1, oldest = $2", &[&number(MIGRATIONS.len()), &number(oldest)]).await?;
    Ok(())
}

/// Makes the schema with its mark.
async fn make(link: &Link, options: &PostgresOptions) -> Result<(), Failed> {
    let (shown, schema) = (&options.shown, &options.schema);
    let made = link
        .batch(&format!(
            "CREATE SCHEMA IF NOT EXISTS \"{schema}\";
             CREATE TABLE installation (application TEXT NOT NULL, version BIGINT NOT NULL, oldest BIGINT NOT NULL);
             INSERT INTO installation VALUES ('turnwright', 0, 0)"
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
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_schema_is_used_where_it_only_has_more() {
        let standings =
            [(1, 1), (2, 2), (3, 1), (3, 2), (3, 3), (-1, 0), (3, -1)].map(|(seen, oldest)| stands(seen, oldest, 2));
        let ready = Standing::Ready;
        let too_new = Standing::TooNew;
        assert_eq!(standings, [Standing::Behind(1), ready, ready, ready, too_new, too_new, too_new]);
    }

    #[test]
    fn each_migration_names_itself_or_one_before_and_never_an_older_one_than_the_last() {
        let oldest: Vec<usize> = MIGRATIONS.iter().map(|migration| migration.oldest).collect();
        assert!(oldest.iter().zip(1..).all(|(oldest, own)| (1..=own).contains(oldest)), "{oldest:?}");
        assert!(oldest.is_sorted(), "{oldest:?}");
    }
}
