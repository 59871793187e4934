//! What PostgreSQL's failures mean: to whoever asked, and to whoever may ask again.

use tokio_postgres::error::{DbError, SqlState};
use turnwright_engine::StoreError;

/// Why the database did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failed {
    /// The connection is gone, or of no use any more: whether it was done is not known. Ask again on another.
    Lost(String),
    /// It was not done, because of somebody else's doing at the same moment. Ask again.
    Again(String),
    /// Asking again changes nothing.
    Refused(StoreError),
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

/// What failed over a connection that was there.
pub(super) fn of(shown: &str, error: &tokio_postgres::Error) -> Failed {
    let Some(told) = error.as_db_error() else {
        let is_ours =
            error.to_string().starts_with("error serializing") || error.to_string().starts_with("error deserializing");
        if is_ours {
            let reason = format!("the database `{shown}` has something else than was expected: {}", whole(error));
            return Failed::Refused(StoreError::Damaged { what: format!("the database `{shown}`"), reason });
        }
        return Failed::Lost(whole(error));
    };
    let code = told.code();
    if is_gone(code) {
        return Failed::Lost(said(told));
    }
    let again = [&SqlState::T_R_SERIALIZATION_FAILURE, &SqlState::T_R_DEADLOCK_DETECTED, &SqlState::UNIQUE_VIOLATION];
    if again.contains(&code) {
        return Failed::Again(said(told));
    }
    Failed::Refused(StoreError::Unusable { reason: reason(shown, told) })
}

/// Whether a connection that says this is of no use any more: its server ends, or has become one that only reads.
fn is_gone(code: &SqlState) -> bool {
    let gone = [
        &SqlState::ADMIN_SHUTDOWN,
        &SqlState::CRASH_SHUTDOWN,
        &SqlState::CANNOT_CONNECT_NOW,
        &SqlState::TOO_MANY_CONNECTIONS,
        &SqlState::READ_ONLY_SQL_TRANSACTION,
        &SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
    ];
    gone.contains(&code) || code.code().starts_with("08")
}

fn reason(shown: &str, told: &DbError) -> String {
    let said = said(told);
    match told.code() {
        code if *code == SqlState::DISK_FULL => format!("the database `{shown}` has no space left ({said}); free some"),
        code if *code == SqlState::QUERY_CANCELED => {
            format!("the database `{shown}` took too long and was stopped ({said}); it may have too much to do")
        }
        code if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
            format!("the database `{shown}` does not allow it ({said}); its tables must belong to this user")
        }
        _ => format!("the database `{shown}` cannot do it: {said}"),
    }
}

/// Why there is no connection, in words for whoever set it up. `Err` where it may be there in a moment.
pub(super) fn of_connecting(shown: &str, user: &str, database: &str, error: &tokio_postgres::Error) -> Failed {
    let unusable = |reason: String| Failed::Refused(StoreError::Unusable { reason });
    let Some(told) = error.as_db_error() else {
        let whole = whole(error);
        let is_tls = whole.contains("TLS") || whole.contains("certificate");
        if is_tls {
            return unusable(format!(
                "the database `{shown}` cannot be reached over TLS: {whole}; see `sslmode` and `sslrootcert`"
            ));
        }
        if whole.contains("password") || whole.contains("authentication") {
            return unusable(format!("the database `{shown}` refused the credentials of `{user}`: {whole}"));
        }
        return Failed::Lost(whole);
    };
    let said = said(told);
    match told.code() {
        code if *code == SqlState::INVALID_PASSWORD || *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION => unusable(
            format!("the database `{shown}` refused the credentials of `{user}`: {said}; give the right user and password"),
        ),
        code if *code == SqlState::INVALID_CATALOG_NAME => unusable(format!(
            "there is no database `{database}` at `{shown}` ({said}); create it: `createdb {database}`, or name another"
        )),
        code if is_gone(code) => Failed::Lost(said),
        _ => unusable(reason(shown, told)),
    }
}

/// The words for a database that could not be reached for as long as was waited.
pub(super) fn unreachable(shown: &str, why: &str) -> StoreError {
    let must = if why.contains(&format!("[{}]", SqlState::TOO_MANY_CONNECTIONS.code())) {
        "all connections that it takes are in use: each server here takes nine, so raise its `max_connections`, or run fewer"
    } else {
        "it must be running, and reachable from here"
    };
    StoreError::Unusable { reason: format!("the database `{shown}` cannot be reached: {why}; {must}") }
}

/// The error while a lease that ran out is not held again, and nothing is known of why.
pub(super) fn lease_over(shown: &str) -> StoreError {
    StoreError::Unusable {
        reason: format!(
            "this server's lease in the database `{shown}` ran out and is not renewed yet: the server stood still, which passes within a \
             second, or the database does not answer"
        ),
    }
}

/// Whether it says that the database's disk is full.
pub(super) fn is_full(error: &StoreError) -> bool {
    matches!(error, StoreError::Unusable { reason } if reason.contains(&format!("[{}]", SqlState::DISK_FULL.code())))
}

/// What the server said, with its code.
fn said(told: &DbError) -> String {
    format!("{} [{}]", told.message(), told.code().code())
}

/// An error with what it comes from.
pub(super) fn whole(error: &tokio_postgres::Error) -> String {
    let mut words = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        let text = next.to_string();
        if !words.contains(&text) {
            words = format!("{words}: {text}");
        }
        cause = next.source();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_whose_connections_are_all_in_use_is_named_as_that() {
        let told = |why: &str| unreachable("postgres://ada:***@db/tw", why).to_string();
        let begin = "the database `postgres://ada:***@db/tw` cannot be reached: ";
        assert_eq!(
            told("sorry, too many clients already [53300]"),
            format!(
                "{begin}sorry, too many clients already [53300]; all connections that it takes are in use: each server here takes nine, so \
                 raise its `max_connections`, or run fewer"
            )
        );
        assert_eq!(told("gone [57P01]"), format!("{begin}gone [57P01]; it must be running, and reachable from here"));
    }
}
