//! Events of a stream that differ in one text alone.
//!
//! A model's words come in hundreds of events that are the same to the byte but for those words. Once one was read, the next
//! needs no reading: what stands between the same beginning and the same end is the text. *Not here:* what an event means; who
//! read one says whether its text was all that it had to say.

/// What the newest event of that kind was, around its text.
#[derive(Debug, Default)]
pub(crate) struct Alike {
    /// Through the quotation mark that opens the text; empty while there was none.
    before: String,
    /// From the quotation mark that closes it.
    after: String,
}

impl Alike {
    /// The text of an event that is like the remembered one: a text without escapes, so that it is the string's value.
    pub(crate) fn text<'a>(&self, event: &'a str) -> Option<&'a str> {
        if self.before.is_empty() {
            return None;
        }
        event.strip_prefix(self.before.as_str())?.strip_suffix(self.after.as_str()).filter(|text| is_plain(text))
    }

    /// Remembers an event of which `text`, a part of it, was all that it said. A text that stands elsewhere, since it had
    /// escapes, is not remembered.
    pub(crate) fn remember(&mut self, event: &str, text: &str) {
        let Some(start) = (text.as_ptr() as usize).checked_sub(event.as_ptr() as usize) else { return };
        let Some((before, rest)) = event.split_at_checked(start) else { return };
        let Some((own, after)) = rest.split_at_checked(text.len()) else { return };
        if own == text && before.ends_with('"') && after.starts_with('"') && is_plain(text) {
            before.clone_into(&mut self.before);
            after.clone_into(&mut self.after);
        }
    }
}

/// Whether a text stands in JSON as it is.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT: &str = r#"{"a":1,"text":"one","b":null}"#;

    fn remembered() -> Alike {
        let mut alike = Alike::default();
        let start = EVENT.find("one").unwrap();
        alike.remember(EVENT, EVENT.get(start..start + 3).unwrap());
        alike
    }

    #[test]
    fn the_text_of_an_event_that_differs_in_nothing_else_is_found() {
        let alike = remembered();
        assert_eq!(alike.text(EVENT), Some("one"));
        assert_eq!(alike.text(r#"{"a":1,"text":"zwei, drei ß","b":null}"#), Some("zwei, drei ß"));
        assert_eq!(alike.text(r#"{"a":1,"text":"","b":null}"#), Some(""));
    }

    #[test]
    fn an_event_that_differs_elsewhere_is_not_taken_for_one() {
        let alike = remembered();
        for event in [
            r#"{"a":2,"text":"one","b":null}"#,
            r#"{"a":1,"text":"one","b":1}"#,
            r#"{"a":1,"text":"one","b":null} "#,
            // Its text ends before that of the other began to end.
            r#"{"a":1,"text":"one","text":"two","b":null}"#,
            r#"{"a":1,"text":"a\nb","b":null}"#,
            r#"{"a":1,"text":"a\","b":null}"#,
            "{\"a\":1,\"text\":\"a\nb\",\"b\":null}",
            r#"{"a":1,"text":"","b":null"#,
            "",
        ] {
            assert_eq!(alike.text(event), None, "{event}");
        }
        assert_eq!(Alike::default().text(EVENT), None);
    }

    #[test]
    fn a_text_that_had_escapes_is_not_remembered() {
        let mut alike = Alike::default();
        alike.remember(EVENT, "one");
        assert_eq!(alike.text(EVENT), None, "it stands elsewhere");
        let escaped = r#"{"text":"a\\b"}"#;
        alike.remember(escaped, escaped.get(9..13).unwrap());
        assert_eq!(alike.text(escaped), None);
    }
}
