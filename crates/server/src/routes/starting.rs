//! What is answered while the server starts: it is alive, and can do nothing yet.

use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use axum::routing::get;
use http::StatusCode;

use super::installation;
use crate::auth::told;
use crate::base_path::below;
use crate::error::ApiError;

/// The routes below `path` of a server that starts.
pub(crate) fn starting(path: &str) -> Router {
    below(path.to_owned(), Router::new().route("/healthz", get(installation::healthy)).fallback(refused))
}

async fn refused(request: Request) -> Response {
    let what = "the server is starting, which takes long where a large database is brought up; its log says what it does";
    let error = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "starting", what).worth_repeating_in(1);
    told(error, &request.into_parts().0)
}
