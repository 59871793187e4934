//! What the codes of a font mean, as a `ToUnicode` map says it (ISO 32000-1, section 9.10.3).
//!
//! A range of codes is held as a range: four bytes may say one of four thousand million codes.

use std::collections::HashMap;

use lopdf::content::Content;
use lopdf::{Object, StringFormat};

use super::words::{MAX_WORDS, words};

/// The longest text of one code, in units of UTF-16 (512 bytes, section 9.10.3).
const MAX_TARGET: usize = 256;

/// The most spaces of codes: each is asked for each code.
const MAX_SPACES: usize = 32;

/// A code, and how many bytes it has.
type Code = (usize, u32);

/// A map from codes to text.
#[derive(Debug, Default)]
pub(super) struct CMap {
    /// What is a code at all: of how many bytes, from where to where.
    spaces: Vec<(Code, u32)>,
    chars: HashMap<Code, Box<[u16]>>,
    /// The first code of each and the last one, in their order, with the text of the first.
    ranges: Vec<(Code, u32, Box<[u16]>)>,
    /// How many bytes are passed that are no code.
    step: usize,
}

impl CMap {
    /// The map that this says; none where it says nothing, or more than could be held.
    pub(super) fn parse(content: &[u8]) -> Option<Self> {
        if words(content) > MAX_WORDS {
            return None;
        }
        let content = content.strip_prefix("\u{feff}".as_bytes()).unwrap_or(content);
        let mut map = Self::default();
        for operation in Content::decode_iter(content).map_while(Result::ok) {
            let operands = &operation.operands;
            match operation.operator.as_str() {
                "endcodespacerange" => {
                    let pairs = operands.chunks_exact(2);
                    map.spaces.extend(pairs.filter_map(|pair| span(pair.first()?, pair.get(1)?)));
                }
                "endbfchar" => {
                    let pairs = operands.chunks_exact(2);
                    map.chars.extend(pairs.filter_map(|pair| Some((code(pair.first()?)?, text(pair.get(1)?)?))));
                }
                "endbfrange" => {
                    for three in operands.chunks_exact(3) {
                        map.range(three);
                    }
                }
                _ => {}
            }
        }
        map.spaces.truncate(MAX_SPACES);
        map.ranges.sort_by_key(|(first, ..)| *first);
        let lengths = map.ranges.iter().map(|((length, _), ..)| *length).chain(map.chars.keys().map(|(length, _)| *length));
        let shortest = map.spaces.iter().map(|((length, _), _)| *length).min();
        map.step = shortest.or_else(|| lengths.min())?;
        (map.size() > 0).then_some(map)
    }

    fn range(&mut self, operands: &[Object]) {
        let [first, last, target] = operands else { return };
        let Some(((length, first), last)) = span(first, last).filter(|((_, first), last)| first <= last) else { return };
        match target {
            Object::Array(texts) => {
                let each = (first..=last).zip(texts);
                self.chars.extend(each.filter_map(|(code, target)| Some(((length, code), text(target)?))));
            }
            target => self.ranges.extend(text(target).map(|text| ((length, first), last, text))),
        }
    }

    /// How much it holds, in parts of some ten bytes.
    pub(super) fn size(&self) -> usize {
        let texts = self.chars.values().chain(self.ranges.iter().map(|(.., text)| text));
        texts.map(|text| 4 + text.len() / 4).sum()
    }

    /// Writes what these bytes mean, at most about as many units of UTF-16 as `most`.
    pub(super) fn write(&self, mut bytes: &[u8], out: &mut String, most: usize) {
        let mut units = Vec::new();
        while !bytes.is_empty() && units.len() < most {
            let length = self.next(bytes, &mut units);
            bytes = bytes.get(length..).unwrap_or_default();
        }
        let letters = char::decode_utf16(units).map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER));
        super::push(out, letters);
    }

    /// Adds what the first code means: how many bytes it has.
    fn next(&self, bytes: &[u8], units: &mut Vec<u16>) -> usize {
        let mut code = 0;
        for (byte, length) in bytes.iter().zip(1..=4) {
            code = (code << 8) | u32::from(*byte);
            let is_code = self.spaces.iter().any(|space| is_within((length, code), *space));
            match self.text((length, code)) {
                Some((text, further)) if is_code || self.spaces.is_empty() => {
                    units.extend_from_slice(text);
                    if let Some(last) = units.last_mut() {
                        *last = last.wrapping_add(further);
                    }
                    return length;
                }
                None if is_code => {
                    units.push(UNKNOWN);
                    return length;
                }
                _ => {}
            }
        }
        units.push(UNKNOWN);
        self.step
    }

    /// The text of a code, and what is added to its last unit (the codes of a range mean one letter after the other).
    fn text(&self, code: Code) -> Option<(&[u16], u16)> {
        if let Some(text) = self.chars.get(&code) {
            return Some((text, 0));
        }
        let before = self.ranges.partition_point(|(first, ..)| *first <= code).checked_sub(1)?;
        let ((length, first), last, text) = self.ranges.get(before)?;
        let is_within = *length == code.0 && code.1 <= *last;
        #[expect(clippy::cast_possible_truncation, reason = "letters are counted within 16 bits")]
        is_within.then(|| (&**text, (code.1 - first) as u16))
    }
}

