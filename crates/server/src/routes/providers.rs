//! Model providers that are added while the server runs.

use axum::response::Response;
use http::StatusCode;
use serde::Deserialize;
use turnwright_api as api;
use turnwright_host::config::{Dialect, Secret};
use turnwright_host::{KeyCheck, ModelProviders, NewProvider, ProviderChangeError};

use super::json;
use crate::error::ApiError;
use crate::extract::{Params, State, Whole};
use crate::openapi::{BodyRefused, Conflicting, NotThere, Refused};
use crate::state::ServerState;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct Named {
    /// The provider's name.
    id: String,
}

/// Asks a provider for its models, and keeps it where it answers: with its key, sealed.
#[utoipa::path(
    put,
    path = "/providers/{id}",
    operation_id = "addProvider",
    tag = "installation",
    params(Named),
    request_body = api::ProviderRequest,
    responses((status = 200, description = "It answers and is kept.", body = api::AddedProvider), Refused, BodyRefused, NotThere, Conflicting)
)]
pub(super) async fn add(State(state): State, Params(named): Params<Named>, whole: Whole) -> Result<Response, ApiError> {
    let request: api::ProviderRequest = whole.json()?;
    let dialect = request.dialect.as_deref().map(dialect).transpose()?;
    let api_key = request.api_key.map(Secret::new);
    let new = NewProvider { name: named.id, api_key, base_url: request.base_url, dialect };
    let added = changeable(&state)?.add(new).await?;
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
    Ok(json(StatusCode::OK, told))
}

/// Forgets a provider that was added, with its key.
#[utoipa::path(
    delete,
    path = "/providers/{id}",
    operation_id = "removeProvider",
    tag = "installation",
    params(Named),
    responses((status = 204, description = "It is gone."), Refused, NotThere)
)]
pub(super) async fn remove(State(state): State, Params(named): Params<Named>) -> Result<StatusCode, ApiError> {
    changeable(&state)?.remove(&named.id).await?;
    Ok(StatusCode::NO_CONTENT)
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
            ProviderChangeError::Configured(_) => (StatusCode::CONFLICT, "of_file"),
            ProviderChangeError::Invalid(_) => (StatusCode::UNPROCESSABLE_ENTITY, "invalid_request"),
            ProviderChangeError::Failed(_) => (StatusCode::UNPROCESSABLE_ENTITY, "provider_failed"),
            ProviderChangeError::Unkept(_) => (StatusCode::INTERNAL_SERVER_ERROR, "key_not_kept"),
        };
        Self::new(status, code, error.to_string())
    }
}
