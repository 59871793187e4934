//! `turnwright users`: who may sign in, and by what they are known.

use std::sync::Arc;

use serde_json::json;
use turnwright_core::{UserId, shell_word};
use turnwright_engine::StoreError;
use turnwright_engine::accounts::{Accounts, Credential, CredentialKind, Role, Scope, Scopes, Staying, User};
use turnwright_engine::{Clock, SystemClock};
use turnwright_host::{Config, Needs};
use turnwright_server::auth::{self, NewCredential};
use turnwright_server::timestamp;

use crate::cli::users::{AddUser, NewToken, Users};
use crate::cli::{Everywhere, Listed};
use crate::exit::{Exit, Failure};
use crate::flags::flags;
use crate::opened::{self, QUIET, people_only};
use crate::output::{Output, say};
use crate::table::table;

pub(super) async fn run(everywhere: &Everywhere, command: Users, output: &mut Output) -> Result<Exit, Failure> {
    let opened = opened::open(&opened::overrides(everywhere), QUIET)?;
    let host = opened.start(Needs::Store).await?;
    let accounts = host.accounts().clone();
    let is_change = !matches!(command, Users::List(_) | Users::Tokens { .. });
    let result = match if is_change { people_only(&host) } else { Ok(()) } {
        Err(refused) => Err(refused),
        Ok(()) => carry_out(&accounts, host.config(), command, (everywhere, output)).await,
    };
    host.shutdown().await;
    result.map(|()| Exit::Done)
}

async fn carry_out(
    accounts: &Arc<dyn Accounts>,
    config: &Config,
    command: Users,
    (everywhere, output): (&Everywhere, &mut Output),
) -> Result<(), Failure> {
    match command {
        Users::Add(new) => add(&**accounts, new, everywhere, output).await,
        Users::List(listed) => list(&**accounts, listed, output).await,
        Users::Role { who, role } => {
            let found = find(&**accounts, &who).await?;
            change(&**accounts, &found, role, found.is_enabled).await?;
            say(&format!("{} is {} now", found.name, role.as_str()));
            Ok(())
        }
        Users::Disable { who } => {
            let found = find(&**accounts, &who).await?;
            change(&**accounts, &found, found.role, false).await?;
            say(&format!("{} cannot come in any more", found.name));
            Ok(())
        }
        Users::Enable { who } => {
            let found = find(&**accounts, &who).await?;
            change(&**accounts, &found, found.role, true).await?;
            say(&format!("{} can come in again", found.name));
            Ok(())
        }
        Users::Remove { who } => {
            let found = find(&**accounts, &who).await?;
            if found.id.is_local() {
                return Err(Failure::usage("`local` is whoever sits at this machine and cannot be removed")
                    .hint("`turnwright users disable local` keeps its tokens from counting"));
            }
            accounts.remove_user(&found, Staying::WithLocal).await.map_err(|error| unchanged(&error))?;
            say(&format!(
                "removed {}; what belonged to {} stays stored and can be reached with --user {}",
                found.name, found.id, found.id
            ));
            Ok(())
        }
        Users::Token(new) => token(&**accounts, new, output).await,
        Users::Tokens { who, listed } => tokens(&**accounts, &who, listed, output).await,
        Users::Revoke { id } => {
            accounts.remove_credential(&id).await.map_err(|error| match error {
                StoreError::Missing { .. } => Failure::usage(format!("there is no token or session `{id}`"))
                    .hint("`turnwright users tokens NAME` lists those of a user"),
                error => unstored(&error),
            })?;
            say(&format!("revoked {id}"));
            Ok(())
        }
        Users::Link { who } => {
            let found = find(&**accounts, &who).await?;
            let secret = auth::issue_link(accounts, &found, SystemClock.now_ms()).await.map_err(|error| unstored(&error))?;
            output.line(&link(config, secret.expose()));
            say("it works once, within 15 minutes");
            Ok(())
        }
    }
}

/// The address of a link, as far as it is known from here.
pub(super) fn link(config: &Config, code: &str) -> String {
    format!("{}/login?code={code}", config.server.address(&config.server.listen))
}

async fn add(accounts: &dyn Accounts, new: AddUser, everywhere: &Everywhere, output: &mut Output) -> Result<(), Failure> {
    let user = auth::new_user(&new.name, new.role, None, SystemClock.now_ms()).map_err(Failure::usage)?;
    let (id, name) = (user.id.clone(), user.name.clone());
    accounts.add_user(user).await.map_err(|error| match error {
        StoreError::Taken { .. } => Failure::usage(format!("there is a user `{name}` already")),
        error => unstored(&error),
    })?;
    output.line(id.as_str());
    say(&format!("added {name} ({})", new.role.as_str()));
    let name = shell_word(&name);
    let flags = flags(everywhere);
    say(&format!(
        "hint: `turnwright users link {name}{flags}` signs a browser in, `turnwright users token {name}{flags}` a program"
    ));
    Ok(())
}

