//! Models.

use axum::response::Response;
use http::StatusCode;
use serde::Deserialize;
use turnwright_api::openai::OpenAiModels;

use crate::error::ApiError;
use crate::extract::{Params, State};
use crate::openai::models;
use crate::routes::json;

pub(super) async fn list(State(state): State) -> Response {
    let data = models::all(state.engine()).await;
    json(StatusCode::OK, OpenAiModels { object: "list".to_owned(), data })
}

#[derive(Debug, Deserialize)]
pub(super) struct Named {
    id: String,
}

pub(super) async fn show(State(state): State, Params(named): Params<Named>) -> Result<Response, ApiError> {
    let found = models::all(state.engine()).await.into_iter().find(|model| model.id == named.id);
    found.map(|model| json(StatusCode::OK, model)).ok_or_else(|| models::none(&named.id, None))
}
