//! What a question offers as arguments: quoted texts, paths, addresses, numbers, times, names.

use super::words::{is_stop_word, split, stem};

/// Something in a question that can become an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Clue {
    /// Itself, without quotation marks.
    pub(super) text: String,
    /// What it looks like.
    pub(super) shape: Shape,
    /// Whether it was in quotation marks.
    pub(super) is_quoted: bool,
    /// The word before it, in small letters; empty at the beginning.
    pub(super) before: String,
    /// Whether it was written `name=value` or `name: value`.
    pub(super) is_named: bool,
}

/// What a clue looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// `3`, `-2.5`, the number of `200ms`.
    Number,
    /// `https://…`.
    Url,
    /// `docs/a.md`, `README.md`, or a word that is called a folder or a file.
    Path,
    /// `Europe/Paris`.
    Zone,
    /// `12:30`.
    Time,
    /// `Paris`, `New York`: capital letters within a sentence.
    Name,
    /// Anything else.
    Text,
}

/// A question taken apart.
#[derive(Debug, Clone, Default)]
pub(super) struct Question {
    /// What can become an argument, in its order.
    pub(super) clues: Vec<Clue>,
    /// Everything else.
    pub(super) rest: String,
}

/// Pairs of quotation marks.
const QUOTES: &[(char, char)] = &[
    ('"', '"'),
    ('`', '`'),
    ('“', '”'),
    ('„', '“'),
    ('”', '”'),
    ('«', '»'),
    ('»', '«'),
    ('‘', '’'),
    ('‚', '‘'),
    ('‹', '›'),
    ('「', '」'),
    ('『', '』'),
    ('《', '》'),
    ('\'', '\''),
];

/// Words before a folder's name that show that it is one.
const ARTICLES: &[&str] = &["the", "in", "of", "from", "under", "inside", "below", "my", "our", "your", "a", "this", "to"];
/// Words between `the` and `folder` that name no folder.
const NOT_A_FOLDER: &[&str] =
    &["current", "same", "root", "home", "working", "whole", "first", "last", "parent", "other", "new", "following", "given"];

impl Question {
    /// Takes a text apart.
    pub(super) fn of(text: &str) -> Self {
        let mut question = Self::default();
        let mut plain = String::new();
        let mut chars = text.char_indices();
        let mut before = None;
        while let Some((at, letter)) = chars.next() {
            let quoted = QUOTES.iter().filter(|(open, _)| *open == letter).find_map(|(open, close)| {
                let rest = text.get(at + open.len_utf8()..)?;
                quoted(rest, *close, before)
            });
            before = Some(letter);
            let Some(inner) = quoted else {
                plain.push(letter);
                continue;
            };
            question.plain(&std::mem::take(&mut plain));
            question.quoted(inner);
            before = chars.nth(inner.chars().count()).map(|(_, close)| close);
        }
        question.plain(&plain);
        question
    }

    /// What was found, in the order of the text.
    fn add(&mut self, text: &str, shape: Shape, before: &str) {
        self.clues.push(Clue { text: text.to_owned(), shape, is_quoted: false, before: before.to_owned(), is_named: false });
    }

    fn quoted(&mut self, inner: &str) {
        let before = split(&self.rest).pop().unwrap_or_default();
        let is_named = self.rest.trim_end().ends_with([':', '=']);
        let shape = shape_of(inner).unwrap_or(Shape::Text);
        self.clues.push(Clue { text: inner.to_owned(), shape, is_quoted: true, before, is_named });
        self.rest.push_str(" \u{fffc} ");
    }

