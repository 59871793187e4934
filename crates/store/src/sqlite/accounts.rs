//! Users and credentials in the same database, by the same writer.

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};
use turnwright_core::UserId;
use turnwright_engine::StoreError;
use turnwright_engine::accounts::{Accounts, Credential, Identity, Role, SecretHash, Staying, User};

use super::SqliteStore;
use super::readers::Unread;
use super::statements as sql;
use super::write::{Verdict, Write};
use crate::columns::{integer, needed};

/// One change to the accounts.
#[derive(Debug)]
pub(super) enum Change {
    AddUser(User),
    SetUser { of: User, role: Role, is_enabled: bool, staying: Staying },
    SetRole { id: UserId, role: Role },
    RemoveUser { of: User, staying: Staying },
    AddCredential(Credential),
    Used { id: String, at_ms: u64 },
    RemoveCredential(String),
    RemoveExpired { before_ms: u64 },
}

impl Change {
    pub(super) fn carry_out(&self, connection: &Connection) -> rusqlite::Result<Verdict> {
        let run = |sql: &str, values: &[&dyn ToSql]| connection.prepare_cached(sql)?.execute(values);
        let changed = match self {
            Self::AddUser(user) => {
                let (issuer, subject) = user.identity.as_ref().map(|known| (&known.issuer, &known.subject)).unzip();
                let (id, role, at_ms) = (user.id.as_str(), user.role.as_str(), integer(user.created_at_ms));
                let values = params![id, user.name, role, user.is_enabled, at_ms, issuer, subject];
                let added = run(sql::ADD_USER, values)?;
                return Ok(if added == 0 { Err(StoreError::Taken { what: user.name.clone() }) } else { Ok(()) });
            }
            Self::SetRole { id, role } => run(sql::CHANGE_ROLE, params![id.as_str(), role.as_str()])?,
            Self::SetUser { of, role, is_enabled, staying } => {
                let goes = of.is_admin() && !(*role == Role::Admin && *is_enabled);
                if let Err(refused) = may_change(connection, of, goes.then_some(*staying))? {
                    return Ok(Err(refused));
                }
                run(sql::CHANGE_USER, params![of.id.as_str(), role.as_str(), is_enabled])?
            }
            Self::RemoveUser { of, staying } => {
                if let Err(refused) = may_change(connection, of, of.is_admin().then_some(*staying))? {
                    return Ok(Err(refused));
                }
                run(sql::REMOVE_CREDENTIALS, params![of.id.as_str()])?;
                run(sql::REMOVE_USER, params![of.id.as_str()])?
            }
            Self::AddCredential(credential) => add(connection, credential)?,
            // One that is gone meanwhile was used all the same.
            Self::Used { id, at_ms } => run(sql::CREDENTIAL_USED, params![id, integer(*at_ms)]).map(|_| 1)?,
            Self::RemoveCredential(id) => run(sql::REMOVE_CREDENTIAL, params![id])?,
            Self::RemoveExpired { before_ms } => run(sql::REMOVE_EXPIRED, params![integer(*before_ms)]).map(|_| 1)?,
        };
        Ok(if changed == 0 { Err(StoreError::Missing { what: self.what() }) } else { Ok(()) })
    }

    /// What it is about, in words.
    fn what(&self) -> String {
        match self {
            Self::AddUser(user) => format!("user `{}`", user.name),
            Self::SetUser { of, .. } | Self::RemoveUser { of, .. } => format!("user `{}`", of.id),
            Self::SetRole { id, .. } => format!("user `{id}`"),
            Self::AddCredential(credential) => needed(credential),
            Self::Used { id, .. } | Self::RemoveCredential(id) => format!("credential `{id}`"),
            Self::RemoveExpired { .. } => "credentials".to_owned(),
        }
    }
}

/// Whether a user still is as they were, and an admin stays where they go as one: nobody else writes meanwhile.
fn may_change(connection: &Connection, of: &User, goes: Option<Staying>) -> rusqlite::Result<Verdict> {
    let mut found = connection.prepare_cached(sql::USER)?;
    let now = found.query_row((of.id.as_str(),), |row| Ok(user(row).ok())).optional()?.flatten();
    let is_same = now.as_ref().is_some_and(|now| (now.role, now.is_enabled) == (of.role, of.is_enabled));
    let stays = match goes.map(Staying::local) {
        None => true,
        Some((counts, at_ms)) => {
            connection.prepare_cached(sql::ADMIN_STAYS)?.exists(params![of.id.as_str(), counts, integer(at_ms)])?
        }
    };
    Ok(if is_same && stays { Ok(()) } else { Err(of.unchanged(now.as_ref())) })
}

fn add(connection: &Connection, credential: &Credential) -> rusqlite::Result<usize> {
    connection.prepare_cached(sql::ADD_CREDENTIAL)?.execute(params![
        &credential.hash.0[..],
        credential.id,
        credential.user.as_str(),
        credential.kind.as_str(),
        credential.name,
        credential.scopes.to_string(),
        credential.parent,
        integer(credential.created_at_ms),
        credential.expires_at_ms.map(integer),
        credential.used_at_ms.map(integer),
    ])
}

impl SqliteStore {
    /// The rows of a statement.
    async fn rows<T: Send + 'static>(
        &self,
        sql: &'static str,
        values: Vec<Box<dyn ToSql + Send>>,
        read: fn(&Row<'_>) -> Result<T, Unread>,
    ) -> Result<Vec<T>, StoreError> {
        self.readers
            .read(move |connection| {
                let mut statement = connection.prepare_cached(sql)?;
                let mut rows =
                    statement.query(rusqlite::params_from_iter(values.iter().map(|value| &**value as &dyn ToSql)))?;
                let mut found = Vec::new();
                while let Some(row) = rows.next()? {
                    found.push(read(row)?);
                }
                Ok::<_, Unread>(found)
            })
            .await
    }

