//! Texts of descriptions as models are shown them.

/// A text on one line, of at most `most` characters.
pub(super) fn shortened(text: &str, most: usize) -> String {
    let mut line = String::with_capacity(text.len().min(most * 4));
    let mut count = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if count + length + 1 > most {
            let room = most.saturating_sub(count + 1);
            // A single word that is longer than all that there may be is cut within.
            if count == 0 {
                line.extend(word.chars().take(room));
            }
            line.push('…');
            return line;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        count += length + 1;
    }
    line
}

/// A name of letters, digits, `_`, `-` and, where wanted, `.`: what every provider takes. Never empty.
pub(super) fn plain_name(text: &str, keeps_dots: bool, most: usize) -> String {
    let mut name = String::with_capacity(text.len().min(most));
    for letter in text.chars() {
        let is_plain = letter.is_ascii_alphanumeric() || letter == '-' || (keeps_dots && letter == '.');
        if is_plain {
            name.push(letter);
        } else if !name.is_empty() && !name.ends_with('_') {
            name.push('_');
        }
        if name.len() > most {
            break;
        }
    }
    name.truncate(most);
    let name = name.trim_end_matches('_');
    if name.is_empty() { "value".to_owned() } else { name.to_owned() }
}

/// `name`, or with a number after it where it is taken.
pub(super) fn free(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    if !is_taken(name) {
        return name.to_owned();
    }
    let numbered = (2_u32..).map(|number| format!("{name}_{number}"));
    numbered.into_iter().find(|name| !is_taken(name)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_words() {
        assert_eq!(shortened(" one\n two ", 20), "one two");
        assert_eq!(shortened("one two three", 9), "one two…");
        assert_eq!(shortened("abcdefgh", 5), "abcd…");
        assert_eq!(shortened("wört", 5), "wört");
    }

    #[test]
    fn names_are_made_plain_and_kept_apart() {
        let cases =
            [("filter[status]", "filter_status"), ("$filter", "filter"), ("a.b", "a.b"), ("日本", "value"), ("x__y", "x_y")];
        for (given, plain) in cases {
            assert_eq!(plain_name(given, true, 64), plain);
        }
        assert_eq!(plain_name("a.b", false, 64), "a_b");
        assert_eq!(free("a", |name| name == "a" || name == "a_2"), "a_3");
    }
}
