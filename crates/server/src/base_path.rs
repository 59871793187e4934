//! The path below which the server is found, where it shares its host with others.
//!
//! Routes are written as at the top. A proxy may hand on a request with the path before it or have taken it away: either is
//! answered, and what is answered names the path.

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Redirect, Response};
use http::uri::PathAndQuery;
use http::{HeaderValue, Uri, header};
use tower::ServiceExt;

/// `routes` below `path`, such as `/turnwright`.
pub(crate) fn below(path: String, routes: Router) -> Router {
    if path.is_empty() {
        return routes;
    }
    Router::new().fallback(move |request: Request| {
        let (path, routes) = (path.clone(), routes.clone());
        async move { answer(&path, routes, request).await }
    })
}

async fn answer(path: &str, routes: Router, mut request: Request) -> Response {
    match inner(path, request.uri()) {
        Inner::Page => return Redirect::permanent(&format!("{path}/")).into_response(),
        Inner::At(uri) => *request.uri_mut() = uri,
        Inner::Same => {}
    }
    let Ok(mut response) = routes.oneshot(request).await;
    if let Some(location) = response.headers_mut().get_mut(header::LOCATION)
        && let Some(told) = location.to_str().ok().and_then(|told| named(path, told))
        && let Ok(told) = HeaderValue::from_str(&told)
    {
        *location = told;
    }
    response
}

/// A location with the path before it; `None` where it needs none. What is beside the page is not beside an address that a proxy has
/// taken the path from: `/tw` comes as `/`, and `login` beside `/tw` is no address of ours.
fn named(path: &str, told: &str) -> Option<String> {
    match told {
        "login" => Some(format!("{path}/login")),
        told if told.starts_with("/api/v1/") => Some(format!("{path}{told}")),
        _ => None,
    }
}

/// What a request asks for, as the routes know it.
#[derive(Debug, PartialEq, Eq)]
enum Inner {
    /// The page, by an address from which its files would not be found.
    Page,
    /// This.
    At(Uri),
    /// What it says.
    Same,
}

fn inner(path: &str, uri: &Uri) -> Inner {
    match uri.path().strip_prefix(path) {
        Some("") => Inner::Page,
        Some(rest) if rest.starts_with('/') => {
            let asked = uri.query().map_or_else(|| rest.to_owned(), |query| format!("{rest}?{query}"));
            let mut parts = uri.clone().into_parts();
            parts.path_and_query = PathAndQuery::try_from(asked).ok();
            Uri::from_parts(parts).map_or(Inner::Same, Inner::At)
        }
        Some(_) | None => Inner::Same,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_below_the_path_is_what_is_asked_for() {
        let at = |uri: &str| Inner::At(uri.parse().unwrap());
        let table = [
            ("/tw", Inner::Page),
            ("/tw?a=b", Inner::Page),
            ("/tw/", at("/")),
            ("/tw/?c=1", at("/?c=1")),
            ("/tw/api/v1/me", at("/api/v1/me")),
            ("/tw/tw/x", at("/tw/x")),
            ("/twice", Inner::Same),
            ("/healthz", Inner::Same),
            ("/", Inner::Same),
            ("//tw/x", Inner::Same),
        ];
        for (asked, expected) in table {
            assert_eq!(inner("/tw", &asked.parse().unwrap()), expected, "{asked}");
        }
    }
}
