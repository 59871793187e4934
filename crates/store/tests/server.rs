//! The PostgreSQL server that `scripts/start-test-postgres` started, and a schema of it for each test.

use std::sync::atomic::{AtomicU32, Ordering};

use turnwright_store::PostgresOptions;

/// A schema that nobody else has.
pub(crate) struct Schema {
    /// Where the server is, without a schema.
    pub(crate) server: String,
    /// Its name.
    pub(crate) name: String,
}

impl Schema {
    /// A new one; `None`, and why, where there is no server.
    #[expect(clippy::disallowed_methods, reason = "the tests have no configuration")]
    pub(crate) fn new() -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let Ok(server) = std::env::var("TURNWRIGHT_TEST_POSTGRES") else {
            let is_required = std::env::var_os("TURNWRIGHT_REQUIRE_TEST_POSTGRES").is_some_and(|value| value == "1");
            assert!(!is_required, "no PostgreSQL: run the tests by `scripts/start-test-postgres COMMAND`");
            println!("skipped: no PostgreSQL: run the tests by `scripts/start-test-postgres COMMAND`");
            return None;
        };
        let name = format!("t{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Some(Self { server, name })
    }

    /// The address of the schema.
    pub(crate) fn address(&self) -> String {
        format!("{}?schema={}", self.server, self.name)
    }

    /// How it is opened.
    pub(crate) fn options(&self) -> PostgresOptions {
        PostgresOptions::parse(&self.address()).unwrap()
    }

    /// A connection of our own beside those of the store.
    pub(crate) async fn client(&self) -> tokio_postgres::Client {
        let (client, connection) = tokio_postgres::connect(&self.server, tokio_postgres::NoTls).await.unwrap();
        #[expect(clippy::disallowed_methods, reason = "it ends with its client")]
        tokio::spawn(connection);
        client
    }

    /// Makes what the first version made.
    pub(crate) async fn make_first_version(&self, client: &tokio_postgres::Client) {
        let (name, first) = (&self.name, include_str!("../src/migrations/postgres/0001_store.sql"));
        let made = format!(
            "CREATE SCHEMA {name}; SET search_path TO {name};
             CREATE TABLE installation (application TEXT NOT NULL, version BIGINT NOT NULL, oldest BIGINT NOT NULL);
             INSERT INTO installation VALUES ('turnwright', 1, 1); {first}"
        );
        client.batch_execute(&made).await.unwrap();
    }
}
