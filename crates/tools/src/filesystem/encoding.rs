//! Which characters bytes stand for. Pure.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

/// How many bytes of a file decide about its encoding.
pub(super) const MOST_LOOKED_AT: usize = 64 * 1024;

const UTF_8_MARK: &[u8] = &[0xef, 0xbb, 0xbf];

/// How a text is written in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) encoding: &'static Encoding,
    /// Whether it begins with a byte order mark.
    pub(super) has_mark: bool,
}

/// Why bytes are no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binary {
    ZeroBytes,
    ControlBytes,
}

impl Binary {
    pub(crate) fn why(self) -> &'static str {
        match self {
            Self::ZeroBytes => "it holds zero bytes",
            Self::ControlBytes => "it holds many control bytes",
        }
    }
}

impl Form {
    pub(super) const PLAIN: Self = Self { encoding: UTF_8, has_mark: false };

    /// What is told of it where it is not plain UTF-8.
    pub(super) fn note(self) -> Option<String> {
        (self.encoding != UTF_8).then(|| format!("[read as {}]", self.encoding.name()))
    }
}

/// The form of a text that begins with `head`; more may follow.
pub(crate) fn form_of(head: &[u8]) -> Result<Form, Binary> {
    let head = head.get(..MOST_LOOKED_AT).unwrap_or(head);
    let marked = |encoding| Ok(Form { encoding, has_mark: true });
    let plain = |encoding| Ok(Form { encoding, has_mark: false });
    match head {
        [0xef, 0xbb, 0xbf, ..] => return marked(UTF_8),
        [0xff, 0xfe, 0, 0, ..] => return Err(Binary::ZeroBytes),
        [0xff, 0xfe, ..] => return marked(UTF_16LE),
        [0xfe, 0xff, ..] => return marked(UTF_16BE),
        _ => {}
    }
    if head.contains(&0) {
        // Most letters of most texts have a zero in their upper half.
        let zeros = |odd: usize| head.iter().skip(odd).step_by(2).filter(|byte| **byte == 0).count();
        let (even, odd, half) = (zeros(0), zeros(1), head.len() / 2);
        return match (even * 20 < half, odd * 20 < half, even * 10 > half * 6, odd * 10 > half * 6) {
            (true, _, _, true) if half > 1 => plain(UTF_16LE),
            (_, true, true, _) if half > 1 => plain(UTF_16BE),
            _ => Err(Binary::ZeroBytes),
        };
    }
    if std::str::from_utf8(head).is_ok_and(|_| true) || is_cut_utf8(head) {
        return plain(UTF_8);
    }
    let controls = head.iter().filter(|byte| matches!(**byte, 1..=7 | 0x0e..=0x1a | 0x1c..=0x1f | 0x7f)).count();
    if controls * 50 > head.len() {
        return Err(Binary::ControlBytes);
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(head, head.len() < MOST_LOOKED_AT);
    plain(detector.guess(None, Utf8Detection::Deny))
}

/// Whether only the end of the bytes that are looked at, where a character may be cut, is not UTF-8.
fn is_cut_utf8(head: &[u8]) -> bool {
    head.len() >= MOST_LOOKED_AT && std::str::from_utf8(head).is_err_and(|error| error.error_len().is_none())
}

/// The whole text, without its mark. What stands for no character is `None` of it.
pub(super) fn decode(form: Form, bytes: &[u8]) -> Option<Cow<'_, str>> {
    let bytes = without_mark(form, bytes);
    form.encoding.decode_without_bom_handling_and_without_replacement(bytes)
}

/// The same with `�` for what stands for no character; says whether there was any.
pub(crate) fn decode_all(form: Form, bytes: Vec<u8>) -> (String, bool) {
    if form == Form::PLAIN {
        return match String::from_utf8(bytes) {
            Ok(text) => (text, false),
            Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), true),
        };
    }
    let (text, is_broken) = form.encoding.decode_without_bom_handling(without_mark(form, &bytes));
    (text.into_owned(), is_broken)
}

