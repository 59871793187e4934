//! Pages that no reader of HTML can hold. Pure.
//!
//! A reader builds a tree, as deep as the page says, and opens again in each block what was left open around it: some kilobytes
//! can become millions of nodes, or a tree too deep to walk. So a page is looked at once, in one pass, before it is read as
//! HTML; one that would grow is read as the text between its tags.

use std::collections::HashMap;

/// The largest page that is read as HTML, in bytes.
const MAX_BYTES: usize = 6 << 20;
/// How deep elements may lie in one another.
const MAX_DEPTH: usize = 400;
/// How many comparisons the attributes of all tags may come to: a reader compares each with those before it in its tag.
const MAX_COMPARED: usize = 20_000_000;
/// How many elements may come of opening again what was left open.
const MAX_REOPENED: usize = 2_000_000;

/// Elements without an end, and those that end where the next of their kind begins.
const WITHOUT_END: [&str; 42] = [
    "area", "base", "basefont", "bgsound", "body", "br", "caption", "col", "colgroup", "dd", "dt", "embed", "frame", "head",
    "hr", "html", "image", "img", "input", "keygen", "li", "link", "meta", "optgroup", "option", "p", "param", "rb", "rp",
    "rt", "rtc", "source", "tbody", "td", "tfoot", "th", "thead", "tr", "track", "wbr", "isindex", "command",
];
/// What is opened again in each block (the HTML standard, "formatting").
const FORMATTING: [&str; 14] =
    ["a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"];
/// What holds text and no elements.
const RAW: [&str; 8] = ["script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes"];

/// Whether a page may be read as HTML.
pub(super) fn is_tame(html: &str) -> bool {
    let mut open = Open::default();
    html.len() <= MAX_BYTES && tags(html, |piece| open.sees(piece))
}

/// The text between the tags of a page.
pub(super) fn flat(html: &str) -> String {
    let mut out = String::with_capacity(html.len() / 2);
    let mut begun = 0;
    tags(html, |piece| {
        let text = html.get(begun..piece.start).unwrap_or_default().trim();
        if !text.is_empty() {
            out.push_str(text);
            out.push('\n');
        }
        begun = piece.end;
        true
    });
    out.push_str(html.get(begun..).unwrap_or_default().trim());
    out
}

#[derive(Default)]
struct Open {
    by_name: HashMap<String, usize>,
    depth: usize,
    formatting: usize,
    most_formatting: usize,
    tags: usize,
    compared: usize,
}

impl Open {
    /// Whether the page is still tame with this tag.
    fn sees(&mut self, tag: &Tag<'_>) -> bool {
        self.tags += 1;
        self.compared = self.compared.saturating_add(tag.attributes.saturating_mul(tag.attributes) / 2);
        let name = tag.name.to_ascii_lowercase();
        if !name.is_empty() && !WITHOUT_END.contains(&name.as_str()) {
            let is_formatting = FORMATTING.contains(&name.as_str());
            let count = self.by_name.entry(name).or_default();
            if !tag.is_end {
                *count += 1;
                self.depth += 1;
                self.formatting += usize::from(is_formatting);
            } else if *count > 0 {
                *count -= 1;
                self.depth -= 1;
                self.formatting -= usize::from(is_formatting);
            }
        }
        self.most_formatting = self.most_formatting.max(self.formatting);
        self.depth <= MAX_DEPTH
            && self.compared <= MAX_COMPARED
            && self.most_formatting.saturating_mul(self.tags) <= MAX_REOPENED
    }
}

/// A tag, or a comment, with what belongs to it and is no text.
struct Tag<'a> {
    /// Empty for a comment.
    name: &'a str,
    is_end: bool,
    start: usize,
    end: usize,
    /// How many attributes it has at most.
    attributes: usize,
}

