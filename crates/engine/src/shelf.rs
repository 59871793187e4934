//! Results that are too large for a model: it is shown beginning and end with the name of the whole, which is an artifact.
//!
//! What is shown is decided here, and what is put where; the storing is the spool's. A known result is held until it is stored
//! (law 9), as everything is that an entry is about to name.

mod embedded;

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use turnwright_core::{ContentBlock, changes_direction};

use self::embedded::lifted;
use crate::artifacts::{Artifact, Artifacts};
use crate::{Engine, LargeResults, Spool, ToolOutput};

/// How long is waited before what could not be stored is tried again.
const PAUSE: Duration = Duration::from_secs(1);
/// How much of a part that is shown may be given up so that it ends with a line.
const LINE_SHARE: usize = 4;
/// The types that every API takes as images.
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// What becomes of a piece of a result.
#[derive(Debug, Clone, PartialEq)]
enum Part {
    /// It is shown as it is.
    Shown(ContentBlock),
    /// It is a text that is kept, and shown in part.
    Text { text: String, media_type: &'static str },
    /// It is kept, and a link to it is shown.
    Kept { name: String, media_type: String, base64: String },
}

impl Engine {
    /// Keeps results that are too large for a model as artifacts from now on, and what is neither text nor image: a model is
    /// shown beginning and end, and where the whole is. Counts once, before the first turn.
    pub fn keep_large_results(&self, artifacts: Arc<dyn Artifacts>, how: LargeResults) {
        if self.inner().choices.shelf.set((artifacts, how)).is_err() {
            tracing::error!("where large results are kept is chosen once, before the first turn");
        }
    }
}

/// Puts away what is too large of a result of `tool`, and what is no text and no image. Where `cancel` fires while the store
/// fails, what cannot be kept is left out, and the result says so.
pub(crate) async fn put_away(spool: &Spool, tool: &str, mut output: ToolOutput, cancel: &CancellationToken) -> ToolOutput {
    let shown_bytes = spool.how().shown_bytes;
    let content = readable(std::mem::take(&mut output.content), output.structured_content.as_ref());
    let structured = output.structured_content.take_if(|value| is_larger(value, shown_bytes));
    let (parts, left) = sorted(content, structured, shown_bytes);
    for part in parts {
        match part {
            Part::Shown(block) => output.content.push(block),
            Part::Text { text, media_type } => {
                let name = named(tool, media_type);
                let kept = kept(spool, text.as_bytes(), &name, media_type, cancel).await;
                output.content.push(ContentBlock::text(shown(&text, kept.as_ref(), spool.how())));
                output.content.extend(kept.as_ref().ok().map(Artifact::link));
            }
            Part::Kept { name, media_type, base64 } => {
                let block = match STANDARD.decode(base64.trim()) {
                    Ok(bytes) => kept(spool, &bytes, &name, &media_type, cancel).await.map(|artifact| artifact.link()),
                    Err(error) => Err(format!("it is not base64: {error}")),
                };
                let missing = |why| ContentBlock::text(format!("[{name}, {media_type}, was not kept: {why}]"));
                output.content.push(block.unwrap_or_else(missing));
            }
        }
    }
    if let Some(value) = left {
        let (name, media_type) = (named(tool, JSON), JSON);
        if let Ok(artifact) = kept(spool, value.to_string().as_bytes(), &name, media_type, cancel).await {
            output.content.push(artifact.link());
        }
    }
    output
}

const JSON: &str = "application/json";
const TEXT: &str = "text/plain";

fn named(tool: &str, media_type: &str) -> String {
    let ending = if media_type == JSON { "json" } else { "txt" };
    format!("{tool}.{ending}")
}

/// The blocks without base64 in their texts. Structured content that has some, and that a model would be shown since there is no
/// text, becomes one.
fn readable(content: Vec<ContentBlock>, structured: Option<&Value>) -> Vec<ContentBlock> {
    let has_text = content.iter().any(|block| text_in(block).is_some());
    let mut readable = Vec::with_capacity(content.len());
    for block in content {
        match &block {
            ContentBlock::Text { text } => match lifted(text) {
                Some((text, blocks)) => {
                    readable.push(ContentBlock::Text { text });
                    readable.extend(blocks);
                }
                None => readable.push(block),
            },
            ContentBlock::Image { .. }
            | ContentBlock::Audio { .. }
            | ContentBlock::Resource { .. }
            | ContentBlock::ResourceLink { .. } => readable.push(block),
        }
    }
    if let Some((text, blocks)) = structured.filter(|_| !has_text).and_then(|value| lifted(&value.to_string())) {
        readable.push(ContentBlock::Text { text });
        readable.extend(blocks);
    }
    readable
}

/// What becomes of the pieces of a result whose structured content is `large` where it is too large to be shown; and what of
/// that is in none of the pieces.
fn sorted(content: Vec<ContentBlock>, large: Option<Value>, shown_bytes: usize) -> (Vec<Part>, Option<Value>) {
    let has_text = content.iter().any(|block| text_in(block).is_some());
    let text_bytes: usize = content.iter().filter_map(text_in).map(str::len).sum();
    let is_too_long = text_bytes > shown_bytes;
    let mut whole = String::new();
    let mut parts = Vec::new();
    let mut at = None;
    for block in content {
        if is_too_long && text_in(&block).is_some() {
            at.get_or_insert(parts.len());
            if !whole.is_empty() {
                whole.push('\n');
            }
            whole.push_str(&block.as_text());
        } else {
            parts.push(part(block));
        }
    }
    let Some(at) = at else {
        return match large {
            // Where there is no text, this is what the model is shown.
            Some(value) if !has_text => {
                parts.push(Part::Text { text: value.to_string(), media_type: JSON });
                (parts, None)
            }
            large => (parts, large),
        };
    };
    let is_same = |value: &Value| serde_json::from_str::<Value>(&whole).is_ok_and(|text| text == *value);
    let left = large.filter(|value| !is_same(value));
    let media_type = if is_json(&whole) { JSON } else { TEXT };
    parts.insert(at, Part::Text { text: whole, media_type });
    (parts, left)
}

/// The text of a block that a model reads as text.
fn text_in(block: &ContentBlock) -> Option<&str> {
    match block {
        ContentBlock::Text { text } => Some(text),
        ContentBlock::Resource { resource } => resource.text.as_deref(),
        ContentBlock::Image { .. } | ContentBlock::Audio { .. } | ContentBlock::ResourceLink { .. } => None,
    }
}

/// An image is shown as one, whatever it came in; other bytes are kept, for no model reads base64.
fn part(block: ContentBlock) -> Part {
    let ContentBlock::Resource { mut resource } = block else { return Part::Shown(block) };
    let Some(base64) = resource.blob.take_if(|_| resource.text.is_none()) else {
        return Part::Shown(ContentBlock::Resource { resource });
    };
    let media_type = resource.mime_type.filter(|given| is_media_type(given));
    match media_type {
        Some(mime_type) if IMAGES.contains(&mime_type.as_str()) => Part::Shown(ContentBlock::Image { data: base64, mime_type }),
        media_type => {
            let name = resource.uri.rsplit('/').find(|part| !part.is_empty()).unwrap_or("resource");
            let name: String = name.chars().filter(|sign| !sign.is_control() && !changes_direction(*sign)).take(200).collect();
            Part::Kept { name, media_type: media_type.unwrap_or_else(|| "application/octet-stream".to_owned()), base64 }
        }
    }
}

/// Whether this can stand in a header: `type/subtype`.
fn is_media_type(text: &str) -> bool {
    let is_word =
        |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte));
    text.len() <= 100 && text.split_once('/').is_some_and(|(kind, subtype)| is_word(kind) && is_word(subtype))
}