fn without_mark(form: Form, bytes: &[u8]) -> &[u8] {
    if !form.has_mark {
        return bytes;
    }
    bytes
        .strip_prefix(UTF_8_MARK)
        .or_else(|| bytes.strip_prefix(&[0xff, 0xfe]))
        .or_else(|| bytes.strip_prefix(&[0xfe, 0xff]))
        .unwrap_or(bytes)
}

/// The bytes of a text in this form, or the first character that it has none for.
pub(super) fn encode(form: Form, text: &str) -> Result<Vec<u8>, char> {
    let mark: &[u8] = match (form.has_mark, form.encoding) {
        (false, _) => &[],
        (true, encoding) if encoding == UTF_16LE => &[0xff, 0xfe],
        (true, encoding) if encoding == UTF_16BE => &[0xfe, 0xff],
        (true, _) => UTF_8_MARK,
    };
    let mut bytes = Vec::with_capacity(mark.len() + text.len());
    bytes.extend_from_slice(mark);
    if form.encoding == UTF_16LE {
        bytes.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
    } else if form.encoding == UTF_16BE {
        bytes.extend(text.encode_utf16().flat_map(u16::to_be_bytes));
    } else if form.encoding == UTF_8 {
        bytes.extend_from_slice(text.as_bytes());
    } else {
        let (encoded, _, is_broken) = form.encoding.encode(text);
        if is_broken {
            let has_none = |letter: &char| form.encoding.encode(letter.encode_utf8(&mut [0; 4])).2;
            return Err(text.chars().find(has_none).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        bytes.extend_from_slice(&encoded);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::{Binary, decode, encode, form_of};

    #[test]
    fn texts_are_known_by_their_bytes_and_come_back_as_they_were() {
        let utf_16: Vec<u8> = "héllo world".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let utf_16_be: Vec<u8> = "héllo world".encode_utf16().flat_map(u16::to_be_bytes).collect();
        let marked = [&[0xff, 0xfe][..], &utf_16].concat();
        let japanese: &[u8] = b"\x82\xb1\x82\xf1\x82\xc9\x82\xbf\x82\xcd\x90\xa2\x8a\x45\x81\x42\x93\xfa\x96\x7b\x8c\xea";
        let cases: [(&[u8], &str, &str); 7] = [
            (b"plain", "UTF-8", "plain"),
            (b"\xef\xbb\xbfmarked", "UTF-8", "marked"),
            (&utf_16, "UTF-16LE", "héllo world"),
            (&utf_16_be, "UTF-16BE", "héllo world"),
            (&marked, "UTF-16LE", "héllo world"),
            (b"caf\xe9 au lait", "windows-1252", "café au lait"),
            (japanese, "Shift_JIS", "こんにちは世界。日本語"),
        ];
        for (bytes, name, text) in cases {
            let form = form_of(bytes).unwrap();
            assert_eq!((form.encoding.name(), decode(form, bytes).as_deref()), (name, Some(text)));
            assert_eq!(encode(form, text).as_deref(), Ok(bytes), "{name}");
        }
    }

    #[test]
    fn what_is_no_text_says_why() {
        assert_eq!(form_of(b"PK\x00\x01"), Err(Binary::ZeroBytes));
        assert_eq!(form_of(b"\xff\xfe\x00\x00a\x00\x00\x00"), Err(Binary::ZeroBytes));
        assert_eq!(form_of(&[0x01, 0x02, 0xff, 0x03, 0x04]), Err(Binary::ControlBytes));
    }

    #[test]
    fn a_character_that_an_encoding_has_not_is_named() {
        let form = form_of(b"caf\xe9 au lait").unwrap();
        assert_eq!(encode(form, "caf\u{e9} \u{4e16}"), Err('\u{4e16}'));
    }
}
