//! Words of a command that is shown to people, so that it runs as it stands.

/// A word as a shell takes it: as it is where nothing in it means anything to one, else in quotes.
pub fn shell_word(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_./:=@%+,".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::shell_word;

    #[test]
    fn what_a_shell_would_part_or_put_in_is_quoted() {
        for (word, expected) in [
            ("files", "files"),
            ("größe-1", "größe-1"),
            ("my server", "'my server'"),
            ("it's $HOME", r"'it'\''s $HOME'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(word), expected);
        }
    }
}