/// What stands for a code without text: U+FFFD.
const UNKNOWN: u16 = 0xfffd;

/// Whether each byte of a code is between those of both ends (section 9.7.5.1).
fn is_within((length, code): Code, ((of, low), high): (Code, u32)) -> bool {
    let bytes = || low.to_be_bytes().into_iter().zip(high.to_be_bytes());
    length == of && code.to_be_bytes().into_iter().zip(bytes()).all(|(byte, (low, high))| (low..=high).contains(&byte))
}

fn span(first: &Object, last: &Object) -> Option<(Code, u32)> {
    let (first, last) = (code(first)?, code(last)?);
    (first.0 == last.0).then_some((first, last.1))
}

fn code(written: &Object) -> Option<Code> {
    let Object::String(bytes, StringFormat::Hexadecimal) = written else { return None };
    let code = bytes.iter().fold(0, |code: u32, byte| (code << 8) | u32::from(*byte));
    (1..=4).contains(&bytes.len()).then_some((bytes.len(), code))
}

fn text(written: &Object) -> Option<Box<[u16]>> {
    let Object::String(bytes, StringFormat::Hexadecimal) = written else { return None };
    let unit = |pair: &[u8]| pair.iter().fold(0, |unit: u16, byte| (unit << 8) | u16::from(*byte));
    (!bytes.is_empty()).then(|| bytes.chunks(2).take(MAX_TARGET).map(unit).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(map: &str, bytes: &[u8]) -> Option<String> {
        let mut out = String::new();
        CMap::parse(map.as_bytes())?.write(bytes, &mut out, 1_000);
        Some(out)
    }

    #[test]
    fn codes_are_told_by_chars_ranges_and_lists() {
        const MAP: &str = "%!PS-Adobe-3.0 Resource-CMap\n/CIDInit /ProcSet findresource begin 12 dict begin begincmap
            /CIDSystemInfo << /Registry (Adobe) /Ordering (UCS) /Supplement 0 >> def /CMapName /Adobe-Identity-UCS def
            1 begincodespacerange <0000> <FFFF> endcodespacerange
            2 beginbfchar <0001> <0041> <0002> <D83DDE00> endbfchar
            3 beginbfrange <0010> <0012> <0061> <0020><0021>[<0078 0079> <007A>] <0030> <0031> <00660066> endbfrange
            endcmap CMapName currentdict /CMap defineresource pop end end";
        let codes = [0, 1, 0, 2, 0, 0x10, 0, 0x12, 0, 0x20, 0, 0x21, 0, 0x31, 0, 0x99];
        assert_eq!(said(MAP, &codes).as_deref(), Some("A\u{1f600}acxyzfg\u{fffd}"));
    }

    #[test]
    fn codes_have_the_length_that_the_map_gives_them() {
        let mixed =
            "2 begincodespacerange <00> <7F> <8000> <FFFF> endcodespacerange 2 beginbfchar <41> <0061> <8141> <0062> endbfchar";
        assert_eq!(said(mixed, b"A\x81AA").as_deref(), Some("aba"));
        let plain = "1 beginbfchar <0041> <0061> endbfchar";
        assert_eq!(said(plain, b"\0A\0B\0A").as_deref(), Some("a\u{fffd}a"));
    }

    #[test]
    fn a_map_without_codes_is_none() {
        for nothing in [
            "",
            "0 beginbfchar endbfchar",
            "beginbfrange <01> <02> (a) endbfrange",
            "1 beginbfchar <0102030405> <0041> endbfchar",
        ] {
            assert_eq!(said(nothing, b"a"), None, "{nothing}");
        }
    }

    #[test]
    fn all_codes_of_four_bytes_are_one_range() {
        let map = CMap::parse(b"1 beginbfrange <00000000> <FFFFFFFF> <0041> endbfrange").unwrap();
        assert_eq!(map.size(), 4);
        let mut out = String::new();
        map.write(&[0, 0, 0, 2, 0xff, 0xff, 0xff, 0xff], &mut out, 1_000);
        assert_eq!(out, "C@");
    }

    #[test]
    fn what_is_written_ends_where_enough_is() {
        let map = CMap::parse(format!("1 beginbfchar <41> <{}> endbfchar", "0042".repeat(5_000)).as_bytes()).unwrap();
        let mut out = String::new();
        map.write(&vec![b'A'; 100_000], &mut out, 1_000);
        assert_eq!(out.len(), 1_024);
    }
}
