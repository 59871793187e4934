//! What values take in memory: a list may be short and heavy.

use serde_json::Value;

/// The most that the entries of one list of one server may take in memory, as they came.
pub(crate) const MAX_LIST_BYTES: usize = 32 << 20;

/// What an entry of an object takes besides its key and its value.
const ENTRY_BYTES: usize = 48;

/// About as many bytes as a value takes.
pub(crate) fn weight(value: &Value) -> usize {
    let own = size_of::<Value>();
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => own,
        Value::String(text) => own + text.len(),
        Value::Array(items) => own + items.iter().map(weight).sum::<usize>(),
        Value::Object(members) => {
            own + members.iter().map(|(key, value)| ENTRY_BYTES + key.len() + weight(value)).sum::<usize>()
        }
    }
}
