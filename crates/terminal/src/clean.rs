//! Text of models and tools on a terminal: nothing in it may drive the terminal or hide what is asked.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Text of several lines with its control characters and what changes the direction of writing made visible; line breaks and tabs
/// stay, carriage returns go.
///
/// Works on any piece of a text, so that a stream can be cleaned as it comes.
pub fn clean_text(text: &str) -> Cow<'_, str> {
    clean(text, |letter| matches!(letter, '\n' | '\t') || !letter.is_control() && !changes_direction(letter))
}

/// Text on one line: line breaks and tabs are made visible too, and so is what changes the direction of writing, since it
/// can make a call look like another.
pub fn clean_line(text: &str) -> Cow<'_, str> {
    clean(text, stays_on_a_line)
}

/// JSON on one line, to be changed there: what must not stand in a line of a terminal is written as JSON writes it (RFC 8259, section 7),
/// which says the same; outside of texts there are line breaks and tabs alone, which say nothing.
pub(crate) fn clean_json(json: &str) -> String {
    clean_json_lines(&json.replace(['\r', '\n', '\t'], " "))
}

/// The same JSON over several lines, whose line breaks stay.
pub fn clean_json_lines(json: &str) -> String {
    let mut cleaned = String::with_capacity(json.len());
    for letter in json.chars() {
        match letter {
            '\n' => cleaned.push(letter),
            _ if stays_on_a_line(letter) => cleaned.push(letter),
            _ => {
                let _ = write!(cleaned, "\\u{:04x}", u32::from(letter));
            }
        }
    }
    cleaned
}

fn stays_on_a_line(letter: char) -> bool {
    !letter.is_control() && !changes_direction(letter) && !matches!(letter, '\u{2028}' | '\u{2029}')
}

fn changes_direction(letter: char) -> bool {
    matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn clean(text: &str, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    if text.chars().all(&stays) {
        return Cow::Borrowed(text);
    }
    let mut cleaned = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        match letter {
            _ if stays(letter) => cleaned.push(letter),
            '\r' => {}
            '\n' => cleaned.push_str("\\n"),
            '\t' => cleaned.push_str("\\t"),
            // The picture of the control character, such as ␛.
            '\0'..='\x1f' => cleaned.push(char::from_u32(0x2400 + u32::from(letter)).unwrap_or('\u{fffd}')),
            '\x7f' => cleaned.push('\u{2421}'),
            _ => cleaned.extend(letter.escape_unicode()),
        }
    }
    Cow::Owned(cleaned)
}

#[cfg(test)]
mod tests {
    use super::{clean_json, clean_json_lines, clean_line, clean_text};

    #[test]
    fn control_characters_become_visible_and_lines_stay() {
        assert_eq!(clean_text("a\x1b[2Jb\r\n\tc\u{9b}1m\x07"), "a␛[2Jb\n\tc\\u{9b}1m␇");
        assert_eq!(clean_text("a\n\u{202e}b"), "a\n\\u{202e}b");
    }

    #[test]
    fn json_stays_the_same_json() {
        let json = "{\r\n\t\"a\": \"\u{9b}1m\u{7f}\u{202e}b\\n\u{e9}\"}";
        let cleaned = clean_json(json);
        assert_eq!(cleaned, "{   \"a\": \"\\u009b1m\\u007f\\u202eb\\n\u{e9}\"}");
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(read(&cleaned), read(json));
        let lines = clean_json_lines("{\n  \"a\": \"\u{9b}1m\u{202e}b\"\n}");
        assert_eq!(lines, "{\n  \"a\": \"\\u009b1m\\u202eb\"\n}");
    }

    #[test]
    fn one_line_stays_one_line_and_keeps_its_direction() {
        assert_eq!(clean_line("rm\n\u{202e}txt.exe"), "rm\\n\\u{202e}txt.exe");
    }
}
