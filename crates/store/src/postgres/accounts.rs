//! Users and credentials in the same database.

use async_trait::async_trait;
use tokio_postgres::Row;
use turnwright_core::UserId;
use turnwright_engine::StoreError;
use turnwright_engine::accounts::{Accounts, Credential, Identity, Role, SecretHash, Staying, User};

use super::values::Values;
use super::{PostgresStore, clean, get, milliseconds, word};
use crate::columns::{integer, needed};

const ADD_USER: &str = r#"INSERT INTO "user" (id, name, role, is_enabled, created_at_ms, issuer, subject)
    VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING"#;
const USERS: &str =
    r#"SELECT id, name, role, is_enabled, created_at_ms, issuer, subject FROM "user" ORDER BY lower(name), name"#;
const USER: &str = r#"SELECT id, name, role, is_enabled, created_at_ms, issuer, subject FROM "user" WHERE id = $1"#;
const USER_NAMED: &str = r#"SELECT id, name, role, is_enabled, created_at_ms, issuer, subject FROM "user" WHERE lower(name) = lower($1 COLLATE "C")"#;
const USER_KNOWN_AS: &str = r#"SELECT id, name, role, is_enabled, created_at_ms, issuer, subject FROM "user"
    WHERE issuer = $1 AND subject = $2"#;
const CHANGE_ROLE: &str = r#"UPDATE "user" SET role = $2 WHERE id = $1"#;
/// The admins who may come in, `local` where it counts anyhow ($5), or a token or session of it does at a time ($6). They are
/// locked in one order, as far as they are looked at: of two who take the role of each other the second waits, and finds one less.
macro_rules! staying {
    ($change:literal) => {
        concat!(
            r#"WITH staying AS (SELECT id FROM "user" WHERE role = 'admin' AND is_enabled = 1 AND (id <> 'local' OR $5 OR EXISTS
            (SELECT 1 FROM credential WHERE "user" = 'local' AND kind <> 'link' AND (expires_at_ms IS NULL OR expires_at_ms > $6)))
            ORDER BY id FOR NO KEY UPDATE)"#,
            $change
        )
    };
}
const CHANGE_USER: &str = staying!(
    r#" UPDATE "user" SET role = $7, is_enabled = $8 WHERE id = $1 AND role = $2 AND is_enabled = $3
    AND (NOT $4 OR EXISTS (SELECT 1 FROM staying WHERE id <> $1))"#
);
/// One row where the user was there.
const REMOVE_USER: &str = staying!(
    r#", gone AS (DELETE FROM "user" WHERE id = $1 AND role = $2 AND is_enabled = $3
        AND (NOT $4 OR EXISTS (SELECT 1 FROM staying WHERE id <> $1)) RETURNING id),
    known AS (DELETE FROM credential WHERE "user" IN (SELECT id FROM gone))
    SELECT id FROM gone"#
);
/// Nothing, where the user was removed meanwhile, or what it goes with: their rows are locked, so that a removal waits or comes first.
const ADD_CREDENTIAL: &str = r#"WITH made_with AS MATERIALIZED (SELECT id FROM credential WHERE id = $7 FOR KEY SHARE)
    INSERT INTO credential
    (hash, id, "user", kind, name, scopes, parent, created_at_ms, expires_at_ms, used_at_ms)
    SELECT $1, $2, id, $4, $5, $6, $7, $8, $9, $10 FROM "user"
    WHERE id = $3 AND ($7 IS NULL OR EXISTS (SELECT 1 FROM made_with)) FOR KEY SHARE
    ON CONFLICT (hash) DO UPDATE SET name = excluded.name WHERE credential.id = excluded.id"#;
const CREDENTIAL: &str = r#"SELECT hash, credential.id, "user", kind, credential.name, scopes, parent, credential.created_at_ms,
    expires_at_ms, used_at_ms, u.id, u.name, u.role, u.is_enabled, u.created_at_ms, u.issuer, u.subject
    FROM credential JOIN "user" AS u ON u.id = credential."user" WHERE hash = $1"#;
const CREDENTIAL_NAMED: &str = r#"SELECT hash, id, "user", kind, name, scopes, parent, created_at_ms, expires_at_ms, used_at_ms
    FROM credential WHERE id = $1"#;
const CREDENTIALS: &str = r#"SELECT hash, id, "user", kind, name, scopes, parent, created_at_ms, expires_at_ms, used_at_ms
    FROM credential WHERE "user" = $1 ORDER BY created_at_ms DESC, id"#;
