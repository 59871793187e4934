//! Tavily's API.

use serde::Deserialize;
use serde_json::json;

use super::found::Found;

#[derive(Deserialize)]
struct Answer {
    results: Vec<Result>,
}

#[derive(Deserialize)]
struct Result {
    #[serde(default)]
    title: String,
    url: String,
    #[serde(default)]
    content: String,
}

pub(super) fn body(query: &str, count: u32) -> String {
    json!({ "query": query, "max_results": count }).to_string()
}

pub(super) fn found(body: &[u8]) -> std::result::Result<Vec<Found>, String> {
    let answer: Answer = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let found = |result: Result| Found { title: result.title, url: result.url, snippet: result.content };
    Ok(answer.results.into_iter().map(found).collect())
}
