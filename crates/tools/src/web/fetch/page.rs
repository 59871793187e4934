//! A text that was read, and its parts.

use std::fmt::Write as _;

use turnwright_engine::source::ToolError;

use crate::error::{grouped, invalid};
use crate::net::Answer;

/// A text that was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Page {
    /// Where it is, after redirects.
    pub(super) url: String,
    pub(super) title: Option<String>,
    pub(super) text: String,
    /// What is to be said of it besides.
    pub(super) notes: Vec<String>,
}

impl Page {
    pub(super) fn of(answer: &Answer, title: Option<String>, text: String) -> Self {
        let cut = || "the end is missing: there is more than the limit allows to read".to_owned();
        let notes = answer.is_cut.then(cut).into_iter().collect();
        Self { url: answer.from.url().to_string(), title, text, notes }
    }
}

/// A part of a text, with where it stands.
pub(super) fn shown(page: &Page, offset: usize, limit: usize) -> Result<String, ToolError> {
    let number = |count: usize| grouped(u64::try_from(count).unwrap_or(u64::MAX));
    let total = page.text.chars().count();
    if offset > 0 && offset >= total {
        return Err(invalid(format!("offset is {offset}; the text has {} characters, the first at offset 0", number(total))));
    }
    let rest: &str = page.text.char_indices().nth(offset).and_then(|(at, _)| page.text.get(at..)).unwrap_or_default();
    let part = cut(rest, limit);
    let end = offset + part.chars().count();
    let mut out = page.url.clone();
    if let Some(title) = page.title.as_deref().filter(|title| !title.is_empty()) {
        out.push_str("\nTitle: ");
        out.push_str(title);
    }
    for note in &page.notes {
        out.push_str("\n[");
        out.push_str(note);
        out.push(']');
    }
    if part.trim().is_empty() && total == 0 {
        out.push_str("\n[there is no text; the page may need a browser]");
    }
    out.push_str("\n\n");
    out.push_str(part);
    if end < total {
        // Writing to a string does not fail.
        let _ =
            write!(out, "\n\n[characters {} to {} of {}; go on with offset {end}]", number(offset), number(end), number(total));
    }
    Ok(out)
}

/// At most so many characters, up to the end of a line where one is near.
fn cut(text: &str, limit: usize) -> &str {
    let Some((end, _)) = text.char_indices().nth(limit) else { return text };
    let head = text.get(..end).unwrap_or(text);
    match head.rfind('\n') {
        Some(line) if line + 1 > end / 2 => text.get(..=line).unwrap_or(head),
        Some(_) | None => head,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_text_are_the_text() {
        let lines: Vec<String> = (0..200).map(|line| format!("Zeile {line} mit äöü und 漢字\n")).collect();
        let text = lines.concat();
        let page = Page { url: "https://a.org/".into(), text: text.clone(), ..Page::default() };
        let (mut offset, mut read) = (0, String::new());
        loop {
            let shown = shown(&page, offset, 100).unwrap();
            let body = shown.split_once("\n\n").unwrap().1;
            let Some((part, place)) = body.rsplit_once("\n\n[characters ") else {
                read.push_str(body);
                break;
            };
            read.push_str(part);
            offset = place.trim_end_matches(']').rsplit_once(' ').unwrap().1.parse().unwrap();
        }
        assert_eq!(read, text);
    }

    #[test]
    fn an_offset_behind_the_end_is_told() {
        let page = Page { text: "short".into(), ..Page::default() };
        let error = shown(&page, 9, 100).unwrap_err();
        assert_eq!(error.model_text, "offset is 9; the text has 5 characters, the first at offset 0");
    }
}