const CREDENTIAL_USED: &str = "UPDATE credential SET used_at_ms = $2 WHERE id = $1";
/// With those that go with it, and those that go with them. Counts those of this name alone, so that one who removes succeeds.
const REMOVE_CREDENTIAL: &str = "WITH RECURSIVE gone (id) AS (SELECT id FROM credential WHERE id = $1
        UNION SELECT credential.id FROM gone JOIN credential ON credential.parent = gone.id)
    DELETE FROM credential WHERE id IN (SELECT id FROM gone) RETURNING id";
/// What was made with one while it was removed, and is seen since.
const REMOVE_LEFT: &str = "WITH RECURSIVE gone (id) AS (SELECT id FROM credential WHERE parent IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM credential AS made_with WHERE made_with.id = credential.parent)
        UNION SELECT credential.id FROM gone JOIN credential ON credential.parent = gone.id)
    DELETE FROM credential WHERE id IN (SELECT id FROM gone)";
const REMOVE_EXPIRED: &str = "DELETE FROM credential WHERE expires_at_ms < $1";

impl PostgresStore {
    async fn users_of(&self, sql: &'static str, values: Values<'_>) -> Result<Vec<User>, StoreError> {
        self.pool.ask(sql, values).await?.rows.iter().map(|row| user(row, 0)).collect()
    }

    async fn credentials_of(&self, sql: &'static str, values: Values<'_>) -> Result<Vec<Credential>, StoreError> {
        self.pool.ask(sql, values).await?.rows.iter().map(credential).collect()
    }
}

fn missing(what: String) -> StoreError {
    StoreError::Missing { what }
}

#[async_trait]
impl Accounts for PostgresStore {
    async fn add_user(&self, user: User) -> Result<(), StoreError> {
        let identity = user.identity.as_ref();
        let (issuer, subject) = (identity.map(|known| clean(&known.issuer)), identity.map(|known| clean(&known.subject)));
        let (at_ms, enabled) = (integer(user.created_at_ms), i64::from(user.is_enabled));
        let name = clean(&user.name);
        let answer = self
            .pool
            .ask(ADD_USER, &[&user.id.as_str(), &name, &user.role.as_str(), &enabled, &at_ms, &issuer, &subject])
            .await?;
        let is_added = answer.count > 0 || (answer.is_resent && self.user(&user.id).await?.as_ref() == Some(&user));
        if is_added { Ok(()) } else { Err(StoreError::Taken { what: user.name }) }
    }

    async fn users(&self) -> Result<Vec<User>, StoreError> {
        self.users_of(USERS, &[]).await
    }

    async fn user(&self, id: &UserId) -> Result<Option<User>, StoreError> {
        Ok(self.users_of(USER, &[&id.as_str()]).await?.pop())
    }

    async fn user_named(&self, name: &str) -> Result<Option<User>, StoreError> {
        Ok(self.users_of(USER_NAMED, &[&clean(name)]).await?.pop())
    }

    async fn user_known_as(&self, identity: &Identity) -> Result<Option<User>, StoreError> {
        Ok(self.users_of(USER_KNOWN_AS, &[&clean(&identity.issuer), &clean(&identity.subject)]).await?.pop())
    }

    async fn change_user(&self, of: &User, role: Role, is_enabled: bool, staying: Staying) -> Result<(), StoreError> {
        let (counts, at_ms) = staying.local();
        let (goes, enabled) = (of.is_admin() && !(role == Role::Admin && is_enabled), i64::from(is_enabled));
        let (id, before, was_enabled) = (of.id.as_str(), of.role.as_str(), i64::from(of.is_enabled));
        let values: Values<'_> = &[&id, &before, &was_enabled, &goes, &counts, &integer(at_ms), &role.as_str(), &enabled];
        let answer = self.pool.ask(CHANGE_USER, values).await?;
        if answer.count > 0 {
            return Ok(());
        }
        let now = self.user(&of.id).await?;
        // Where it was asked twice, the first may have done it.
        let is_done = answer.is_resent && now.as_ref().is_some_and(|now| (now.role, now.is_enabled) == (role, is_enabled));
        if is_done { Ok(()) } else { Err(of.unchanged(now.as_ref())) }
    }

    async fn change_role(&self, id: &UserId, role: Role) -> Result<(), StoreError> {
        let answer = self.pool.ask(CHANGE_ROLE, &[&id.as_str(), &role.as_str()]).await?;
        if answer.count == 0 { Err(missing(format!("user `{id}`"))) } else { Ok(()) }
    }

