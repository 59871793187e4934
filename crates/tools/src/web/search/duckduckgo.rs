//! `DuckDuckGo`'s page without scripts.

use dom_query::Document;
use url::Url;

use super::found::Found;
use crate::net::Answer;

pub(super) fn place(url: &mut Url, query: &str) {
    url.query_pairs_mut().append_pair("q", query);
}

/// Whether it gives a riddle instead of results.
pub(super) fn asks_for_a_person(answer: &Answer) -> bool {
    memchr::memmem::find(&answer.body, b"anomaly-modal").is_some()
        || memchr::memmem::find(&answer.body, b"anomaly.js").is_some()
}

pub(super) fn found(body: &[u8]) -> Result<Vec<Found>, String> {
    let html = String::from_utf8_lossy(body);
    let page = Document::from(html.as_ref());
    let mut found = Vec::new();
    for result in &page.select(".result") {
        let link = result.select("a.result__a").first();
        let Some(url) = link.attr("href").and_then(|href| leads_to(&href)) else { continue };
        if result.has_class("result--ad") {
            continue;
        }
        let snippet = result.select(".result__snippet").first().text().to_string();
        found.push(Found { title: link.text().to_string(), url, snippet });
    }
    if found.is_empty() && page.select(".no-results, .results, #links").is_empty() {
        return Err("a page without a list".to_owned());
    }
    Ok(found)
}

/// Results are links over its own server (`//duckduckgo.com/l/?uddg=…`); so are advertisements, to another place there.
fn leads_to(href: &str) -> Option<String> {
    let url = Url::parse("https://duckduckgo.com/").ok()?.join(href).ok()?;
    if !url.domain().is_some_and(|domain| domain == "duckduckgo.com" || domain.ends_with(".duckduckgo.com")) {
        return Some(url.into());
    }
    let (_, there) = url.query_pairs().find(|(name, _)| name == "uddg").filter(|_| url.path() == "/l/")?;
    Some(there.into_owned())
}
