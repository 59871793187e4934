//! Models.

use axum::response::Response;
use http::StatusCode;
use serde::Deserialize;
use turnwright_api::openai::{OpenAiModel, OpenAiModels};

use crate::error::ApiError;
use crate::extract::{Params, State};
use crate::openai::models;
use crate::openapi::openai::OpenAiRefused;
use crate::routes::json;

/// The models.
#[utoipa::path(
    get,
    path = "/models",
    operation_id = "listOpenAiModels",
    tag = "openai",
    responses((status = 200, description = "All models.", body = OpenAiModels), OpenAiRefused)
)]
pub(super) async fn list(State(state): State) -> Response {
    let data = models::all(state.engine()).await;
    json(StatusCode::OK, OpenAiModels { object: "list".to_owned(), data })
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct Named {
    /// `PROVIDER/MODEL`; the slash may stand as it is.
    id: String,
}

/// A model.
#[utoipa::path(
    get,
    path = "/models/{id}",
    operation_id = "showOpenAiModel",
    tag = "openai",
    params(Named),
    responses((status = 200, description = "The model.", body = OpenAiModel), OpenAiRefused)
)]
pub(super) async fn show(State(state): State, Params(named): Params<Named>) -> Result<Response, ApiError> {
    let all = models::all(state.engine()).await;
    let is_listed = all.iter().any(|model| model.id == named.id);
    // Names that requests may have besides: `default`, and a model's own.
    let found = if is_listed {
        all.into_iter().find(|model| model.id == named.id)
    } else {
        let meant = models::named(state.engine(), Some(&named.id)).await?;
        let is_there = !named.id.contains('/') || all.iter().any(|model| model.id == meant.to_string());
        is_there.then(|| models::one(meant.provider(), meant.model()))
    };
    found.map(|model| json(StatusCode::OK, model)).ok_or_else(|| models::none(&named.id, None))
}
