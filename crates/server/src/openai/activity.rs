//! How an answer shows what tools do on our side, where the format has no place for it.

use std::fmt::Write;

use turnwright_core::ToolDefinition;

use crate::html::escaped;

/// How it is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolActivity {
    /// Not in what clients show: only in a field that they do not know.
    #[default]
    Hidden,
    /// A line when a call begins and one when it ends, as what the model thinks.
    Reasoning,
    /// The same lines in the text.
    Content,
    /// Blocks in the text that Open WebUI shows as tool calls.
    Details,
}

impl ToolActivity {
    /// The mode with this name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "hidden" => Some(Self::Hidden),
            "reasoning" => Some(Self::Reasoning),
            "content" => Some(Self::Content),
            "details" => Some(Self::Details),
            _ => None,
        }
    }
}

/// The most characters of arguments in a line.
const MAX_ARGUMENTS: usize = 200;

/// The line at the begin of a call.
pub(crate) fn begin_line(tool: Option<&ToolDefinition>, name: &str, arguments: &str) -> String {
    let mut shown: String = arguments.chars().take(MAX_ARGUMENTS).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if arguments.chars().nth(MAX_ARGUMENTS).is_some() {
        shown.push('…');
    }
    format!("\n{} {shown}\n", title(tool, name))
}

/// The line at its end.
pub(crate) fn end_line(tool: Option<&ToolDefinition>, name: &str, outcome: &str, duration_ms: Option<u64>) -> String {
    let came_to = if outcome == "success" { "done" } else { outcome };
    let duration = duration_ms.map(|ms| format!(", {ms} ms")).unwrap_or_default();
    format!("\n{}: {came_to}{duration}\n", title(tool, name))
}

fn title(tool: Option<&ToolDefinition>, name: &str) -> String {
    tool.map_or_else(|| name.to_owned(), |tool| format!("[{}] {}", tool.source, tool.tool))
}

/// The block of a call that ended.
pub(crate) fn details(id: &str, name: &str, arguments: &str, result: &str) -> String {
    let mut block = String::new();
    // Writing to memory does not fail.
    let _ = write!(
        block,
        "\n<details type=\"tool_calls\" done=\"true\" id=\"{}\" name=\"{}\" arguments=\"{}\">\n<summary>Tool Executed</summary>\n{}\n</details>\n",
        escaped(id),
        escaped(name),
        escaped(arguments),
        escaped(result),
    );
    block
}
