//! The text of a page of HTML, as Markdown. Pure.

use dom_query::Document;
use dom_smoothie::{Config, Readability, TextMode};
use url::Url;

use super::nesting;
use super::page::Page;
use super::regular;
use crate::net::Answer;

/// The most elements of a page whose main part is looked for; of a larger one all is given.
const MAX_ELEMENTS: usize = 100_000;
/// A main part that is shorter may be a mistake, in characters: then all is given where that is much more.
const SHORT_CHARS: usize = 200;

/// How much of a page is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Part {
    /// What it is there for.
    Main,
    /// That and what is around it.
    Whole,
}

/// The text of a page.
pub(super) fn page(answer: &Answer, html: &str, part: Part) -> Page {
    let url = answer.from.url();
    if !nesting::is_tame(html) {
        let mut page = Page::of(answer, None, tidy(&nesting::flat(html)));
        page.notes.push("the page is too large or too deep to be read as HTML: this is the text between its tags".to_owned());
        return page;
    }
    match part {
        Part::Whole => {
            let (title, text) = whole(html, url);
            Page::of(answer, title, text)
        }
        Part::Main => {
            let found = main_part(html, url);
            let is_short = found.as_ref().is_none_or(|(_, text)| text.chars().count() < SHORT_CHARS);
            let all = is_short.then(|| whole(html, url));
            let (title, text) = match (found, all) {
                (Some((title, text)), Some((_, all))) if all.len() <= 2 * text.len() => (title, text),
                (_, Some(all)) => all,
                (Some(found), None) => found,
                (None, None) => (None, String::new()),
            };
            Page::of(answer, title, text)
        }
    }
}

/// All of a page of HTML that lies somewhere, as Markdown.
pub(crate) fn markdown(html: &str) -> String {
    match Url::parse("file:///") {
        Ok(nowhere) if nesting::is_tame(html) => whole(html, &nowhere).1,
        Ok(_) | Err(_) => tidy(&nesting::flat(html)),
    }
}

fn main_part(html: &str, url: &Url) -> Option<(Option<String>, String)> {
    let config = Config { text_mode: TextMode::Markdown, max_elements_to_parse: MAX_ELEMENTS, ..Config::default() };
    let article = Readability::with_document(document(html, url), Some(url.as_str()), Some(config)).ok()?.parse().ok()?;
    let text = tidy(&article.text_content);
    (!text.is_empty()).then_some((Some(article.title), text))
}

fn whole(html: &str, url: &Url) -> (Option<String>, String) {
    const NO_TEXT: [&str; 10] =
        ["script", "style", "meta", "head", "noscript", "template", "svg", "iframe", "canvas", "object"];
    let document = document(html, url);
    let title = document.select("title").first().text();
    let text = tidy(&document.md(Some(&NO_TEXT)));
    (Some(title.trim().to_owned()).filter(|title| !title.is_empty()), text)
}

/// A page with whole addresses, and with what Markdown can say.
fn document(html: &str, url: &Url) -> Document {
    let document = Document::from(html);
    let base = document.select("base[href]").first().attr("href").and_then(|base| url.join(&base).ok());
    let base = base.as_ref().unwrap_or(url);
    for (selector, attribute) in [("a[href]", "href"), ("img[src]", "src")] {
        for node in document.select(selector).nodes() {
            // What is drawn within the page is a text of megabytes.
            match node.attr(attribute).map(|value| (value.starts_with("data:"), base.join(&value))) {
                Some((false, Ok(absolute))) => node.set_attr(attribute, absolute.as_str()),
                Some((true, _)) => node.remove_attr(attribute),
                Some((false, Err(_))) | None => {}
            }
        }
    }
    regular::make(&document);
    document
}

/// A line in whose addresses a `&` is one: in Markdown they are no text of HTML.
fn push_line(out: &mut String, line: &str) {
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("](") {
        let (address, after) = after.split_at(after.find([')', ' ']).unwrap_or(after.len()));
        out.push_str(before);
        out.push_str("](");
        out.push_str(&address.replace("&amp;", "&"));
        rest = after;
    }
    out.push_str(rest);
}

/// Without white space at the ends of lines, and without more than one empty line.
fn tidy(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut empty = 0;
    for line in text.trim().lines().map(str::trim_end) {
        empty = if line.is_empty() { empty + 1 } else { 0 };
        if empty < 2 {
            push_line(&mut out, line);
            out.push('\n');
        }
    }
    out.truncate(out.trim_end().len());
    out
}
