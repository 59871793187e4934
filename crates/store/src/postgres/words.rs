//! Words as the database keeps and finds them: made here, so that no setting of a server changes what is found.

use std::collections::BTreeMap;
use std::fmt::Write;

use rust_stemmers::{Algorithm, Stemmer};

use crate::words::{Phrase, is_mark, plain, spaced};

/// The longest word, in bytes; what is longer is cut. PostgreSQL takes up to 2,046.
const MOST_BYTES: usize = 400;
/// How much of a text is taken in, in bytes of different words. PostgreSQL takes up to a mebibyte.
const MOST_WORDS_BYTES: usize = 600 * 1024;
/// The last place in a text that PostgreSQL tells apart, and how many places it keeps for a word.
const PLACES: usize = 16_383;
const PLACES_PER_WORD: usize = 255;

/// The words of a text, without case and accents, in their order.
pub(super) fn words(text: &str) -> Vec<String> {
    let folded = plain(&spaced(text));
    let is_between = |sign: char| !(sign.is_alphanumeric() || is_mark(sign));
    folded.split(is_between).filter(|word| word.chars().any(char::is_alphanumeric)).map(cut).collect()
}

/// The same by their stems, as far as they are English.
pub(crate) fn stems(text: &str) -> Vec<String> {
    let stemmer = Stemmer::create(Algorithm::English);
    words(text).iter().map(|word| stem(&stemmer, word)).collect()
}

fn stem(stemmer: &Stemmer, word: &str) -> String {
    if word.is_ascii() { stemmer.stem(word).into_owned() } else { word.to_owned() }
}

fn cut(word: &str) -> String {
    let mut end = word.len().min(MOST_BYTES);
    while !word.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    word.get(..end).unwrap_or_default().to_owned()
}

/// Words as the text of a `tsvector`.
pub(crate) fn vector(words: &[String]) -> String {
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut bytes = 0_usize;
    for (word, number) in words.iter().zip(0_usize..) {
        if !places.contains_key(word.as_str()) {
            bytes = bytes.saturating_add(word.len()).saturating_add(8);
            if bytes > MOST_WORDS_BYTES {
                break;
            }
        }
        let of_word = places.entry(word).or_default();
        if of_word.len() < PLACES_PER_WORD {
            // Behind the last place it is counted anew: neighbours stay neighbours.
            of_word.push(number % PLACES + 1);
        }
    }
    let mut text = String::new();
    for (word, numbers) in places {
        // Writing to memory does not fail. A word has no quotes: it is of letters and digits.
        let _ = write!(text, "'{word}'");
        for (number, sign) in numbers.into_iter().zip(std::iter::once(':').chain(std::iter::repeat(','))) {
            let _ = write!(text, "{sign}{number}");
        }
        text.push(' ');
    }
    text
}

/// Phrases as the text of a `tsquery`: all of them, the last word of each as its beginning where it may go on. `None` where
/// nothing is looked for.
pub(super) fn all_of(phrases: &[Phrase]) -> Option<String> {
    let of = |phrase: &Phrase| {
        let parts = words(&phrase.parts.join(" "));
        if parts.is_empty() {
            return None;
        }
        let last = parts.len().saturating_sub(1);
        let goes_on = |at: usize| if at == last && phrase.goes_on { ":*" } else { "" };
        let parts: Vec<String> = parts.iter().zip(0..).map(|(part, at)| format!("'{part}'{}", goes_on(at))).collect();
        Some(format!("({})", parts.join(" <-> ")))
    };
    let wanted: Vec<String> = phrases.iter().filter_map(of).collect();
    if wanted.is_empty() { None } else { Some(wanted.join(" & ")) }
}

/// Phrases as the text of a `tsquery` of which any may be there, by stems; and the stems that count.
pub(super) fn any_of(phrases: &[Vec<String>]) -> Option<(String, Vec<String>)> {
    let mut wanted: Vec<String> = Vec::new();
    let mut counted: Vec<String> = Vec::new();
    for phrase in phrases {
        let parts = stems(&phrase.join(" "));
        if parts.is_empty() {
            continue;
        }
        let quoted: Vec<String> = parts.iter().map(|part| format!("'{part}'")).collect();
        wanted.push(format!("({})", quoted.join(" <-> ")));
        counted.extend(parts.into_iter().filter(|part| !counted.contains(part)).collect::<Vec<_>>());
    }
    if wanted.is_empty() { None } else { Some((wanted.join(" | "), counted)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_neither_case_nor_accents_and_scripts_without_spaces_are_single_signs() {
        assert_eq!(words("Über die Résumés, it's 3.5%"), ["uber", "die", "resumes", "it", "s", "3", "5"]);
        assert_eq!(words("e\u{301}t\u{e9} 学习 학습"), ["ete", "学", "习", "학", "습"]);
        assert_eq!(words("' \\ : & \u{0}"), Vec::<String>::new());
        assert_eq!(stems("Rotating the keys"), ["rotat", "the", "key"]);
    }

    #[test]
    fn a_vector_has_each_word_once_with_its_places() {
        let text = ["b", "a", "b"].map(str::to_owned);
        assert_eq!(vector(&text), "'a':2 'b':1,3 ");
        let long: Vec<String> = (0..20_000).map(|_| "x".to_owned()).collect();
        assert_eq!(vector(&long).matches(',').count(), PLACES_PER_WORD - 1);
        let many: Vec<String> = (0..200_000).map(|number| format!("word{number}")).collect();
        assert!(vector(&many).len() < 1_048_575);
    }
}
