//! Whether the columns of a row hold words that whoever reads them knows: what a database itself takes for text like any other.

use std::fmt::Display;
use std::str::FromStr;

use turnwright_core::{ConversationId, Seq, UserId};
use turnwright_engine::accounts::{CredentialKind, Role, Scopes};
use turnwright_engine::{SettingsOverlay, StoreError};

use super::tables::{CONVERSATIONS, CREDENTIALS, OPEN_TURNS, Table, USERS, Value};
use crate::columns::kept_by;

/// Reads a row's words as the store does. `name` knows how the conversation with a key is called.
pub(super) fn read(table: &Table, row: &[Value], name: impl Fn(i64) -> String) -> Result<(), StoreError> {
    match row {
        [_, Value::Text(id), _, _, _, _, Value::Text(settings), Value::Text(owner)] if table.name == CONVERSATIONS.name => {
            let id: ConversationId = word(id, || "a conversation's record".to_owned())?;
            SettingsOverlay::stored(&id, settings)?;
            word::<UserId>(owner, || format!("the owner of conversation `{id}`")).map(drop)
        }
        [Value::Number(conversation), Value::Number(turn), _, Value::Text(keeper)] if table.name == OPEN_TURNS.name => {
            let damaged = |reason: String| {
                let what = format!("the open turn of conversation `{}`", name(*conversation));
                Err(StoreError::Damaged { what, reason })
            };
            if u64::try_from(*turn).ok().and_then(Seq::new).is_none() {
                return damaged(format!("`{turn}` names no entry"));
            }
            if kept_by(keeper).is_none() { damaged(format!("`{keeper}` takes no turn up")) } else { Ok(()) }
        }
        [Value::Text(id), _, Value::Text(role), ..] if table.name == USERS.name => {
            let what = || format!("the user `{id}`");
            word::<UserId>(id, what)?;
            word::<Role>(role, what).map(drop)
        }
        [_, Value::Text(id), Value::Text(user), Value::Text(kind), _, Value::Text(scopes), ..]
            if table.name == CREDENTIALS.name =>
        {
            let what = || format!("the credential `{id}`");
            word::<UserId>(user, what)?;
            word::<CredentialKind>(kind, what)?;
            word::<Scopes>(scopes, what).map(drop)
        }
        _ => Ok(()),
    }
}

fn word<T: FromStr<Err: Display>>(text: &str, what: impl Fn() -> String) -> Result<T, StoreError> {
    text.parse().map_err(|error: T::Err| StoreError::Damaged { what: what(), reason: error.to_string() })
}