    fn plain(&mut self, text: &str) {
        let raw: Vec<&str> = text.split_whitespace().collect();
        let mut begins_sentence = self.rest.trim().is_empty();
        let mut index = 0;
        while let Some(word) = raw.get(index).copied() {
            let at = |offset: usize| index.checked_sub(offset).and_then(|at| raw.get(at)).copied();
            let before = at(1).map_or_else(|| split(&self.rest).pop(), |word| split(word).pop()).unwrap_or_default();
            let trimmed = trim(word);
            let mut taken = 1;
            if let Some((name, value)) = word.split_once('=').filter(|(name, value)| is_name(name) && !trim(value).is_empty()) {
                let value = trim(value);
                let shape = shape_of(value).unwrap_or(Shape::Text);
                let before = name.to_lowercase();
                self.clues.push(Clue { text: value.to_owned(), shape, is_quoted: false, before, is_named: true });
            } else if let Some(shape) = shape_of(trimmed) {
                let text = if shape == Shape::Number { number_of(trimmed).unwrap_or(trimmed) } else { trimmed };
                self.add(text, shape, &before);
            } else if is_folder(&raw, index) {
                self.add(trimmed, Shape::Path, "in");
            } else if !begins_sentence && is_capital(trimmed) {
                while raw.get(index + taken - 1).is_some_and(|word| word.ends_with(char::is_alphanumeric))
                    && raw.get(index + taken).is_some_and(|next| is_capital(trim(next)))
                {
                    taken += 1;
                }
                let name: Vec<&str> = raw.iter().skip(index).take(taken).map(|word| trim(word)).collect();
                let name = name.join(" ");
                self.add(&name, Shape::Name, &before);
                // A tool may be called by a name that a person writes with a capital letter.
                self.rest.push_str(&name);
                self.rest.push(' ');
            } else {
                self.rest.push_str(word);
                self.rest.push(' ');
            }
            let last = raw.get(index + taken - 1).copied().unwrap_or(word);
            begins_sentence = last.ends_with(['.', '!', '?', ':', '。', '！', '？']);
            index += taken;
        }
    }
}

/// The text up to the closing mark, where there is one that closes.
fn quoted(rest: &str, close: char, before: Option<char>) -> Option<&str> {
    // An apostrophe within or after a word opens nothing and closes nothing.
    if close == '\'' {
        if before.is_some_and(char::is_alphanumeric) {
            return None;
        }
        let closes = |(at, _): &(usize, &str)| {
            !rest.get(at + 1..).and_then(|after| after.chars().next()).is_some_and(char::is_alphanumeric)
        };
        let (end, _) = rest.match_indices('\'').find(closes)?;
        return rest.get(..end).filter(|inner| !inner.is_empty());
    }
    let end = rest.find(close)?;
    rest.get(..end).filter(|inner| !inner.is_empty())
}

/// Whether this can be the name of an argument.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|letter| letter.is_alphanumeric() || letter == '_' || letter == '-')
}

/// A word without the signs around it.
fn trim(word: &str) -> &str {
    let word = word.trim_start_matches(['(', '[', '{', '<', '¿', '¡', ',', ';']);
    word.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '}', '>', '…', '。', '，', '！', '？', '、'])
}

fn is_capital(word: &str) -> bool {
    word.chars().next().is_some_and(char::is_uppercase)
        && word.chars().all(|letter| letter.is_alphabetic() || letter == '-')
        && word.chars().count() > 1
        && !is_stop_word(&word.to_lowercase())
}

/// What a word or a quoted text looks like; `None` where it is only text.
fn shape_of(text: &str) -> Option<Shape> {
    if text.starts_with("http://") || text.starts_with("https://") {
        Some(Shape::Url)
    } else if number_of(text).is_some() {
        Some(Shape::Number)
    } else if is_time(text) {
        Some(Shape::Time)
    } else if text.chars().any(char::is_whitespace) {
        None
    } else if is_zone(text) {
        Some(Shape::Zone)
    } else if is_path(text) {
        Some(Shape::Path)
    } else {
        None
    }
}

/// The number of a text that is one, or one with a short unit.
pub(super) fn number_of(text: &str) -> Option<&str> {
    let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let has_digit = number.ends_with(|letter: char| letter.is_ascii_digit());
    (has_digit && text.len() - number.len() <= 3 && number.parse::<f64>().is_ok()).then_some(number)
}

fn is_time(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    let is_two = |part: &&str| part.len() == 2 && part.chars().all(|digit| digit.is_ascii_digit());
    match parts.as_slice() {
        [hours, rest @ ..] => {
            matches!(rest.len(), 1 | 2)
                && matches!(hours.len(), 1 | 2)
                && hours.chars().all(|digit| digit.is_ascii_digit())
                && rest.iter().all(is_two)
        }
        [] => false,
    }
}