/// Whether a value takes more than so many bytes as text. No more of it than that is written to know.
fn is_larger(value: &Value, bytes: usize) -> bool {
    struct Room(usize);
    impl std::io::Write for Room {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    serde_json::to_writer(Room(bytes), value).is_err()
}

/// Whether a text is one JSON value that has parts.
fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[']) && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// What a model is shown of a text that is too long.
fn shown(text: &str, kept: Result<&Artifact, &String>, how: LargeResults) -> String {
    let Excerpt { head, tail } = excerpt(text, how.shown_bytes / 2);
    let left_out = grouped(text.len().saturating_sub(head.len()).saturating_sub(tail.len()));
    let of = grouped(text.len());
    let whole = match kept {
        Ok(artifact) => how.whereabouts(artifact),
        Err(why) => format!("they could not be kept: {why}"),
    };
    format!("{head}\n[… {left_out} of {of} bytes left out: {whole} …]\n{tail}")
}

/// The first and the last part of a text.
#[derive(Debug, PartialEq, Eq)]
struct Excerpt<'a> {
    head: &'a str,
    tail: &'a str,
}

/// The beginning and the end of a text, `bytes` together at most, cut at line ends where there are some near, never within a
/// character.
fn excerpt(text: &str, bytes: usize) -> Excerpt<'_> {
    let half = bytes / 2;
    let give = half / LINE_SHARE;
    let end = text.floor_char_boundary(half.min(text.len()));
    let head = text.get(..end).unwrap_or_default();
    let head = match head.rfind('\n') {
        Some(line) if head.len().saturating_sub(line) <= give => head.get(..line).unwrap_or(head),
        Some(_) | None => head,
    };
    let start = text.ceil_char_boundary(text.len().saturating_sub(half)).max(end);
    let tail = text.get(start..).unwrap_or_default();
    let begins_a_line = text.get(..start).is_some_and(|before| before.ends_with('\n'));
    let tail = match tail.find('\n') {
        Some(line) if line <= give && !begins_a_line => tail.get(line.saturating_add(1)..).unwrap_or(tail),
        Some(_) | None => tail,
    };
    Excerpt { head, tail }
}

/// Keeps bytes, however often it must be tried; not any more once the call is cancelled.
async fn kept(
    spool: &Spool,
    bytes: &[u8],
    name: &str,
    media_type: &str,
    cancel: &CancellationToken,
) -> Result<Artifact, String> {
    let mut is_told = false;
    loop {
        let error = match spool.keep(bytes, name, media_type).await {
            Ok(artifact) => return Ok(artifact),
            Err(error) => error,
        };
        if cancel.is_cancelled() {
            return Err(error.to_string());
        }
        if !is_told {
            is_told = true;
            tracing::warn!(%error, "cannot store a large result; it is held and tried again");
        }
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            () = cancel.cancelled() => {}
        }
    }
}

/// A number with its thousands apart.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && digits.len().saturating_sub(at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests;
