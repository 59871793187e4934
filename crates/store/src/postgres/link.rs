//! One connection, and the statements that are prepared on it.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::TryStreamExt;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row, Statement};
use tokio_util::task::TaskTracker;

use super::LIMITS;
use super::failure::{self, Failed};
use super::options::PostgresOptions;
use super::tls::Tls;
use super::values::Values;
use crate::Durability;

/// What a statement gave.
#[derive(Debug)]
pub(super) struct Answer {
    /// Its rows.
    pub(super) rows: Vec<Row>,
    /// How many rows it changed or found.
    pub(super) count: u64,
    /// Whether it was sent before on a connection that broke, so that it may be done already.
    pub(super) is_resent: bool,
}

/// A connection that one at a time uses.
#[derive(Debug)]
pub(super) struct Link {
    client: Client,
    statements: Mutex<HashMap<&'static str, Statement>>,
    is_broken: AtomicBool,
    shown: String,
    /// How long a statement may take.
    limit: Duration,
    has_no_limit: AtomicBool,
}

/// How long is waited for the answer to a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// As long as statements may take.
    Limited,
    /// As long as the server is there.
    Unlimited,
}

/// What every connection is told at its beginning. Text is not cut short by a setting of the server's.
pub(super) fn session(options: &PostgresOptions, driver: &str) -> String {
    let milliseconds = options.statement_limit.as_millis();
    let schema = &options.schema;
    let commits = match options.durability {
        Durability::Process => "",
        Durability::Power => "SET synchronous_commit = on; ",
    };
    format!(
        "{commits}SET search_path = \"{schema}\"; SET \"turnwright.driver\" = '{driver}'; SET statement_timeout = {milliseconds}; \
         SET idle_in_transaction_session_timeout = {milliseconds}; SET client_min_messages = warning; \
         SET standard_conforming_strings = on; SET bytea_output = hex"
    )
}

impl Link {
    /// Connects; `tasks` owns what moves its bytes.
    pub(super) async fn open(options: &PostgresOptions, tls: &Tls, driver: &str, tasks: &TaskTracker) -> Result<Self, Failed> {
        let shown = options.shown.clone();
        let config = &options.config;
        let (user, database) = (config.get_user().unwrap_or("?"), config.get_dbname().or(config.get_user()).unwrap_or("?"));
        let connecting = tokio::time::timeout(LIMITS.connect, config.connect(tls.clone()));
        let connected = connecting.await.map_err(|_| Failed::Lost(format!("no answer within {:?}", LIMITS.connect)))?;
        let (client, connection) = connected.map_err(|error| failure::of_connecting(&shown, user, database, &error))?;
        tasks.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to the database broke");
            }
        });
        let (is_broken, has_no_limit) = (AtomicBool::new(false), AtomicBool::new(false));
        let link =
            Self { client, statements: Mutex::default(), is_broken, shown, limit: options.statement_limit, has_no_limit };
        link.batch(&session(options, driver)).await?;
        Ok(link)
    }

    /// Whether it may be used again.
    pub(super) fn is_fit(&self) -> bool {
        !self.is_broken.load(Ordering::Relaxed) && !self.client.is_closed()
    }

    /// Waits so long from here on; the server has a limit of its own.
    pub(super) fn wait(&self, patience: Patience) {
        self.has_no_limit.store(patience == Patience::Unlimited, Ordering::Relaxed);
    }

    /// Runs a statement, which is prepared the first time.
    pub(super) async fn ask(&self, sql: &'static str, values: Values<'_>) -> Result<(Vec<Row>, u64), Failed> {
        self.within(async {
            let statement = self.statement(sql).await?;
            let rows = self.client.query_raw(&statement, values.iter().copied()).await?;
            let mut rows = pin!(rows);
            let mut found = Vec::new();
            while let Some(row) = rows.try_next().await? {
                found.push(row);
            }
            Ok((found, rows.rows_affected().unwrap_or_default()))
        })
        .await
    }

    /// The types of a statement's parameters; it is prepared for that.
    pub(super) async fn types(&self, sql: &'static str) -> Result<Vec<Type>, Failed> {
        self.within(async { Ok(self.statement(sql).await?.params().to_vec()) }).await
    }

    /// Runs statements without values, as one transaction.
    pub(super) async fn batch(&self, sql: &str) -> Result<(), Failed> {
        self.within(self.client.batch_execute(sql)).await
    }

    /// Runs a statement that is not kept.
    pub(super) async fn once(&self, sql: &str, values: Values<'_>) -> Result<Vec<Row>, Failed> {
        self.within(self.client.query(sql, values)).await
    }

    async fn statement(&self, sql: &'static str) -> Result<Statement, tokio_postgres::Error> {
        let known = self.statements.lock().unwrap_or_else(PoisonError::into_inner).get(sql).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let statement = self.client.prepare(sql).await?;
        self.statements.lock().unwrap_or_else(PoisonError::into_inner).insert(sql, statement.clone());
        Ok(statement)
    }

    async fn within<T>(&self, work: impl Future<Output = Result<T, tokio_postgres::Error>>) -> Result<T, Failed> {
        // A little longer than the server's own limit, which says more.
        let limit =
            if self.has_no_limit.load(Ordering::Relaxed) { Duration::MAX } else { self.limit.saturating_add(LIMITS.connect) };
        let failed = match tokio::time::timeout(limit, work).await {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(error)) => failure::of(&self.shown, &error),
            Err(_) => Failed::Lost("no answer to a statement".to_owned()),
        };
        if matches!(failed, Failed::Lost(_)) {
            self.is_broken.store(true, Ordering::Relaxed);
        }
        Err(failed)
    }
}
