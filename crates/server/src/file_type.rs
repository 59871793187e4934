//! What a file is, by its bytes; names and declarations are compared with that and never believed.

use http::StatusCode;
use turnwright_core::is_text_type;

use crate::error::ApiError;

/// What is taken besides text, as models take it.
const TAKEN: [&str; 5] = ["image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"];
/// What a file seems to be by its beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seems {
    /// Of this type.
    Of(&'static str),
    /// Text, as long as the rest of it is.
    Text {
        /// Its type.
        media_type: String,
        /// What it is where it is no text after all: some types begin with letters.
        otherwise: Option<&'static str>,
    },
}

impl Seems {
    /// What a client is told where a file that seemed to be text is none.
    pub(crate) fn no_text(&self) -> ApiError {
        match self {
            Self::Text { otherwise: Some(known), .. } => not_taken(known),
            Self::Text { otherwise: None, .. } | Self::Of(_) => {
                not_taken_as("of no known type, and no text in UTF-8 (perhaps it is in Latin-1 or UTF-16: save it as UTF-8)")
            }
        }
    }
}

/// How many bytes in which there are letters alone may as well begin a text, whatever type begins with them.
const LETTERS: usize = 16;

/// What a file is that begins like this, where it was declared to be something.
///
/// # Errors
/// 415 where nobody could do anything with it, 422 where it is not what it was declared to be.
pub(crate) fn of(beginning: &[u8], declared: Option<&str>) -> Result<Seems, ApiError> {
    let declared = declared.map(|declared| declared.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
    let declared = declared.filter(|declared| !matches!(&**declared, "" | "application/octet-stream"));
    let declared = declared.map(|declared| if declared == "image/jpg" { "image/jpeg".to_owned() } else { declared });
    let known = infer::get(beginning).filter(|known| known.matcher_type() != infer::MatcherType::Text);
    let Some(known) = known.map(|known| known.mime_type()) else {
        return text(declared, None);
    };
    let Some(taken) = TAKEN.into_iter().find(|taken| *taken == known) else {
        let are_letters = beginning.iter().take(LETTERS).all(|byte| !byte.is_ascii_control() || byte.is_ascii_whitespace());
        let may_be_text = are_letters && declared.as_deref().is_none_or(is_text_type);
        return if may_be_text { text(declared, Some(known)) } else { Err(not_taken(known)) };
    };
    match declared.filter(|declared| declared != taken) {
        Some(declared) => Err(mismatch(&declared, taken)),
        None => Ok(Seems::Of(taken)),
    }
}

fn text(declared: Option<String>, otherwise: Option<&'static str>) -> Result<Seems, ApiError> {
    match declared {
        None => Ok(Seems::Text { media_type: "text/plain".to_owned(), otherwise }),
        Some(declared) if is_text_type(&declared) && is_media_type(&declared) => {
            Ok(Seems::Text { media_type: declared, otherwise })
        }
        Some(declared) if TAKEN.contains(&&*declared) => Err(mismatch(&declared, "something else")),
        Some(declared) => Err(not_taken(&declared)),
    }
}

/// Whether it is written as a media type is (RFC 6838, section 4.2). It stays with the file, and is told to models and browsers.
fn is_media_type(text: &str) -> bool {
    const MAX_LENGTH: usize = 127;
    let is_name = |name: &str| {
        (1..=MAX_LENGTH).contains(&name.len())
            && name.starts_with(|sign: char| sign.is_ascii_alphanumeric())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
    };
    text.split_once('/').is_some_and(|(kind, name)| is_name(kind) && is_name(name))
}

/// What nobody could do anything with.
fn not_taken(media_type: &str) -> ApiError {
    let media_type: String = media_type.chars().take(100).collect();
    not_taken_as(&format!("`{media_type}`"))
}

/// One that is something else, in words.
fn not_taken_as(what: &str) -> ApiError {
    let detail = format!("the file is {what}; taken are PNG, JPEG, GIF and WebP images, PDF files, and text in UTF-8");
    ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "attachment_type_not_taken", detail)
}

fn mismatch(declared: &str, found: &str) -> ApiError {
    let declared: String = declared.chars().take(100).collect();
    let detail = format!("the file was declared as `{declared}`, and its bytes say that it is {found}");
    ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "attachment_type_mismatch", detail)
}

