//! The tool `read`.

mod page;

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use encoding_rs::UTF_8;
use schemars::JsonSchema;
use serde::Deserialize;
use turnwright_core::ContentBlock;
use turnwright_engine::source::{ToolError, ToolOutput};

use self::page::{End, Flow, Page};
use super::encoding::{self, Form, MOST_LOOKED_AT, form_of};
use super::open::{AtEnd, Spot};
use super::seen::Stamp;
use super::{Caller, Shared};
use crate::error::{failed, grouped, invalid};

pub(super) const DESCRIPTION: &str = "Reads a file and gives what it says: text in whatever encoding it is written, \
    images as images. line and lines give a part of it by lines, offset and limit a part by bytes; of a file over the limit the \
    first part comes, and says how to go on.";

/// The longest character of UTF-8, in bytes: a part that is smaller might hold none.
const LONGEST_CHARACTER: u64 = 4;
/// The size of one read of a file that is gone through, in bytes.
const PIECE_BYTES: usize = 256 * 1024;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The file, relative to the first root, or absolute inside a root.
    path: String,
    /// The line to begin at; 1 is the first.
    #[schemars(range(min = 1))]
    line: Option<u64>,
    /// The most lines to read.
    #[schemars(range(min = 1))]
    lines: Option<u64>,
    /// The byte to begin at; 0 is the first.
    offset: Option<u64>,
    /// The most bytes to read.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
}

pub(super) fn read(shared: &Shared, arguments: &Arguments, caller: &Caller) -> Result<ToolOutput, ToolError> {
    let Arguments { path, line, lines, offset, limit } = arguments;
    let is_by_lines = line.is_some() || lines.is_some();
    let is_by_bytes = offset.is_some() || limit.is_some();
    if is_by_lines && is_by_bytes {
        return Err(invalid("line and lines say a part by lines, offset and limit by bytes: use one of the two"));
    }
    let spot = shared.spot(path, AtEnd::Follow)?;
    let (mut file, stat) = shared.open_regular(&spot)?;
    let max = shared.config.max_read_bytes;
    let mut source = Source { shared, spot: &spot, caller, size: u64::try_from(stat.st_size).unwrap_or_default() };
    let head = source.head(&mut file)?;
    if let Some(kind) = infer::get(&head).filter(|kind| is_image(kind.mime_type()) && !is_by_bytes && !is_by_lines) {
        return source.image(file, kind.mime_type());
    }
    let form = source.form(&head)?;
    let output = if is_by_bytes {
        source.part(file, form, offset.unwrap_or(0), limit.unwrap_or(max).min(max).max(LONGEST_CHARACTER))
    } else if is_by_lines || source.size > max {
        source.page(file, form, line.unwrap_or(1), lines.unwrap_or(u64::MAX))
    } else {
        source.whole(file, form)
    };
    if output.is_ok() {
        // Of the state before it was read: what changed meanwhile was perhaps not seen.
        shared.seen.note(caller.key(&spot), Stamp::of(&stat));
    }
    output
}

/// The images that every provider takes.
fn is_image(mime_type: &str) -> bool {
    matches!(mime_type, "image/png" | "image/jpeg" | "image/gif" | "image/webp")
}

struct Source<'a> {
    shared: &'a Shared,
    spot: &'a Spot<'a>,
    caller: &'a Caller,
    /// As the system says; some files have none and hold something.
    size: u64,
}

