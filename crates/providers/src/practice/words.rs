//! Texts as words that can be compared: small letters, without endings, the same word for the same thing.

/// Words that say nothing about which tool is meant.
const STOP_WORDS: &[&str] = &[
    "a", "about", "all", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "call", "can", "could", "did",
    "do", "does", "for", "from", "get", "give", "had", "has", "have", "he", "her", "here", "him", "his", "how", "i", "if",
    "in", "into", "is", "it", "its", "just", "let", "like", "may", "me", "might", "must", "my", "need", "no", "not", "now",
    "of", "on", "or", "our", "out", "please", "shall", "she", "should", "so", "some", "tell", "than", "that", "the", "their",
    "them", "then", "there", "these", "they", "this", "those", "to", "tool", "tools", "use", "using", "want", "was", "we",
    "were", "what", "when", "where", "which", "who", "why", "will", "with", "would", "yes", "you", "your", "me", "us", "s",
    "t",
];

/// Words for the same thing, as stems; the first stands for all.
const SAME: &[&[&str]] = &[
    &["folder", "directory", "dir"],
    &["search", "find", "grep"],
    &["run", "execut"],
    &["delet", "remov"],
    &["sum", "add", "plu"],
    &["echo", "repeat"],
    &["writ", "sav"],
    &["edit", "replac"],
    &["fetch", "download"],
];

/// Whether a word says nothing about which tool is meant. Takes it in small letters.
pub(super) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.contains(&word)
}

/// The words of a text that say something, as stems, in their order.
pub(super) fn words_of(text: &str) -> Vec<String> {
    split(text).into_iter().filter(|word| !is_stop_word(word)).map(|word| stem(&word)).collect()
}

/// The words of a text in small letters. Words end where letters and digits end, where a small letter meets a capital
/// one, and where a script that is written without spaces begins.
pub(super) fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut before: Option<char> = None;
    for letter in text.chars() {
        let is_part = letter.is_alphanumeric();
        let begins = before.is_some_and(|before| {
            (before.is_lowercase() && letter.is_uppercase()) || is_unspaced(before) != is_unspaced(letter)
        });
        if (!is_part || begins) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if is_part {
            word.extend(letter.to_lowercase());
        }
        before = is_part.then_some(letter);
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// Han, Kana and Thai: written without spaces between words.
fn is_unspaced(letter: char) -> bool {
    matches!(letter, '\u{e00}'..='\u{e7f}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

/// A word without its ending: plurals, verb forms, the silent e. Only English ones are known; other words stay.
pub(super) fn stem(word: &str) -> String {
    let stem = without_ending(word);
    SAME.iter()
        .find(|same| same.contains(&stem.as_str()))
        .and_then(|same| same.first())
        .map_or(stem, |first| (*first).to_owned())
}

fn without_ending(word: &str) -> String {
    let is_long_enough = |rest: &str, least: usize| rest.chars().count() >= least;
    if let Some(rest) = word.strip_suffix("ies").filter(|rest| is_long_enough(rest, 2)) {
        return format!("{rest}y");
    }
    for ending in ["ing", "ed"] {
        if let Some(rest) = word.strip_suffix(ending).filter(|rest| is_long_enough(rest, 3)) {
            return single_end(rest);
        }
    }
    let hisses = |rest: &&str| ["s", "x", "z", "ch", "sh"].iter().any(|end| rest.ends_with(end));
    let word = match word.strip_suffix("es").filter(hisses) {
        Some(rest) => rest,
        None => {
            word.strip_suffix('s').filter(|rest| is_long_enough(rest, 3) && !rest.ends_with(['s', 'u', 'i'])).unwrap_or(word)
        }
    };
    let word = word.strip_suffix('e').filter(|rest| is_long_enough(rest, 3)).unwrap_or(word);
    word.to_owned()
}

/// `runn` as `run`.
fn single_end(word: &str) -> String {
    let mut letters = word.chars().rev();
    let is_double = matches!((letters.next(), letters.next()), (Some(a), Some(b)) if a == b && !"aeioulsz".contains(a));
    let mut word = word.to_owned();
    if is_double || word.ends_with('e') {
        word.pop();
    }
    word
}

#[cfg(test)]
mod tests {
    use super::{split, words_of};

    #[test]
    fn forms_of_a_word_are_the_same_word() {
        let same = [
            "file files",
            "write writes writing",
            "search searches searched finding",
            "directory directories folders",
            "run runs running execute",
            "time times",
            "list lists listed",
            "city cities",
            "say says",
            "message messages",
        ];
        for words in same {
            let mut stems = words_of(words);
            stems.dedup();
            assert_eq!(stems.len(), 1, "{words}: {stems:?}");
        }
    }

    #[test]
    fn different_words_stay_different() {
        let mut stems = words_of("status stat class glass this bus process");
        let count = stems.len();
        stems.sort();
        stems.dedup();
        assert_eq!(stems.len(), count);
    }

    #[test]
    fn words_end_at_signs_capitals_and_scripts() {
        assert_eq!(split("get_current-time getCurrentTime"), ["get", "current", "time", "get", "current", "time"]);
        assert_eq!(split("用time工具 café ÜBER"), ["用", "time", "工具", "café", "über"]);
    }
}