    async fn remove_user(&self, of: &User, staying: Staying) -> Result<(), StoreError> {
        // Looked up first, so that one who was never there is told from one whom a request removed whose answer was lost.
        if self.user(&of.id).await?.is_none() {
            return Err(of.unchanged(None));
        }
        let (counts, at_ms) = staying.local();
        let (id, before, was_enabled) = (of.id.as_str(), of.role.as_str(), i64::from(of.is_enabled));
        let values: Values<'_> = &[&id, &before, &was_enabled, &of.is_admin(), &counts, &integer(at_ms)];
        let answer = self.pool.ask(REMOVE_USER, values).await?;
        if !answer.rows.is_empty() {
            return Ok(());
        }
        let now = self.user(&of.id).await?;
        if now.is_none() && answer.is_resent { Ok(()) } else { Err(of.unchanged(now.as_ref())) }
    }

    async fn add_credential(&self, credential: Credential) -> Result<(), StoreError> {
        let known = &credential;
        let answer = self
            .pool
            .ask(
                ADD_CREDENTIAL,
                &[
                    &&known.hash.0[..],
                    &clean(&known.id),
                    &known.user.as_str(),
                    &known.kind.as_str(),
                    &clean(&known.name),
                    &known.scopes.to_string(),
                    &known.parent,
                    &integer(known.created_at_ms),
                    &known.expires_at_ms.map(integer),
                    &known.used_at_ms.map(integer),
                ],
            )
            .await?;
        if answer.count == 0 { Err(missing(needed(&credential))) } else { Ok(()) }
    }

    async fn credential(&self, hash: &SecretHash) -> Result<Option<(Credential, User)>, StoreError> {
        let rows = self.pool.ask(CREDENTIAL, &[&&hash.0[..]]).await?.rows;
        rows.first().map(|row| Ok((credential(row)?, user(row, 10)?))).transpose()
    }

    async fn credentials(&self, user: &UserId) -> Result<Vec<Credential>, StoreError> {
        self.credentials_of(CREDENTIALS, &[&user.as_str()]).await
    }

    async fn credential_named(&self, id: &str) -> Result<Option<Credential>, StoreError> {
        Ok(self.credentials_of(CREDENTIAL_NAMED, &[&clean(id)]).await?.pop())
    }

    async fn credential_used(&self, id: &str, at_ms: u64) -> Result<(), StoreError> {
        // One that is gone meanwhile was used all the same.
        self.pool.ask(CREDENTIAL_USED, &[&clean(id), &integer(at_ms)]).await.map(drop)
    }

    async fn remove_credential(&self, id: &str) -> Result<(), StoreError> {
        let wanted = clean(id);
        let answer = self.pool.ask(REMOVE_CREDENTIAL, &[&wanted]).await?;
        self.pool.ask(REMOVE_LEFT, &[]).await?;
        // Of several who do so at once, one has the row. Where the answer was lost nobody knows who had it: then nobody did.
        let is_ours = answer.rows.iter().any(|row| row.try_get::<_, &str>(0).is_ok_and(|gone| gone == wanted));
        if is_ours { Ok(()) } else { Err(missing(format!("credential `{id}`"))) }
    }

    async fn remove_expired(&self, before_ms: u64) -> Result<(), StoreError> {
        self.pool.ask(REMOVE_EXPIRED, &[&integer(before_ms)]).await.map(drop)
    }
}

/// A user of a row, from a column on.
fn user(row: &Row, from: usize) -> Result<User, StoreError> {
    let at = |column: usize| from.saturating_add(column);
    let identity = get::<Option<String>>(row, at(5))?.zip(get::<Option<String>>(row, at(6))?);
    Ok(User {
        id: word(row, at(0), "an account")?,
        name: get(row, at(1))?,
        role: word(row, at(2), "an account")?,
        is_enabled: get::<i64>(row, at(3))? != 0,
        created_at_ms: milliseconds(get(row, at(4))?),
        identity: identity.map(|(issuer, subject)| Identity { issuer, subject }),
    })
}

fn credential(row: &Row) -> Result<Credential, StoreError> {
    let hash: &[u8] = get(row, 0)?;
    let hash = hash.try_into().map_err(|_| StoreError::Damaged {
        what: "an account".to_owned(),
        reason: format!("a hash of {} bytes", hash.len()),
    })?;
    Ok(Credential {
        hash: SecretHash(hash),
        id: get(row, 1)?,
        user: word(row, 2, "an account")?,
        kind: word(row, 3, "an account")?,
        name: get(row, 4)?,
        scopes: word(row, 5, "an account")?,
        parent: get(row, 6)?,
        created_at_ms: milliseconds(get(row, 7)?),
        expires_at_ms: get::<Option<i64>>(row, 8)?.map(milliseconds),
        used_at_ms: get::<Option<i64>>(row, 9)?.map(milliseconds),
    })
}
