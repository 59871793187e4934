//! Text as the search sees it: words, and single signs of scripts that put no spaces between words. What people type becomes a
//! query in which nothing is an operator.

use turnwright_engine::knowledge::says_little;
use unicode_normalization::UnicodeNormalization;

/// How much an excerpt shows before the first word that was found, and in all, in characters.
const BEFORE: usize = 40;
const EXCERPT: usize = 160;

/// Whether words of this sign's script run together: Han, Kana, Hangul, Thai, Lao, Khmer, Burmese and Tibetan.
fn runs_together(sign: char) -> bool {
    matches!(u32::from(sign),
        0x0E00..=0x0FFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x1100..=0x11FF
        | 0x3040..=0x30FF | 0x3100..=0x312F | 0x3130..=0x318F | 0x31F0..=0x31FF
        | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xAC00..=0xD7AF | 0xF900..=0xFAFF | 0xFF66..=0xFF9D
        | 0x20000..=0x3FFFF)
}

/// A text with spaces where the tokenizer needs them.
pub(crate) fn spaced(text: &str) -> String {
    let mut spaced = String::with_capacity(text.len());
    for sign in text.chars() {
        if sign == '\0' {
            spaced.push(' ');
        } else if runs_together(sign) {
            spaced.extend([' ', sign, ' ']);
        } else {
            spaced.push(sign);
        }
    }
    spaced
}

/// The same for SQLite, whose tokenizer takes accents off Latin letters alone: without those of the others too.
pub(crate) fn unaccented(text: &str) -> String {
    spaced(&text.chars().flat_map(fold).collect::<String>())
}

/// The words that somebody typed, in lower case.
pub(crate) fn words_of(typed: &str) -> Vec<String> {
    typed.split_whitespace().map(str::to_lowercase).collect()
}

/// Words that stand behind one another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Phrase {
    /// Them; at least one.
    pub(crate) parts: Vec<String>,
    /// Whether the last may be the beginning of a longer one.
    pub(crate) goes_on: bool,
}

/// What is looked for where these words were typed: each is a phrase.
pub(crate) fn phrases(words: &[String]) -> Vec<Phrase> {
    words.iter().filter_map(|word| phrase(word)).collect()
}

fn phrase(word: &str) -> Option<Phrase> {
    let parts = parts_of(word);
    let goes_on = parts.last()?.chars().any(|sign| !runs_together(sign));
    Some(Phrase { parts, goes_on })
}

/// The words of a text, and its signs of scripts without spaces.
fn parts_of(text: &str) -> Vec<String> {
    let spaced = spaced(text);
    let signs: String = spaced.chars().map(|sign| if sign.is_alphanumeric() || is_mark(sign) { sign } else { ' ' }).collect();
    let is_word = |part: &&str| part.chars().any(char::is_alphanumeric);
    signs.split_whitespace().filter(is_word).map(str::to_owned).collect()
}

/// Whether all words that were typed are in a conversation's title, as they would be found in what was said, or in its name.
pub(crate) fn is_called(title: Option<&str>, id: &str, words: &[String]) -> bool {
    let title = plain(title.unwrap_or_default());
    let (parts, id) = (parts_of(&title), id.to_lowercase());
    let is_in_title = |word: &str| match phrase(&plain(word)) {
        Some(phrase) => parts.windows(phrase.parts.len()).any(|found| phrase.is_at(found)),
        // Signs that are no word are found as they stand.
        None => title.contains(word),
    };
    words.iter().all(|word| is_in_title(word) || id.contains(word))
}

impl Phrase {
    /// Whether these, as many as its own, are it.
    fn is_at(&self, found: &[String]) -> bool {
        let last = self.parts.len().saturating_sub(1);
        let is_one = |(place, (part, found)): (usize, (&String, &String))| {
            found == part || (self.goes_on && place == last && found.starts_with(part.as_str()))
        };
        self.parts.iter().zip(found).enumerate().all(is_one)
    }
}

/// The query for these words, as FTS5 writes it. `None` where there is nothing to look up.
pub(crate) fn query(words: &[String]) -> Option<String> {
    let phrases: Vec<String> = phrases(words).iter().map(|phrase| either(&phrase.parts, phrase.goes_on)).collect();
    if phrases.is_empty() { None } else { Some(phrases.join(" AND ")) }
}