/// `Area/City` and `Area/Region/City`.
fn is_zone(text: &str) -> bool {
    let is_place = |part: &str| {
        part.starts_with(char::is_uppercase)
            && part.chars().any(char::is_lowercase)
            && part.chars().all(|letter| letter.is_ascii_alphabetic() || letter == '_' || letter == '-')
    };
    matches!(text.split('/').count(), 2 | 3) && text.split('/').all(is_place)
}

fn is_path(text: &str) -> bool {
    if text.contains('/') {
        let is_choice = text.split('/').all(|part| is_stop_word(&part.to_lowercase()));
        return !is_choice && text.chars().any(char::is_alphanumeric) || text == "/";
    }
    if text == "." || text == ".." {
        return false;
    }
    match text.rsplit_once('.') {
        Some((name, ending)) => {
            let is_ending = (1..=5).contains(&ending.len())
                && ending.chars().all(|letter| letter.is_ascii_alphanumeric())
                && ending.chars().any(|letter| letter.is_ascii_alphabetic());
            (is_ending && name.chars().count() + ending.len() > 2 && !name.ends_with('.'))
                || (name.is_empty() && ending.len() > 1 && ending.chars().all(char::is_alphanumeric))
        }
        None => false,
    }
}

/// Whether the word at `index` is called a folder or a file: `the folder docs`, `a file called notes`, `the docs folder`.
fn is_folder(raw: &[&str], index: usize) -> bool {
    let word = |at: Option<usize>| at.and_then(|at| raw.get(at)).map(|word| word.to_lowercase()).unwrap_or_default();
    let itself = raw.get(index).copied().unwrap_or_default();
    let name = trim(itself).to_lowercase();
    if name.is_empty() || is_stop_word(&name) || NOT_A_FOLDER.contains(&name.as_str()) || is_noun(&name) {
        return false;
    }
    let (one, two) = (word(index.checked_sub(1)), word(index.checked_sub(2)));
    let next = word(index.checked_add(1));
    let is_called = matches!(one.as_str(), "called" | "named") && is_noun(&two);
    let is_last = itself != trim(itself) || next.is_empty() || is_stop_word(trim(&next));
    let is_after = is_noun(&one) && ARTICLES.contains(&two.as_str()) && is_last;
    let is_ahead = ARTICLES.contains(&one.as_str()) && stem(trim(&next)) == "folder" && one != "a";
    is_called || is_after || is_ahead
}

fn is_noun(word: &str) -> bool {
    matches!(stem(word).as_str(), "folder" | "fil" | "path")
}

#[cfg(test)]
mod tests {
    use super::{Question, Shape};

    fn clues(text: &str) -> Vec<(String, Shape)> {
        Question::of(text).clues.into_iter().map(|clue| (clue.text, clue.shape)).collect()
    }

    #[test]
    fn a_question_offers_what_its_shape_shows() {
        use Shape::{Name, Number, Path, Text, Time, Url, Zone};
        let cases: &[(&str, &[(&str, Shape)])] = &[
            ("Which files are in the folder docs?", &[("docs", Path)]),
            ("What is in the docs folder, please?", &[("docs", Path)]),
            ("What is in the current folder?", &[]),
            ("Which folder exists?", &[]),
            ("Make a folder called notes", &[("notes", Path)]),
            ("What does \"README.md\" say?", &[("README.md", Path)]),
            ("Read src/main.rs, .env and ./x.", &[("src/main.rs", Path), (".env", Path), ("./x", Path)]),
            ("Say 'it's fine' and don't stop", &[("it's fine", Text)]),
            ("Wait 200ms, then 3.5 and -2", &[("200", Number), ("3.5", Number), ("-2", Number)]),
            ("Is it 12:30 in Europe/Paris or in New York?", &[("12:30", Time), ("Europe/Paris", Zone), ("New York", Name)]),
            ("Fetch https://example.com/a?b=1.", &[("https://example.com/a?b=1", Url)]),
            ("Lies „Brief.txt“ und «b c» und 「日本」", &[("Brief.txt", Path), ("b c", Text), ("日本", Text)]),
            ("List with limit=5 and/or e.g. more", &[("5", Number)]),
            ("An \"unclosed quote", &[]),
        ];
        for (text, expected) in cases {
            let expected: Vec<(String, Shape)> = expected.iter().map(|(text, shape)| ((*text).to_owned(), *shape)).collect();
            assert_eq!(clues(text), expected, "{text}");
        }
    }
}
