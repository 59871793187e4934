//! The text of a PDF. Pure, and bounded: what a small file says may be large.
//!
//! Lopdf reads the values, and knows the page tree. Where it would do as much as a file says, whatever that is, it is not asked: for
//! the places of the objects (`file.rs`), the maps of fonts (`cmap.rs`), and pages that are drawn by one stream a million times.

mod cmap;
mod file;
mod fonts;
mod pen;
mod words;

use std::fmt::Write as _;

use lopdf::content::Content;
use lopdf::{DecompressError, Dictionary, Document, Error, Object, ObjectId};
use tokio::time::Instant;
use turnwright_core::counted;
use turnwright_engine::source::ToolError;

use self::fonts::Fonts;
use self::pen::Pen;
use self::words::{MAX_WORDS, words};
use super::page::Page;
use crate::error::failed;
use crate::net::Answer;

/// The most that the drawing of one page, or a table of a font, may come to, in bytes.
const MAX_STREAM_BYTES: usize = 8 << 20;
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
    let file = file::read(body, deadline)?;
    let document = &file.document;
    let (mut notes, mut pages): (Vec<String>, Vec<(u32, String)>) = (Vec::new(), Vec::new());
    if !file.is_whole {
        notes.push("parts of the PDF are missing: it is too large to read as a whole".to_owned());
    }
    let plain = Dictionary::from_iter([("Type", Object::Name(b"Font".to_vec()))]);
    let mut reader = Reader { document, fonts: Fonts::new(document, &plain), deadline };
    let (mut bytes, mut unread) = (0_usize, 0_usize);
    for (number, id) in document.get_pages() {
        let mut text = String::new();
        let page = if bytes > MAX_TEXT_BYTES { Err(Unread::Late) } else { reader.page(id, &mut text) };
        match page {
            Ok(()) => {}
            Err(Unread::Broken) => unread += 1,
            Err(Unread::Late) => {
                notes.push(format!("the pages from {number} on are missing: the PDF is too large to read as a whole"));
                break;
            }
        }
        text.truncate(text.trim_end().len());
        bytes += text.len();
        pages.push((number, text));
    }
    if unread > 0 {
        notes.push(format!("{unread} of {} could not be read", counted(pages.len(), "page")));
    }
    if pages.iter().all(|(_, text)| text.is_empty()) {
        notes.push("the PDF holds no text that can be read: its pages may be pictures".to_owned());
    }
    let title = document.trailer.get(b"Info").ok().and_then(|info| title(document, info));
    Ok(Pdf { title, pages, notes })
}

fn title(document: &Document, info: &Object) -> Option<String> {
    let (_, info) = document.dereference(info).ok()?;
    let title = lopdf::decode_text_string(info.as_dict().ok()?.get(b"Title").ok()?).ok()?;
    Some(title.trim().chars().filter(|letter| !letter.is_control()).take(300).collect())
}

/// Why a page has no text, or not all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unread {
    /// It is broken, or says too much.
    Broken,
    /// The time is over.
    Late,
}

/// Reads page after page.
struct Reader<'a> {
    document: &'a Document,
    fonts: Fonts<'a>,
    deadline: Instant,
}

impl<'a> Reader<'a> {
    /// To be asked before each step that may take long.
    fn in_time(&self) -> Result<(), Unread> {
        if Instant::now() < self.deadline { Ok(()) } else { Err(Unread::Late) }
    }

    fn page(&mut self, id: ObjectId, out: &mut String) -> Result<(), Unread> {
        let content = self.content(id)?;
        if words(&content) > MAX_WORDS {
            return Err(Unread::Broken);
        }
        let fonts = self.page_fonts(id)?;
        let mut pen = Pen::new(out);
        for operation in Content::decode_iter(&content) {
            self.in_time()?;
            let operation = operation.map_err(|_| Unread::Broken)?;
            let found = |name: &[u8]| fonts.iter().copied().find_map(|fonts| dictionary(self.document, fonts, name));
            pen.follow(&operation, |name| found(name).and_then(|font| self.fonts.font(font)));
            if pen.written() > MAX_TEXT_BYTES {
                break;
            }
        }
        Ok(())
    }

    /// The fonts of a page by their names, its own before those of the tree above it.
    fn page_fonts(&self, id: ObjectId) -> Result<Vec<&'a Dictionary>, Unread> {
        let document = self.document;
        let (own, further) = document.get_page_resources(id).map_err(|_| Unread::Broken)?;
        let further = further.into_iter().filter_map(|id| document.get_dictionary(id).ok());
        Ok(own.into_iter().chain(further).filter_map(|found| dictionary(document, found, b"Font")).collect())
    }

    /// What draws a page. A stream of it that cannot be read is taken as it is, as others do.
    fn content(&self, id: ObjectId) -> Result<Vec<u8>, Unread> {
        let mut content = Vec::new();
        for id in self.document.get_page_contents(id) {
            self.in_time()?;
            let Ok(stream) = self.document.get_object(id).and_then(Object::as_stream) else { continue };
            let room = MAX_STREAM_BYTES.saturating_sub(content.len());
            match stream.decompressed_content_with_limit(room) {
                Ok(read) => content.extend(read),
                Err(Error::Decompress(DecompressError::MemoryLimitExceeded { .. })) => return Err(Unread::Broken),
                Err(_) if stream.content.len() <= room => content.extend_from_slice(&stream.content),
                Err(_) => return Err(Unread::Broken),
            }
            content.push(b'\n');
        }
        Ok(content)
    }
}

/// The dictionary of a name in another one.
fn dictionary<'a>(document: &'a Document, of: &'a Dictionary, name: &[u8]) -> Option<&'a Dictionary> {
    of.get_deref(name, document).and_then(Object::as_dict).ok()
}

/// Adds the letters that are seen.
fn push(out: &mut String, letters: impl Iterator<Item = char>) {
    out.extend(letters.filter(|letter| !letter.is_control() || *letter == '\n' || *letter == '\t'));
}

#[cfg(test)]
mod tests;
