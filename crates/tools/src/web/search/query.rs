//! Whether a query can be asked. Pure.

use turnwright_engine::source::ToolError;

use crate::error::invalid;

/// A query has fewer characters.
const CHARS: usize = 500;

/// The query without white space around it.
pub(super) fn checked(query: &str) -> Result<&str, ToolError> {
    let query = query.trim();
    let count = query.chars().count();
    if count == 0 {
        return Err(invalid("the query is empty; say what to look for"));
    }
    if count >= CHARS {
        return Err(invalid(format!("the query has {count} characters; it must have fewer than {CHARS}")));
    }
    if let Some(letter) = query.chars().find(|letter| is_unsaid(*letter)) {
        let text =
            format!("the query holds the character U+{:04X}, which cannot be searched for; leave it out", u32::from(letter));
        return Err(invalid(text));
    }
    if !query.chars().any(char::is_alphanumeric) {
        return Err(invalid("the query has no letter and no digit; say what to look for in words"));
    }
    Ok(query)
}

/// Characters that say nothing: controls, marks of direction, what is no character, what stands for one that was lost.
fn is_unsaid(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fdd0}'..='\u{fdef}' | '\u{fff9}'..='\u{ffff}')
        || u32::from(letter) & 0xfffe == 0xfffe
}

#[cfg(test)]
mod tests {
    use super::checked;

    #[test]
    fn a_query_is_some_words_of_fewer_than_500_characters() {
        let long = "ä".repeat(500);
        let longest = "ä".repeat(499);
        let cases = [
            ("  rust async programming ", Ok("rust async programming")),
            ("Ошибка в C++ – что делать?", Ok("Ошибка в C++ – что делать?")),
            ("東京 天気", Ok("東京 天気")),
            (&longest, Ok(&longest)),
            (&long, Err("the query has 500 characters; it must have fewer than 500")),
            (" \n ", Err("the query is empty; say what to look for")),
            ("one\ntwo", Err("the query holds the character U+000A, which cannot be searched for; leave it out")),
            ("a\0b", Err("the query holds the character U+0000, which cannot be searched for; leave it out")),
            ("a\u{202e}b", Err("the query holds the character U+202E, which cannot be searched for; leave it out")),
            ("\u{1ffff}a", Err("the query holds the character U+1FFFF, which cannot be searched for; leave it out")),
            ("?!…", Err("the query has no letter and no digit; say what to look for in words")),
        ];
        for (query, expected) in cases {
            assert_eq!(checked(query).map_err(|error| error.model_text), expected.map_err(str::to_owned), "{query:?}");
        }
    }
}
