//! Users and tokens.

use axum::response::Response;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::Value;
use turnwright_api as api;
use turnwright_core::UserId;
use turnwright_engine::StoreError;
use turnwright_engine::accounts::{Accounts, Credential, CredentialKind, Role, Scope, Scopes, Staying, User};

use super::{asked, json};
use crate::auth::{Bounds, LINK_MS, NewCredential, issue, issue_link, issue_link_within, new_user, not_allowed};
use crate::error::ApiError;
use crate::extract::{PageQuery, Params, Search, State, Whole, falling};
use crate::openapi::{BodyRefused, Conditional, Conflicting, IfMatch, IfNoneMatch, NotThere, Refused, RepeatableHeader};
use crate::repeat::{Keeps, once};
use crate::state::ServerState;
use crate::tag::Tag;
use crate::timestamp::timestamp;

/// How many milliseconds a day has.
const DAY_MS: u64 = 24 * 3_600_000;
/// The most days that a token counts where it ends.
const MAX_DAYS: u32 = 3_650;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct Named {
    /// The id.
    id: String,
}

/// Everybody who may use the installation. For admins.
#[utoipa::path(
    get,
    path = "/users",
    operation_id = "listUsers",
    tag = "users",
    params(PageQuery),
    responses((status = 200, description = "A page of them, by name.", body = api::List<api::User>), Refused, NotThere)
)]
pub(super) async fn list(State(state): State, Search(page): Search<PageQuery>) -> Result<Response, ApiError> {
    let users = state.accounts()?.users().await?.into_iter().map(told).collect();
    Ok(json(StatusCode::OK, page.part("users", users, |user: &api::User| format!("{} {}", user.name.to_lowercase(), user.id))?))
}

/// Adds somebody. For admins.
#[utoipa::path(
    post,
    path = "/users",
    operation_id = "addUser",
    tag = "users",
    params(RepeatableHeader),
    request_body = api::UserRequest,
    responses((status = 201, description = "They are added.", body = api::User), Refused, BodyRefused, NotThere, Conflicting)
)]
pub(super) async fn add(State(state): State, whole: Whole) -> Result<Response, ApiError> {
    let request: api::UserRequest = whole.json()?;
    let role = request.role.as_deref().map_or(Ok(Role::Member), str::parse).map_err(ApiError::invalid)?;
    let user = new_user(&request.name, role, None, state.engine().clock().now_ms()).map_err(ApiError::invalid)?;
    let accounts = state.accounts()?.clone();
    let made = async move {
        accounts.add_user(user.clone()).await?;
        Ok(told(user))
    };
    Ok(json(StatusCode::CREATED, once(&state, asked(&whole)?, "users", Keeps::Answer, made).await?))
}

/// One user. For admins.
#[utoipa::path(
    get,
    path = "/users/{id}",
    operation_id = "getUser",
    tag = "users",
    params(Named, IfNoneMatch),
    responses((status = 200, description = "They.", body = api::User), (status = 304, description = "The client has it."), Refused, NotThere)
)]
pub(super) async fn show(State(state): State, Params(named): Params<Named>, headers: HeaderMap) -> Result<Response, ApiError> {
    let found = told(user(&**state.accounts()?, &named.id).await?);
    Ok(Tag::of_all(&found).answer(&headers, &found))
}

