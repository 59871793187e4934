//! Model providers that are added while the server runs.

use axum::response::Response;
use http::{HeaderMap, StatusCode, header};
use serde::Deserialize;
use turnwright_api as api;
use turnwright_host::config::{Dialect, Secret};
use turnwright_host::{KeyCheck, ModelProviders, NewProvider, ProviderChangeError};

use super::json;
use crate::error::ApiError;
use crate::extract::{Params, State, Whole};
use crate::openapi::{BodyRefused, Conditional, Conflicting, IfMatch, IfNoneMatch, NotThere, Refused};
use crate::state::ServerState;
use crate::tag::Tag;

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

/// Asks a provider for its models, and keeps it where it answers: with its key, sealed.
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
    let added = providers.add_where(new, |version| is_as_seen(version, &whole.headers)).await?;
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
    changeable(&state)?.remove_where(&named.id, |version| is_as_seen(version, &headers)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Whether what is stored is what the client saw, where it says what that was. Of what is not there nobody saw anything.
fn is_as_seen(version: Option<&str>, headers: &HeaderMap) -> bool {
    let is_there = version.is_some() || !headers.contains_key(header::IF_MATCH);
    is_there && Tag::of(&version, &()).must_match(headers).is_ok()
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
