//! Brave's Web Search API.

use serde::Deserialize;
use url::Url;

use super::found::Found;

/// Carries the key.
pub(super) const HEADER: &str = "x-subscription-token";

#[derive(Deserialize)]
struct Answer {
    /// Not there where nothing was found.
    web: Option<Web>,
}

#[derive(Deserialize)]
struct Web {
    #[serde(default)]
    results: Vec<Result>,
}

/// What a service leaves out, or says to be null, spoils no other result.
#[derive(Deserialize)]
struct Result {
    title: Option<String>,
    url: Option<String>,
    description: Option<String>,
}

pub(super) fn place(url: &mut Url, query: &str, count: u32) {
    url.query_pairs_mut().append_pair("q", query).append_pair("count", &count.to_string());
}

pub(super) fn found(body: &[u8]) -> std::result::Result<Vec<Found>, String> {
    let answer: Answer = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let results = answer.web.map(|web| web.results).unwrap_or_default();
    let found = |result: Result| Found::of(result.title, result.url, result.description);
    Ok(results.into_iter().filter_map(found).collect())
}