impl Source<'_> {
    fn explain(&self, error: &io::Error) -> ToolError {
        self.shared.roots.explain(&self.spot.place, error)
    }

    fn shown(&self) -> &str {
        &self.spot.place.shown
    }

    /// The first bytes; the file is at its beginning again.
    fn head(&mut self, file: &mut File) -> Result<Vec<u8>, ToolError> {
        let mut head = Vec::new();
        let read = file.take(MOST_LOOKED_AT as u64).read_to_end(&mut head).and_then(|_| file.rewind());
        read.map_err(|error| self.explain(&error))?;
        Ok(head)
    }

    fn form(&self, head: &[u8]) -> Result<Form, ToolError> {
        form_of(head).map_err(|binary| {
            let kind = infer::get(head).map(|kind| format!(" ({})", kind.mime_type())).unwrap_or_default();
            failed(format!("`{}` is a binary file{kind}, not text: {}", self.shown(), binary.why()))
        })
    }

    fn image(&self, file: File, mime_type: &str) -> Result<ToolOutput, ToolError> {
        let max = self.shared.config.max_image_bytes;
        let mut bytes = Vec::new();
        file.take(max.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| self.explain(&error))?;
        if bytes.len() as u64 > max {
            let (size, max) = (grouped(self.size), grouped(max));
            return Err(failed(format!("`{}` is an image of {size} bytes, limit {max}; make it smaller first", self.shown())));
        }
        let note = format!("[`{}`: {mime_type}, {} bytes]", self.shown(), grouped(bytes.len() as u64));
        let image = ContentBlock::Image { data: STANDARD.encode(bytes), mime_type: mime_type.to_owned() };
        Ok(ToolOutput { content: vec![ContentBlock::text(note), image], ..ToolOutput::default() })
    }

    fn whole(&self, file: File, form: Form) -> Result<ToolOutput, ToolError> {
        let max = self.shared.config.max_read_bytes;
        // One byte more than allowed shows that a file grew, or that the system gave no size for it.
        let mut bytes = Vec::with_capacity(usize::try_from(self.size.min(max)).unwrap_or_default() + 1);
        let mut file = file;
        (&mut file).take(max.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| self.explain(&error))?;
        if bytes.len() as u64 > max {
            file.rewind().map_err(|error| self.explain(&error))?;
            return self.page(file, form, 1, u64::MAX);
        }
        // Zeros may come later than what is looked at.
        if form.encoding == UTF_8 && bytes.contains(&0) {
            return Err(failed(format!("`{}` is a binary file, not text: it holds zero bytes", self.shown())));
        }
        let (text, is_broken) = encoding::decode_all(form, bytes);
        Ok(with_notes(text, form, is_broken, None))
    }

    /// A part by bytes.
    fn part(&self, mut file: File, form: Form, offset: u64, limit: u64) -> Result<ToolOutput, ToolError> {
        let size = self.size;
        if offset > size {
            let shown = self.shown();
            return Err(invalid(format!("offset {offset} is past the end: `{shown}` is {} bytes", grouped(size))));
        }
        let mut bytes = Vec::new();
        let read = file.seek(SeekFrom::Start(offset)).and_then(|_| file.take(limit).read_to_end(&mut bytes));
        read.map_err(|error| self.explain(&error))?;
        if form.encoding == UTF_8 && bytes.contains(&0) {
            return Err(failed(format!("`{}` is a binary file, not text: it holds zero bytes", self.shown())));
        }
        let skipped = if form.encoding == UTF_8 {
            trim_to_characters(&mut bytes, offset > 0, offset.saturating_add(limit) < size)
        } else {
            0
        };
        let start = offset.saturating_add(skipped);
        let end = start.saturating_add(bytes.len() as u64);
        let form = Form { has_mark: form.has_mark && offset == 0, ..form };
        let (text, is_broken) = encoding::decode_all(form, bytes);
        let rest = if end < size { format!("read on with offset {end}") } else { "the end".to_owned() };
        Ok(with_notes(text, form, is_broken, Some(format!("[bytes {start} to {end} of {size}; {rest}]"))))
    }

    /// A part by lines. The file is gone through piece by piece, and never held.
    fn page(&self, mut file: File, form: Form, first: u64, max_lines: u64) -> Result<ToolOutput, ToolError> {
        let max = self.shared.config.max_read_bytes;
        let mut page = Page::new(first, max_lines, usize::try_from(max).unwrap_or(usize::MAX));
        let mut decoder = form.encoding.new_decoder_with_bom_removal();
        let mut piece = vec![0; PIECE_BYTES];
        let mut letters = String::with_capacity(PIECE_BYTES * 3 + 16);
        loop {
            if self.caller.cancel.is_cancelled() {
                return Err(failed("the call was given up"));
            }
            let count = match file.read(&mut piece) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.explain(&error)),
            };
            let bytes = piece.get(..count).unwrap_or_default();
            let flow = if form == Form::PLAIN {
                page.push(bytes)
            } else {
                letters.clear();
                // The room is enough for every encoding, so one step takes all.
                let _ = decoder.decode_to_string(bytes, &mut letters, count == 0);
                page.push(letters.as_bytes())
            };
            if count == 0 || flow == Flow::Enough {
                break;
            }
        }
        let shown = page.finish();
        if shown.bytes.contains(&0) {
            return Err(failed(format!("`{}` is a binary file, not text: it holds zero bytes", self.shown())));
        }
        if shown.lines == 0 && first > 1 {
            let lines = if shown.reached == 1 { "1 line".to_owned() } else { format!("{} lines", grouped(shown.reached)) };
            return Err(invalid(format!("line {first} is past the end: `{}` has {lines}", self.shown())));
        }
        let last = shown.last;
        let rest = match shown.end {
            Some(End::Lines | End::Bytes) => format!("read on with line {}", last + 1),
            Some(End::WithinLine) => format!("line {last} is longer than what is read at once; read it with offset and limit"),
            None => "the end".to_owned(),
        };
        let note = format!("[lines {first} to {last} of a file of {} bytes; {rest}]", grouped(self.size));
        let (text, is_broken) = encoding::decode_all(Form::PLAIN, shown.bytes);
        Ok(with_notes(text, form, is_broken, Some(note)))
    }
}

/// The text as it is, and what is to be said of it apart.
fn with_notes(text: String, form: Form, is_broken: bool, place: Option<String>) -> ToolOutput {
    let broken = is_broken.then(|| "[what stands for no character is shown as \u{fffd}]".to_owned());
    let notes = [place, form.note(), broken].into_iter().flatten().map(ContentBlock::text);
    ToolOutput { content: std::iter::once(ContentBlock::text(text)).chain(notes).collect(), ..ToolOutput::default() }
}

/// Takes away the rest of a character that the part before began, and the beginning of one that the part after ends.
/// Gives how many bytes went from the front.
fn trim_to_characters(bytes: &mut Vec<u8>, has_before: bool, has_after: bool) -> u64 {
    let is_continuation = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
    let front = if has_before { bytes.iter().take(3).take_while(is_continuation).count() } else { 0 };
    bytes.drain(..front);
    if has_after
        && let Err(error) = std::str::from_utf8(bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
    front as u64
}
