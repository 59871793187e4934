//! A file's bytes as text with places, by what they are. Pure.

use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;
use turnwright_engine::knowledge::Piece;

use super::split::{Form, Sizes, split, split_pages};
use crate::filesystem::encoding::{decode_all, form_of};
use crate::web::fetch::{pdf, readable};

/// How long the reading of one PDF may take.
const PDF_TIME: Duration = Duration::from_secs(20);
/// The most pieces of one document.
const MOST_PIECES: usize = 20_000;

/// The pieces of a document, or why it has none, for people.
pub(crate) fn pieces(path: &Path, bytes: Vec<u8>, sizes: Sizes) -> Result<Vec<Piece>, String> {
    let pieces = if bytes.starts_with(b"%PDF-") {
        let read = pdf::read(&bytes, Instant::now() + PDF_TIME)?;
        split_pages(read.pages.iter().map(|(number, text)| (*number, text.as_str())), sizes)
    } else {
        let form = form_of(&bytes).map_err(|binary| format!("it is no text: {}", binary.why()))?;
        let (text, _) = decode_all(form, bytes);
        match extension(path).as_str() {
            "html" | "htm" | "xhtml" => split(&readable::markdown(&text), Form::Markdown, sizes),
            "md" | "markdown" | "mdx" | "mkd" | "qmd" => split(&text, Form::Markdown, sizes),
            _ => split(&text, Form::Plain, sizes),
        }
    };
    match pieces.len() {
        0 => Err("it holds no text".to_owned()),
        count if count > MOST_PIECES => Err(format!("it has {count} pieces, limit {MOST_PIECES}")),
        _ => Ok(pieces),
    }
}

fn extension(path: &Path) -> String {
    path.extension().and_then(|extension| extension.to_str()).unwrap_or_default().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(name: &str, bytes: &[u8]) -> Result<Vec<String>, String> {
        let pieces = pieces(Path::new(name), bytes.to_vec(), Sizes::default())?;
        Ok(pieces.into_iter().map(|piece| format!("{}: {}", piece.place, piece.text)).collect())
    }

    #[test]
    fn a_document_is_read_by_what_it_is() {
        assert_eq!(texts("a.txt", b"one\ntwo"), Ok(vec!["lines 1-2: one\ntwo".to_owned()]));
        let html = b"<html><body><h1>Keys</h1><p>Turn &amp; take</p><script>x()</script></body></html>";
        assert_eq!(texts("a.html", html), Ok(vec!["lines 1-3: # Keys\n\nTurn & take".to_owned()]));
        let wide: Vec<u8> = "caf\u{e9}".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(texts("a.txt", &[&[0xff, 0xfe], wide.as_slice()].concat()), Ok(vec!["line 1: caf\u{e9}".to_owned()]));
    }

    #[test]
    fn what_is_no_text_says_why() {
        assert_eq!(texts("a.bin", b"\x7fELF\0\0\0\0\0\x01\x02"), Err("it is no text: it holds zero bytes".to_owned()));
        assert_eq!(texts("a.txt", b" \n "), Err("it holds no text".to_owned()));
        assert!(texts("a.pdf", b"%PDF-1.7 broken").is_err_and(|why| why.starts_with("the PDF is broken")));
    }
}
