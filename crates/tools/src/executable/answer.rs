//! What a program printed, as a result.

use serde_json::Value;
use turnwright_core::ContentBlock;
use turnwright_engine::source::{ToolError, ToolOutput};

use crate::error::failed;

/// The most characters of an answer that is none that are shown.
const MOST_SHOWN_CHARACTERS: usize = 200;

/// The one JSON value that was printed.
pub(super) fn read(printed: &[u8]) -> Result<Value, ToolError> {
    serde_json::from_slice(printed).map_err(|error| {
        let text = String::from_utf8_lossy(printed);
        let text = text.trim();
        if text.is_empty() {
            return failed("the tool's program ended well and printed nothing; it must print one JSON value");
        }
        let shown: String = text.chars().take(MOST_SHOWN_CHARACTERS).collect();
        let cut = if text.chars().nth(MOST_SHOWN_CHARACTERS).is_some() { "…" } else { "" };
        failed(format!("the tool's program printed what is not one JSON value ({error}): {shown}{cut}"))
    })
}

/// A text is given as it is, all else as JSON.
pub(super) fn output(value: Value) -> ToolOutput {
    match value {
        Value::String(text) => ToolOutput { content: vec![ContentBlock::text(text)], ..ToolOutput::default() },
        value @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            ToolOutput::json(value)
        }
    }
}
