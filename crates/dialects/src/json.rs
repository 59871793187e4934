//! JSON text into a buffer, values out of a text, and texts that are nearly JSON.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// Writes `value` at the end of `out`. Nothing that a request is made of can fail to be JSON.
pub(crate) fn write(value: &(impl Serialize + ?Sized), out: &mut Vec<u8>) {
    let before = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(before);
        out.extend_from_slice(b"null");
    }
}

/// Writes `,"name":value`.
pub(crate) fn write_member(name: &'static str, value: &(impl Serialize + ?Sized), out: &mut Vec<u8>) {
    out.push(b',');
    write(name, out);
    out.push(b':');
    write(value, out);
}

/// Writes the members of `rest`, an object, and the brace that ends the object which `out` is in.
pub(crate) fn write_rest(rest: &impl Serialize, out: &mut Vec<u8>) {
    let start = out.len();
    write(rest, out);
    out.remove(start);
}

/// The object in a JSON text that is a string which holds one.
pub(crate) fn wrapped(arguments: &str) -> Option<String> {
    if !arguments.trim_start().starts_with('"') {
        return None;
    }
    serde_json::from_str::<String>(arguments).ok().filter(|inner| inner.trim_start().starts_with('{') && is_json(inner))
}

/// Whether a text is JSON.
pub(crate) fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// The text with U+FFFD in place of each escape that is half of a surrogate pair, which servers and products write where they
/// cut a text; `None` where there is none. For texts that could not be read.
pub(crate) fn mended(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at_checked(at)?;
        let (taken, is_lone) = match (unit(escape), escape.get(6..).and_then(unit)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => (12, false),
            (Some(0xD800..=0xDFFF), _) => (6, true),
            (Some(_), _) => (6, false),
            (None, _) => (1 + escape.chars().nth(1).map_or(0, char::len_utf8), false),
        };
        let (escape, after) = escape.split_at_checked(taken)?;
        out.push_str(before);
        out.push_str(if is_lone { "\\ufffd" } else { escape });
        rest = after;
    }
    out.push_str(rest);
    (out != text).then_some(out)
}

/// The value that `text` is, mended where it has to be.
pub(crate) fn value(text: &str) -> serde_json::Result<Value> {
    serde_json::from_str(text).or_else(|error| mended(text).map_or(Err(error), |text| serde_json::from_str(&text)))
}

/// The code unit of the escape that `text` begins with, where it is one of four digits.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    if digits.bytes().all(|digit| digit.is_ascii_hexdigit()) { u16::from_str_radix(digits, 16).ok() } else { None }
}

/// The values that stand one after another in `text`, bare or in a list. A list that was cut gives what came of it and then
/// an error.
pub(crate) fn values(text: &str) -> Values<'_> {
    let text = text.trim();
    Values { rest: text.strip_prefix('[').unwrap_or(text) }
}

/// See [`values`].
#[derive(Debug)]
pub(crate) struct Values<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Values<'a> {
    type Item = Result<&'a RawValue, serde_json::Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest.trim_start_matches(|c: char| c == ',' || c.is_whitespace());
        if rest.is_empty() || rest.starts_with(']') {
            return None;
        }
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<&RawValue>();
        let value = values.next();
        let after = if matches!(value, Some(Ok(_))) { values.byte_offset() } else { rest.len() };
        self.rest = rest.get(after..).unwrap_or_default();
        value
    }
}

#[cfg(test)]
mod tests {
    use super::mended;

    #[test]
    fn half_a_surrogate_pair_is_replaced_and_all_else_stays() {
        for (text, expected) in [
            (r#""a\ud83d b""#, Some(r#""a\ufffd b""#)),
            (r#""\uDC00\uD83D\uDE00\ud83d""#, Some(r#""\ufffd\uD83D\uDE00\ufffd""#)),
            (r#""\ud83d\n\ud83d\ud83d\ude00""#, Some(r#""\ufffd\n\ufffd\ud83d\ude00""#)),
            (r#""\\ud83d \u00e9 \uD83D\uDE00""#, None),
            (r#""\ud83"#, None),
            ("\"\\\u{e9}\\", None),
        ] {
            assert_eq!(mended(text).as_deref(), expected, "{text}");
        }
    }
}
