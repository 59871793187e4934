//! Tool calls in one line each.

use turnwright_core::{ContentBlock, text_of};

use crate::clean::clean_line;
use crate::look::{Look, Paint};

/// The most characters of arguments in a line.
const MAX_ARGUMENTS: usize = 90;
/// The most characters of a failure's text in a line.
const MAX_REASON: usize = 160;

/// What is remembered of a call to tell about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) arguments: String,
}

impl Call {
    /// `filesystem__read {"path":"README.md"}`.
    fn with_arguments(&self, look: Look) -> String {
        let arguments = short(&compact(&self.arguments), MAX_ARGUMENTS);
        let name = look.paint(Paint::Strong, &clean_line(&self.name));
        if arguments.is_empty() || arguments == "{}" { name } else { format!("{name} {arguments}") }
    }
}

/// The line of a call that begins.
pub(crate) fn started(call: &Call, look: Look) -> String {
    format!("{} {}", look.paint(Paint::Quiet, "→"), call.with_arguments(look))
}

/// The line of a call that says how far it is.
pub(crate) fn progressed(call: &Call, progress: f64, total: Option<f64>, message: Option<&str>, look: Look) -> String {
    let done = match total {
        Some(total) => format!("{progress} of {total}"),
        None => progress.to_string(),
    };
    let message = message.map(|message| format!(" {}", short(message, MAX_REASON))).unwrap_or_default();
    look.paint(Paint::Quiet, &format!("… {} {done}{message}", clean_line(&call.name)))
}

/// How a call ended.
pub(crate) struct Finished<'a> {
    pub(crate) outcome: &'a str,
    pub(crate) is_error: bool,
    pub(crate) content: &'a [ContentBlock],
    pub(crate) duration_ms: Option<u64>,
}

/// The line of a call that ended; with its arguments where the name alone does not say which call it is.
pub(crate) fn finished(call: &Call, end: &Finished<'_>, needs_arguments: bool, look: Look) -> String {
    let name = if needs_arguments { call.with_arguments(look) } else { look.paint(Paint::Strong, &clean_line(&call.name)) };
    let duration = end.duration_ms.map(|duration_ms| format!(" ({})", duration(duration_ms))).unwrap_or_default();
    if !end.is_error {
        return format!("{} {name}{}", look.paint(Paint::Good, "✓"), look.paint(Paint::Quiet, &duration));
    }
    let outcome = if end.outcome == "success" { "failed".to_owned() } else { end.outcome.replace('_', " ") };
    let text = text_of(end.content);
    let reason = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let reason = if reason.is_empty() { String::new() } else { format!(": {}", short(reason, MAX_REASON)) };
    format!("{} {name} {outcome}{}{reason}", look.paint(Paint::Bad, "✗"), look.paint(Paint::Quiet, &duration))
}

fn duration(duration_ms: u64) -> String {
    if duration_ms < 1_000 {
        format!("{duration_ms} ms")
    } else {
        format!("{}.{} s", duration_ms / 1_000, duration_ms % 1_000 / 100)
    }
}

/// Arguments for one line: JSON without the line breaks and spaces that some models write; anything else as it is.
pub fn compact(arguments: &str) -> std::borrow::Cow<'_, str> {
    if !arguments.contains('\n') {
        return arguments.into();
    }
    serde_json::from_str::<serde_json::Value>(arguments).map_or_else(|_| arguments.into(), |value| value.to_string().into())
}

/// The beginning of a text on one line.
pub(crate) fn short(text: &str, most: usize) -> String {
    let text = text.trim();
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", clean_line(text.get(..end).unwrap_or_default())),
        None => clean_line(text).into_owned(),
    }
}
