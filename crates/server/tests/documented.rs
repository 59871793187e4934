//! Whatever a test is answered is in the OpenAPI document: its status, and the type of its body. Many an answer needs a conversation in a
//! state that nobody makes who has the document alone.

use std::sync::LazyLock;

use axum::body::Body;
use http::{Method, Response, header};
use serde_json::Value;

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| serde_json::to_value(turnwright_server::openapi()).unwrap());

/// The response, which the document knows where it knows the route.
pub(crate) fn documented(method: &Method, path: &str, response: Response<Body>) -> Response<Body> {
    let Some((template, operation)) = operation(method, path) else { return response };
    let (status, answers) = (response.status(), &operation["responses"]);
    let answer = match answers[status.as_str()]["$ref"].as_str() {
        Some(named) => DOCUMENT.pointer(named.trim_start_matches('#')).unwrap(),
        None => &answers[status.as_str()],
    };
    assert!(answer.is_object(), "{method} {template} answers {status}, which its document does not say");
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or("nothing");
    let is_known = match answer["content"].as_object() {
        Some(kinds) => kinds.keys().any(|known| known == kind || Some(&**known) == kind.split(';').next() || known == "*/*"),
        None => kind == "nothing",
    };
    assert!(
        is_known,
        "{method} {template} answers {status} with {kind}, which its document does not say: {}",
        answer["content"]
    );
    response
}

/// The template of the path that was asked for, and what is said of it.
fn operation(method: &Method, path: &str) -> Option<(&'static str, &'static Value)> {
    let path = path.split('?').next().unwrap_or_default();
    let path = path.strip_prefix("/tw").unwrap_or(path);
    let parts: Vec<&str> = path.split('/').collect();
    let fits = |template: &str| {
        let template: Vec<&str> = template.split('/').collect();
        let same = |(known, asked): (&&str, &&str)| known == asked || (known.starts_with('{') && !asked.is_empty());
        template.len() == parts.len() && template.iter().zip(&parts).all(same)
    };
    let mut fitting: Vec<_> = DOCUMENT["paths"].as_object()?.iter().filter(|(template, _)| fits(template)).collect();
    // One that is written out is meant before one in which the same place is any name.
    fitting.sort_by_key(|(template, _)| template.matches('{').count());
    let (template, item) = fitting.into_iter().next()?;
    Some((template, item.get(method.as_str().to_ascii_lowercase())?))
}