/// The words of a question, each as FTS5 writes it.
pub(crate) fn written(asked: &[Vec<String>]) -> Vec<String> {
    asked.iter().map(|parts| either(parts, false)).collect()
}

/// A phrase as FTS5 writes it; either as it was typed or without accents, where the tokenizer would not take them off: what was taken in
/// by an older version has them still.
fn either(parts: &[String], goes_on: bool) -> String {
    let written = |parts: &str| format!("\"{parts}\"{}", if goes_on { "*" } else { "" });
    let typed = parts.join(" ");
    let folded = plain(&typed);
    if folded.is_ascii() || folded == typed {
        written(&typed)
    } else {
        format!("({} OR {})", written(&typed), written(&folded))
    }
}

/// The query for a text in which any of these words is, as FTS5 writes it, where it is known in how many texts each is. A
/// text that is found has to be looked at, and a word that is in many tells little of each: where these are more than `most` in
/// all, it is the rarest of the words alone. `None` where no text has any.
pub(crate) fn any_of(mut words: Vec<(usize, String)>, most: usize) -> Option<String> {
    words.retain(|(texts, _)| *texts > 0);
    words.sort_by_key(|(texts, _)| *texts);
    let mut found = 0_usize;
    let is_looked_up = |(texts, _): &(usize, String)| {
        let is_rarest = found == 0;
        found = found.saturating_add(*texts);
        is_rarest || found <= most
    };
    let looked_up: Vec<String> = words.into_iter().take_while(is_looked_up).map(|(_, word)| word).collect();
    if looked_up.is_empty() { None } else { Some(looked_up.join(" OR ")) }
}

/// The words of a question that say something, each once, of the first `most`. Of scripts without spaces each two signs that
/// stand together are a word.
pub(crate) fn asked(text: &str, most: usize) -> Vec<Vec<String>> {
    let spaced = spaced(text).to_lowercase();
    let signs = |sign: char| !(sign.is_alphanumeric() || is_mark(sign));
    let words: Vec<&str> = spaced.split(signs).filter(|word| !word.is_empty()).collect();
    let is_sign = |word: &str| word.chars().next().is_some_and(runs_together);
    let mut wanted: Vec<Vec<String>> = Vec::new();
    for (word, next) in words.iter().zip(words.iter().skip(1).map(Some).chain([None])) {
        let phrase = match next {
            Some(next) if is_sign(word) && is_sign(next) => vec![(*word).to_owned(), (*next).to_owned()],
            _ if is_sign(word)
                && wanted.last().is_some_and(|before| before.len() > 1 && before.last().is_some_and(|last| last == word)) =>
            {
                continue;
            }
            _ => vec![(*word).to_owned()],
        };
        if wanted.len() >= most {
            break;
        }
        if !wanted.contains(&phrase) {
            wanted.push(phrase);
        }
    }
    wanted.retain(|phrase| !says_little(&phrase.concat()));
    wanted
}

/// Signs that go with the letter before them.
pub(crate) fn is_mark(sign: char) -> bool {
    matches!(u32::from(sign), 0x0300..=0x036F | 0x0E31..=0x0E4E | 0x0900..=0x0DFF)
}

/// A text without case and accents.
pub(crate) fn plain(text: &str) -> String {
    text.chars().flat_map(fold).collect::<String>().to_lowercase()
}

/// A sign without its accents.
fn fold(sign: char) -> impl Iterator<Item = char> {
    let mut parts = std::iter::once(sign).nfd();
    let base = parts.next().unwrap_or(sign);
    let is_accented = parts.all(is_accent);
    let folded = if is_accented { base } else { sign };
    std::iter::once(folded).filter(|sign| !is_accent(*sign))
}

fn is_accent(sign: char) -> bool {
    matches!(u32::from(sign), 0x0300..=0x036F)
}

