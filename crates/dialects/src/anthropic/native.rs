//! The provider's own blocks on their way back.

use std::borrow::Cow;

use serde::Deserialize;

use crate::lenient::Text;

/// What a block of the provider's is, where it has to be known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Native<'a> {
    /// A thought, readable or not.
    Thought,
    /// The use of a tool that the provider runs, by its id.
    Use(Cow<'a, str>),
    /// The result of such a use, by the use's id.
    Result(Cow<'a, str>),
    /// Anything else.
    Other,
}

/// What the block in `raw` is; `None` where it is none.
pub(super) fn read(raw: &str) -> Option<Native<'_>> {
    #[derive(Deserialize)]
    struct Block<'a> {
        #[serde(borrow, rename = "type")]
        kind: Text<'a>,
        #[serde(borrow, default)]
        id: Text<'a>,
        #[serde(borrow, default)]
        tool_use_id: Text<'a>,
    }
    let block: Block<'_> = serde_json::from_str(raw).ok().filter(|_| raw.starts_with('{'))?;
    Some(match block.kind.any()? {
        "thinking" | "redacted_thinking" => Native::Thought,
        "server_tool_use" | "mcp_tool_use" => Native::Use(block.id.filled().unwrap_or_default()),
        _ => block.tool_use_id.filled().map_or(Native::Other, Native::Result),
    })
}

/// Takes the white space away that the text ends with whose block `out` ends with: the provider takes none at the end of an
/// answer that it is to go on with.
pub(super) fn trim_text_block(out: &mut Vec<u8>) {
    if !out.ends_with(b"\"}") {
        return;
    }
    out.truncate(out.len() - 2);
    loop {
        let shorter = match out.as_slice() {
            [rest @ .., b' '] => rest.len(),
            // An escape, unless its backslash is escaped itself.
            [rest @ .., b'\\', b'n' | b'r' | b't'] if rest.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 0 => {
                rest.len()
            }
            _ => break,
        };
        out.truncate(shorter);
    }
    out.extend_from_slice(b"\"}");
}
