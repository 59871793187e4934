//! What an answer is, and its characters. Pure.

use encoding_rs::Encoding;
use turnwright_engine::source::ToolError;

use crate::error::{failed, grouped};
use crate::filesystem::encoding::form_of;
use crate::net::Answer;

/// How much of a page may come before it says its encoding (the HTML standard).
const PRESCAN_BYTES: usize = 1024;

/// How an answer is read.
#[derive(Debug)]
pub(super) enum Kind {
    Html(String),
    Pdf,
    Plain(String),
}

impl Kind {
    pub(super) fn as_str(&self) -> &'static str {
        match self {
            Self::Html(_) => "page",
            Self::Pdf => "PDF",
            Self::Plain(_) => "text",
        }
    }
}

/// Whether an answer is an image that every provider takes.
pub(super) fn is_image(answer: &Answer) -> bool {
    let kind = answer.media_type();
    matches!(kind.as_str(), "image/png" | "image/jpeg" | "image/gif" | "image/webp")
        && infer::get(&answer.body).is_some_and(|found| found.mime_type() == kind)
}

/// How an answer is read: by what it says of itself, and where it says nothing by how it begins.
pub(super) fn kind(answer: &Answer) -> Result<Kind, ToolError> {
    let (said, body) = (answer.media_type(), &answer.body);
    if body.starts_with(b"%PDF-") {
        return Ok(Kind::Pdf);
    }
    let is_html = matches!(said.as_str(), "text/html" | "application/xhtml+xml");
    let is_unsaid = matches!(said.as_str(), "" | "application/octet-stream" | "application/x-unknown" | "*/*");
    let is_text = said.starts_with("text/")
        || said.ends_with("+json")
        || said.ends_with("+xml")
        || said.ends_with("+yaml")
        || matches!(
            said.as_str(),
            "application/json"
                | "application/xml"
                | "application/yaml"
                | "application/x-yaml"
                | "application/toml"
                | "application/javascript"
                | "application/x-javascript"
                | "application/ecmascript"
                | "application/x-ndjson"
                | "application/jsonl"
                | "application/sql"
                | "application/x-sh"
                | "application/rtf"
        );
    if !(is_html || is_text || is_unsaid) {
        return Err(unreadable(&said, body.len()));
    }
    let text =
        characters(answer, is_html || is_unsaid || said.ends_with("xml")).ok_or_else(|| unreadable(&said, body.len()))?;
    Ok(if is_html || (is_unsaid && begins_as_html(&text)) { Kind::Html(text) } else { Kind::Plain(text) })
}

fn unreadable(said: &str, bytes: usize) -> ToolError {
    let said = if said.is_empty() { "something without a type" } else { said };
    let bytes = grouped(u64::try_from(bytes).unwrap_or(u64::MAX));
    failed(format!("there is {said} ({bytes} bytes), which cannot be read as text; pages, PDFs, images and text can"))
}

fn begins_as_html(text: &str) -> bool {
    let head: String = text.trim_start().chars().take(200).collect::<String>().to_ascii_lowercase();
    ["<!doctype html", "<html", "<head", "<body"].iter().any(|mark| head.starts_with(mark))
}

/// The characters of an answer; nothing where it is no text. What is marked up may say its encoding at its beginning.
fn characters(answer: &Answer, is_marked_up: bool) -> Option<String> {
    let said = answer.header("content-type").and_then(charset);
    let head = answer.body.get(..PRESCAN_BYTES.min(answer.body.len())).filter(|_| is_marked_up);
    let declared = said.or_else(|| head.and_then(|head| declaration(head).or_else(|| meta(head))));
    let encoding = match (Encoding::for_bom(&answer.body), declared) {
        (Some((encoding, _)), _) | (None, Some(encoding)) => encoding,
        (None, None) => form_of(&answer.body).ok()?.encoding,
    };
    let (text, _, _) = encoding.decode(&answer.body);
    Some(text.into_owned())
}

/// The encoding that a `Content-Type` names.
fn charset(content_type: &str) -> Option<&'static Encoding> {
    let mut parameters = content_type.split(';').skip(1);
    let named = |parameter: &str| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| Encoding::for_label(value.trim().trim_matches('"').as_bytes()))?
    };
    parameters.find_map(named)
}

/// The encoding that an XML declaration names (XML 1.0, section 4.3.3).
fn declaration(head: &[u8]) -> Option<&'static Encoding> {
    let head = String::from_utf8_lossy(head);
    let (declaration, _) = head.strip_prefix("<?xml")?.split_once("?>")?;
    let (_, after) = declaration.split_once("encoding")?;
    let label = after.trim_start().strip_prefix('=')?.trim_start();
    let quote = label.chars().next().filter(|sign| matches!(sign, '"' | '\''))?;
    readable(label.strip_prefix(quote)?.split(quote).next()?)
}

/// The encoding that a page names at its beginning.
fn meta(head: &[u8]) -> Option<&'static Encoding> {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let (_, after) = head.split_once("<meta")?;
    let (_, after) = after.split_once("charset")?;
    let value = after.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
    let label = value.split(['"', '\'', '>', '/', ';', ' ']).next()?;
    readable(label)
}

/// The encoding of this name, in what could be read up to there.
fn readable(label: &str) -> Option<&'static Encoding> {
    let encoding = Encoding::for_label(label.as_bytes())?;
    // A page that could be read up to here is not in it (the HTML standard).
    Some(if encoding == encoding_rs::UTF_16LE || encoding == encoding_rs::UTF_16BE { encoding_rs::UTF_8 } else { encoding })
}