async fn list(accounts: &dyn Accounts, listed: Listed, output: &mut Output) -> Result<(), Failure> {
    let users = accounts.users().await.map_err(|error| unstored(&error))?;
    if listed.json {
        let told = users.iter().map(|user| {
            json!({
                "id": user.id, "name": user.name, "role": user.role.as_str(), "enabled": user.is_enabled,
                "issuer": user.identity.as_ref().map(|identity| &identity.issuer), "created_at": timestamp(user.created_at_ms),
            })
        });
        output.json_pretty(&told.collect::<Vec<_>>());
        return Ok(());
    }
    let rows: Vec<_> = users
        .iter()
        .map(|user| {
            let state = if user.is_enabled { "" } else { "disabled" };
            let by = user.identity.as_ref().map_or("", |identity| &identity.issuer);
            [user.name.clone(), user.role.as_str().to_owned(), user.id.to_string(), format!("{state} {by}").trim().to_owned()]
        })
        .collect();
    output.lines(&table(&rows));
    Ok(())
}

async fn token(accounts: &dyn Accounts, new: NewToken, output: &mut Output) -> Result<(), Failure> {
    let user = find(accounts, &new.who).await?;
    let scopes = if new.scopes.is_empty() { Scopes::own() } else { Scopes::from_iter(new.scopes) };
    if scopes.has(Scope::Admin) && user.role != Role::Admin {
        return Err(Failure::usage(format!("{} is a member; the scope admin is for admins", user.name)));
    }
    let now_ms = SystemClock.now_ms();
    let new = NewCredential {
        user: user.id.clone(),
        kind: CredentialKind::Token,
        name: new.name,
        scopes,
        parent: None,
        expires_at_ms: new.expires.map(|time_ms| now_ms.saturating_add(time_ms)),
    };
    let (secret, made) = auth::issue(accounts, new, now_ms).await.map_err(|error| unstored(&error))?;
    output.line(secret.expose());
    let end = made.expires_at_ms.map_or_else(|| "until it is revoked".to_owned(), |end| format!("until {}", timestamp(end)));
    say(&format!("{} of {}, for {}, {end}; keep it: it is shown this once", made.id, user.name, made.scopes));
    Ok(())
}

async fn tokens(accounts: &dyn Accounts, user: &str, listed: Listed, output: &mut Output) -> Result<(), Failure> {
    let user = find(accounts, user).await?;
    let known = accounts.credentials(&user.id).await.map_err(|error| unstored(&error))?;
    if listed.json {
        let told = known.iter().map(|known| {
            json!({
                "id": known.id, "kind": known.kind.as_str(), "name": known.name, "scopes": known.scopes.words().collect::<Vec<_>>(),
                "created_at": timestamp(known.created_at_ms), "expires_at": known.expires_at_ms.map(timestamp),
                "last_used_at": known.used_at_ms.map(timestamp),
            })
        });
        output.json_pretty(&told.collect::<Vec<_>>());
        return Ok(());
    }
    let or_never = |at_ms: Option<u64>| at_ms.map_or_else(|| "never".to_owned(), timestamp);
    let row = |known: &Credential| {
        [
            known.id.clone(),
            known.name.clone(),
            known.scopes.to_string(),
            format!("used {}", or_never(known.used_at_ms)),
            format!("expires {}", or_never(known.expires_at_ms)),
        ]
    };
    output.lines(&table(&known.iter().map(row).collect::<Vec<_>>()));
    Ok(())
}

async fn change(accounts: &dyn Accounts, user: &User, role: Role, is_enabled: bool) -> Result<(), Failure> {
    if user.id.is_local() && role != Role::Admin {
        return Err(Failure::usage("`local` is whoever sits at this machine and stays an admin"));
    }
    accounts.change_user(user, role, is_enabled, Staying::WithLocal).await.map_err(|error| unchanged(&error))
}

/// Why a user stays as they are.
fn unchanged(error: &StoreError) -> Failure {
    match error {
        StoreError::LastAdmin { .. } => {
            Failure::usage(error.to_string()).hint("`turnwright users add NAME --role admin` makes another one")
        }
        error => unstored(error),
    }
}

/// The user of this name, or of this id.
pub(crate) async fn find(accounts: &dyn Accounts, name: &str) -> Result<User, Failure> {
    if let Some(user) = accounts.user_named(name).await.map_err(|error| unstored(&error))? {
        return Ok(user);
    }
    let by_id = match name.parse::<UserId>() {
        Ok(id) => accounts.user(&id).await.map_err(|error| unstored(&error))?,
        Err(_) => None,
    };
    by_id.ok_or_else(|| {
        Failure::usage(format!("there is no user `{name}`"))
            .hint("`turnwright users list` names them, `turnwright users add` makes one")
    })
}

fn unstored(error: &StoreError) -> Failure {
    Failure::failed(error.to_string())
}