/// Changes a user's role, or keeps them out. For admins; the last one who can come in stays (409 `last_admin`).
#[utoipa::path(
    patch,
    path = "/users/{id}",
    operation_id = "changeUser",
    tag = "users",
    params(Named, IfMatch),
    request_body = api::UserPatch,
    responses((status = 200, description = "They, changed.", body = api::User), Refused, BodyRefused, NotThere, Conflicting, Conditional)
)]
pub(super) async fn change(State(state): State, Params(named): Params<Named>, whole: Whole) -> Result<Response, ApiError> {
    let patch: api::UserPatch = whole.json()?;
    let accounts = state.accounts()?;
    loop {
        let before = user(&**accounts, &named.id).await?;
        let role = patch.role.as_deref().map_or(Ok(before.role), str::parse).map_err(ApiError::invalid)?;
        let is_enabled = patch.enabled.unwrap_or(before.is_enabled);
        Tag::of_all(&told(before.clone())).must_match(&whole.headers)?;
        if before.id.is_local() && role != Role::Admin {
            return Err(ApiError::invalid("`local` is whoever sits at the server's machine and stays an admin"));
        }
        match accounts.change_user(&before, role, is_enabled, staying(&state)).await {
            // Somebody else was first: where that is a reason to refuse it, the condition tells.
            Err(StoreError::Altered { .. }) => {}
            done => {
                done?;
                state.tell_of_revocation();
                let after = told(User { role, is_enabled, ..before });
                return Ok(Tag::of_all(&after).on(json(StatusCode::OK, after)));
            }
        }
    }
}

/// Who counts as an admin that stays: `local` where it is `local` who asks, or where somebody is signed in as it.
fn staying(state: &ServerState) -> Staying {
    if state.caller().user().is_local() { Staying::WithLocal } else { Staying::SignedIn(state.engine().clock().now_ms()) }
}

/// Removes a user with all tokens and sessions; what belonged to them stays stored. For admins; the last one who can come in
/// stays (409 `last_admin`).
#[utoipa::path(
    delete,
    path = "/users/{id}",
    operation_id = "removeUser",
    tag = "users",
    params(Named, IfMatch),
    responses((status = 204, description = "They are gone."), Refused, NotThere, Conflicting, Conditional)
)]
pub(super) async fn remove(
    State(state): State,
    Params(named): Params<Named>,
    headers: HeaderMap,
) -> Result<StatusCode, ApiError> {
    let accounts = state.accounts()?;
    loop {
        let found = user(&**accounts, &named.id).await?;
        Tag::of_all(&told(found.clone())).must_match(&headers)?;
        if found.id.is_local() {
            let detail = "`local` is whoever sits at the server's machine and cannot be removed; disable it";
            return Err(ApiError::new(StatusCode::CONFLICT, "stays", detail));
        }
        match accounts.remove_user(&found, staying(&state)).await {
            Err(StoreError::Altered { .. }) => {}
            done => {
                done?;
                state.tell_of_revocation();
                return Ok(StatusCode::NO_CONTENT);
            }
        }
    }
}

/// Makes a link that signs a browser in as this user, once, within 15 minutes. For admins; their own is bound as their tokens are.
#[utoipa::path(
    post,
    path = "/users/{id}/links",
    operation_id = "makeSignInLink",
    tag = "users",
    params(Named, RepeatableHeader),
    responses((status = 201, description = "It.", body = api::SignInLink), Refused, BodyRefused, NotThere, Conflicting)
)]
pub(super) async fn link(State(state): State, Params(named): Params<Named>, whole: Whole) -> Result<Response, ApiError> {
    let accounts = state.accounts()?.clone();
    let found = user(&*accounts, &named.id).await?;
    let now_ms = state.engine().clock().now_ms();
    let below = state.site().path.clone();
    let is_own = found.id == *state.caller().user();
    let bounds = if is_own { Some(Bounds::of(state.caller(), &*accounts).await?) } else { None };
    let made = async move {
        let secret = match bounds {
            Some(bounds) => issue_link_within(&*accounts, &found, bounds, now_ms).await?,
            None => issue_link(&accounts, &found, now_ms).await?,
        };
        let path = format!("{below}/login?code={}", secret.expose());
        Ok(api::SignInLink { path, expires_at: timestamp(now_ms.saturating_add(LINK_MS)) })
    };
    let route = format!("users/{}/links", named.id);
    let answer = once(&state, asked(&whole)?, &route, Keeps::Secret(|_| "a link".to_owned()), made).await?;
    Ok(json(StatusCode::CREATED, answer))
}

