//! What ChatGPT and Claude say of where an answer has something from.

use serde_json::Value;

use super::draft::Draft;
use super::{list, text};

/// Begin a mark in a text of ChatGPT's, end it, and stand between its parts.
const BEGIN: char = '\u{e200}';
const END: char = '\u{e201}';
const NEXT: char = '\u{e202}';

/// A text of ChatGPT's with its marks in words: what `references`, a member of the message, say of each. What nothing is known of
/// is taken out and counted.
pub(super) fn in_words(said: &str, references: &[Value], draft: &mut Draft) -> String {
    let mut out = String::with_capacity(said.len());
    let mut rest = said;
    while let Some((before, (mark, after))) =
        rest.split_once(BEGIN).and_then(|(before, from)| Some((before, from.split_once(END)?)))
    {
        out.push_str(before);
        match words(mark, references) {
            Some(words) => {
                if words.starts_with('(') && !out.ends_with(char::is_whitespace) {
                    out.push(' ');
                }
                out.push_str(&words);
            }
            None => draft.leave_out("a mark in an answer whose meaning is not in the file"),
        }
        rest = after;
    }
    out.push_str(rest);
    out.retain(|letter| ![BEGIN, END, NEXT].contains(&letter));
    out
}

fn words(mark: &str, references: &[Value]) -> Option<String> {
    let is_of = |matched: &str| matched.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(END)) == Some(mark);
    let found = references.iter().find(|reference| text(reference, "matched_text").is_some_and(is_of));
    let Some(reference) = found else {
        // A thing that the text is about: its kind and its name.
        let thing: Vec<Value> = serde_json::from_str(mark.strip_prefix("entity")?.strip_prefix(NEXT)?).ok()?;
        return thing.get(1)?.as_str().map(str::to_owned);
    };
    if let Some(words) = text(reference, "alt") {
        return Some(words.to_owned());
    }
    if text(reference, "type") == Some("hidden") {
        return Some(String::new());
    }
    links(list(reference, "items").iter().filter_map(|item| Some((text(item, "title"), text(item, "url")?))))
}

/// A text of Claude's with the addresses of its citations behind it.
pub(super) fn with_addresses(said: &str, citations: &[Value]) -> String {
    let cited = citations.iter().filter_map(|citation| {
        let details = citation.get("details").unwrap_or(citation);
        Some((text(details, "title").or(text(citation, "title")), text(details, "url").or(text(citation, "url"))?))
    });
    match links(cited) {
        Some(links) => format!("{said} {links}"),
        None => said.to_owned(),
    }
}

/// Links in brackets, each address once; `None` where there is none.
pub(super) fn links<'a>(of: impl Iterator<Item = (Option<&'a str>, &'a str)>) -> Option<String> {
    let mut told: Vec<&str> = Vec::new();
    let mut links = Vec::new();
    for (title, url) in of {
        if told.contains(&url) {
            continue;
        }
        told.push(url);
        let host = || url.split_once("://").map_or(url, |(_, rest)| rest.split(['/', '?']).next().unwrap_or(rest));
        links.push(format!("[{}]({url})", title.unwrap_or_else(host)));
    }
    (!links.is_empty()).then(|| format!("({})", links.join(", ")))
}
