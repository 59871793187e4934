//! A server of `SearXNG`.

use serde::Deserialize;
use url::Url;

use super::found::Found;

#[derive(Deserialize)]
struct Answer {
    results: Vec<Result>,
}

/// What a service leaves out, or says to be null, spoils no other result.
#[derive(Deserialize)]
struct Result {
    title: Option<String>,
    url: Option<String>,
    content: Option<String>,
}

/// The base address may be the server's or that of its search.
pub(super) fn place(url: &mut Url, query: &str) {
    if !url.path().ends_with("/search") {
        let path = format!("{}/search", url.path().trim_end_matches('/'));
        url.set_path(&path);
    }
    url.query_pairs_mut().append_pair("q", query).append_pair("format", "json");
}

pub(super) fn found(body: &[u8]) -> std::result::Result<Vec<Found>, String> {
    let answer: Answer = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let found = |result: Result| Found::of(result.title, result.url, result.content);
    Ok(answer.results.into_iter().filter_map(found).collect())
}