/// Sees whether bytes that come in pieces are text in UTF-8 without zeros.
#[derive(Debug, Default)]
pub(crate) struct TextCheck {
    /// The beginning of a character whose end is in the next piece.
    begun: Vec<u8>,
}

impl TextCheck {
    /// Whether it is text so far.
    pub(crate) fn takes(&mut self, bytes: &[u8]) -> bool {
        if bytes.contains(&0) {
            return false;
        }
        self.begun.extend_from_slice(bytes);
        let rest = match std::str::from_utf8(&self.begun) {
            Ok(_) => Vec::new(),
            Err(error) if error.error_len().is_none() => self.begun.get(error.valid_up_to()..).unwrap_or_default().to_vec(),
            Err(_) => return false,
        };
        self.begun = rest;
        true
    }

    /// Whether it ended with a whole character.
    pub(crate) fn is_whole(&self) -> bool {
        self.begun.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_what_its_bytes_say_and_nothing_else_may_be_declared() {
        const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
        type Row<'a> = (&'a [u8], Option<&'a str>, Result<Seems, &'a str>);
        let text = |media_type: &str, otherwise| Ok(Seems::Text { media_type: media_type.to_owned(), otherwise });
        let too_long = format!("text/{}", "x".repeat(128));
        let table: [Row<'_>; 26] = [
            (PNG, None, Ok(Seems::Of("image/png"))),
            (PNG, Some("image/png"), Ok(Seems::Of("image/png"))),
            (PNG, Some("application/octet-stream"), Ok(Seems::Of("image/png"))),
            (PNG, Some("image/jpeg"), Err("attachment_type_mismatch")),
            (PNG, Some("text/html"), Err("attachment_type_mismatch")),
            (b"%PDF-1.7", Some("application/pdf"), Ok(Seems::Of("application/pdf"))),
            (b"PK\x03\x04rest of it", None, Err("attachment_type_not_taken")),
            (b"<html><script>", Some("text/html; charset=utf-8"), text("text/html", None)),
            (b"BMI,weight\n22,70\n", Some("text/csv"), text("text/csv", Some("image/bmp"))),
            (b"MAC addresses of it", None, text("text/plain", Some("audio/x-ape"))),
            (b"SQLite tips, and more", None, text("text/plain", Some("application/vnd.sqlite3"))),
            (b"MZ is a code of countries", None, text("text/plain", Some("application/vnd.microsoft.portable-executable"))),
            (b"%!important words here", Some("text/markdown"), text("text/markdown", Some("application/postscript"))),
            (b"ID3 is a tree of decisions", None, text("text/plain", Some("audio/mpeg"))),
            (b"BZh is no word of any use", None, text("text/plain", Some("application/x-bzip2"))),
            (b"BMI,weight\n22,70\n", Some("image/bmp"), Err("attachment_type_not_taken")),
            (b"BMI,weight\n22,70\n", Some("image/png"), Err("attachment_type_not_taken")),
            (b"BM\x36\0\0\0\0\0\0\0", Some("text/csv"), Err("attachment_type_not_taken")),
            (b"plain", Some("image/png"), Err("attachment_type_mismatch")),
            (b"plain", Some("video/mp4"), Err("attachment_type_not_taken")),
            (b"plain", Some("Text/X-C++; charset=utf-8"), text("text/x-c++", None)),
            (b"plain", Some(&too_long), Err("attachment_type_not_taken")),
            (b"plain", Some("text/"), Err("attachment_type_not_taken")),
            (b"plain", Some("text/<b>"), Err("attachment_type_not_taken")),
            (b"plain", Some("text/x\"y"), Err("attachment_type_not_taken")),
            (b"plain", Some("text/x/y"), Err("attachment_type_not_taken")),
        ];
        for (bytes, declared, expected) in table {
            assert_eq!(of(bytes, declared).map_err(|error| error.code()), expected, "{bytes:?} {declared:?}");
        }
    }

    #[test]
    fn text_may_be_cut_anywhere_and_must_be_text_throughout() {
        for at in 1..7 {
            let (first, second) = "aß漢".as_bytes().split_at(at.min(6));
            let mut check = TextCheck::default();
            assert!(check.takes(first) && check.takes(second) && check.is_whole(), "{at}");
        }
        assert!(!TextCheck::default().takes(b"a\0b"));
        assert!(!TextCheck::default().takes(b"a\xff"));
        let mut cut = TextCheck::default();
        assert!(cut.takes(&"漢".as_bytes()[..2]) && !cut.is_whole());
    }
}
