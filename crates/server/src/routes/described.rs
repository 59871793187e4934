//! The OpenAPI document, and a page of our own that shows it and loads nothing from elsewhere.

use axum::extract::Path;
use axum::response::{Html, IntoResponse, Response};
use http::header;

use super::no_such_route;
use crate::extract::State;

/// The document, as it is in the repository; below a path it says where its routes begin.
pub(super) async fn document(State(state): State) -> Response {
    const PATHS: &str = "
  \"paths\": {";
    let document = include_str!("../../openapi.json");
    let kind = [(header::CONTENT_TYPE, "application/json")];
    let path = &state.site().path;
    if path.is_empty() {
        return (kind, document).into_response();
    }
    // A base path has no character that JSON writes otherwise.
    (
        kind,
        document.replacen(
            PATHS,
            &format!(
                "
  \"servers\": [{{ \"url\": \"{path}\" }}],{PATHS}"
            ),
            1,
        ),
    )
        .into_response()
}

/// The page.
pub(super) async fn page() -> Response {
    let policy =
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'";
    ([(header::CONTENT_SECURITY_POLICY, policy)], Html(include_str!("described/docs.html"))).into_response()
}

/// The page's script and style.
pub(super) async fn file(State(state): State, Path(name): Path<String>) -> Response {
    let (kind, text) = match name.as_str() {
        "docs.js" => ("text/javascript; charset=utf-8", include_str!("described/docs.js")),
        "docs.css" => ("text/css; charset=utf-8", include_str!("described/docs.css")),
        _ => return no_such_route(&state, &format!("/docs/{name}")).into_response(),
    };
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}
