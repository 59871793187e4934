//! The objects of a PDF (ISO 32000-1, section 7.5), found by going through the file from its beginning to its end.
//!
//! Its own tables of where they are (7.5.4, 7.5.8) are not asked: they may name one place a million times, and places inside of others,
//! and each would be read. So no byte is read twice, and what it takes goes with the size of the file. Of what is there more than once
//! the last one counts, as changes are appended.

use std::collections::HashMap;

use lopdf::{Dictionary, Document, Object, ObjectId, ObjectStream, Stream};
use memchr::memmem::Finder;
use tokio::time::Instant;

use super::words::words;

/// The most that all compressed objects of a file may come to, in bytes.
const MAX_OBJECTS_BYTES: usize = 32 << 20;
/// The most values that are taken: each is held in some hundred bytes.
const MAX_VALUES: usize = 3_000_000;

/// What was found in a file.
pub(super) struct File {
    /// The objects, with the trailer that leads to them.
    pub(super) document: Document,
    /// Whether all of it was taken.
    pub(super) is_whole: bool,
}

/// The objects of a file, as far as they were read until `deadline`; or what is wrong with it.
pub(super) fn read(body: &[u8], deadline: Instant) -> Result<File, &'static str> {
    let mut scan = Scan::new(body, deadline);
    scan.all();
    scan.end_streams();
    let Scan { mut document, mut budget, mut places, containers, .. } = scan;
    if document.trailer.has(b"Encrypt") {
        // Many are locked against changes alone: they open without a password.
        drop(document.decrypt(""));
        if document.trailer.has(b"Encrypt") {
            return Err(LOCKED);
        }
    }
    for (id, place) in containers {
        // A later object may have taken its place.
        if places.get(&id.0) == Some(&place)
            && let Some(Object::Stream(stream)) = document.objects.remove(&id)
        {
            for (number, object) in budget.unpacked(&stream) {
                if places.get(&number).is_none_or(|known| *known <= place) {
                    places.insert(number, place);
                    document.objects.insert((number, 0), object);
                }
            }
        }
    }
    if document.catalog().is_err() {
        let is_catalogue = |object: &&Object| object.as_dict().is_ok_and(|found| found.has_type(b"Catalog"));
        let found = document.objects.iter().rfind(|(_, object)| is_catalogue(object)).map(|(id, _)| *id);
        let none = if budget.is_kept { BROKEN } else { TOO_LARGE };
        document.trailer.set("Root", Object::Reference(found.ok_or(none)?));
    }
    Ok(File { document, is_whole: budget.is_kept })
}

/// What is said of a file with a password.
const LOCKED: &str = "the PDF is locked with a password; ask the person for its text";
/// What is said of one that leads nowhere.
const BROKEN: &str = "the PDF is broken (it has no catalogue); try another source";
/// What is said of one whose beginning alone could be read.
const TOO_LARGE: &str = "the PDF is too large to read; ask the person for a part of it";

/// What may still be taken.
struct Budget {
    values: usize,
    unpacked_bytes: usize,
    deadline: Instant,
    /// Whether everything was taken so far.
    is_kept: bool,
}

impl Budget {
    fn is_late(&mut self) -> bool {
        let is_late = Instant::now() >= self.deadline;
        self.is_kept &= !is_late;
        is_late
    }

    /// The value that these bytes begin with.
    fn value(&mut self, bytes: &[u8]) -> Option<Object> {
        let Some(values) = self.values.checked_sub(words(bytes)) else {
            self.is_kept = false;
            return None;
        };
        self.values = values;
        // Lopdf reads single values where they are within a stream of objects.
        let index = b"1 0 ";
        let mut about = Dictionary::new();
        about.set("First", 4);
        about.set("N", 1);
        let stream = Stream::new(about, [index, bytes].concat());
        ObjectStream::new(&stream).ok()?.objects.into_values().next()
    }

    /// The objects of a stream of them, by their numbers (section 7.5.7), each read as far as the next one goes.
    fn unpacked(&mut self, stream: &Stream) -> Vec<(u32, Object)> {
        if self.is_late() {
            return Vec::new();
        }
        let Ok(content) = stream.get_plain_content_with_limit(self.unpacked_bytes) else {
            self.is_kept = false;
            return Vec::new();
        };
        self.unpacked_bytes -= content.len();
        let first = stream.dict.get(b"First").and_then(Object::as_i64).ok().and_then(|first| usize::try_from(first).ok());
        let Some((index, objects)) = first.and_then(|first| content.split_at_checked(first)) else { return Vec::new() };
        let numbers = index.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let numbers: Vec<u32> = numbers.map_while(|word| std::str::from_utf8(word).ok()?.parse().ok()).collect();
        let mut places: Vec<(usize, u32)> =
            numbers.chunks_exact(2).filter_map(|pair| Some((usize::try_from(*pair.get(1)?).ok()?, *pair.first()?))).collect();
        places.sort_by_key(|(at, _)| *at);
        places.dedup_by_key(|(at, _)| *at);
        let ends = places.iter().skip(1).map(|(at, _)| *at).chain([objects.len()]);
        let mut found = Vec::new();
        for ((at, number), end) in places.iter().zip(ends) {
            if self.is_late() {
                break;
            }
            if let Some(object) = objects.get(*at..end).and_then(|bytes| self.value(bytes)) {
                found.push((*number, object));
            }
        }
        found
    }
}

