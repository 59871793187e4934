//! Words that are spelled alike: for what was mistyped, shortened, or put together of several words.

use std::collections::HashSet;

/// What a word counts that begins another, or the other way round: `repo` and `repository`.
const SHORTENED: f32 = 0.6;
/// What a word counts that is a part of another, as in `Kalendereintrag`.
const CONTAINED: f32 = 0.5;
/// What a word counts that is spelled nearly the same.
const MISTYPED: f32 = 0.6;
/// The shortest word that is taken for a beginning or a part.
const MIN_PART: usize = 4;
/// How much of their groups of letters two words must have in common, at least.
const LIKENESS: f32 = 0.5;

/// The words among `known` that may be meant by `word`, and what they count.
pub(super) fn to<'a>(word: &str, known: impl Iterator<Item = &'a String>) -> Vec<(String, f32)> {
    if word.chars().count() < MIN_PART {
        return Vec::new();
    }
    let own = groups(word);
    let mut found = Vec::new();
    for other in known.filter(|other| other.chars().count() >= MIN_PART) {
        if other.starts_with(word) || word.starts_with(other.as_str()) {
            found.push((other.clone(), SHORTENED));
        } else if word.contains(other.as_str()) {
            found.push((other.clone(), CONTAINED));
        } else if likeness(&own, &groups(other)) >= LIKENESS {
            found.push((other.clone(), MISTYPED));
        }
    }
    found
}

/// How much two sets have in common, from 0 to 1 (Dice).
#[expect(clippy::cast_precision_loss, reason = "a word has few groups of letters")]
fn likeness(a: &HashSet<(char, char)>, b: &HashSet<(char, char)>) -> f32 {
    2.0 * a.intersection(b).count() as f32 / (a.len() + b.len()).max(1) as f32
}

/// The pairs of letters that follow one another, the word's ends among them.
fn groups(word: &str) -> HashSet<(char, char)> {
    let letters = || std::iter::once(' ').chain(word.chars());
    letters().zip(letters().skip(1).chain([' '])).collect()
}
