//! JSON text into a buffer.

use serde::Serialize;

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
