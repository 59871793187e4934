//! Model providers that are added while the server runs.

use std::sync::{Mutex, PoisonError};

use axum::response::Response;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use turnwright_api as api;
use turnwright_host::config::{Dialect, Secret};
use turnwright_host::{KeyCheck, ModelProviders, NewProvider, ProviderChangeError};

use super::json;
use crate::error::ApiError;
use crate::extract::{Params, State, Whole};
use crate::openapi::{BodyRefused, Conditional, Conflicting, IfMatch, IfNoneMatch, NotThere, Refused};
use crate::state::ServerState;
use crate::tag::{Conditions, Tag};

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct Named {
    /// The provider's name.
    id: String,
}

/// One endpoint. It is not asked.
#[utoipa::path(
    get,
    path = "/providers/{id}",
    operation_id = "getProvider",
    tag = "installation",
    params(Named, IfNoneMatch),
    responses((status = 200, description = "It.", body = api::Provider), (status = 304, description = "The client has it."), Refused, NotThere)
)]
pub(super) async fn show(State(state): State, Params(named): Params<Named>, headers: HeaderMap) -> Result<Response, ApiError> {
    let missing = || ApiError::not_found(format_args!("provider `{}`", named.id.chars().take(80).collect::<String>()));
    let is_known = state.engine().providers().names().contains(&named.id);
    let told = is_known.then(|| provider(&state, named.id.clone())).ok_or_else(missing)?;
    let version = match state.model_providers() {
        Some(providers) => providers.version(&named.id).await?,
        None => None,
    };
    Ok(Tag::of(&version, &told).answer(&headers, &told))
}

/// Asks a provider for its models, and keeps it where it answers: with its key, sealed. With `If-None-Match: *`, only where none
/// was added under this name.
#[utoipa::path(
    put,
    path = "/providers/{id}",
    operation_id = "addProvider",
    tag = "installation",
    params(Named, IfMatch),
    request_body = api::ProviderRequest,
    responses((status = 200, description = "It answers and is kept.", body = api::AddedProvider), Refused, BodyRefused, NotThere, Conflicting, Conditional)
)]
pub(super) async fn add(State(state): State, Params(named): Params<Named>, whole: Whole) -> Result<Response, ApiError> {
    let request: api::ProviderRequest = whole.json()?;
    let dialect = request.dialect.as_deref().map(dialect).transpose()?;
    let api_key = request.api_key.map(Secret::new);
    let new = NewProvider { name: named.id, api_key, base_url: request.base_url, dialect };
    let providers = changeable(&state)?;
    let conditions = Seen::of(&whole.headers)?;
    let added = conditions.told(providers.add_where(new, |version| conditions.allow(version)).await)?;
    let version = providers.version(&added.name).await?;
    let told = api::AddedProvider {
        id: added.name,
        dialect: added.dialect.to_string(),
        model: added.model.to_string(),
        models: u64::try_from(added.models).unwrap_or(u64::MAX),
        key_checked: match added.key {
            KeyCheck::NoKey => None,
            KeyCheck::Taken => Some(true),
            KeyCheck::Untried => Some(false),
        },
    };
    Ok(Tag::of(&version, &told).on(json(StatusCode::OK, told)))
}

/// Forgets a provider that was added, with its key.
#[utoipa::path(
    delete,
    path = "/providers/{id}",
    operation_id = "removeProvider",
    tag = "installation",
    params(Named, IfMatch),
    responses((status = 204, description = "It is gone."), Refused, NotThere, Conditional)
)]
pub(super) async fn remove(
    State(state): State,
    Params(named): Params<Named>,
    headers: HeaderMap,
) -> Result<StatusCode, ApiError> {
    let conditions = Seen::of(&headers)?;
    conditions.told(changeable(&state)?.remove_where(&named.id, |version| conditions.allow(version)).await)?;
    Ok(StatusCode::NO_CONTENT)
}

/// The conditions of a change, and why they did not hold.
struct Seen {
    conditions: Conditions,
    refused: Mutex<Option<ApiError>>,
}

impl Seen {
    fn of(headers: &HeaderMap) -> Result<Self, ApiError> {
        Ok(Self { conditions: Conditions::of(headers)?, refused: Mutex::default() })
    }

    /// Whether they hold of what is stored.
    fn allow(&self, version: Option<&str>) -> bool {
        let there = version.map(|_| Tag::of(&version, &()));
        let refused = self.conditions.allow(there.as_ref()).err();
        let is_allowed = refused.is_none();
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = refused;
        is_allowed
    }

    /// What came of the change.
    fn told<T>(&self, done: Result<T, ProviderChangeError>) -> Result<T, ApiError> {
        done.map_err(|error| match (&error, self.refused.lock().unwrap_or_else(PoisonError::into_inner).take()) {
            (ProviderChangeError::Changed(_), Some(refused)) => refused,
            (_, _) => error.into(),
        })
    }
}

/// An endpoint as the API tells it.
pub(super) fn provider(state: &ServerState, id: String) -> api::Provider {
    let (dialect, problem) = match state.engine().providers().get(&id) {
        Ok(provider) => (Some(provider.dialect().to_owned()), None),
        Err(failure) => (None, Some(failure.message)),
    };
    let origin = state.model_providers().and_then(|providers| providers.origin(&id));
    api::Provider { is_default: state.engine().defaults().model.provider() == id, id, dialect, problem, origin }
}

fn changeable(state: &ServerState) -> Result<&ModelProviders, ApiError> {
    let missing = || ApiError::not_found("provider here that could be changed: this host has no configuration");
    state.model_providers().ok_or_else(missing)
}

fn dialect(name: &str) -> Result<Dialect, ApiError> {
    let names = || Dialect::ALL.map(Dialect::as_str).join(", ");
    let found = Dialect::ALL.into_iter().find(|dialect| dialect.as_str() == name);
    found.ok_or_else(|| ApiError::invalid(format!("there is no dialect `{name}`; there are {}", names())).about("dialect"))
}

impl From<ProviderChangeError> for ApiError {
    fn from(error: ProviderChangeError) -> Self {
        let (status, code) = match error {
            ProviderChangeError::Store(error) => return error.into(),
            ProviderChangeError::NotFound(_) => (StatusCode::NOT_FOUND, "not_found"),
            ProviderChangeError::Changed(_) => (StatusCode::PRECONDITION_FAILED, "precondition_failed"),
            ProviderChangeError::Configured(_) => (StatusCode::CONFLICT, "of_file"),
            ProviderChangeError::Invalid(_) => (StatusCode::UNPROCESSABLE_ENTITY, "invalid_request"),
            ProviderChangeError::Failed(_) => (StatusCode::UNPROCESSABLE_ENTITY, "provider_failed"),
            ProviderChangeError::Unkept(_) => (StatusCode::INTERNAL_SERVER_ERROR, "key_not_kept"),
        };
        Self::new(status, code, error.to_string())
    }
}
