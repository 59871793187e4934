//! What an address of a database says, and what may be told of it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::SslMode;
use turnwright_engine::StoreError;

use super::LIMITS;
use crate::Durability;
use crate::sqlite::Making;

/// How to open a [`PostgresStore`](super::PostgresStore).
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresOptions {
    pub(super) config: Config,
    pub(super) trust: Trust,
    /// In which all tables are.
    pub(super) schema: String,
    /// The address without what nobody is to read.
    pub(super) shown: String,
    pub(super) durability: Durability,
    pub(super) copies: Option<Copies>,
    pub(super) statement_limit: Duration,
    /// What is done where the schema is not there.
    pub(super) making: Making,
}

/// Where a copy is kept before a newer version brings the schema up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Copies {
    pub(super) folder: PathBuf,
    pub(super) most_bytes: u64,
}

/// Whom a server has to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trust {
    /// Anybody: what is sent is encrypted where the mode says so, and nobody looks with whom.
    Anybody,
    /// Whoever has a certificate by an authority that is trusted, in any name.
    Certified(Option<PathBuf>),
    /// The same, in the name of the host that was asked for.
    Named(Option<PathBuf>),
}

/// The schema of a database where the address names none.
const SCHEMA: &str = "turnwright";

impl std::fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresOptions").field("shown", &self.shown).field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl PostgresOptions {
    /// Whether an address is one of PostgreSQL.
    pub fn is_address(address: &str) -> bool {
        address.starts_with("postgres://") || address.starts_with("postgresql://")
    }

    /// Reads `postgres://USER:PASSWORD@HOST:PORT/DATABASE?KEY=VALUE&…`, with the keys that libpq knows (`sslmode`,
    /// `sslrootcert`, `host`, `connect_timeout`, `options` and so on) and `schema`, in which the tables are.
    ///
    /// # Errors
    /// [`StoreError::Unusable`], where it is none; what it says has no password in it.
    pub fn parse(address: &str) -> Result<Self, StoreError> {
        let shown = shown(address);
        let wrong = |what: String| StoreError::Unusable { reason: format!("the database's address `{shown}` {what}") };
        let (base, query) = address.split_once('?').unwrap_or((address, ""));
        let (mut mode, mut root, mut schema, mut rest) = (None, None, SCHEMA.to_owned(), Vec::new());
        let mut keys = BTreeSet::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let key = unescaped(pair.split_once('=').map_or(pair, |(key, _)| key));
            // These are lists, of which each adds to the one before.
            let is_list = matches!(&*key, "host" | "hostaddr" | "port");
            if !keys.insert(key.clone()) && !is_list {
                return Err(wrong(format!("has `{key}` twice; say it once")));
            }
            match pair.split_once('=') {
                Some(("sslmode", value)) => mode = Some(value),
                Some(("sslrootcert", value)) => root = Some(PathBuf::from(unescaped(value))),
                Some(("schema", value)) => schema = unescaped(value),
                _ => rest.push(pair),
            }
        }
        if !is_name(&schema) {
            return Err(wrong(format!(
                "names the schema `{schema}`; it must be 1 to 40 of the signs a-z, 0-9 and `_`, a letter first"
            )));
        }
        let (ssl, trust) = match (mode, root) {
            (Some("disable"), _) => (SslMode::Disable, Trust::Anybody),
            (None | Some("allow" | "prefer"), _) => (SslMode::Prefer, Trust::Anybody),
            // As libpq does it: who names an authority wants it looked at.
            (Some("require"), None) => (SslMode::Require, Trust::Anybody),
            (Some("require" | "verify-ca"), root) => (SslMode::Require, Trust::Certified(root)),
            (Some("verify-full"), root) => (SslMode::Require, Trust::Named(root)),
            (Some(other), _) => {
                let modes = "disable, prefer, require, verify-ca or verify-full";
                return Err(wrong(format!("has `sslmode={other}`; it must be {modes}")));
            }
        };
        let plain = if rest.is_empty() { base.to_owned() } else { format!("{base}?{}", rest.join("&")) };
        let mut config: Config = plain.parse().map_err(|error: tokio_postgres::Error| {
            let cause = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            wrong(format!("cannot be read: {cause}; it is written `postgres://USER:PASSWORD@HOST:PORT/DATABASE`"))
        })?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(wrong("names no host; it is written `postgres://USER:PASSWORD@HOST:PORT/DATABASE`".to_owned()));
        }
        config.ssl_mode(ssl);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(LIMITS.connect);
        }
        // A server that vanished is noticed although nothing is sent.
        config.tcp_user_timeout(LIMITS.unanswered);
        config.keepalives_idle(LIMITS.unanswered);
        Ok(Self {
            config,
            trust,
            schema,
            shown,
            durability: Durability::default(),
            copies: None,
            statement_limit: LIMITS.statement,
            making: Making::default(),
        })
    }

    /// What an acknowledged append survives: the end of this process always. A power cut at the server is a matter of the
    /// server's own `synchronous_commit`, which [`Durability::Power`] turns on whatever its configuration says.
    #[must_use]
    pub fn durability(self, durability: Durability) -> Self {
        Self { durability, ..self }
    }

    /// Before the schema is brought up, everything is copied into `before-vN.db` in this folder, unless its tables take more than
    /// so many bytes. Without it no copy is made.
    #[must_use]
    pub fn keeping_copies(self, folder: impl Into<PathBuf>, most_bytes: u64) -> Self {
        Self { copies: Some(Copies { folder: folder.into(), most_bytes }), ..self }
    }

    /// How long one statement may take, a minute unless this says otherwise. What brings the schema up has no limit.
    #[must_use]
    pub fn statement_limit(self, limit: Duration) -> Self {
        Self { statement_limit: limit, ..self }
    }

    /// Opens what is there, and makes nothing where there is no such schema or nothing is in it.
    #[must_use]
    pub(crate) fn that_is_there(self) -> Self {
        Self { making: Making::Refused, ..self }
    }

    /// The schema in which the tables are.
    pub fn schema(&self) -> &str {
        &self.schema
    }

    /// The address for people: without its password.
    pub fn shown(&self) -> &str {
        &self.shown
    }
}

