//! Tavily's API.

use serde::Deserialize;
use serde_json::json;

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

pub(super) fn body(query: &str, count: u32) -> String {
    json!({ "query": query, "max_results": count }).to_string()
}

pub(super) fn found(body: &[u8]) -> std::result::Result<Vec<Found>, String> {
    let answer: Answer = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let found = |result: Result| Found::of(result.title, result.url, result.content);
    Ok(answer.results.into_iter().filter_map(found).collect())
}
