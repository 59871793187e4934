//! The OpenAPI document, and a page of our own that shows it and loads nothing from elsewhere.

use axum::extract::Path;
use axum::response::{Html, IntoResponse, Response};
use http::header;

use super::no_such_route;

/// The document, as it is in the repository.
pub(super) async fn document() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], include_str!("../../openapi.json")).into_response()
}

/// The page.
pub(super) async fn page() -> Response {
    let policy =
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'";
    ([(header::CONTENT_SECURITY_POLICY, policy)], Html(include_str!("described/docs.html"))).into_response()
}

/// The page's script and style.
pub(super) async fn file(Path(name): Path<String>) -> Response {
    let (kind, text) = match name.as_str() {
        "docs.js" => ("text/javascript; charset=utf-8", include_str!("described/docs.js")),
        "docs.css" => ("text/css; charset=utf-8", include_str!("described/docs.css")),
        _ => return no_such_route(&format!("/docs/{name}")).into_response(),
    };
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}
