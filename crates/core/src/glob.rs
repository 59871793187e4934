//! Globs over text. Those of `globset` are over bytes: in them `?` and a class stand for a piece of a letter outside ASCII.

use globset::GlobBuilder;
use regex::{Regex, RegexBuilder};

/// A glob, ready for use: `?` and a class stand for one letter, whichever it is.
#[derive(Debug, Clone)]
pub struct Glob {
    text: String,
    regex: Regex,
}

impl Glob {
    /// The glob as it is set up.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(glob: &GlobBuilder<'_>) -> Result<Self, String> {
        let glob = glob.build().map_err(|error| error.kind().to_string())?;
        let expression = over_letters(glob.regex()).ok_or("it cannot be matched with letters")?;
        let built = RegexBuilder::new(&expression).dot_matches_new_line(true).build();
        let regex = built.map_err(|error| error.to_string())?;
        Ok(Self { text: glob.glob().to_owned(), regex })
    }

    /// The glob as a text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a text fits as a whole.
    pub fn is_match(&self, text: impl AsRef<str>) -> bool {
        self.regex.is_match(text.as_ref())
    }
}

/// The regular expression of a glob, over letters. It is made over bytes, with each byte of a letter outside ASCII as `\xNN`, which
/// nothing else in it is.
fn over_letters(over_bytes: &str) -> Option<String> {
    let mut rest = over_bytes.strip_prefix("(?-u)")?;
    let mut letters = String::with_capacity(rest.len());
    while !rest.is_empty() {
        let mut bytes = Vec::new();
        while let Some((byte, after)) = rest.strip_prefix("\\x").and_then(|hex| hex.split_at_checked(2)) {
            bytes.push(u8::from_str_radix(byte, 16).ok()?);
            rest = after;
        }
        letters.push_str(str::from_utf8(&bytes).ok()?);
        // What is escaped belongs together: the `x` behind an escaped `\` says nothing about bytes.
        let length = rest.chars().take(if rest.starts_with('\\') { 2 } else { 1 }).map(char::len_utf8).sum();
        let (one, after) = rest.split_at_checked(length)?;
        letters.push_str(one);
        rest = after;
    }
    Some(letters)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn glob(text: &str) -> Glob {
        Glob::new(GlobBuilder::new(text).literal_separator(true)).unwrap()
    }

    fn wrong<'a>(glob: &Glob, wanted: bool, texts: Vec<&'a str>) -> Option<&'a str> {
        texts.into_iter().find(|text| glob.is_match(text) != wanted)
    }

    #[test]
    fn one_letter_is_one_letter_whichever_it_is() {
        for (text, fits, others) in [
            ("?", vec!["a", "ä", "日", "🙂", "\n"], vec!["", "ab", "äö", "/"]),
            ("??", vec!["ab", "äb", "日本"], vec!["ä", "a", "日"]),
            ("[ä]x", vec!["äx"], vec!["ax", "ãx", "x"]),
            ("[äö日]", vec!["ä", "ö", "日"], vec!["ü", "Ã", "¤"]),
            ("[а-я]*", vec!["привет", "я"], vec!["hello", "Я"]),
            ("[!a]x", vec!["bx", "äx", "日x"], vec!["ax", "ääx"]),
            ("[!ä]x", vec!["ax", "öx", "Ãx"], vec!["äx"]),
            ("{ä,ö?}", vec!["ä", "öü"], vec!["ö", "ü"]),
            ("é*é", vec!["éé", "été"], vec!["é/é", "ee"]),
            ("**/kunde-?/**", vec!["/data/kunde-ä/x"], vec!["/data/kunde-äö/x"]),
            (r"\\x41", vec![r"\x41"], vec!["A"]),
            (r"\\xc3\\xa4", vec![r"\xc3\xa4"], vec!["ä"]),
            (r"\ä\\é", vec![r"ä\é"], vec!["äé"]),
            ("[\\\\ä]", vec!["\\", "ä"], vec!["x"]),
            ("x41.#+ &~-^$|()", vec!["x41.#+ &~-^$|()"], vec!["A"]),
        ] {
            let glob = glob(text);
            assert_eq!((wrong(&glob, true, fits), wrong(&glob, false, others)), (None, None), "{text} is {}", glob.regex);
        }
    }

    #[test]
    fn letters_in_either_case_are_the_same_where_that_is_asked() {
        let glob = Glob::new(GlobBuilder::new("ÄRGER-[ö]?").case_insensitive(true)).unwrap();
        assert!(glob.is_match("ärger-Öß") && !glob.is_match("arger-öß"));
    }

    #[test]
    fn what_is_no_glob_is_told() {
        let error = |text: &str| Glob::new(&GlobBuilder::new(text)).unwrap_err();
        assert_eq!(error("["), "unclosed character class; missing ']'");
        assert_eq!(error("[я-а]"), "invalid range; 'я' > 'а'");
    }

    #[test]
    fn a_long_glob_of_wildcards_is_one() {
        let long = "?".repeat(4_096);
        assert!(glob(&long).is_match("ä".repeat(4_096)) && !glob(&long).is_match("ä".repeat(4_095)));
    }
}