/// What a text says around the first of the words that is in it.
pub(crate) fn excerpt(text: &str, words: &[String]) -> String {
    let signs: Vec<char> = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().collect();
    // One sign for one, so that places are the same in both.
    let lower: Vec<char> = signs.iter().map(|sign| sign.to_lowercase().next().unwrap_or(*sign)).collect();
    let place = |word: &String| {
        let word: Vec<char> = word.chars().collect();
        if word.is_empty() { None } else { lower.windows(word.len()).position(|part| part == word.as_slice()) }
    };
    let at = words.iter().filter_map(place).min().unwrap_or(0);
    let from = at.saturating_sub(BEFORE);
    let part: String = signs.iter().skip(from).take(EXCERPT).collect();
    let is_cut = signs.len() > from.saturating_add(EXCERPT);
    format!("{}{}{}", if from > 0 { "…" } else { "" }, part.trim(), if is_cut { "…" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_typed_is_words_and_never_an_operator() {
        let table = [
            ("fox", Some("\"fox\"*")),
            ("Lazy DOG", Some("\"lazy\"* AND \"dog\"*")),
            ("a OR \"b", Some("\"a\"* AND \"or\"* AND \"b\"*")),
            ("text:NEAR(x*,2)^", Some("\"text near x 2\"*")),
            ("学习", Some("\"学 习\"")),
            ("Rust学习", Some("\"rust 学 习\"")),
            ("résumé", Some("\"résumé\"*")),
            ("Йод", Some("(\"йод\"* OR \"иод\"*)")),
            ("-- ; ' ()", None),
            ("", None),
        ];
        for (typed, expected) in table {
            assert_eq!(query(&words_of(typed)).as_deref(), expected, "{typed}");
        }
    }

    #[test]
    fn a_title_has_a_word_where_one_of_its_own_begins_so() {
        let has = |title: &str, typed: &str| is_called(Some(title), "conv_7", &words_of(typed));
        for typed in ["invoice", "INV", "inv résu", "q3-rep", "q3 rep", "2024", "conv_7", "résumé conv", "&"] {
            assert!(has("Invoices & Résumés: Q3-Report 2024", typed), "{typed}");
        }
        for typed in ["voice", "sumes", "port", "q3-repo2", "report-q3", "024", "invoice 7x", "%"] {
            assert!(!has("Invoices & Résumés: Q3-Report 2024", typed), "{typed}");
        }
        assert!(has("新的学习计划", "学习") && !has("新的学习计划", "习学"));
        assert!(!is_called(None, "c1", &words_of("voice")) && is_called(None, "c1", &words_of("C1")));
    }

    #[test]
    fn a_question_is_any_of_its_words_that_say_something() {
        let table: [(&str, &[&str]); 5] = [
            ("How do I rotate the API key?", &["\"rotate\"", "\"api\"", "\"key\""]),
            ("the \"AND\" of NEAR( text:x", &["\"near\"", "\"text\"", "\"x\""]),
            ("what is the", &[]),
            ("学习 Rust", &["\"学 习\"", "\"rust\""]),
            ("-- ;", &[]),
        ];
        for (question, expected) in table {
            assert_eq!(written(&asked(question, 8)), expected, "{question}");
        }
        assert_eq!(written(&asked("one two three two", 2)), ["\"one\"", "\"two\""]);
    }

    #[test]
    fn of_words_that_are_in_very_many_texts_the_rarest_are_looked_up() {
        let of = |words: &[(usize, &str)], most| {
            any_of(words.iter().map(|(texts, word)| (*texts, (*word).to_owned())).collect(), most)
        };
        let words = [(900, "system"), (3, "flange"), (0, "nowhere"), (40, "bolt")];
        assert_eq!(of(&words, 1_000).as_deref(), Some("flange OR bolt OR system"));
        assert_eq!(of(&words, 100).as_deref(), Some("flange OR bolt"));
        assert_eq!(of(&words, 1).as_deref(), Some("flange"));
        assert_eq!(of(&[(900, "system"), (901, "user")], 100).as_deref(), Some("system"));
        assert_eq!(of(&[(0, "nowhere")], 100), None);
        assert_eq!(of(&[], 100), None);
    }

    #[test]
    fn an_excerpt_shows_what_is_around_the_word() {
        let text = format!("{} the\n Needle is here {}", "hay ".repeat(50), "straw ".repeat(50));
        let shown = excerpt(&text, &words_of("needle"));
        assert!(shown.starts_with('…') && shown.ends_with('…') && shown.contains("the Needle is here"), "{shown}");
        assert_eq!(excerpt("short", &words_of("missing")), "short");
        assert_eq!(excerpt("我喜欢学习。", &words_of("学习")), "我喜欢学习。");
    }
}