/// Whether a schema is named so that its name is the same in quotes and without, and fits a channel's.
fn is_name(text: &str) -> bool {
    let is_sign = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
    (1..=40).contains(&text.len()) && text.starts_with(|first: char| first.is_ascii_lowercase()) && text.bytes().all(is_sign)
}

/// A key or a value of a query, with what was escaped.
fn unescaped(value: &str) -> String {
    let pair = format!("v={value}");
    url::form_urlencoded::parse(pair.as_bytes()).next().map(|(_, value)| value.into_owned()).unwrap_or_default()
}

/// An address with stars in the place of its password, and without its query.
fn shown(address: &str) -> String {
    let (base, _) = address.split_once('?').unwrap_or((address, ""));
    let Some((scheme, rest)) = base.split_once("://") else { return "…".to_owned() };
    let Some((user, host)) = rest.rsplit_once('@') else { return base.to_owned() };
    match user.split_once(':') {
        Some((user, _)) => format!("{scheme}://{user}:***@{host}"),
        None => base.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        let table = [
            ("postgres://ada:secret@db.example:5433/work?sslmode=require", "postgres://ada:***@db.example:5433/work"),
            ("postgres://ada:se:cr@et@h/d", "postgres://ada:***@h/d"),
            ("postgres://ada@h/d", "postgres://ada@h/d"),
            ("postgresql:///d?host=/run&password=secret", "postgresql:///d"),
        ];
        for (address, expected) in table {
            let options = PostgresOptions::parse(address).unwrap();
            assert_eq!(options.shown(), expected);
            assert!(!format!("{options:?}").contains("se"), "{options:?}");
        }
    }

    #[test]
    fn what_is_wrong_with_an_address_is_told_with_what_would_be_right() {
        let table = [
            ("postgres://ada:secret@h/d?sslmode=maybe", "has `sslmode=maybe`; it must be disable, prefer, require"),
            ("postgres://ada:secret@h/d?schema=a-b", "names the schema `a-b`; it must be 1 to 40 of the signs"),
            ("postgres://ada:secret@h:port/d", "cannot be read: "),
            ("postgres://ada:secret@h/d?colour=red", "cannot be read: unknown option `colour`"),
            ("postgres://h/d?schema=a&sslmode=disable&schema=b", "has `schema` twice; say it once"),
            ("postgres://h/d?connect_timeout=1&connect%5Ftimeout=2", "has `connect_timeout` twice; say it once"),
            ("postgres:///d", "names no host; it is written `postgres://USER:PASSWORD@HOST:PORT/DATABASE`"),
        ];
        for (address, expected) in table {
            let said = PostgresOptions::parse(address).unwrap_err().to_string();
            assert!(said.contains(expected), "{said}");
            assert!(!said.contains("secret"), "{said}");
        }
    }

    #[test]
    fn modes_say_who_is_trusted() {
        let read = |query: &str| PostgresOptions::parse(&format!("postgres://h/d?{query}")).unwrap();
        let table = [
            ("", SslMode::Prefer, Trust::Anybody),
            ("sslmode=disable", SslMode::Disable, Trust::Anybody),
            ("sslmode=require", SslMode::Require, Trust::Anybody),
            ("sslmode=require&sslrootcert=%2Fca.pem", SslMode::Require, Trust::Certified(Some("/ca.pem".into()))),
            ("sslmode=verify-ca", SslMode::Require, Trust::Certified(None)),
            ("sslmode=verify-full&sslrootcert=/ca.pem", SslMode::Require, Trust::Named(Some("/ca.pem".into()))),
        ];
        for (query, mode, trust) in table {
            let options = read(query);
            assert_eq!((options.config.get_ssl_mode(), options.trust), (mode, trust), "{query}");
        }
    }
}
