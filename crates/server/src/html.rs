//! Text that goes into HTML.

/// `text` with what would be markup, or end an attribute, written out.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
