//! Words as they are compared: small, without accents and endings, and none that say nothing.

use rust_stemmers::{Algorithm, Stemmer};

/// Words that are in every question and every description, in the languages that questions come in.
const SAID_ANYHOW: &[&str] = &[
    "a", "about", "all", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "could", "do", "does",
    "for", "from", "give", "has", "have", "he", "her", "here", "his", "how", "i", "if", "in", "into", "is", "it", "its",
    "just", "let", "like", "me", "my", "need", "of", "on", "one", "or", "our", "out", "please", "she", "so", "some", "that",
    "the", "their", "them", "then", "there", "these", "they", "this", "those", "to", "up", "us", "use", "want", "was", "we",
    "were", "what", "when", "where", "which", "who", "will", "with", "would", "you", "your", "der", "die", "das", "den", "dem",
    "des", "ein", "eine", "einen", "einem", "einer", "und", "oder", "ist", "im", "zu", "zum", "zur", "mit", "von", "fur",
    "auf", "mir", "mich", "ich", "bitte", "wie", "was", "wer", "le", "la", "les", "un", "une", "des", "du", "de", "et", "ou",
    "est", "pour", "dans", "avec", "sur", "mon", "ma", "mes", "je", "moi", "el", "los", "las", "una", "unos", "y", "o", "es",
    "para", "en", "con", "mi", "mis", "por", "que", "quiero",
];

/// The words of a text or of a name such as `createPullRequest`, in order; a word of several parts is there as a whole too.
pub(super) fn words(text: &str) -> Vec<String> {
    let stemmer = Stemmer::create(Algorithm::English);
    let mut found = Vec::new();
    let (mut whole, mut part) = (String::new(), String::new());
    let mut before = None::<char>;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let begins_part = letter.is_uppercase()
            && before.is_some_and(|before| {
                before.is_lowercase() || (before.is_uppercase() && letters.peek().is_some_and(|next| next.is_lowercase()))
            });
        if letter.is_alphanumeric() {
            if begins_part {
                whole.push_str(&part);
                take(&stemmer, &mut part, &mut found);
            }
            plain(letter, &mut part);
        } else {
            if !whole.is_empty() {
                whole.push_str(&part);
            }
            take(&stemmer, &mut part, &mut found);
            take(&stemmer, &mut whole, &mut found);
            if letter == '@' && before.is_some_and(char::is_alphanumeric) {
                found.push(stemmer.stem("email").into_owned());
            }
        }
        before = Some(letter);
    }
    if !whole.is_empty() {
        whole.push_str(&part);
    }
    take(&stemmer, &mut part, &mut found);
    take(&stemmer, &mut whole, &mut found);
    found
}

/// The stem of a word that is one already.
pub(super) fn stem(word: &str) -> String {
    Stemmer::create(Algorithm::English).stem(word).into_owned()
}

fn take(stemmer: &Stemmer, word: &mut String, found: &mut Vec<String>) {
    if !word.is_empty() && !SAID_ANYHOW.contains(&word.as_str()) {
        found.push(stemmer.stem(word).into_owned());
    }
    word.clear();
}

/// A letter as it is written without accents.
fn plain(letter: char, word: &mut String) {
    for letter in letter.to_lowercase() {
        let plain = match letter {
            'à' | 'á' | 'â' | 'ã' | 'ä' | 'å' | 'ā' | 'ą' => 'a',
            'ç' | 'ć' | 'č' => 'c',
            'è' | 'é' | 'ê' | 'ë' | 'ē' | 'ę' | 'ě' => 'e',
            'ì' | 'í' | 'î' | 'ï' | 'ī' => 'i',
            'ñ' | 'ń' | 'ň' => 'n',
            'ò' | 'ó' | 'ô' | 'õ' | 'ö' | 'ø' | 'ō' => 'o',
            'ù' | 'ú' | 'û' | 'ü' | 'ū' | 'ů' => 'u',
            'ý' | 'ÿ' => 'y',
            'š' | 'ś' => 's',
            'ž' | 'ź' | 'ż' => 'z',
            'ł' => 'l',
            other => other,
        };
        if plain == 'ß' { word.push_str("ss") } else { word.push(plain) }
    }
}
