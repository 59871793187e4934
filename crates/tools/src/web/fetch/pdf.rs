//! The text of a PDF. Pure, and bounded: what a small file says may be large.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use lopdf::content::{Content, Operation};
use lopdf::{Document, Encoding, LoadOptions, Object, ObjectId};
use tokio::time::Instant;
use turnwright_engine::source::ToolError;

use super::page::Page;
use crate::error::failed;
use crate::net::Answer;

/// The most that all compressed objects of a file may come to, in bytes.
const MAX_OBJECTS_BYTES: usize = 32 << 20;
/// The most that the drawing of one page, or a table of a font, may come to, in bytes.
const MAX_STREAM_BYTES: usize = 8 << 20;
/// The most that the drawing of one page may say. Each word is held as a value of some hundred bytes.
const MAX_WORDS: usize = 250_000;
/// The most text that is taken, in bytes.
const MAX_TEXT_BYTES: usize = 8 << 20;

/// The text of a PDF, page after page, as far as it was read until `deadline`.
pub(super) fn page(answer: &Answer, deadline: Instant, max_bytes: usize) -> Result<Page, ToolError> {
    if answer.is_cut {
        return Err(failed(format!("the PDF is larger than {max_bytes} bytes, the limit; ask the person for a part of it")));
    }
    let read = read(&answer.body, deadline).map_err(failed)?;
    let mut text = String::new();
    for (number, page) in &read.pages {
        // Writing to a string does not fail.
        let _ = write!(text, "[page {number}]\n{page}\n\n");
    }
    text.truncate(text.trim_end().len());
    Ok(Page { notes: read.notes, ..Page::of(answer, read.title, text) })
}

/// A PDF that was read.
#[derive(Debug)]
pub(crate) struct Pdf {
    title: Option<String>,
    /// The pages by their numbers.
    pub(crate) pages: Vec<(u32, String)>,
    /// What is to be said of it besides.
    pub(crate) notes: Vec<String>,
}

/// The pages of a PDF, as far as they were read until `deadline`; or why it cannot be read, for the model.
pub(crate) fn read(body: &[u8], deadline: Instant) -> Result<Pdf, String> {
    let options =
        LoadOptions { max_decompressed_size: Some(MAX_OBJECTS_BYTES / object_streams(body).max(1)), ..LoadOptions::default() };
    let document = Document::load_mem_with_options(body, options)
        .map_err(|error| format!("the PDF is broken ({error}); try another source"))?;
    if document.is_encrypted() {
        return Err("the PDF is locked with a password; ask the person for its text".to_owned());
    }
    let (mut notes, mut pages): (Vec<String>, Vec<(u32, String)>) = (Vec::new(), Vec::new());
    let (mut bytes, mut unread) = (0_usize, 0_usize);
    for (number, id) in document.get_pages() {
        if bytes > MAX_TEXT_BYTES || Instant::now() >= deadline {
            notes.push(format!("the pages from {number} on are missing: the PDF is too large to read as a whole"));
            break;
        }
        let mut text = String::new();
        if page_text(&document, id, &mut text).is_err() {
            unread += 1;
        }
        text.truncate(text.trim_end().len());
        bytes += text.len();
        pages.push((number, text));
    }
    if unread > 0 {
        notes.push(format!("{unread} of {} pages could not be read", pages.len()));
    }
    if pages.iter().all(|(_, text)| text.is_empty()) {
        notes.push("the PDF holds no text that can be read: its pages may be pictures".to_owned());
    }
    let title = document.trailer.get(b"Info").ok().and_then(|info| title(&document, info));
    Ok(Pdf { title, pages, notes })
}

fn title(document: &Document, info: &Object) -> Option<String> {
    let (_, info) = document.dereference(info).ok()?;
    let title = lopdf::decode_text_string(info.as_dict().ok()?.get(b"Title").ok()?).ok()?;
    Some(title.trim().chars().filter(|letter| !letter.is_control()).take(300).collect())
}

/// How many streams of objects there are at most, whatever way their names are written (ISO 32000-1, section 7.3.5).
fn object_streams(file: &[u8]) -> usize {
    let is_one = |name: &[u8]| {
        let mut bytes = name.iter().copied();
        b"ObjStm".iter().all(|wanted| match bytes.next() {
            Some(b'#') => {
                let digits = [bytes.next(), bytes.next()].map(|digit| char::from(digit.unwrap_or(0)).to_digit(16));
                matches!(digits, [Some(high), Some(low)] if high * 16 + low == u32::from(*wanted))
            }
            found => found == Some(*wanted),
        })
    };
    memchr::memchr_iter(b'/', file).filter(|at| file.get(at + 1..).is_some_and(is_one)).count()
}

