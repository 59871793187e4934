//! The fonts of a PDF: how the codes of a text are read.

use std::collections::HashMap;
use std::rc::Rc;

use lopdf::{Dictionary, Document, Encoding, Object, Stream};

use super::cmap::CMap;
use super::{MAX_STREAM_BYTES, push};

/// How many fonts are held at once.
const MAX_FONTS: usize = 256;
/// How much their maps may hold together, in parts as [`CMap::size`] counts them.
const MAX_MAPS: usize = 4_000_000;

/// How the text of a font is read.
pub(super) enum Font<'a> {
    Mapped(Rc<CMap>),
    Encoded(Encoding<'a>),
}

impl Font<'_> {
    /// Writes what these bytes show, at most about as many characters as `most`.
    pub(super) fn write(&self, bytes: &[u8], out: &mut String, most: usize) {
        match self {
            Self::Mapped(map) => map.write(bytes, out, most),
            // At most three bytes for one.
            Self::Encoded(encoding) => {
                if let Ok(text) = Document::decode_text(encoding, bytes) {
                    push(out, text.chars());
                }
            }
        }
    }
}

/// The fonts of a document that were met. Each is read once, and each map; where they are too many to hold, anew.
pub(super) struct Fonts<'a> {
    document: &'a Document,
    /// A font that says nothing about its codes.
    plain: &'a Dictionary,
    /// By the places of their dictionaries.
    known: HashMap<*const Dictionary, Option<Rc<Font<'a>>>>,
    maps: HashMap<*const Stream, Option<Rc<CMap>>>,
    /// How much the maps hold.
    held: usize,
}

/// Where a font's codes are said.
enum Said<'a> {
    ByMap(&'a Stream),
    /// By the encoding, or what is usual.
    ByEncoding(&'a Dictionary),
    Nowhere,
}

impl<'a> Fonts<'a> {
    pub(super) fn new(document: &'a Document, plain: &'a Dictionary) -> Self {
        Self { document, plain, known: HashMap::new(), maps: HashMap::new(), held: 0 }
    }

    /// How the text of this font is read; nothing where it cannot be.
    pub(super) fn font(&mut self, font: &'a Dictionary) -> Option<Rc<Font<'a>>> {
        if let Some(known) = self.known.get(&std::ptr::from_ref(font)) {
            return known.clone();
        }
        if self.known.len() >= MAX_FONTS || self.held > MAX_MAPS {
            self.known.clear();
            self.maps.clear();
            self.held = 0;
        }
        let read = match self.said(font) {
            Said::ByMap(stream) => match self.map(stream) {
                Some(map) => Some(Font::Mapped(map)),
                None => self.encoding(self.plain),
            },
            Said::ByEncoding(font) => self.encoding(font),
            Said::Nowhere => None,
        };
        let read = read.map(Rc::new);
        self.known.insert(std::ptr::from_ref(font), read.clone());
        read
    }

    /// Lopdf would read the map of a font where nothing else says its codes, and hold each of them. So it is not given such fonts.
    fn said(&self, font: &'a Dictionary) -> Said<'a> {
        let map = font.get_deref(b"ToUnicode", self.document).and_then(Object::as_stream);
        let Ok(encoding) = font.get(b"Encoding") else {
            return map.map_or(Said::ByEncoding(font), Said::ByMap);
        };
        let name = match self.document.dereference(encoding) {
            Ok((_, Object::Name(name))) => name.as_slice(),
            Ok((_, Object::Dictionary(about))) => about.get(b"BaseEncoding").and_then(Object::as_name).unwrap_or_default(),
            Ok(_) | Err(_) => return Said::ByEncoding(self.plain),
        };
        match name {
            b"Identity-H" | b"Identity-V" => map.map_or(Said::Nowhere, Said::ByMap),
            _ => Said::ByEncoding(font),
        }
    }

    fn encoding(&self, font: &'a Dictionary) -> Option<Font<'a>> {
        font.get_font_encoding_with_limit(self.document, MAX_STREAM_BYTES).ok().map(Font::Encoded)
    }

    fn map(&mut self, stream: &'a Stream) -> Option<Rc<CMap>> {
        if let Some(known) = self.maps.get(&std::ptr::from_ref(stream)) {
            return known.clone();
        }
        let content = stream.get_plain_content_with_limit(MAX_STREAM_BYTES).ok();
        let map = content.and_then(|content| CMap::parse(&content)).map(Rc::new);
        self.held += map.as_ref().map_or(0, |map| map.size());
        self.maps.insert(std::ptr::from_ref(stream), map.clone());
        map
    }
}
