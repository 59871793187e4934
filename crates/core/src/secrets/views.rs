//! A text as whoever reads it may understand it: with the escapes of URLs, JSON, source code and HTML read, and without white space.

use std::ops::Range;

/// How often what was read is read again: JSON within JSON.
const MAX_DEPTH: usize = 3;
/// The longest escape, in bytes.
pub(super) const MAX_ESCAPE: usize = 12;

/// A text that was read, and where each of its bytes came from.
pub(super) struct View {
    pub(super) bytes: Vec<u8>,
    /// Where each byte begins and ends in the text.
    places: Vec<Range<usize>>,
}

impl View {
    /// The readings of a text that differ from it.
    pub(super) fn all(text: &str) -> Vec<Self> {
        let mut views: Vec<Self> = Vec::new();
        for _ in 0..MAX_DEPTH {
            let before = views.last();
            let bytes = before.map_or(text.as_bytes(), |view| &view.bytes);
            if !bytes.iter().any(|byte| matches!(byte, b'%' | b'\\' | b'&')) {
                break;
            }
            let Some(next) = read(bytes, before) else { break };
            views.push(next);
        }
        let bytes = views.last().map_or(text.as_bytes(), |view| &view.bytes);
        if bytes.iter().any(u8::is_ascii_whitespace) {
            let place = |at: usize| views.last().map_or(Some(at..at.saturating_add(1)), |view| view.places.get(at).cloned());
            let kept = bytes.iter().enumerate().filter(|(_, byte)| !byte.is_ascii_whitespace());
            let (bytes, places) = kept.filter_map(|(at, byte)| Some((*byte, place(at)?))).unzip();
            views.push(Self { bytes, places });
        }
        views
    }

    /// Where a stretch of its bytes stands in the text.
    pub(super) fn place(&self, range: Range<usize>) -> Option<Range<usize>> {
        let begin = self.places.get(range.start)?.start;
        let end = self.places.get(range.end.checked_sub(1)?)?.end;
        Some(begin..end)
    }

    /// The same, up to its end.
    pub(super) fn place_from(&self, at: usize) -> Option<usize> {
        Some(self.places.get(at)?.start)
    }
}

/// Reads the escapes; nothing where there are none.
fn read(bytes: &[u8], before: Option<&View>) -> Option<View> {
    let mut view = View { bytes: Vec::with_capacity(bytes.len()), places: Vec::with_capacity(bytes.len()) };
    let (mut at, mut has_read) = (0, false);
    while let Some(byte) = bytes.get(at) {
        let rest = bytes.get(at..).unwrap_or_default();
        let (read, length) = match escape(rest) {
            Some((read, length)) => {
                has_read = true;
                (read, length)
            }
            None => (Read::Byte(*byte), 1),
        };
        let last = at.saturating_add(length).saturating_sub(1);
        let place = match before {
            Some(before) => before.places.get(at)?.start..before.places.get(last)?.end,
            None => at..last.saturating_add(1),
        };
        let mut push = |byte: u8| {
            view.bytes.push(byte);
            view.places.push(place.clone());
        };
        match read {
            Read::Byte(byte) => push(byte),
            Read::Char(char) => char.encode_utf8(&mut [0; 4]).bytes().for_each(&mut push),
        }
        at = at.saturating_add(length);
    }
    has_read.then_some(view)
}

enum Read {
    Byte(u8),
    Char(char),
}

/// The escape at the beginning, and its length.
fn escape(bytes: &[u8]) -> Option<(Read, usize)> {
    match bytes {
        [b'%', high, low, ..] => Some((Read::Byte(hex(&[*high, *low]).and_then(|value| u8::try_from(value).ok())?), 3)),
        [b'\\', b'u', b'{', rest @ ..] => {
            let length = rest.iter().take(7).position(|byte| *byte == b'}')?;
            Some((Read::Char(char::from_u32(hex(rest.get(..length)?)?)?), length.saturating_add(4)))
        }
        [b'\\', b'u', a, b, c, d, rest @ ..] => {
            let unit = hex(&[*a, *b, *c, *d])?;
            if let (0xd800..0xdc00, [b'\\', b'u', a, b, c, d, ..]) = (unit, rest) {
                let low = hex(&[*a, *b, *c, *d]).filter(|low| (0xdc00..0xe000).contains(low))?;
                let whole = 0x1_0000_u32.checked_add((unit & 0x3ff) << 10)?.checked_add(low & 0x3ff)?;
                return Some((Read::Char(char::from_u32(whole)?), 12));
            }
            Some((Read::Char(char::from_u32(unit)?), 6))
        }
        [b'\\', b'x', high, low, ..] => Some((Read::Byte(hex(&[*high, *low]).and_then(|value| u8::try_from(value).ok())?), 4)),
        [b'\\', sign, ..] => {
            let read = match sign {
                b'n' => b'\n',
                b't' => b'\t',
                b'r' => b'\r',
                b'b' => 8,
                b'f' => 12,
                b'"' | b'\\' | b'/' | b'\'' => *sign,
                _ => return None,
            };
            Some((Read::Byte(read), 2))
        }
        [b'&', rest @ ..] => {
            let length = rest.iter().take(9).position(|byte| *byte == b';')?;
            let read = match rest.get(..length)? {
                b"amp" => '&',
                b"lt" => '<',
                b"gt" => '>',
                b"quot" => '"',
                b"apos" => '\'',
                [b'#', b'x' | b'X', digits @ ..] => char::from_u32(hex(digits)?)?,
                [b'#', digits @ ..] => char::from_u32(std::str::from_utf8(digits).ok()?.parse().ok()?)?,
                _ => return None,
            };
            Some((Read::Char(read), length.saturating_add(2)))
        }
        _ => None,
    }
}

fn hex(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}