/// Makes a token for another user. For admins. The secret is shown this once. For the caller themselves it is as `makeToken` makes it.
#[utoipa::path(
    post,
    path = "/users/{id}/tokens",
    operation_id = "makeTokenForUser",
    tag = "users",
    params(Named, RepeatableHeader),
    request_body = api::TokenRequest,
    responses((status = 201, description = "It, with its secret.", body = api::NewToken), Refused, BodyRefused, NotThere, Conflicting)
)]
pub(super) async fn token_for(State(state): State, Params(named): Params<Named>, whole: Whole) -> Result<Response, ApiError> {
    let request: api::TokenRequest = whole.json()?;
    let found = user(&**state.accounts()?, &named.id).await?;
    let (scopes, made_with) = if found.id == *state.caller().user() {
        own(&state, &request).await?
    } else {
        let scopes = scopes(&request)?;
        if scopes.has(Scope::Admin) && found.role != Role::Admin {
            return Err(ApiError::invalid("the scope admin is for admins, and this user is a member"));
        }
        (scopes, None)
    };
    let made = make(state.clone(), found.id, scopes, made_with, request);
    let route = format!("users/{}/tokens", named.id);
    Ok(json(StatusCode::CREATED, once(&state, asked(&whole)?, &route, Keeps::Secret(named_token), made).await?))
}

/// The caller's own tokens.
#[utoipa::path(
    get,
    path = "/tokens",
    operation_id = "listTokens",
    tag = "users",
    params(PageQuery),
    responses((status = 200, description = "A page of them, the newest first.", body = api::List<api::Token>), Refused, NotThere)
)]
pub(super) async fn tokens(State(state): State, Search(page): Search<PageQuery>) -> Result<Response, ApiError> {
    let mut known = state.accounts()?.credentials(state.caller().user()).await?;
    known.retain(|known| known.kind == CredentialKind::Token);
    let page = page.part("tokens", known, |known| format!("{}_{}", falling(known.created_at_ms), known.id))?;
    let data = page.data.iter().map(token).collect();
    Ok(json(StatusCode::OK, api::List { data, next_cursor: page.next_cursor, has_more: page.has_more }))
}

/// Makes a token for the caller, with no more than the caller may do. One that is made with a token is revoked with it.
#[utoipa::path(
    post,
    path = "/tokens",
    operation_id = "makeToken",
    tag = "users",
    params(RepeatableHeader),
    request_body = api::TokenRequest,
    responses((status = 201, description = "It, with its secret, which is shown this once.", body = api::NewToken), Refused, BodyRefused, NotThere, Conflicting)
)]
pub(super) async fn make_own(State(state): State, whole: Whole) -> Result<Response, ApiError> {
    let request: api::TokenRequest = whole.json()?;
    let (scopes, made_with) = own(&state, &request).await?;
    let made = make(state.clone(), state.caller().user().clone(), scopes, made_with, request);
    Ok(json(StatusCode::CREATED, once(&state, asked(&whole)?, "tokens", Keeps::Secret(named_token), made).await?))
}

/// With what a token was made that is revoked with it, and when that ends.
type MadeWith = Option<(String, Option<u64>)>;

/// What a token may do that the caller makes for themselves.
async fn own(state: &ServerState, request: &api::TokenRequest) -> Result<(Scopes, MadeWith), ApiError> {
    let caller = state.caller();
    let scopes = if request.scopes.is_none() { Scopes::own().within(caller.scopes()) } else { scopes(request)? };
    if let Some(missing) = Scope::ALL.into_iter().find(|scope| scopes.has(*scope) && !caller.may(*scope)) {
        return Err(not_allowed(caller, missing));
    }
    let Bounds { parent, end_ms, .. } = Bounds::of(caller, &**state.accounts()?).await?;
    Ok((scopes, parent.map(|parent| (parent, end_ms))))
}