fn page_text(document: &Document, id: ObjectId, out: &mut String) -> lopdf::Result<()> {
    let fonts = document.get_page_fonts(id)?;
    let readable = fonts.iter().filter_map(|(name, font)| {
        let encoding = font.get_font_encoding_with_limit(document, MAX_STREAM_BYTES).ok()?;
        Some((name.as_slice(), encoding))
    });
    let encodings: BTreeMap<&[u8], Encoding<'_>> = readable.collect();
    let content = document.get_page_content_with_limit(id, MAX_STREAM_BYTES)?;
    if words(&content) > MAX_WORDS {
        return Err(lopdf::Error::InvalidStream(format!("it says more than {MAX_WORDS} words")));
    }
    let content = Content::decode(&content)?;
    let mut pen = Pen { out, encoding: None, size: 12.0, scale: 1.0, at: (0.0, 0.0), leading: 0.0, last: None };
    for operation in &content.operations {
        pen.follow(operation, &encodings);
        if pen.out.len() > MAX_TEXT_BYTES {
            break;
        }
    }
    Ok(())
}

/// How many operands and operators there are at most (ISO 32000-1, section 7.2): each begins behind white space, or with a sign of its
/// own.
fn words(content: &[u8]) -> usize {
    let is_space = |byte: u8| matches!(byte, 0 | b'\t' | b'\n' | 0x0c | b'\r' | b' ');
    let mut was_space = true;
    let begins = |byte: &&u8| {
        let is_first = was_space && !is_space(**byte);
        was_space = is_space(**byte);
        is_first || matches!(**byte, b'(' | b'<' | b'[' | b'/')
    };
    content.iter().filter(begins).count()
}

/// Writes what a page shows, with the white space that its places mean.
struct Pen<'a> {
    out: &'a mut String,
    encoding: Option<&'a Encoding<'a>>,
    /// Of the font.
    size: f32,
    /// Of the text's own coordinates.
    scale: f32,
    /// Where the line begins.
    at: (f32, f32),
    leading: f32,
    /// Where the last text was shown, and how many characters it had.
    last: Option<(f32, f32, usize)>,
}

impl<'a> Pen<'a> {
    /// The operators of ISO 32000-1, section 9.4.
    fn follow(&mut self, operation: &Operation, encodings: &'a BTreeMap<&[u8], Encoding<'a>>) {
        let operands = &operation.operands;
        let number = |index: usize| operands.get(index).and_then(|operand| operand.as_float().ok()).unwrap_or(0.0);
        match operation.operator.as_str() {
            "BT" => (self.at, self.scale) = ((0.0, 0.0), 1.0),
            "Tf" => {
                self.encoding = operands.first().and_then(|name| encodings.get(name.as_name().ok()?));
                self.size = number(1).abs();
            }
            "TL" => self.leading = number(0),
            "Td" => self.moved(number(0), number(1)),
            "TD" => {
                self.leading = -number(1);
                self.moved(number(0), number(1));
            }
            "Tm" => {
                self.scale = if number(3).abs() > f32::EPSILON { number(3) } else { 1.0 };
                self.at = (number(4), number(5));
            }
            "T*" => self.moved(0.0, -self.leading),
            "Tj" | "TJ" => self.show(operands),
            "'" => {
                self.moved(0.0, -self.leading);
                self.show(operands);
            }
            "\"" => {
                self.moved(0.0, -self.leading);
                self.show(operands.get(2..).unwrap_or_default());
            }
            _ => {}
        }
    }

    fn moved(&mut self, right: f32, up: f32) {
        self.at = (self.at.0 + right * self.scale.abs(), self.at.1 + up * self.scale);
    }

    fn show(&mut self, operands: &[Object]) {
        let Some(encoding) = self.encoding else { return };
        let height = (self.size * self.scale).abs().max(1.0);
        if let Some((x, y, chars)) = self.last {
            let (right, down) = ((self.at.0 - x).abs(), (self.at.1 - y).abs());
            let has_space = self.out.ends_with(char::is_whitespace);
            if down > height * 1.8 {
                self.out.push_str("\n\n");
            } else if down > height * 0.5 {
                self.out.push('\n');
            } else if right > 0.1 && !has_space && (chars > 1 || right > height) {
                // Text whose letters are placed one by one moves by a letter's width each time.
                self.out.push(' ');
            }
        }
        let before = self.out.len();
        written(self.out, encoding, operands);
        let chars = self.out.get(before..).map_or(0, |shown| shown.chars().count());
        if chars > 0 {
            self.last = Some((self.at.0, self.at.1, chars));
        }
    }
}

/// The text of the operands of `Tj` and `TJ`; a wide gap between two of them is a space.
fn written(out: &mut String, encoding: &Encoding<'_>, operands: &[Object]) {
    for operand in operands {
        match operand {
            Object::String(bytes, _) => {
                if let Ok(text) = Document::decode_text(encoding, bytes) {
                    out.extend(text.chars().filter(|letter| !letter.is_control() || *letter == '\n' || *letter == '\t'));
                }
            }
            Object::Array(items) => {
                for item in items {
                    match item {
                        Object::String(..) => written(out, encoding, std::slice::from_ref(item)),
                        other if other.as_float().is_ok_and(|gap| gap < -180.0) && !out.ends_with(' ') => out.push(' '),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
}
