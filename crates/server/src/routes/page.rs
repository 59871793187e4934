//! What stands in for the page in a build without it.

use axum::response::Html;

/// Says that the page is not there and how to do without.
pub(super) async fn page() -> Html<&'static str> {
    Html(include_str!("no_page.html"))
}
