//! Long texts of others made short for people. The journal and the API have the whole.

use std::borrow::Cow;

/// How many characters are shown from the beginning.
const BEGINNING: usize = 300;
/// How many from the end, where that says what comes of it.
const END: usize = 150;

/// The first 300 characters of a text, with `…` where there are more.
pub fn beginning(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(BEGINNING) {
        Some((end, _)) => Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default())),
        None => Cow::Borrowed(text),
    }
}

/// The beginning and the end of a long text.
pub(crate) fn both_ends(text: &str) -> Cow<'_, str> {
    let count = text.chars().count();
    if count <= BEGINNING + END {
        return Cow::Borrowed(text);
    }
    let end: String = text.chars().skip(count - END).collect();
    Cow::Owned(format!("{}{end}", beginning(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_its_beginning_and_where_it_matters_its_end() {
        let long = format!("begin{}end", "é".repeat(4_000));
        assert_eq!(beginning(&long), format!("begin{}…", "é".repeat(295)));
        assert_eq!(both_ends(&long), format!("begin{}…{}end", "é".repeat(295), "é".repeat(147)));
        let short = "é".repeat(300);
        assert_eq!((beginning(&short), both_ends(&short)), (Cow::Borrowed(&*short), Cow::Borrowed(&*short)));
    }
}
