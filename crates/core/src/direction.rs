//! Letters that nobody sees and that change in which direction others are written.

/// Whether a letter changes the direction of writing (Unicode's bidirectional controls): a name with it may look like another, such as
/// one that ends in `.png` and does not.
pub fn changes_direction(letter: char) -> bool {
    matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::changes_direction;

    #[test]
    fn marks_embeddings_overrides_and_isolates_change_the_direction_and_letters_do_not() {
        let found: Vec<char> = ('\0'..=char::MAX).filter(|letter| changes_direction(*letter)).collect();
        let marks = ['\u{61c}', '\u{200e}', '\u{200f}'];
        let expected: Vec<char> = marks.into_iter().chain('\u{202a}'..='\u{202e}').chain('\u{2066}'..='\u{2069}').collect();
        assert_eq!(found, expected);
    }
}