/// Goes through the tags as long as `sees` says so; whether it always did.
fn tags(html: &str, mut sees: impl FnMut(&Tag<'_>) -> bool) -> bool {
    let bytes = html.as_bytes();
    let from = |at: usize| bytes.get(at..).unwrap_or_default();
    let (mut at, mut foreign) = (0, 0_usize);
    while let Some(found) = memchr::memchr(b'<', from(at)) {
        let start = at + found;
        at = start + 1;
        if from(at).starts_with(b"!--") {
            at = memchr::memmem::find(from(at + 3), b"-->").map_or(bytes.len(), |end| at + 3 + end + 3);
        } else if matches!(from(at).first(), Some(b'!' | b'?')) {
            at = memchr::memchr(b'>', from(at)).map_or(bytes.len(), |end| at + end + 1);
        } else {
            let is_end = from(at).first() == Some(&b'/');
            let name_start = at + usize::from(is_end);
            let length =
                from(name_start).iter().take_while(|byte| !byte.is_ascii_whitespace() && !b"/><".contains(byte)).count();
            let name = html.get(name_start..name_start + length).unwrap_or_default();
            if !name.starts_with(|letter: char| letter.is_ascii_alphabetic()) {
                continue;
            }
            let attributes;
            (at, attributes) = after_tag(bytes, name_start + length);
            let is = |names: &[&str]| names.iter().any(|known| name.eq_ignore_ascii_case(known));
            if is(&["svg", "math"]) {
                foreign = if is_end { foreign.saturating_sub(1) } else { foreign + 1 };
            }
            let tag = Tag { name, is_end, start, end: at, attributes };
            // Within drawings and formulas the same names hold elements like others.
            if !is_end && foreign == 0 && is(&RAW) {
                let end = after_raw(html, at, name);
                if !sees(&Tag { name: "", end, ..tag }) {
                    return false;
                }
                at = end;
                continue;
            }
            if !sees(&tag) {
                return false;
            }
            continue;
        }
        if !sees(&Tag { name: "", is_end: false, start, end: at, attributes: 0 }) {
            return false;
        }
    }
    true
}

/// Behind the `>` of a tag, which may be in quotes too; and how many attributes there may be before it.
fn after_tag(bytes: &[u8], mut at: usize) -> (usize, usize) {
    let mut attributes = 0;
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'>' => return (at, attributes),
            // Each of these ends what is before it.
            b'/' | b' ' | b'\t' | b'\n' | b'\x0c' | b'\r' => attributes += 1,
            b'=' => {
                while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
                    at += 1;
                }
                if let Some(quote @ (b'"' | b'\'')) = bytes.get(at) {
                    let rest = bytes.get(at + 1..).unwrap_or_default();
                    at = memchr::memchr(*quote, rest).map_or(bytes.len(), |end| at + 1 + end + 1);
                    attributes += 1;
                }
            }
            _ => {}
        }
    }
    (at, attributes)
}

/// Behind the end tag of what holds no elements.
fn after_raw(html: &str, begun: usize, name: &str) -> usize {
    let mut at = begun;
    while let Some(found) = html.as_bytes().get(at..).and_then(|rest| memchr::memmem::find(rest, b"</")) {
        at += found + 2;
        if html.get(at..at + name.len()).is_some_and(|there| there.eq_ignore_ascii_case(name)) {
            return after_tag(html.as_bytes(), at + name.len()).0;
        }
    }
    html.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_grow_is_seen_before_it_does() {
        let many = |text: &str, count: usize| text.repeat(count);
        let distinct = (0..3_000).map(|number| format!("<b id={number}>")).collect::<Vec<_>>().concat();
        let wild = [
            many("<div>", 1_000),
            many("<table><tr><td>", 1_000),
            many("<ul><li>", 1_000),
            // Ends that end nothing.
            many("<div></span>", 1_000),
            many("<DIV></x>", 1_000),
            distinct.clone() + &many("<p>", 3_000),
            // Within a drawing a style is an element like others.
            format!("<svg><style>{}", many("<div>", 1_000)),
            // What looks like a comment, a script or quotes to a careless eye.
            format!("<div title=\"<!--\">{}", many("<div>", 1_000)),
            format!("<div title='<script>'>{}", many("<div>", 1_000)),
            // Attributes, one compared with the others.
            format!("<p {}>", many("a=b ", 10_000)),
            format!("<p{}>", many("/a", 10_000)),
            format!("<p {}>", many("a=''", 10_000)),
            many(&format!("<p {}>", many("a ", 500)), 1_000),
            "x".repeat(MAX_BYTES + 1),
        ];
        for page in &wild {
            assert!(!is_tame(page), "{page:.60}");
        }
        let tame = [
            many("<li>item <p>text <br>", 10_000),
            many("<div id=a class='b' title=\"c d e\" data-x data-y hidden></div>", 50_000),
            many("<div><b>bold</b> <a href=\"x>y\">link</a></div>", 10_000),
            format!("<script>{}</script>", many("document.write('<div>')", 1_000)),
            format!("<!-- {} -->", many("<div>", 1_000)),
            "1 < 2 and 3 << 4 <".to_owned(),
        ];
        for page in &tame {
            assert!(is_tame(page), "{page:.10}");
        }
    }

    #[test]
    fn between_the_tags_is_the_text() {
        let page = "<p title=\"a>b\">One</p><script>let a = '<b>';</script><style>b { }</style><!-- no -->two < three<br>four";
        assert_eq!(flat(page), "One\ntwo < three\nfour");
    }
}