/// Where a word stands, each place looked for once.
struct Word<'a> {
    body: &'a [u8],
    finder: Finder<'static>,
    /// The first one that was not passed; none where there are no more.
    next: Option<usize>,
}

impl<'a> Word<'a> {
    fn new(body: &'a [u8], word: &'static str) -> Self {
        let finder = Finder::new(word);
        let next = finder.find(body);
        Self { body, finder, next }
    }

    /// The first one that does not begin before `from`, which never goes back.
    fn next(&mut self, from: usize) -> Option<usize> {
        while let Some(at) = self.next.filter(|at| *at < from) {
            let from = from.max(at + 1);
            self.next = self.body.get(from..).and_then(|rest| self.finder.find(rest)).map(|found| from + found);
        }
        self.next
    }
}

/// The way through a file.
struct Scan<'a> {
    body: &'a [u8],
    object: Word<'a>,
    stream: Word<'a>,
    end_stream: Word<'a>,
    trailer: Word<'a>,
    budget: Budget,
    document: Document,
    /// Where the object of a number is.
    places: HashMap<u32, usize>,
    /// The streams of objects.
    containers: Vec<(ObjectId, usize)>,
    /// The streams whose end is not known yet.
    unended: Vec<ObjectId>,
}

impl<'a> Scan<'a> {
    fn new(body: &'a [u8], deadline: Instant) -> Self {
        Self {
            body,
            object: Word::new(body, "obj"),
            stream: Word::new(body, "stream"),
            end_stream: Word::new(body, "endstream"),
            trailer: Word::new(body, "trailer"),
            budget: Budget { values: MAX_VALUES, unpacked_bytes: MAX_OBJECTS_BYTES, deadline, is_kept: true },
            document: Document::new(),
            places: HashMap::new(),
            containers: Vec::new(),
            unended: Vec::new(),
        }
    }

    fn all(&mut self) {
        let mut at = 0;
        while let Some(word) = self.object.next(at) {
            if self.budget.is_late() {
                return;
            }
            if let Some((start, id)) = header(self.body, word).filter(|(start, _)| *start >= at) {
                self.trailers(at, start);
                at = self.object(id, start, word + 3);
            } else {
                self.trailers(at, word);
                at = word + 3;
            }
        }
        self.trailers(at, self.body.len());
    }

    /// Takes the trailers between two places.
    fn trailers(&mut self, mut from: usize, end: usize) {
        while let Some(word) = self.trailer.next(from).filter(|word| *word < end) {
            from = word + "trailer".len();
            let end = self.trailer.next(from).map_or(end, |next| next.min(end));
            let found = self.body.get(from..end).and_then(|bytes| self.budget.value(bytes));
            if let Some(Object::Dictionary(found)) = found {
                self.leads(found);
            }
        }
    }

    fn leads(&mut self, trailer: Dictionary) {
        if trailer.has(b"Root") {
            self.document.trailer = trailer;
        }
    }

