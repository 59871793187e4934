//! An event of a streamed response as bytes.

use serde_json::{Value, json};

use crate::openai::chunk::json as write_json;

/// Writes an event with this number and these fields.
pub(super) fn write_event(out: &mut Vec<u8>, kind: &str, number: u64, fields: &Value) {
    let mut event = json!({"type": kind, "sequence_number": number});
    if let (Value::Object(event), Value::Object(fields)) = (&mut event, fields) {
        event.extend(fields.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\ndata: ");
    write_json(out, &event);
    out.extend_from_slice(b"\n\n");
}