    async fn change_account(&self, change: Change) -> Result<(), StoreError> {
        self.writer.write(Write::Account(change)).await
    }
}

#[async_trait]
impl Accounts for SqliteStore {
    async fn add_user(&self, user: User) -> Result<(), StoreError> {
        self.change_account(Change::AddUser(user)).await
    }

    async fn users(&self) -> Result<Vec<User>, StoreError> {
        self.rows(sql::USERS, Vec::new(), user).await
    }

    async fn user(&self, id: &UserId) -> Result<Option<User>, StoreError> {
        Ok(self.rows(sql::USER, vec![Box::new(id.as_str().to_owned())], user).await?.pop())
    }

    async fn user_named(&self, name: &str) -> Result<Option<User>, StoreError> {
        Ok(self.rows(sql::USER_NAMED, vec![Box::new(name.to_owned())], user).await?.pop())
    }

    async fn user_known_as(&self, identity: &Identity) -> Result<Option<User>, StoreError> {
        let Identity { issuer, subject } = identity.clone();
        Ok(self.rows(sql::USER_KNOWN_AS, vec![Box::new(issuer), Box::new(subject)], user).await?.pop())
    }

    async fn change_user(&self, of: &User, role: Role, is_enabled: bool, staying: Staying) -> Result<(), StoreError> {
        self.change_account(Change::SetUser { of: of.clone(), role, is_enabled, staying }).await
    }

    async fn change_role(&self, id: &UserId, role: Role) -> Result<(), StoreError> {
        self.change_account(Change::SetRole { id: id.clone(), role }).await
    }

    async fn remove_user(&self, of: &User, staying: Staying) -> Result<(), StoreError> {
        self.change_account(Change::RemoveUser { of: of.clone(), staying }).await
    }

    async fn add_credential(&self, credential: Credential) -> Result<(), StoreError> {
        self.change_account(Change::AddCredential(credential)).await
    }

    async fn credential(&self, hash: &SecretHash) -> Result<Option<(Credential, User)>, StoreError> {
        let hash = *hash;
        self.readers
            .read(move |connection| {
                let mut statement = connection.prepare_cached(sql::CREDENTIAL)?;
                let mut rows = statement.query((&hash.0[..],))?;
                let Some(row) = rows.next()? else { return Ok(None) };
                let known = credential(row)?;
                let id = known.user.as_str().to_owned();
                let mut whose = connection.prepare_cached(sql::USER)?;
                let owner = whose.query_row((id,), |row| Ok(user(row))).optional()?;
                Ok::<_, Unread>(owner.transpose()?.map(|owner| (known, owner)))
            })
            .await
    }

    async fn credentials(&self, user: &UserId) -> Result<Vec<Credential>, StoreError> {
        self.rows(sql::CREDENTIALS, vec![Box::new(user.as_str().to_owned())], credential).await
    }

    async fn credential_named(&self, id: &str) -> Result<Option<Credential>, StoreError> {
        Ok(self.rows(sql::CREDENTIAL_NAMED, vec![Box::new(id.to_owned())], credential).await?.pop())
    }

    async fn credential_used(&self, id: &str, at_ms: u64) -> Result<(), StoreError> {
        self.change_account(Change::Used { id: id.to_owned(), at_ms }).await
    }

    async fn remove_credential(&self, id: &str) -> Result<(), StoreError> {
        self.change_account(Change::RemoveCredential(id.to_owned())).await
    }

    async fn remove_expired(&self, before_ms: u64) -> Result<(), StoreError> {
        self.change_account(Change::RemoveExpired { before_ms }).await
    }
}

fn user(row: &Row<'_>) -> Result<User, Unread> {
    let identity = row.get::<_, Option<String>>(5)?.zip(row.get::<_, Option<String>>(6)?);
    Ok(User {
        id: word(row, 0)?,
        name: row.get(1)?,
        role: word(row, 2)?,
        is_enabled: row.get(3)?,
        created_at_ms: milliseconds(row.get(4)?),
        identity: identity.map(|(issuer, subject)| Identity { issuer, subject }),
    })
}

fn credential(row: &Row<'_>) -> Result<Credential, Unread> {
    Ok(Credential {
        hash: SecretHash(row.get(0)?),
        id: row.get(1)?,
        user: word(row, 2)?,
        kind: word(row, 3)?,
        name: row.get(4)?,
        scopes: word(row, 5)?,
        parent: row.get(6)?,
        created_at_ms: milliseconds(row.get(7)?),
        expires_at_ms: row.get::<_, Option<i64>>(8)?.map(milliseconds),
        used_at_ms: row.get::<_, Option<i64>>(9)?.map(milliseconds),
    })
}

/// A value that is stored as a word of ours.
fn word<T: std::str::FromStr<Err: std::fmt::Display>>(row: &Row<'_>, column: usize) -> Result<T, Unread> {
    let text: String = row.get(column)?;
    let damaged = |error: T::Err| StoreError::Damaged { what: "an account".to_owned(), reason: error.to_string() };
    Ok(text.parse().map_err(damaged)?)
}

fn milliseconds(stored: i64) -> u64 {
    u64::try_from(stored).unwrap_or_default()
}