    /// Takes the object that begins at `from`: where it ends.
    fn object(&mut self, id: ObjectId, place: usize, from: usize) -> usize {
        let mut look = from;
        let end = loop {
            let Some(word) = self.object.next(look) else { break self.body.len() };
            if self.body.get(..word).is_some_and(|before| before.ends_with(b"end")) {
                break word - 3;
            }
            if let Some((start, _)) = header(self.body, word).filter(|(start, _)| *start >= from) {
                break start;
            }
            look = word + 3;
        };
        let mut look = from;
        let data = loop {
            let Some(word) = self.stream.next(look).filter(|word| *word < end) else { break None };
            if let Some(data) = data_after(self.body, word) {
                break Some((word, data));
            }
            look = word + 1;
        };
        let (value_end, data) = data.map_or((end, None), |(word, data)| (word, Some(data)));
        let value = self.body.get(from..value_end).and_then(|bytes| self.budget.value(bytes));
        let Some(data) = data else {
            self.take(id, place, value);
            return end;
        };
        let Some(Object::Dictionary(about)) = value else {
            return self.end_stream.next(data).unwrap_or(self.body.len());
        };
        let length = about.get(b"Length").and_then(Object::as_i64).ok().and_then(|length| usize::try_from(length).ok());
        let told = length.and_then(|length| data.checked_add(length)).filter(|end| self.is_end(*end));
        let end = told.unwrap_or_else(|| self.end_stream.next(data).unwrap_or(self.body.len()));
        let content = self.body.get(data..end).unwrap_or_default().to_vec();
        let length = about.get(b"Length").ok().filter(|_| told.is_none()).cloned();
        let mut stream = Stream::new(about, content);
        if let Some(length) = length {
            stream.dict.set("Length", length);
        }
        if told.is_none() {
            self.unended.push(id);
        }
        match stream.dict.get_type() {
            Ok(b"XRef") => self.leads(stream.dict),
            Ok(b"ObjStm") => {
                // What is decrypted is not to be taken apart there: that knows no limit.
                stream.dict.remove(b"Type");
                self.containers.push((id, place));
                self.take(id, place, Some(Object::Stream(stream)));
            }
            _ => self.take(id, place, Some(Object::Stream(stream))),
        }
        end
    }

    fn take(&mut self, id: ObjectId, place: usize, object: Option<Object>) {
        if let Some(object) = object {
            self.places.insert(id.0, place);
            self.document.objects.insert(id, object);
        }
    }

    /// Whether a stream ends here.
    fn is_end(&self, at: usize) -> bool {
        let rest = self.body.get(at..).unwrap_or_default();
        let rest = rest.strip_prefix(b"\r").unwrap_or(rest);
        rest.strip_prefix(b"\n").unwrap_or(rest).starts_with(b"endstream")
    }

    /// Ends the streams at what another object says, or before the end of line that their end's word has before it.
    fn end_streams(&mut self) {
        for id in std::mem::take(&mut self.unended) {
            let Some(Object::Stream(stream)) = self.document.objects.get(&id) else { continue };
            let told = stream.dict.get_deref(b"Length", &self.document).and_then(Object::as_i64);
            let told = told.ok().and_then(|length| usize::try_from(length).ok());
            let held = stream.content.len();
            let line_end = match stream.content.as_slice() {
                [.., b'\r', b'\n'] => 2,
                [.., b'\r' | b'\n'] => 1,
                _ => 0,
            };
            let length = told.filter(|told| (held.saturating_sub(2)..=held).contains(told)).unwrap_or(held - line_end);
            if let Some(Object::Stream(stream)) = self.document.objects.get_mut(&id) {
                stream.content.truncate(length);
                stream.dict.set("Length", i64::try_from(length).unwrap_or(i64::MAX));
            }
        }
    }
}

/// Where the object begins whose `obj` is at `word`, and how it is called.
fn header(body: &[u8], word: usize) -> Option<(usize, ObjectId)> {
    if body.get(word + 3).is_some_and(u8::is_ascii_alphanumeric) {
        return None;
    }
    let before = body.get(..word)?.trim_ascii_end();
    let (before, generation) = number(before)?;
    let between = before.trim_ascii_end();
    if between.len() == before.len() {
        return None;
    }
    let (before, id) = number(between)?;
    let is_begun = before.last().is_some_and(|last| last.is_ascii_alphanumeric() || matches!(last, b'.' | b'+' | b'-'));
    let header = (before.len(), (id, u16::try_from(generation).ok()?));
    // As `endobj` stands before it without a space in some files.
    (!is_begun || before.ends_with(b"endobj")).then_some(header)
}

/// The number that these bytes end with, and what is before it.
fn number(bytes: &[u8]) -> Option<(&[u8], u32)> {
    let digits = bytes.iter().rev().take(10).take_while(|byte| byte.is_ascii_digit()).count();
    let (before, digits) = bytes.split_at_checked(bytes.len() - digits)?;
    Some((before, std::str::from_utf8(digits).ok()?.parse().ok()?))
}

/// Where the data begins, if this `stream` is the word for it (section 7.3.8.1).
fn data_after(body: &[u8], word: usize) -> Option<usize> {
    if !body.get(..word)?.trim_ascii_end().ends_with(b">>") {
        return None;
    }
    let mut at = word + "stream".len();
    while matches!(body.get(at), Some(b' ' | b'\t')) {
        at += 1;
    }
    match body.get(at..)? {
        [b'\r', b'\n', ..] => Some(at + 2),
        [b'\r' | b'\n', ..] => Some(at + 1),
        _ => None,
    }
}
