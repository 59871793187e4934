//! Whether a call failed, in words: OpenAI's messages have no other place for it where a conversation moves in them.

/// Begins the text of a call that failed.
const FAILED: &str = "ERROR (this call failed): ";
/// Begins the text of one that worked, where its own words begin like a mark.
const WORKED: &str = "OK (this call worked): ";

/// Marks a result's text, so that [`taken_off`] tells the same of it again. A text that says by itself that it is an error stays as it
/// is.
pub(crate) fn put_on(text: &mut String, is_error: bool) {
    if is_error {
        text.insert_str(0, FAILED);
    } else if taken_off(text).is_some() {
        text.insert_str(0, WORKED);
    }
}

/// The text without its mark, and whether that says that the call failed; `None` where it has none.
pub(crate) fn taken_off(text: &str) -> Option<(&str, bool)> {
    let failed = text.strip_prefix(FAILED).map(|rest| (rest, true));
    failed.or_else(|| Some((text.strip_prefix(WORKED)?, false)))
}