/// A token that was made, in words.
fn named_token(answer: &Value) -> String {
    format!("token `{}`", answer.get("id").and_then(Value::as_str).unwrap_or_default())
}

/// Revokes a token: one's own, or as an admin anybody's.
#[utoipa::path(
    delete,
    path = "/tokens/{id}",
    operation_id = "revokeToken",
    tag = "users",
    params(Named),
    responses((status = 204, description = "It counts no more."), Refused, NotThere, Conflicting)
)]
pub(super) async fn revoke(State(state): State, Params(named): Params<Named>) -> Result<StatusCode, ApiError> {
    let accounts = state.accounts()?;
    let missing = || ApiError::not_found(format_args!("token `{}`", named.id));
    let found = accounts.credential_named(&named.id).await?.ok_or_else(missing)?;
    if found.user != *state.caller().user() && !state.caller().may(Scope::Admin) {
        return Err(missing());
    }
    accounts.remove_credential(&named.id).await?;
    state.tell_of_revocation();
    Ok(StatusCode::NO_CONTENT)
}

async fn make(
    state: ServerState,
    user: UserId,
    scopes: Scopes,
    made_with: MadeWith,
    request: api::TokenRequest,
) -> Result<api::NewToken, ApiError> {
    let now_ms = state.engine().clock().now_ms();
    let asked = match request.expires_in_days {
        None => None,
        Some(days @ 1..=MAX_DAYS) => Some(now_ms.saturating_add(u64::from(days).saturating_mul(DAY_MS))),
        Some(days) => return Err(ApiError::invalid(format!("`expires_in_days` is {days}, it must be 1 to {MAX_DAYS}"))),
    };
    let (parent, end) = made_with.unzip();
    let end = end.flatten();
    let expires_at_ms = asked.into_iter().chain(end).min();
    let name = request.name.unwrap_or_else(|| "token".to_owned());
    if name.chars().count() > 100 || name.chars().any(char::is_control) {
        return Err(ApiError::invalid("`name` is at most 100 characters, none of them a control character"));
    }
    let new = NewCredential { user, kind: CredentialKind::Token, name, scopes, parent, expires_at_ms };
    let (secret, made) = issue(&**state.accounts()?, new, now_ms).await?;
    Ok(api::NewToken { secret: secret.expose().to_owned(), token: token(&made) })
}

fn scopes(request: &api::TokenRequest) -> Result<Scopes, ApiError> {
    let Some(words) = &request.scopes else { return Ok(Scopes::own()) };
    let scopes: Scopes = words.iter().map(|word| word.parse()).collect::<Result<_, _>>().map_err(ApiError::invalid)?;
    if words.is_empty() {
        Err(ApiError::invalid("`scopes` is empty; nothing could be done with the token"))
    } else {
        Ok(scopes)
    }
}

async fn user(accounts: &dyn Accounts, id: &str) -> Result<User, ApiError> {
    let found = match id.parse::<UserId>() {
        Ok(known) => accounts.user(&known).await?,
        Err(_) => None,
    };
    found.ok_or_else(|| StoreError::Missing { what: format!("user `{}`", id.chars().take(80).collect::<String>()) }.into())
}

fn told(user: User) -> api::User {
    api::User {
        id: user.id.to_string(),
        name: user.name,
        role: user.role.as_str().to_owned(),
        enabled: user.is_enabled,
        issuer: user.identity.map(|identity| identity.issuer),
        created_at: timestamp(user.created_at_ms),
    }
}

fn token(known: &Credential) -> api::Token {
    api::Token {
        id: known.id.clone(),
        user: known.user.to_string(),
        name: known.name.clone(),
        scopes: known.scopes.words().map(str::to_owned).collect(),
        created_at: timestamp(known.created_at_ms),
        expires_at: known.expires_at_ms.map(timestamp),
        last_used_at: known.used_at_ms.map(timestamp),
    }
}
