//! JSON text into a buffer, and values out of a text.

use serde::Serialize;
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
