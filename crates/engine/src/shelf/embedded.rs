//! Bytes that a tool wrote into its text as base64: `data:` addresses, and images. No model reads them there.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use turnwright_core::{ContentBlock, EmbeddedResource};

use super::{IMAGES, grouped, is_media_type};

/// The shortest base64 that is taken out of a text, in characters: icons stay where they are.
const LEAST: usize = 512;
/// The longest beginning of a `data:` address, in bytes.
const MOST_HEAD: usize = 120;
/// What images begin with, as base64.
const BEGINNINGS: [(&str, &str); 5] = [
    ("iVBORw0KGgo", "image/png"),
    ("/9j/", "image/jpeg"),
    ("R0lGODlh", "image/gif"),
    ("R0lGODdh", "image/gif"),
    ("UklGR", "image/webp"),
];

/// Base64 in a text.
#[derive(Debug, PartialEq, Eq)]
struct Found<'a> {
    /// Where it begins in the text, with what says what it is.
    start: usize,
    end: usize,
    media_type: &'a str,
    base64: &'a str,
}

/// The text with a mark in the place of what was taken out of it, and that as blocks of its own; `None` where there is none.
pub(super) fn lifted(text: &str) -> Option<(String, Vec<ContentBlock>)> {
    let found = found(text);
    if found.is_empty() {
        return None;
    }
    let (mut rest, mut blocks, mut at) = (String::new(), Vec::new(), 0);
    for Found { start, end, media_type, base64 } in found {
        rest.push_str(text.get(at..start).unwrap_or_default());
        at = end;
        let bytes = grouped(base64.trim_end_matches('=').len() / 4 * 3);
        // Writing to memory does not fail.
        let (data, mime_type) = (base64.to_owned(), media_type.to_owned());
        if IMAGES.contains(&media_type) {
            let _ = write!(rest, "[{media_type} of {bytes} bytes, shown below]");
            blocks.push(ContentBlock::Image { data, mime_type });
        } else {
            let _ = write!(rest, "[{media_type} of {bytes} bytes, kept as an artifact]");
            let uri = format!("data:{media_type}");
            let resource = EmbeddedResource { uri, mime_type: Some(mime_type), text: None, blob: Some(data) };
            blocks.push(ContentBlock::Resource { resource });
        }
    }
    rest.push_str(text.get(at..).unwrap_or_default());
    Some((rest, blocks))
}

fn found(text: &str) -> Vec<Found<'_>> {
    let mut found = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(start) =
        bytes.get(at..).and_then(|rest| rest.iter().position(|byte| is_base64(*byte))).map(|first| at + first)
    {
        let length = bytes.get(start..).map_or(0, |rest| rest.iter().take_while(|byte| is_base64(**byte)).count());
        let padded =
            bytes.get(start + length..).map_or(0, |rest| rest.iter().take(2).take_while(|byte| **byte == b'=').count());
        let end = start + length + padded;
        at = end;
        if length < LEAST {
            continue;
        }
        let Some(base64) = text.get(start..end) else { continue };
        let addressed = address(text, start).map(|(start, media_type)| Found { start, end, media_type, base64 });
        found.extend(addressed.or_else(|| image(base64).map(|media_type| Found { start, end, media_type, base64 })));
    }
    found
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/')
}

/// Where the `data:` address begins whose bytes begin at `start`, and its media type.
fn address(text: &str, start: usize) -> Option<(usize, &str)> {
    let head = text.get(text.floor_char_boundary(start.saturating_sub(MOST_HEAD))..start)?;
    let head = head.strip_suffix(";base64,")?;
    let at = head.rfind("data:")?;
    let media_type = head.get(at + "data:".len()..)?.split(';').next()?;
    is_media_type(media_type).then(|| (start - ";base64,".len() - (head.len() - at), media_type))
}

/// What image this is.
fn image(base64: &str) -> Option<&'static str> {
    let (_, media_type) = BEGINNINGS.iter().find(|(beginning, _)| base64.starts_with(beginning))?;
    let first = STANDARD_NO_PAD.decode(base64.get(..16)?).ok()?;
    let is_webp = first.get(8..12) == Some(b"WEBP");
    (*media_type != "image/webp" || is_webp).then_some(*media_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_and_addresses_are_taken_out_of_a_text_and_all_else_stays() {
        let png = format!("iVBORw0KGgo{}==", "A".repeat(800));
        let pdf = format!("JVBERi0{}", "B".repeat(600));
        let text = format!("{{\"a\": \"{png}\", \"b\": \"data:application/pdf;name=x;base64,{pdf}\", \"c\": \"é\"}}");
        let (rest, blocks) = lifted(&text).unwrap();
        let expected = "{\"a\": \"[image/png of 606 bytes, shown below]\", \
                        \"b\": \"[application/pdf of 453 bytes, kept as an artifact]\", \"c\": \"é\"}";
        assert_eq!(rest, expected);
        let image = ContentBlock::Image { data: png, mime_type: "image/png".to_owned() };
        let (uri, mime_type) = ("data:application/pdf".to_owned(), Some("application/pdf".to_owned()));
        let kept = ContentBlock::Resource { resource: EmbeddedResource { uri, mime_type, text: None, blob: Some(pdf) } };
        assert_eq!(blocks, [image, kept]);
        let sound = format!("UklGRiQAAABXQVZF{}", "A".repeat(800));
        let short = format!("data:image/png;base64,{}", "A".repeat(100));
        for stays in ["", "plain words", &"x".repeat(5_000), &sound, &short, &"€".repeat(900)] {
            assert_eq!(lifted(stays), None, "{stays}");
        }
    }
}
